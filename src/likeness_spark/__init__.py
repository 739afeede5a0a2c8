"""Rows that stay in Spark: its executors sum their part of the rows by the pass of the core."""
