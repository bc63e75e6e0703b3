# make run    one cycle: the first makes everything, each further one goes on from the last
# make test   install what tests need and run them
PYTHON ?= python3
SANDBOX ?= auto
HOME_FOLDER ?= .flywheel
CONFIG ?=
VENV := .venv
PIP := $(VENV)/bin/python -m pip --disable-pip-version-check install --quiet
TORCH := torch==2.13.0
TORCH_CPU_INDEX := https://download.pytorch.org/whl/cpu

.PHONY: run test check image clean

run: $(VENV)/.installed
	@$(VENV)/bin/flywheel run --sandbox $(SANDBOX) --home $(HOME_FOLDER) $(if $(CONFIG),--config $(CONFIG))

test: $(VENV)/.tested
	$(VENV)/bin/python -m pytest -n auto --dist loadfile

check: $(VENV)/.tested
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

image:
	docker/sandbox/build.sh

clean:
	rm -rf $(VENV) .flywheel build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

# PyTorch's CPU build is a tenth of the size of the default one on Linux: take it where it can be had.
$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Python 3.11 or newer is needed: make run PYTHON=python3.12"; exit 1; }
	@echo "installing into $(VENV) (once) ..."
	@test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	@$(PIP) --retries 0 --timeout 8 --index-url $(TORCH_CPU_INDEX) $(TORCH) 2>/dev/null || $(PIP) $(TORCH)
	@$(PIP) -e .
	@touch $@

$(VENV)/.tested: $(VENV)/.installed
	@$(PIP) -e '.[test]'
	@touch $@
