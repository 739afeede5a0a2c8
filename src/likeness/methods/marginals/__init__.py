"""Pairs of columns by class, and a mixture of products."""
