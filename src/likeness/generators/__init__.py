"""Networks, objectives and the training loop: they see released values and public maps only."""
