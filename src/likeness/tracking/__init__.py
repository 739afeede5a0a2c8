"""Runs in MLflow. Its variables are set here, because MLflow reads them when it is imported. A set value wins."""

import os

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "3")  # the default waits for minutes
os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")  # a bar for each small file
os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")  # its database tells of every migration
