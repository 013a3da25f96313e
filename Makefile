# `make demo` and `make test` need only Python >= 3.11 and make.
PYTHON ?= python3
VENV := .venv
LOCK := requirements.lock
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
READY := $(VENV)/.ready
DEMO_READY := $(VENV)/.demo
COMPILED = NUMBA_CACHE_DIR=$$($(BIN)/python tests/support/compiled.py)
WORKERS = $$($(BIN)/python -c 'import os; print(os.cpu_count() or 1)')
PARALLEL = -n $(WORKERS) --dist worksteal
PYTEST = $(COMPILED) $(BIN)/python -m pytest $(PARALLEL)
# Slow tests often wait for processes, sockets and databases: one worker more than cores keeps these busy.
PYTEST_WAITING = $(COMPILED) $(BIN)/python -m pytest -n $$(($(WORKERS) + 1)) --dist worksteal
MINUTES ?= 5
export PIP_DISABLE_PIP_VERSION_CHECK = 1
# Test workers share compiled bytecode.
export PYTHONDONTWRITEBYTECODE =

.PHONY: help demo install test test-slow test-long spark client-generator test-all test-lowest fuzz coverage check hooks docs bench dist build-and-check lock clean

help:
	@echo "make demo         learn to advise two players of a game and write a page that shows the result"
	@echo "make install      install everything into $(VENV) from the lock file"
	@echo "make test         run the quick tests (three to four minutes on two cores the first time, which compiles)"
	@echo "make test-slow    run the slow tests: statistics, processes, browser, database, reproductions"
	@echo "make test-long    run the large statistical studies of which the slow tests have small versions"
	@echo "make spark        install Spark, so that the slow tests run on it too (430 MB; needs Java)"
	@echo "make client-generator  install the generator of clients that the slow tests of the HTTP API use"
	@echo "make test-all     run the quick and the slow tests"
	@echo "make test-lowest  run make test with the lowest versions of all dependencies"
	@echo "make fuzz         test the claims that hold for any seed with fresh seeds (MINUTES=60 for an hour)"
	@echo "make coverage     run make test and report which lines it runs, including compiled kernels"
	@echo "make check        check style, spelling, types and the direction of imports"
	@echo "make hooks        run the pre-commit hooks on every file"
	@echo "make docs         run the examples and build the documentation into docs/_build/html"
	@echo "make bench        measure against peers on this machine (15 minutes) and write the benchmarks page"
	@echo "make dist         build and check the wheel and the sdist"
	@echo "make lock         update the lock files (needs uv)"
	@echo "make clean        remove the environments, caches and files that these targets create"

# The demo needs only some packages; where everything is installed, it installs nothing.
demo: $(if $(wildcard $(READY)),$(READY),$(DEMO_READY))
	@rm -rf demo
	$(BIN)/counsel demo -o demo

install: $(READY)
	@echo "Counsel is installed: source $(BIN)/activate, then counsel --help"

test: $(READY)
	$(PYTEST) -m "not slow and not docs"

test-slow: $(READY)
	$(PYTEST_WAITING) -m "slow and not long and not docs" --durations=60 --durations-min=4

# Every night on GitHub, and before a release.
test-long: $(READY)
	$(PYTEST) -m long

# Spark has 430 MB and needs Java: its tests are skipped where it is not installed.
spark: $(VENV)/.spark

# The generator needs an older Typer than Counsel, so it has an environment inside the environment.
client-generator: $(VENV)/client-generator/.ready

test-all: test test-slow

# The lowest version of every dependency that pyproject.toml allows, on the oldest Python. Old packages raise deprecation
# warnings about their own newer dependencies; these do not concern our code.
test-lowest:
	PYTEST_ADDOPTS="-W ignore::DeprecationWarning" $(MAKE) test VENV=.venv-lowest LOCK=requirements-lowest.lock

fuzz: $(READY)
	$(COMPILED) $(BIN)/python tools/fuzz.py --minutes $(MINUTES)

# The lines of compiled kernels count because tests/test_jit_off.py runs them as plain Python.
coverage: $(READY)
	$(PYTEST) -m "not slow and not docs" --cov --cov-report=term

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/mypy
	$(BIN)/lint-imports

