"""Adjacency, sensitivity, receipts, calibration, accounting, noise and the ledger. Knows no data."""
