"""A run: from the source to the account."""
