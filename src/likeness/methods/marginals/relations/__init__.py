"""Relations between the columns of a row, which the release finds: candidates, choices, acceptance, and repair."""
