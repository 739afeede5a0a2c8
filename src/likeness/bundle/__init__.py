"""The release bundle: all that may be published about a run."""
