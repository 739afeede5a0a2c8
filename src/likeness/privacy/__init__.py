"""Adjacency, sensitivity, receipts, calibration, accounting, noise and the ledger. Knows nothing of data or features."""
