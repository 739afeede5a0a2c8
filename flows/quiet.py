"""Environment in which nothing phones home; imported before Prefect."""

import os

OFFLINE = {
    "DO_NOT_TRACK": "true",
    "DVC_NO_ANALYTICS": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
}

for _key, _value in OFFLINE.items():
    os.environ.setdefault(_key, _value)
