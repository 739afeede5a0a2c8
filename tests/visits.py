"""The example of people with visits: its schema, and tables with fewer people."""

import runpy

import yaml
from small_project import ROOT

EXAMPLE = ROOT / "examples/histories"
TABLES = runpy.run_path(str(EXAMPLE / "make_tables.py"))["tables"](400)
SCHEMA = yaml.safe_load((EXAMPLE / "schema.yaml").read_text())
