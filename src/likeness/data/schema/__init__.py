"""The public schema: columns, their kinds, and the rules between them."""
