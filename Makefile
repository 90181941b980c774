# The two main commands are `make demo` and `make test`. Each creates .venv first.
VENV := .venv
PYTHON ?= python3
RUN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test quick lint bench clean
.DEFAULT_GOAL := demo

$(STAMP): pyproject.toml constraints.txt
	@test -x $(RUN)/python || $(PYTHON) -m venv $(VENV)
	$(RUN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[test]"
	@touch $@

demo: $(STAMP)  ## generate with the packaged model, evaluate, draw a figure
	$(RUN)/python examples/demo.py demo

test: $(STAMP) lint  ## lint, types and all tests
	$(RUN)/python -m pytest

quick: $(STAMP) lint  ## the same without the slowest tests
	$(RUN)/python -m pytest -m "not slow"

lint: $(STAMP)
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .
	$(RUN)/mypy

bench: $(STAMP)  ## speeds on a CPU as in the README, section Speed; others: benchmarks/
	$(RUN)/python benchmarks/prepare.py
	$(RUN)/python benchmarks/generate.py -n 4

clean:
	rm -rf $(VENV) demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
