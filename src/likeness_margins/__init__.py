"""Margins of error beyond those of ``likeness estimate``: least squares, tables of the model, and replicates."""
