"""The first schema of a new table, drafted and completed with a person."""
