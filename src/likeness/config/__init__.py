"""params.yaml as frozen settings."""
