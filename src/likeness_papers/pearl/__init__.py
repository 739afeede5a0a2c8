"""PEARL: characteristic function, modes, critic."""
