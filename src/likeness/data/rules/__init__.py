"""Public rules between columns: what a codebook or a law says about every record."""
