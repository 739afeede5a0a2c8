"""When and where stages run; DVC decides which. Importing this package keeps every tool below it from phoning home."""

from os import environ

# Read by Prefect, DVC and MLflow when they are imported, and passed on to every stage. A set value wins.
QUIET = {
    "DO_NOT_TRACK": "true",
    "DVC_NO_ANALYTICS": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
}
for _name, _value in QUIET.items():
    environ.setdefault(_name, _value)
