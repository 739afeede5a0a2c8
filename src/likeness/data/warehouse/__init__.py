"""Rows that stay in their database: typed, hashed, split and counted there, by SQL that a reviewer can read."""
