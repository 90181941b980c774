# The two main commands are `make demo` and `make test`. Each creates .venv first.
VENV := .venv
PYTHON ?= python3
RUN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test slow lint style types tests docs bench clean
.DEFAULT_GOAL := demo

$(STAMP): pyproject.toml constraints.txt
	@test -x $(RUN)/python || $(PYTHON) -m venv $(VENV)
	$(RUN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[test]"
	@touch $@

demo: $(STAMP)  ## generate with the packaged model, evaluate, draw a figure
	$(RUN)/python examples/demo.py demo

test: $(STAMP) style  ## lint, types and tests; types are checked while the tests run
	@$(MAKE) --no-print-directory -j 2 types tests CHOSEN='-m "not slow"'

slow: $(STAMP)  ## the longest tests: clusters, several processes, kills, packaged weights, the site
	@$(MAKE) --no-print-directory tests CHOSEN='-m slow'

lint: style types

style: $(STAMP)
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .

types: $(STAMP)
	$(RUN)/mypy

tests: $(STAMP)
	$(RUN)/python -m pytest $(CHOSEN)

docs: $(STAMP)  ## the site, its gallery executed, in docs/_build/html; no warning is tolerated
	$(RUN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[docs]"
	$(RUN)/python -m sphinx -W --keep-going docs docs/_build/html
	@echo "open docs/_build/html/index.html"

bench: $(STAMP)  ## speeds on a CPU as in docs/speed.md; others: benchmarks/
	$(RUN)/python benchmarks/prepare.py
	$(RUN)/python benchmarks/generate.py -n 4

clean:
	rm -rf $(VENV) demo docs/_build docs/api docs/auto_gallery .pytest_cache .mypy_cache .ruff_cache .hypothesis
