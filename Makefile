# `make` alone is what a change must pass. Everything runs from .venv, which `make install` makes from constraints.txt;
# all that is needed beforehand is Python 3.11 or newer, with venv, and make.

PYTHON ?= python3
LISTEN ?= 127.0.0.1:7420
DATA_DIR ?= compass-data

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
RELEASED := tests/contract/released.binpb
FROZEN := tests/contract/frozen
CACHES := .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist

# buf finds python and its plugins by PATH.
export PATH := $(CURDIR)/$(BIN):$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: all install demo serve test lint format types imports proto proto-check proto-release bench clean help

all: lint types imports proto-check test ## Everything that a change must pass (the default)

install: $(INSTALLED) ## Make .venv with compass-trace and compass-trace-server

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Python 3.11 or newer is needed and '$(PYTHON)' is not it: make install PYTHON=/path/to/python3" >&2; exit 1; }
	@echo "installing into $(VENV), which takes a minute or two"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt hatchling
	$(BIN)/python -m pip install --quiet -c constraints.txt --no-build-isolation -e '.[server,stream,otel,dev]'
	@touch $@

demo: $(INSTALLED) ## Play recordings of real agents into a server of its own and tail them, in under a minute
	$(BIN)/python examples/demo.py

serve: $(INSTALLED) ## Run the server on LISTEN with DATA_DIR
	$(BIN)/compass-trace-server --listen $(LISTEN) --data-dir $(DATA_DIR)

test: $(INSTALLED) ## Run the tests
	$(BIN)/python -m pytest

lint: $(INSTALLED) ## Check style and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(INSTALLED) ## Mend style and format where that can be done without thought
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/buf format --write

types: $(INSTALLED) ## Check types
	$(BIN)/mypy

imports: $(INSTALLED) ## Check that imports point down the floors only
	$(BIN)/lint-imports

proto: $(INSTALLED) ## Generate client/compass/v1 from proto
	$(BIN)/buf generate

proto-check: $(INSTALLED) ## Check the contract: style, compatibility, and that the generated code is current
	$(BIN)/buf lint
	$(BIN)/buf format --diff --exit-code
	$(BIN)/buf breaking --against $(FROZEN)
	$(BIN)/buf breaking --against $(RELEASED)
	@fresh=$$(mktemp -d) && trap 'rm -rf "$$fresh"' EXIT && $(BIN)/buf generate --output "$$fresh" 2>"$$fresh/log" \
	  || { cat "$$fresh/log" >&2; exit 1; }; \
	diff -r -x __init__.py -x __pycache__ "$$fresh/client/compass/v1" client/compass/v1 \
	  || { echo "client/compass/v1 differs from what proto gives: make proto" >&2; exit 1; }

proto-release: proto-check ## Take the contract as it is into the image that later changes may not break (at a release)
	$(BIN)/buf build --exclude-source-info --output $(RELEASED)

bench: $(INSTALLED) ## Run every benchmark; each prints JSON, and at the end comes a table of values and targets
	PYTHONPATH=bench $(BIN)/python -m harness

clean: ## Remove .venv and every cache; data stays
	rm -rf $(VENV) $(CACHES)
	find client service tests bench examples tools -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

help: ## Say what the targets do
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r name what; do \
	  printf '%-14s %s\n' "$$name" "$$what"; done
