# make run: set up and run the main job on the embedded sample.   make test: set up and pass the tests.
# A fresh machine needs Python 3.11 or later with venv, and nothing else.

PYTHON ?= python3
VENV ?= .venv
HOME_DIR ?= data
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.DEFAULT_GOAL := help
.PHONY: help setup run test check format lint types contracts docs-check docs dev clean

help:
	@echo "make run    build the sample: tables, figures, report (no network but the package registry)"
	@echo "make test   the test suite"
	@echo "make check  format, lint, types, import contracts, tests, docs: what CI runs"
	@echo "make dev    Dagster's page with its state inside the home folder ($(HOME_DIR))"

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) pip
	$(PIP) --editable '.[offline,dev]'
	touch $@

setup: $(VENV)/.installed

run: setup
	$(BIN)/kappa run --sample --home $(HOME_DIR)

test: setup
	$(BIN)/python -m pytest

check: lint types contracts test docs-check

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: setup
	$(BIN)/mypy

contracts: setup
	$(BIN)/lint-imports

docs: setup
	$(BIN)/python -m assets.docs.pages

docs-check: setup
	$(BIN)/python -m assets.docs.pages --check

dev: setup
	mkdir -p $(HOME_DIR)
	$(BIN)/python -c "from assets.commands.running import instance_folder; from warehouse.home.home import Home; from pathlib import Path; instance_folder(Home(Path('$(HOME_DIR)')))"
	KAPPA_HOME=$(abspath $(HOME_DIR)) DAGSTER_HOME=$(abspath $(HOME_DIR))/dagster $(BIN)/dagster dev

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
