# `make demo` and `make test` need nothing but Python 3.11, git and a C compiler: they set the project up themselves.

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.ready

.PHONY: help setup demo demo-pipeline bench test check sim campaign lint clean

help: ## what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 15

setup: $(STAMP) ## the virtual environment, with everything in it

$(STAMP): pyproject.toml spark/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed (set PYTHON=…)"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv || { rm -rf .venv; echo "no venv module: on Debian, apt-get install python3-venv"; exit 1; }
	@echo "setting up .venv (once)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]' -e ./spark
	@touch $@

demo: $(STAMP) ## three nodes, the leader killed under load, nothing lost
	@$(BIN)/strandline demo

demo-pipeline: $(STAMP) ## events become a table through Spark, while a leader and the pipeline are killed
	@$(BIN)/strandline demo pipeline

bench: $(STAMP) ## throughput of the cluster that `strandline up` runs; options in ARGS="…"
	@$(BIN)/strandline bench $(ARGS)

test: check ## all checks and all tests

check: lint ## ruff, strict types, layers, tests, simulated clusters
	$(BIN)/python -m pytest -q -n 2
	$(BIN)/strandline sim --seeds 51..100 --twice --jobs 2

sim: $(STAMP) ## more simulated clusters than the tests have; SEEDS=FIRST..LAST
	$(BIN)/strandline sim --seeds $(or $(SEEDS),1..1000)

campaign: $(STAMP) ## mutants of the source that tests must find, seeds, the model, a storm; MUTANTS="…" SEEDS=… MODEL="…" STORM="…" JOBS=…
	$(BIN)/python -m tests.mutants --page
	$(BIN)/python -m tests.mutants --jobs $(or $(JOBS),2) $(MUTANTS)
	$(BIN)/strandline sim --seeds $(or $(SEEDS),1001..2000) --jobs $(or $(JOBS),2)
	$(BIN)/strandline model $(MODEL)
	$(BIN)/python -m tests.cluster.storm $(or $(STORM),--seed 1 --minutes 10)

lint: $(STAMP) ## ruff, strict types, layers
	$(BIN)/ruff check src tests spark
	$(BIN)/ruff format --check src tests spark spark
	$(BIN)/mypy
	$(BIN)/lint-imports

clean: ## forget the virtual environment and what tools left
	rm -rf .venv .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
