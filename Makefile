# Seven verbs: race, test, check, docs, operating, bench, bench-peers. Each works on a fresh clone and makes its environment.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TORCH ?= torch==2.13.0
PEERS := .venv-peers
ARGS ?=

.PHONY: race test check docs operating bench bench-peers env clean

race: env ## the bundled race on a real model: prints the verdict page and the path of report.html
	$(BIN)/deadheat race addition --workers 2 --out runs/addition --resume

test: env ## the whole test suite
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadgroup

check: env ## format, lint, types, import contract
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: env ## examples in docstrings, and that the pages say of the code what the code says
	$(BIN)/python -m pytest --no-header -p no:cacheprovider src tests/test_docs*.py

operating: env ## counts every printed level on 2,000 drawn tables a cell, about half an hour; ARGS="--only looks" for some
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.operating $(ARGS)

bench: env ## ratios against named peers and slow twins, with machine facts
	$(BIN)/python benchmarks/engine.py
	$(BIN)/python benchmarks/stats.py
	$(BIN)/python benchmarks/audit.py

bench-peers: env $(PEERS)/.installed ## against TRL and transformers in an environment of their own; ARGS="--smoke" to try it
	cd benchmarks && ../$(BIN)/python -m peers $(ARGS)

env: $(VENV)/.installed

# torch first, by an exact version: a range would let the resolver take a build of several GB for another device.
$(VENV)/.installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet $(TORCH)
	$(BIN)/python -m pip install --quiet --editable ".[train,dev]"
	touch $@

$(PEERS)/.installed: benchmarks/peers/requirements.txt
	test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --upgrade pip
	$(PEERS)/bin/python -m pip install --quiet $(TORCH)
	$(PEERS)/bin/python -m pip install --quiet --requirement $<
	touch $@

clean: ## removes the environment and caches; runs/ stays
	rm -rf $(VENV) $(PEERS) .mypy_cache .ruff_cache .pytest_cache .hypothesis
