"""Networks that the methods train, and the arithmetic of maps that need PyTorch."""
