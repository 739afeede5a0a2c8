"""Prefect starts runs, and MLflow mirrors them. Both read variables when they are imported. A set value wins."""

import os

import likeness.flows  # noqa: F401  (it keeps both from phoning home)

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "3")  # the default waits for minutes
os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")  # a bar for each small file
os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")  # its database tells of every migration
