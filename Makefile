# Every target sets up what it needs: a virtual environment in .venv, then the package in it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Two test processes share two cores: a BLAS that starts its own threads in each only slows both down.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
INSTALL := tools/install.sh $(BIN)/python
# Give Me Some Credit and ProPublica may not be redistributed: tests read them from here, or skip.
export EQUIRECOURSE_DATA ?= $(wildcard ../shared/data)

.PHONY: demo test bench lint compile docs clean

demo: $(VENV)/installed
	$(BIN)/equirecourse equalize --dataset credit --group sex --jobs 2 --html report.html --save fair.skops

test: $(VENV)/installed-test $(VENV)/browser
	$(MAKE) --jobs 2 lint compile
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 --dist worksteal

bench: $(VENV)/installed-bench
	$(BIN)/python -m benchmarks

lint: $(VENV)/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Both test processes would compile the same functions at the same time: compile them once, while mypy reads.
compile: $(VENV)/installed-test
	$(ONE_THREAD) $(BIN)/python tools/compile.py

docs: $(VENV)/installed-docs
	$(BIN)/python -m sphinx -W -b html docs docs/_build/html

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml | $(BIN)/python
	$(INSTALL) -e .
	touch $@

$(VENV)/installed-%: pyproject.toml | $(BIN)/python
	$(INSTALL) -e ".[$*]"
	touch $@ $(VENV)/installed

$(VENV)/browser: $(VENV)/installed-test
	tools/browser.sh $(BIN)/python
	touch $@

clean:
	rm -rf $(VENV) build dist docs/_build .pytest_cache .mypy_cache .ruff_cache
