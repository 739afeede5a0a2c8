"""What can be refused before anything is spent."""
