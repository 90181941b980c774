# Two commands do everything: `make demo` and `make test`. Each sets up .venv first.
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

demo: $(STAMP)  ## generate with the model inside the package, judge it, draw a picture
	$(RUN)/python examples/demo.py demo

test: $(STAMP) lint  ## lint, types and the whole test suite
	$(RUN)/python -m pytest

quick: $(STAMP) lint  ## the same without the slowest tests
	$(RUN)/python -m pytest -m "not slow"

lint: $(STAMP)
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .
	$(RUN)/mypy

bench: $(STAMP)  ## the measured speeds of docs/benchmarks.md
	$(RUN)/python benchmarks/prepare.py

clean:
	rm -rf $(VENV) demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
