# All set-up goes into .venv, once; README.md has the same in plain pip. PYTHON=/path/to/python chooses another.
PYTHON ?= python3 python3.13 python3.12 python3.11
VENV := .venv
BIN := $(VENV)/bin
RECENT := import sys; sys.exit(sys.version_info < (3, 11))

.PHONY: lab demo test lint build bench bench-attention bench-gpu
lab: $(VENV)/base.stamp
	@$(BIN)/course lab
demo: $(VENV)/instructor.stamp
	@$(BIN)/course demo
build: $(VENV)/instructor.stamp
	@$(BIN)/course build
test: $(VENV)/dev.stamp
	@$(BIN)/pytest -q -n auto -m "not slow"
	@$(BIN)/pytest -q -n auto --dist loadfile -m slow
lint: $(VENV)/dev.stamp
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/pyright
bench: $(VENV)/instructor.stamp
	@$(BIN)/python benchmarks/grading_speed.py
bench-attention bench-gpu: $(VENV)/base.stamp
	@$(BIN)/python benchmarks/attention_speed.py --device $(if $(filter bench-gpu,$@),cuda,cpu)

# Each kind of set-up holds the smaller ones, so it stamps them too.
$(VENV)/base.stamp: STAMPS = base
$(VENV)/instructor.stamp: EXTRAS = [instructor]
$(VENV)/instructor.stamp: STAMPS = base instructor
$(VENV)/dev.stamp: EXTRAS = [instructor,cluster,dev]
$(VENV)/dev.stamp: STAMPS = base instructor dev
$(VENV)/%.stamp: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing into $(VENV): the first time this downloads PyTorch and takes some minutes."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".$(EXTRAS)"
	@cd $(VENV) && touch $(STAMPS:=.stamp)

$(BIN)/python:
	@for name in $(PYTHON); do "$$name" -c '$(RECENT)' 2>/dev/null || continue; \
	  "$$name" -c 'import ensurepip, venv' 2>/dev/null && exec "$$name" -m venv $(VENV); \
	  echo "$$name cannot make a virtual environment; on Debian or Ubuntu: apt-get install python3-venv" >&2; exit 1; \
	done; echo "Python 3.11 or later is needed; install it, or name it: make PYTHON=/path/to/python" >&2; exit 1
