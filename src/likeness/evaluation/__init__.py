"""What a synthetic table is worth, in numbers. They come from real rows: internal, NOT private."""
