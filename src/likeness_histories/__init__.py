"""People with histories: two linked tables, whose rows of a person belong together."""
