"""Words of all floors: errors, random numbers, hashes, bounds, paths."""
