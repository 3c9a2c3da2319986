# Two commands for a fresh machine: `make demo` shows the tool on a small text, `make test` runs the
# tests. Both make their own environment in .venv; they need Python 3.10 or newer and a C++17 compiler.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO := out/demo
TEXT := tests/data/tiny_shakespeare.txt

.PHONY: help demo test check docs clean

help:
	@echo "make demo   install into $(VENV), then train, encode, verify and show a small text"
	@echo "make test   install with what the tests need, then run them"
	@echo "make check  lint and types"
	@echo "make docs   write the guides and the API reference to build/docs"
	@echo "make clean  remove the environment, the demo's output and the HTML"

.PHONY: needs
needs:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null \
	  || { echo "Python 3.10 or newer is missing: install it, or name it with make PYTHON=..."; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
	  || { echo "Python's venv module is missing (Debian: apt-get install python3-venv)"; exit 1; }
	@command -v $${CXX:-c++} >/dev/null || command -v g++ >/dev/null \
	  || { echo "a C++17 compiler is missing (Debian: apt-get install g++ python3-dev)"; exit 1; }

$(BIN)/beam-bpe: pyproject.toml setup.py | needs
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet -e .
	@touch $@

$(VENV)/.test: $(BIN)/beam-bpe
	$(BIN)/pip install --quiet -e '.[test]'
	@touch $@

demo: $(BIN)/beam-bpe
	$(BIN)/beam-bpe train --input $(TEXT) --vocab-size 1024 --output $(DEMO)/tokenizer
	$(BIN)/beam-bpe encode --input $(TEXT) --tokenizer $(DEMO)/tokenizer --output $(DEMO)/tokens
	$(BIN)/beam-bpe verify $(DEMO)/tokens
	$(BIN)/beam-bpe head $(DEMO)/tokens --rows 1

test: $(VENV)/.test
	$(BIN)/pytest

check: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

$(VENV)/.docs: $(BIN)/beam-bpe
	$(BIN)/pip install --quiet -e '.[docs]'
	@touch $@

docs: $(VENV)/.docs
	$(BIN)/mkdocs build --quiet
	@echo "open build/docs/index.html"

clean:
	rm -rf $(VENV) $(DEMO) build/docs
