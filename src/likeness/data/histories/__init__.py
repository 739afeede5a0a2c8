"""People with histories: the public schema of two linked tables, and the rows of both that one person makes."""
