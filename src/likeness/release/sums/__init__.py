"""Exact sums of private rows."""
