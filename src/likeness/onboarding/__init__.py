"""A person's own table: a draft of its schema, what is missing or wrong in it, and what a run would cost and give."""
