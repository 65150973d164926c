# One word for everything a contributor does. Each target sets up .venv by itself; only python3 is assumed.

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.ready
RUNS := .venv/.runs
unexport PYTHONDONTWRITEBYTECODE  # every server of every test would compile the source again

.PHONY: run serve test check fix bench soak clean help

help:  ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

$(RUNS): pyproject.toml  # the product alone: what `make run` waits for
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[all]"
	@touch $@

$(STAMP): $(RUNS)  # and what its developers need
	$(BIN)/python -m pip install --quiet --group dev
	@touch $@

run: $(RUNS)  ## see a scripted agent work through the real server, in about a minute
	@$(BIN)/python examples/demo.py

serve: $(RUNS)  ## keep the server running over HTTP; choose with ROOT=dir and PORT=number
	@$(BIN)/surehold serve "$(or $(ROOT),$(CURDIR))" --port $(or $(PORT),8765)

test: $(STAMP)  ## run every test, and say how many of each kind ran
	@sh scripts/setup-tests.sh
	$(BIN)/python -m pytest -n auto --dist worksteal

.PHONY: quick
quick: $(STAMP)  ## run the tests that start no server and no other process, for the inner loop
	$(BIN)/python -m pytest -n auto --dist worksteal --quick

.PHONY: lint
lint: $(STAMP)  ## format, lint, spelling, types and import contracts, without tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/codespell
	$(BIN)/pyright
	$(BIN)/lint-imports

check: lint docs test  ## everything that must be clean before a change goes in

fix: $(STAMP)  ## format, repair what can be repaired, and generate what is generated
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/python scripts/contract.py --write
	$(BIN)/python scripts/reference.py --write
	$(BIN)/python scripts/tree.py --write
	$(BIN)/python scripts/host_coverage.py --write
	$(BIN)/python scripts/write_stubs.py

bench: $(STAMP)  ## measure speed, as ratios against baselines of the same run
	$(BIN)/python bench/run.py

.PHONY: compare
compare: $(STAMP)  ## give the same work to other file servers, and write docs/benchmarks.md (needs npm and pip)
	@PYTHONPATH=bench $(BIN)/python -m compare $(COMPARE)

.PHONY: replay
replay: $(STAMP)  ## make real changes of real packages again through the tools, and compare bytes (needs pip, npm and git)
	@PYTHONPATH=bench $(BIN)/python -m replay $(REPLAY)

.PHONY: notebooks
notebooks: $(STAMP)  ## edit every cell of real notebooks, and look whether any other byte changed (needs pip)
	@PYTHONPATH=bench $(BIN)/python bench/notebooks.py

.PHONY: pictures
pictures: $(STAMP)  ## make the pictures and the terminal recording in docs/pictures anew (needs Chromium)
	@$(BIN)/python scripts/pictures.py
	@$(BIN)/python scripts/recording.py

.venv/.docs: $(RUNS)
	$(BIN)/python -m pip install --quiet --group docs
	@touch $@

.PHONY: docs
docs: .venv/.docs  ## build the site into dist/site, where a warning is an error; open dist/site/index.html
	$(BIN)/python scripts/build_docs.py dist/site

.PHONY: plugin
plugin: $(STAMP)  ## build the plugins for Claude Code, Agent Plugins 1.0 and Gemini CLI into dist/plugins
	@$(BIN)/python scripts/plugin.py dist/plugins

.PHONY: conformance
conformance: $(STAMP)  ## let clients, checkers and hosts that others wrote try the server (needs npm and pip)
	@sh scripts/conformance-setup.sh clients
	@sh scripts/conformance-setup.sh hosts
	@PYTHON=$(PYTHON) sh scripts/conformance-setup.sh frameworks
	PYTHONPATH=tests $(BIN)/python -m conformance.run
	SUREHOLD_STDIO=sdk PYTHONPATH=tests $(BIN)/python -m conformance.run

soak: $(STAMP)  ## the long runs: 3,000 random cases of every property, races and kills at full length
	@sh scripts/setup-tests.sh
	SUREHOLD_SOAK=1 SUREHOLD_RACES=100000 HYPOTHESIS_PROFILE=soak $(BIN)/python -m pytest -n auto --dist worksteal --timeout 3600

.PHONY: fleet
fleet: $(STAMP)  ## let agents work on a database, an object store and three replicas that are killed, and check every edit; longer with FLEET=600
	@PYTHONPATH=tests $(BIN)/python scripts/fleet.py $(FLEET)

.PHONY: mutate
mutate: $(STAMP)  ## make small wrong changes in a copy of the source, and ask whether a test notices; more with MUTATE=200, others with SEED=2
	@sh scripts/setup-tests.sh
	@$(BIN)/python scripts/mutate.py --mutants $(or $(MUTATE),60) --seed $(or $(SEED),1)

.PHONY: house
house: $(STAMP)  ## measure names, rooms, sizes, and what one edit costs
	@$(BIN)/python scripts/house.py

clean:  ## remove everything that was built
	rm -rf .venv .conformance .mutate build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache .coverage src/*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
