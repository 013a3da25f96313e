# Two commands need nothing but Python >= 3.11 and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
COMPILED = NUMBA_CACHE_DIR=$$($(BIN)/python tests/support/compiled.py)
WORKERS = $$($(BIN)/python -c 'import os; print((os.cpu_count() or 1) + 1)')
PYTEST = $(COMPILED) $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal
MINUTES ?= 5
export PIP_DISABLE_PIP_VERSION_CHECK = 1
export PYTHONDONTWRITEBYTECODE =

.PHONY: help demo test test-slow test-all fuzz coverage check docs bench lock clean

help:
	@echo "make demo   learn to advise two players of a game, and draw it"
	@echo "make test   run the tests (two to three minutes on two cores)"
	@echo "make test-all  the same, and then make test-slow: statistics, killed processes, browser, database, reproductions"
	@echo "make test-slow  the slow tests alone"
	@echo "make fuzz MINUTES=5  the claims that hold for any seed, with fresh seeds"
	@echo "make coverage  which lines the tests run, compiled kernels included"
	@echo "make docs   build the documentation into docs/_build/html"
	@echo "make bench  measure against peers (15 minutes), and write the page about it"
	@echo "make check  style, types, direction of imports"
	@echo "make lock   write the lock anew (needs uv);  make clean  remove what these made"

demo: $(READY)
	$(BIN)/counsel learn flappy-bird/greedy --share advice -o demo/greedy
	$(BIN)/counsel learn flappy-bird/safe --share advice -o demo/safe
	@echo "Regret is what all games so far fell short of the best advice, in stars; the value gap what a game still does."
	@echo "Open demo/greedy/regret.png and demo/safe/regret.png (what learning cost),"
	@echo "and demo/greedy/policy.csv and demo/safe/policy.csv (what to say where)."
	@echo "Then play yourself: $(BIN)/counsel serve --demo and open http://127.0.0.1:8000/play"

test: $(READY)
	$(PYTEST) -m "not slow and not docs"

test-slow: $(READY)
	$(PYTEST) -m "slow and not docs"

test-all: test test-slow

fuzz: $(READY)
	$(COMPILED) $(BIN)/python tools/fuzz.py --minutes $(MINUTES)

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(READY)
	@rm -rf docs/_gallery docs/_build
	$(PYTEST) -m docs tests/project/test_pages.py tests/project/test_gallery.py
	$(COMPILED) $(BIN)/python -m sphinx -q -W --keep-going docs docs/_build/html
	$(BIN)/python docs/check_site.py docs/_build/html
	@echo "Open docs/_build/html/index.html"

# Six areas, one after the other (under 15 minutes on two cores); then the page and README's table.
bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks.planning
	$(BIN)/python -m benchmarks.simulation
	$(BIN)/python -m benchmarks.learning
	$(BIN)/python -m benchmarks.baselines
	$(BIN)/python -m benchmarks.logs
	$(BIN)/python -m benchmarks.service
	$(BIN)/python docs/benchmarks.py

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Counsel needs Python 3.11 or newer; this is " + sys.version.split()[0] + ": run make with PYTHON=python3.12, say" if sys.version_info < (3, 11) else 0)'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing the locked packages into $(VENV) (once; one to three minutes)"
	@$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.bench: $(READY) benchmarks/requirements.lock
	@$(BIN)/python -m pip install --quiet --require-hashes -r benchmarks/requirements.lock
	@touch $@

# Versions and hashes only: no index address is written.
lock:
	uv pip compile --universal --generate-hashes --no-header --no-annotate --no-emit-index-url --extra draw --extra logs --extra report --extra service --extra cluster --group dev --group docs pyproject.toml -o requirements.lock
	uv pip compile --universal --generate-hashes --no-header --no-annotate --no-emit-index-url benchmarks/requirements.in -o benchmarks/requirements.lock

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