hooks: $(READY)
	$(BIN)/pre-commit run --all-files --show-diff-on-failure

docs: $(READY)
	@rm -rf docs/_gallery docs/_build
	$(PYTEST) -m docs tests/project/test_pages.py tests/project/test_gallery.py
	$(COMPILED) $(BIN)/python -m sphinx -q -W --keep-going docs docs/_build/html
	$(BIN)/python tools/check_site.py docs/_build/html
	@echo "Open docs/_build/html/index.html"

# Six areas, one after the other (under 15 minutes on two cores), then the page and README's table. Results are kept by machine.
bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks.planning
	$(BIN)/python -m benchmarks.simulation
	$(BIN)/python -m benchmarks.learning
	$(BIN)/python -m benchmarks.baselines
	$(BIN)/python -m benchmarks.logs
	$(BIN)/python -m benchmarks.service
	$(BIN)/python tools/benchmark_pages.py

# Runs in an environment that has only the build tools. TAG=v1.2.3, if given, must match the version.
dist:
	$(MAKE) build-and-check VENV=.venv-release LOCK=tools/release.lock

build-and-check: $(READY)
	@rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python tools/check_dist.py dist $${TAG:+"$$TAG"}

# Lock files are complete, so pip need not resolve anything (--no-deps).
$(READY): $(LOCK) pyproject.toml | $(BIN)/python
	@echo "Installing the locked packages into $(VENV) (once; one to three minutes)"
	@$(BIN)/python -m pip install --quiet --no-deps --require-hashes -r $(LOCK)
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@ $(DEMO_READY)

# The demo imports few of the installed modules; Python compiles those on import (--no-compile).
$(DEMO_READY): requirements-demo.lock pyproject.toml | $(BIN)/python
	@echo "Installing the packages of the demo into $(VENV) (once; half a minute)"
	@$(BIN)/python -m pip install --quiet --no-deps --no-compile --require-hashes -r requirements-demo.lock
	@$(BIN)/python -m pip install --quiet --no-deps --no-compile --no-build-isolation -e .
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("Counsel needs Python 3.11 or newer; this is " + sys.version.split()[0] + ": run make with e.g. PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.spark: $(READY) tests/spark.lock
	@$(BIN)/python -m pip install --quiet --no-deps --require-hashes -r tests/spark.lock
	@touch $@

$(VENV)/client-generator/.ready: $(READY) tests/client-generator.lock
	@$(BIN)/python -m venv --clear $(VENV)/client-generator
	@$(VENV)/client-generator/bin/python -m pip install --quiet --no-deps --require-hashes -r tests/client-generator.lock
	@touch $@

$(VENV)/.bench: $(READY) benchmarks/requirements.lock
	@$(BIN)/python -m pip install --quiet --require-hashes -r benchmarks/requirements.lock
	@touch $@

# Lock files contain versions and hashes, but no index address. uv keeps the versions of an existing lock file where it
# can: delete the file first to get the newest versions. The lock files of the demo and of the container are subsets of
# requirements.lock.
COMPILE := uv pip compile --generate-hashes --no-header --no-annotate --no-emit-index-url
EXTRAS := --extra draw --extra parquet --extra logs --extra report --extra service --extra cluster
lock:
	$(COMPILE) --universal $(EXTRAS) --group dev --group docs pyproject.toml -o requirements.lock
	$(COMPILE) --universal --extra draw --group build --constraint requirements.lock pyproject.toml -o requirements-demo.lock
	$(COMPILE) --universal --extra parquet --extra service --group build --constraint requirements.lock pyproject.toml -o requirements-service.lock
	$(COMPILE) --python-version 3.11 --python-platform linux --resolution lowest-direct $(EXTRAS) --group dev --group docs --group lowest pyproject.toml -o requirements-lowest.lock
	$(COMPILE) --universal benchmarks/requirements.in -o benchmarks/requirements.lock
	$(COMPILE) --universal tools/release.in -o tools/release.lock
	$(COMPILE) --universal tests/spark.in -o tests/spark.lock
	$(COMPILE) --universal tests/client-generator.in -o tests/client-generator.lock

clean:
	rm -rf $(VENV) .venv-lowest .venv-release demo dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage*
