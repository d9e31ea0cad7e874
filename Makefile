# Every target sets up what it needs. There are two virtual environments: .venv holds the checkout itself, to work with
# (demo, bench, docs, develop), and .venv-test the wheel that users would install, to test (test, boundscheck).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TEST_VENV := .venv-test
TEST_BIN := $(TEST_VENV)/bin
# Interpreters of `make smoke`; those that the machine lacks are named and left out.
PYTHONS ?= 3.11 3.12 3.13
# Two test processes share two cores: a BLAS that starts its own threads in each only slows both down.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
PYTEST := $(ONE_THREAD) $(TEST_BIN)/python -m pytest -n 2 --dist worksteal
# Folders too: theirs is the time stamp that changes when a file is deleted.
SOURCES := $(shell find src -name __pycache__ -prune -o -print)
# The tests start a hundred processes: without the bytecode of what they import, each would compile it all again.
unexport PYTHONDONTWRITEBYTECODE
# Give Me Some Credit and ProPublica may not be redistributed: tests read them from here, or skip.
export EQUIRECOURSE_DATA ?= $(wildcard ../shared/data)

.PHONY: demo test bench lint compile docs develop smoke boundscheck clean

demo: $(VENV)/installed
	$(BIN)/equirecourse equalize --dataset credit --group graduate --jobs 2 --html report.html --save fair.skops

test: $(TEST_VENV)/wheel-installed $(TEST_VENV)/browser
	$(MAKE) --jobs 2 lint compile
	$(PYTEST)

bench: $(VENV)/installed-bench
	$(BIN)/python -m benchmarks

lint: $(TEST_VENV)/tools-installed
	$(TEST_BIN)/ruff check .
	$(TEST_BIN)/ruff format --check .
	$(TEST_BIN)/mypy

# Both test processes would compile the same functions at the same time: compile them once, while mypy reads.
compile: $(TEST_VENV)/wheel-installed
	$(ONE_THREAD) $(TEST_BIN)/python tools/compile.py

docs: $(VENV)/installed-docs
	$(BIN)/python -m sphinx -W -b html docs docs/_build/html

# To work on the code: the checkout itself and all tools. `.venv/bin/pytest tests/metrics` then tests the source tree.
develop: $(VENV)/installed-test

# The wheel on several Pythons with the newest dependencies, and on the oldest Python with the lowest ones.
smoke:
	tools/smoke.sh $(PYTHONS)

# Before each release: compiled code that looks beyond the ends of an array raises IndexError instead of reading there.
boundscheck: $(TEST_VENV)/wheel-installed $(TEST_VENV)/browser
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/$(TEST_VENV)/boundscheck $(PYTEST)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml | $(BIN)/python
	tools/install.sh $(BIN)/python -e .
	touch $@

$(VENV)/installed-%: pyproject.toml | $(BIN)/python
	tools/install.sh $(BIN)/python -e ".[$*]"
	touch $@ $(VENV)/installed

$(TEST_BIN)/python:
	$(PYTHON) -m venv $(TEST_VENV)

$(TEST_VENV)/tools-installed: pyproject.toml | $(TEST_BIN)/python
	tools/install.sh $(TEST_BIN)/python -e ".[test]"
	touch $@

$(TEST_VENV)/wheel-installed: $(TEST_VENV)/tools-installed $(SOURCES)
	tools/install_wheel.sh $(TEST_BIN)/python
	touch $@

$(TEST_VENV)/browser: $(TEST_VENV)/tools-installed
	tools/browser.sh $(TEST_BIN)/python
	touch $@

clean:
	rm -rf $(VENV) $(TEST_VENV) build dist docs/_build .pytest_cache .mypy_cache .ruff_cache
