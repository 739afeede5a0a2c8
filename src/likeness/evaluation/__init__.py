"""The worth of a synthetic table in numbers. They come from real rows: internal, NOT private."""
