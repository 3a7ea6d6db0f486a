# `make` lists the targets. Needs a POSIX shell, GNU make and Python 3.11 to 3.13; package registries are reached through
# pip's and uv's own settings.
ROOT := $(abspath $(dir $(lastword $(MAKEFILE_LIST))))

ifneq ($(CURDIR),$(ROOT))
# Called as `make -f elsewhere/Makefile`: do the same from the project's own folder.
GOALS := $(or $(MAKECMDGOALS),help)
.PHONY: $(GOALS) elsewhere
$(GOALS): elsewhere ; @:
elsewhere: ; @$(MAKE) --no-print-directory -C "$(ROOT)" $(GOALS)
else

SHELL := /bin/sh
.DEFAULT_GOAL := help
VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
TOOLS := .cache/tools
PYTEST_ARGS ?=
# So many processes run tests, each with services of its own; 0: all in this process. `FilesTogether` in tests/conftest.py
# shares out the files, the longest first and unit tests in between, since long tests wait for much of their time: four
# keep two cores busy.
PROCESSES ?= 4
SPREAD = -n $(PROCESSES) --dist loadfile --no-loadscope-reorder
# Everything that reads a lock or the project file writes one of these, so a second run does nothing.
STAMP_BASE := $(VENV)/.stamp-base
STAMP_RUN := $(VENV)/.stamp-runtime
STAMP_DEV := $(VENV)/.stamp-dev
INSTALL = sh scripts/install.sh $(VENV)
OURS = $(INSTALL) --no-deps --no-build-isolation --editable . && $(PY) -m compileall -q schemas evalcore agents streams rampgate
PIP = $(PY) -m pip install --quiet --disable-pip-version-check
COMPILE = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--no-header --no-strip-extras $(if $(UPGRADE),--upgrade)

.PHONY: help setup setup-dev demo test check lint format types contract unit stream quick-faults faults slow nightly mutants bench \
	sdk-recordings wheel \
	lock audit docs tools jars secrets compose-check clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1	\2/p' Makefile | expand -t 24

setup: $(STAMP_RUN) ## the program and what it needs to run, at .venv/bin/rampgate

setup-dev: $(STAMP_DEV) ## the same and what the tests and checks need

$(STAMP_BASE): requirements-build.lock scripts/make_venv.sh
	@PYTHON="$(PYTHON)" sh scripts/make_venv.sh $(VENV)
	@$(PIP) --only-binary :all: --require-hashes -r requirements-build.lock || { \
		echo "setup: no uv for this platform, going on with pip" >&2; \
		awk '/^[a-z]/ { skip = /^uv==/ } !skip' requirements-build.lock > $(VENV)/build.lock; \
		$(PIP) --require-hashes -r $(VENV)/build.lock; }
	@touch $@

$(STAMP_RUN): $(STAMP_BASE) requirements-local.lock pyproject.toml
	@$(INSTALL) --require-hashes -r requirements-local.lock
	@$(OURS)
	@touch $@
	@echo "ready: $(BIN)/rampgate"

$(STAMP_DEV): $(STAMP_BASE) requirements-dev.lock pyproject.toml
	@$(INSTALL) --require-hashes -r requirements-dev.lock
	@$(OURS)
	@touch $@ $(STAMP_RUN)
	@echo "ready: $(BIN)/rampgate, with the tools for tests"

demo: setup ## a seeded day of traffic through everything, embedded
	@$(BIN)/rampgate demo

# mypy takes one core, so the tests begin beside it; what it says comes after theirs.
test: setup-dev jars tools lint ## what CI runs: the checks, and every test but the long runs
	@$(MAKE) --no-print-directory types contract >$(VENV)/.checked 2>&1 & checking=$$!; \
	$(PY) -m pytest -m "not slow" $(SPREAD) $(PYTEST_ARGS); tested=$$?; \
	wait $$checking; checked=$$?; cat $(VENV)/.checked; exit $$((tested ? tested : checked))

check: lint types contract ## lint, types and import contract

