"""The mathematics: adjacency, sensitivity, receipts, calibration, accounting, noise. No module here reads data."""
