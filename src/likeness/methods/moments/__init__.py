"""Cosine moments of images."""