lint: setup-dev ## ruff, rules and format; shellcheck
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/shellcheck --exclude SC1091 examples/remediation/scripts/*.sh # what a scenario sources is checked itself

format: setup-dev ## let ruff repair what it can
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

types: setup-dev ## mypy, strict
	@$(BIN)/mypy

contract: setup-dev ## imports go one way
	@$(BIN)/lint-imports --no-logo

unit: setup-dev tools ## tests that need no service
	@$(PY) -m pytest tests/unit -m "not slow" $(SPREAD) $(PYTEST_ARGS)

stream: setup-dev jars ## tests on real Kafka and Redis
	@$(PY) -m pytest tests/stream tests/contract -m "not slow" $(SPREAD) $(PYTEST_ARGS)

quick-faults: setup-dev jars ## parts killed on purpose, the short form of each
	@$(PY) -m pytest tests/fault -m "not slow" $(SPREAD) $(PYTEST_ARGS)

# A seed that is given makes the same faults at the same moments; what the machine does in between is never the same.
faults: setup-dev jars ## 1,000 seeded faults under load, and a ledger; long; FAULTS=200 SEED=7
	@$(PY) -m tests.fault.hostile_day --faults $(or $(FAULTS),1000) $(if $(SEED),--seed $(SEED))

slow: setup-dev jars tools ## the long runs, of faults and of properties
	@$(PY) -m pytest -m slow $(SPREAD) $(PYTEST_ARGS)

nightly: slow mutants faults ## what `make test` leaves out: the long runs, every mutant, a thousand faults

mutants: setup-dev jars ## changes to decisions, joins, commits that tests must notice; long; MUTANTS_ARGS='--subject commit'
	@$(PY) -m tests.mutants $(MUTANTS_ARGS)

bench: setup-dev jars $(VENV)-bench/.stamp ## events a second, latency and more, on this machine; BENCH_ARGS=--quick
	@$(PY) -m benchmarks $(BENCH_ARGS)

sdk-recordings: setup-dev $(VENV)-sdks/.stamp ## one scenario in each SDK of agents, recorded again and read
	@$(PY) -m tests.sdk_recordings $(VENV)-sdks/bin/python
	@$(PY) -m pytest -q -n 0 tests/unit/rampgate/suite/tracing/test_sdk_recordings.py

wheel: setup-dev ## README's five minutes from the built wheel, in an empty environment
	@$(PY) -m pytest -q -n 0 -m slow tests/unit/rampgate/spec/test_five_minutes.py $(PYTEST_ARGS)

# quixstreams can't live with our pins, nor can SDKs of agents: what needs them has an environment of its own.
$(VENV)-%/.stamp: requirements-%.lock $(STAMP_BASE)
	@PYTHON=$(PY) sh scripts/make_venv.sh $(VENV)-$*
	@UV=$(BIN)/uv; if $$UV --version >/dev/null 2>&1; then ln -sf ../../$$UV $(VENV)-$*/bin/uv; fi
	@sh scripts/install.sh $(VENV)-$* --require-hashes -r requirements-$*.lock
	@touch $@

docs: setup-dev ## write the generated pages again
	@$(PY) -m streams.metrics > docs/metrics.md.new
	@mv docs/metrics.md.new docs/metrics.md
	@$(PY) -m agents.keys > docs/redis-keys.md.new
	@mv docs/redis-keys.md.new docs/redis-keys.md
	@$(PY) -m evalcore.lint.checks > docs/checks.md.new
	@mv docs/checks.md.new docs/checks.md
	@$(PY) -m schemas.publish.contracts docs
	@$(PY) -m tests.spec_coverage

lock: $(STAMP_BASE) ## write the locks again; UPGRADE=1 takes newer releases
	@$(COMPILE) --all-extras pyproject.toml -o requirements-dev.lock
	@$(COMPILE) -c requirements-dev.lock pyproject.toml -o requirements.lock
	@$(COMPILE) --extra local -c requirements-dev.lock pyproject.toml -o requirements-local.lock
	@$(COMPILE) --group build -c requirements-dev.lock -o requirements-build.lock
	@$(COMPILE) tests/sdk_recordings/requirements.txt -o requirements-sdks.lock
	@! grep -nE '[a-z]+://|^ *--(index|extra-index|find-links)' requirements.lock requirements-local.lock \
		requirements-dev.lock requirements-build.lock requirements-sdks.lock || { echo "a lock names a host" >&2; exit 1; }

audit: $(STAMP_BASE) ## what the image installs, listed in .cache/sbom.cdx.json, and known weaknesses of it
	@$(PY) scripts/audit_dependencies.py $(BIN)/uv requirements.lock .cache/sbom.cdx.json

tools: ## promtool, into .cache/tools unless it is on PATH
	@sh scripts/get_promtool.sh $(TOOLS)

jars: setup-dev ## the jars of Kafka and DynamoDB Local, through Maven, once
	@$(PY) scripts/fetch_jars.py

secrets: ## the secret files docker-compose.yml mounts, made once
	@sh scripts/make_secrets.sh secrets

compose-check: setup-dev ## the compose file and image file, without an engine where there is none
	@$(PY) -m pytest tests/unit/repository/test_compose.py -q $(PYTEST_ARGS)

clean: ## everything that was made here
	rm -rf $(VENV) .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist

endif
