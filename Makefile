# Every target works from a fresh clone: .venv is made when it is missing and renewed when the requirements change.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin
PIP := $(RUN)/python -m pip install --quiet --disable-pip-version-check
WORKERS ?= 2

.DEFAULT_GOAL := help
.PHONY: help demo test slow nightly browser fuzz gpu lint bench docs wheel clean

help: ## what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-7s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.demo ## score a few sentences with the embedded model
	$(RUN)/python examples/demo.py

test: $(VENV)/.ready ## the tests, but for the slow ones
	$(RUN)/python -m pytest -n $(WORKERS) -m "not slow and not nightly"

slow: $(VENV)/.ready ## the slow tests
	$(RUN)/python -m pytest -n $(WORKERS) -m "slow and not nightly"

nightly: $(VENV)/.ready ## simulated experiments of the lab with ten seeds; an hour and more on two cores
	$(RUN)/python -m pytest -m nightly

browser: $(VENV)/.browser ## the explorer in a real browser (make test runs this too where one is found)
	$(RUN)/python -m pytest tests/explorer

fuzz: $(VENV)/.ready ## 20,000 hostile command lines and 5,000 calls; half an hour (FUZZ_SEED=1 for others)
	PYTHONPATH=. $(RUN)/python -m tests.fuzz

gpu: $(VENV)/.ready ## the tests that need CUDA or Triton
	$(RUN)/python -m pytest -m gpu

lint: $(VENV)/.ready ## ruff, mypy (strict), the layers, the house rules and banned wording
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .
	$(RUN)/mypy
	$(RUN)/lint-imports
	$(RUN)/python lint/house_rules.py
	$(RUN)/python lint/style.py

bench: $(VENV)/.bench ## besag beside its peers, in a small setting (BENCH="--full" for the published one)
	$(RUN)/python benchmarks/scoring.py $(BENCH)

docs: $(VENV)/.docs ## the pages, into site/html/
	$(RUN)/sphinx-build --quiet --fail-on-warning --keep-going -b html docs site/html

wheel: $(VENV)/.ready ## wheel and sdist, into dist/; the wheel is tried in an environment of its own
	rm -rf dist build/trial
	$(RUN)/python -m hatchling build
	$(PYTHON) -m venv build/trial
	build/trial/bin/python -m pip install --quiet --disable-pip-version-check "$$(grep '^torch==' constraints.txt)"
	build/trial/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt dist/*.whl
	cd build/trial && HF_HUB_OFFLINE=1 bin/besag score "The cat sleeps." --format table

clean: ## remove everything made here
	rm -rf $(VENV) build dist site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(RUN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "besag needs Python 3.11 or newer, but '$(PYTHON)' is $$($(PYTHON) --version 2>&1)." >&2; \
	    echo "Name a newer one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# What the demo needs, and no developer's tools. torch first and alone: pip then takes the build that suits this
# machine, and what follows finds it installed.
$(VENV)/.demo: pyproject.toml constraints.txt | $(RUN)/python
	$(PIP) "$$(grep '^torch==' constraints.txt)"
	$(PIP) -c constraints.txt -e '.[plot]'
	@touch $@

$(VENV)/.ready: $(VENV)/.demo
	$(PIP) -c constraints.txt -e '.[dev]'
	@touch $@

# Playwright drives the Chromium of the system's packages; it brings none of its own.
$(VENV)/.browser: $(VENV)/.ready
	$(PIP) -c constraints.txt -e '.[browser]'
	@for name in chromium chromium-browser google-chrome; do command -v $$name > /dev/null && exit 0; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends chromium; \
	else echo "no Chromium was found: install it, as by apt install chromium, and make browser again" >&2; exit 1; fi
	@touch $@

$(VENV)/.bench: benchmarks/requirements.txt $(VENV)/.ready
	$(PIP) -c constraints.txt -r benchmarks/requirements.txt
	@touch $@

$(VENV)/.docs: $(VENV)/.ready
	$(PIP) -c constraints.txt -e '.[docs]'
	@touch $@
