# make install: what developers need. make demo: the whole pipeline on the bundled Adult table. make docs: the site.
# make quick: lint, types, floors, tests that start and train nothing. make test: all but the slow ones.
# make test-slow: those. make test-all: all. make without WING=papers: the tree without a wing. make ci: these and the site.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Nothing phones home: not DVC, not MLflow, not Prefect.
export DVC_NO_ANALYTICS = 1
export DO_NOT_TRACK = true
export MLFLOW_DISABLE_TELEMETRY = true
export PREFECT_SERVER_ANALYTICS_ENABLED = false
export PIP_DISABLE_PIP_VERSION_CHECK = 1
# DVC runs `python`: it must be this one.
export PATH := $(abspath $(BIN)):$(PATH)

# A second run takes the compiled tests of the first.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo install quick test test-slow test-all ci fuzz lint style types quick-tests most-tests all-tests without docs clean
# Folders whose tests all start programs: a quick run need not import what they import.
STARTING = evidence/tests tests/flows tests/orchestration tests/pipeline
PYTEST = $(BIN)/python -m pytest --dist loadgroup --no-loadscope-reorder

# Of 22,000 modules a quarter is imported: Python compiles these by itself, and pip need not compile all.
# The newest pip needs a third of the time of an old one to find the versions.
$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv --upgrade-deps $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt --editable '.[dev,docs]'
	touch $@

install: $(VENV)/.installed

# What the pipeline needs, unless developers' packages are there, which include it.
$(VENV)/.pipeline: pyproject.toml constraints.txt
	test -e $(VENV)/.installed || $(PYTHON) -m venv --upgrade-deps $(VENV)
	test -e $(VENV)/.installed || $(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[pipeline,evaluate]'
	touch $@

demo: $(VENV)/.pipeline
	$(BIN)/likeness ledger init --if-absent
	$(BIN)/likeness run

dvc.yaml: src/likeness/stages/__init__.py
	$(BIN)/python -c 'from likeness.stages import dvc_yaml; print(dvc_yaml(), end="")' > $@

lint: style types

style: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed
	$(BIN)/lint-imports
	$(BIN)/mypy

# mypy works beside the tests, on the second core.
quick: style
	$(MAKE) --jobs 2 types quick-tests

quick-tests: $(VENV)/.installed
	$(PYTEST) --numprocesses 2 -m "not slow and not process and not long" $(addprefix --ignore=,$(STARTING))

test: style
	$(MAKE) --jobs 2 types most-tests

# Modules of tests and packages are compiled once, not by each worker.
$(VENV)/.compiled: $(VENV)/.installed
	-$(PYTEST) --collect-only -qqq > /dev/null
	touch $@

# Three workers on two cores: tests that start programs wait a third of their time.
most-tests: $(VENV)/.compiled
	$(PYTEST) --numprocesses 3 -m "not slow"

# Both in one go: what tests share is made once.
test-all: style
	$(MAKE) --jobs 2 types all-tests

# What types, site and wings compute fits where tests wait.
ci: style
	$(MAKE) --jobs 2 all-tests types docs without WING='$(WINGS)'

all-tests: $(VENV)/.compiled
	$(PYTEST) --numprocesses 3

test-slow: $(VENV)/.installed
	$(PYTEST) --numprocesses 3 -m slow

# The property tests again, with other examples every time and more of them.
fuzz: $(VENV)/.installed
	LIKENESS_FUZZ=$${LIKENESS_FUZZ:-20} $(BIN)/python -m pytest --numprocesses 2 tests/data/test_fuzz.py

# A copy of the tree without a wing, and without all of them, passes the contract tests and a run.
WINGS = papers images histories postgres spark orchestration margins
without: $(VENV)/.installed
	$(BIN)/python scripts/without.py $(or $(WING),$(WINGS) all)

docs: $(VENV)/.installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) site .mypy_cache .ruff_cache .hypothesis
