"""Typed rows as numbers, each row by itself."""
