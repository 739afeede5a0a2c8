"""Private sources, read and typed row by row."""
