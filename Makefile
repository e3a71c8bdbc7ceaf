# Everything here needs nothing but Python 3.11, git and a C compiler: each target installs what it needs, once.

SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -ec
PYTHON ?= python3
BIN := .venv/bin
CORE := .venv/.core
SPARK := .venv/.spark
DEV := .venv/.dev
DOCS := .venv/.docs
# Where it is set, each process would compile every module anew, and pytest rewrite each test file.
unexport PYTHONDONTWRITEBYTECODE
# $(call install,WHAT,ARGUMENTS): pip, and of what it says what it fetches and how many packages it installs.
install = @echo "installing $(1) into .venv (once)"; \
	$(BIN)/python -m pip install --disable-pip-version-check --progress-bar off $(2) | awk ' \
	/^Collecting / { printf "  package %d: %s\n", ++n, $$2 } \
	/^ *Downloading .*MB\)/ { print "    fetching " $$(NF - 1) " " $$NF } \
	/^Building wheels/ { print "  building " substr($$0, index($$0, ":") + 2) } \
	/^Installing collected/ { print "  unpacking " NF - 3 " packages" } \
	{ fflush() }'; touch $@

.PHONY: help setup quick demo demo-pipeline bench docs test check sim campaign lint ruff types layers units collected clean

help: ## what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 15

setup: $(DEV) ## the virtual environment, with everything in it

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed (set PYTHON=…)"; exit 1; }
	@$(PYTHON) -m venv .venv || { rm -rf .venv; echo "no venv module: on Debian, apt-get install python3-venv"; exit 1; }

$(CORE): pyproject.toml | $(BIN)/python
	$(call install,strandline,-e '.[clients]')

$(SPARK): spark/pyproject.toml $(CORE)
	$(call install,Spark and a Java (1.5 GB),-e ./spark)

$(DEV): $(SPARK)
	$(call install,what tests need,-e '.[dev]')

$(DOCS): pyproject.toml | $(BIN)/python
	$(call install,what the documentation needs,-e '.[docs]')

demo: $(CORE) ## three nodes, the leader killed under load, nothing lost
	@$(BIN)/strandline demo

demo-pipeline: $(SPARK) ## events become a table through Spark, while a leader and the pipeline are killed
	@$(BIN)/strandline demo pipeline

bench: $(CORE) ## throughput of the cluster that `strandline up` runs; options in ARGS="…"
	@$(BIN)/strandline bench $(ARGS)

quick: $(DEV) ## within a minute: ruff, strict types, layers, and unit tests that start nothing
	@$(MAKE) --no-print-directory --jobs --output-sync=target units types layers ruff

units: $(DEV)
	$(BIN)/python -m pytest -q -n 2 --dist loadgroup -m 'not long and not slow' tests/unit tests/tidy tests/wire

test: check ## all checks and all tests

# Four on two cores: at any time about two wait, for sessions to end, for nodes to start or for Java.
check: $(DEV) ## ruff, strict types, layers, tests, simulated clusters
	@$(MAKE) --no-print-directory --jobs --output-sync=target types collected layers ruff
	$(BIN)/python -m pytest -q -n 4 --dist loadgroup
	$(BIN)/strandline sim --seeds 51..56 --twice --jobs 2

# Beside mypy, which has one core to itself: pytest compiles each test file once, which four workers would do each.
collected: $(DEV)
	$(BIN)/python -m pytest -q --collect-only | grep -v ::

sim: $(CORE) ## more simulated clusters than the tests have; SEEDS=FIRST..LAST
	$(BIN)/strandline sim --seeds $(or $(SEEDS),60000001..60001000)

campaign: $(DEV) ## mutants of the source that tests must find, seeds, the model, a storm; MUTANTS="…" SEEDS=… MODEL="…" FUZZ=MINUTES STORM="…" JOBS=…
	$(BIN)/python -m tests.mutants --page
	$(BIN)/python -m tests.mutants --jobs $(or $(JOBS),2) $(MUTANTS)
	$(BIN)/python -m pytest -q -n $(or $(JOBS),2) --dist loadgroup -m long
	$(BIN)/strandline sim --seeds $(or $(SEEDS),50001001..50002000) --jobs $(or $(JOBS),2)
	$(BIN)/strandline model $(MODEL)
	$(BIN)/strandline model transactions
	$(BIN)/python -m tests.fuzz --minutes $(or $(FUZZ),10)
	$(BIN)/python -m tests.cluster.storm $(or $(STORM),--seed 1 --minutes 10)

lint: ruff types layers ## ruff, strict types, layers

ruff: $(DEV)
	$(BIN)/ruff check src tests spark conftest.py
	$(BIN)/ruff format --check src tests spark conftest.py

types: $(DEV)
	$(BIN)/mypy

layers: $(DEV)
	$(BIN)/lint-imports

docs: $(DOCS) ## the documentation as a site in build/site; a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

clean: ## forget the virtual environment and what tools left
	rm -rf .venv .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
