"""The door: the only code that sums private rows, and the only way a value leaves them."""
