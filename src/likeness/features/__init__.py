"""Feature maps that several methods share, and what a map is."""
