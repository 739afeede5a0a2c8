"""Rows that stay in PostgreSQL: typed, hashed, split and counted there, by SQL that a reviewer can read."""
