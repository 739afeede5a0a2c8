"""Preflight checks: faults and costs that are visible before a run spends anything."""
