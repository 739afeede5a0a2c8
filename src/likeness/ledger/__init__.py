"""The ledger: what was asked of whom, and what may still be asked."""
