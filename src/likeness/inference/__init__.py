"""Estimates with margins of error from noisy counts that are released, without rows and without a model."""
