# The commands of this project. Others script against them: names stay.
#
# One rule: every target works in a fresh clone with nothing but Python and this file, and none of them touches
# anything outside this folder but temporary files.

PYTHON ?= python3
# Chaos: how many seeds, hence how many different orders of faults.
SEEDS ?= 3
# Fuzzing: for how long, and the seed of a run to replay (printed by every run).
FUZZ_MINUTES ?= 10
SEED ?=
# Random settlements: how many. `make test` does a share of them.
SETTLEMENTS ?= 1000000
PYTEST_ARGS ?= -n 3

VENV := .venv
BIN := $(VENV)/bin
# Written last: an install that was interrupted leaves no stamp, and the next make starts it anew.
READY := $(VENV)/ready
# What the benches measure us against, in an environment of its own: made by bench/webhook_peers.py.
PEERS := .peers-venv

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help
help: ## List the commands
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(READY): requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
		|| { echo "Python 3.11 or newer is needed; '$(PYTHON)' is not. Name one: make PYTHON=python3.12 …" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null \
		|| { echo "'$(PYTHON)' cannot make virtual environments. On Debian: apt-get install python3-venv" >&2; exit 1; }
	@echo "installing into $(VENV) (once per change of requirements.lock)"
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@touch $@

.PHONY: install
install: $(READY) ## Install everything into .venv

.PHONY: demo
demo: $(READY) ## Run one round from OPEN to CLOSED with simulated operators, and verify it
	@$(BIN)/python -m deploy.demo

.PHONY: demo-full
demo-full: $(READY) ## Run coordinator, two nodes and fifty players, thrice: plain, no-webhooks, kill (VARIANT names one)
	@$(BIN)/python -m deploy.demo_full $(VARIANT)

.PHONY: run
run: $(READY) ## Run the coordinator here, sandbox mode (PORT, DATA_DIR); Ctrl-C stops it
	@exec $(BIN)/python -m deploy.run

.PHONY: run-player
run-player: $(READY) ## Run an operator's node beside it (OPERATOR=1..3, PORT, DATA_DIR, COORDINATOR_URL); Ctrl-C stops it
	@exec $(BIN)/python -m deploy.run_player

.PHONY: test
test: $(READY) ## Run all tests but the long ones (PYTEST_ARGS)
	$(BIN)/python -m pytest -m "not chaos and not edge" $(PYTEST_ARGS)

.PHONY: chaos
chaos: $(READY) ## Run the fault suite (SEEDS=n for more)
	CHAOS_SEEDS=$(SEEDS) $(BIN)/python -m pytest -m chaos tests/chaos tests/player

.PHONY: test-settlements
test-settlements: $(READY) ## Settle a million random rounds beside a second implementation (SETTLEMENTS, SEED)
	@seed=$${SEED:-$$(date +%s)}; echo "SETTLEMENTS=$(SETTLEMENTS) SEED=$$seed"; \
		SETTLEMENTS=$(SETTLEMENTS) SEED=$$seed $(BIN)/python -m pytest tests/protocol/test_many_settlements.py $(PYTEST_ARGS)

.PHONY: test-edge
test-edge: $(READY) ## Run Debian's nginx with deploy/nginx.conf before the coordinator (needs nginx-light)
	@PATH="$$PATH:/usr/sbin" command -v nginx >/dev/null \
		|| { echo "nginx is needed for this. On Debian: apt-get install nginx-light" >&2; exit 1; }
	$(BIN)/python -m pytest -m edge tests/edge

.PHONY: fuzz
fuzz: $(READY) ## Send the running service what its published document allows, and what not (FUZZ_MINUTES, SEED)
	@FUZZ_MINUTES=$(FUZZ_MINUTES) SEED=$(SEED) $(BIN)/python -m tests.fuzz

.PHONY: bench bench-ingest bench-match bench-proofs bench-reads bench-round bench-seal bench-webhooks
bench: bench-ingest bench-match bench-proofs bench-reads bench-seal bench-webhooks ## Measure everything, as ratios within one run; bench-NAME measures one

bench-reads: $(READY)
	@$(BIN)/python -m bench.reads

bench-seal: $(READY)
	@$(BIN)/python -m bench.seal

# Installs what it measures us against into $(PEERS) first, once per change of bench/peers.lock.
bench-webhooks: $(READY)
	@$(BIN)/python -m bench.webhooks

bench-ingest: $(READY)
	@$(BIN)/python -m bench.ingest

# TICKETS=n for a smaller round; ten million take 4 GB of disk meanwhile.
bench-match: $(READY)
	@$(BIN)/python -m bench.match

bench-proofs: $(READY)
	@$(BIN)/python -m bench.proofs

# Whole rounds of 100,000, a million and TICKETS tickets (default ten million: three to ten minutes, 6 GB of disk meanwhile).
# Not part of `make bench`: it would be half of it, and wants a machine of its own.
bench-round: $(READY) ## Play whole rounds of up to TICKETS tickets against the real thing (10,000,000; 6 GB of disk)
	@$(BIN)/python -m bench.round

.PHONY: lint
lint: $(READY) ## Check style, types, layers and that migrations match the models
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m deploy.engines -- sh -c 'alembic upgrade head && alembic check'
	$(BIN)/python -m deploy.engines -- sh -c 'alembic -c player/alembic.ini upgrade head && alembic -c player/alembic.ini check'

PIN = env -u PIP_FIND_LINKS -u PIP_EXTRA_INDEX_URL PIP_CONFIG_FILE=/dev/null CUSTOM_COMPILE_COMMAND='make lock' \
	$(BIN)/pip-compile --quiet --upgrade --generate-hashes --allow-unsafe --strip-extras \
	--no-emit-index-url --no-emit-find-links --no-emit-trusted-host

.PHONY: lock
lock: $(READY) ## Pin the newest versions that pyproject.toml allows, with hashes
	@# From the default index only, and without a trace of where this machine keeps its packages.
	$(PIN) --extra dev --output-file requirements.lock pyproject.toml
	$(PIN) --output-file bench/peers.lock bench/peers.in
	@! grep -n '://' requirements.lock bench/peers.lock

.PHONY: clean
clean: ## Remove what the commands made, .venv too; data in .data stays
	rm -rf $(VENV) $(PEERS) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
