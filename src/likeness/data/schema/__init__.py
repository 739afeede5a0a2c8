"""The public schema."""
