# Everything runs from the project's own `.venv`; nothing needs root, uv, Docker, Node or a browser beforehand.
# A bare machine needs Python 3.11 or newer and make.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
PY := .venv/bin/python
UV := .venv/bin/uv
SYNCED := .venv/.synced
CREWAI := .venv-crewai/.synced
CREWAI_PY := .venv-crewai/bin/python
# One more than there are cores: the gateways of the tests wait for clocks and disks as much as they compute.
WORKERS = $(shell $(PY) -c 'import os; print(min(4, (os.cpu_count() or 1) + 1))')
IS_NEW_ENOUGH := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))

# An activated environment elsewhere must not redirect uv from ours, and uv must not download a Python.
unexport VIRTUAL_ENV
unexport PYTHONPATH
# The tests start hundreds of processes: compile once, not in each of them.
unexport PYTHONDONTWRITEBYTECODE
export UV_PROJECT_ENVIRONMENT := .venv
export UV_PYTHON_DOWNLOADS := never
# As pip does: trust the system's CAs, also behind a proxy that inspects TLS.
export UV_SYSTEM_CERTS := 1

.PHONY: help setup windows test test-both check bench bench-peers soak trace demo mesh schemas shots licenses sbom images clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(SYNCED)  ## create .venv with every dependency at its locked version

$(UV):
	@for candidate in "$(PYTHON)" python3.13 python3.12 python3.11; do \
	  if "$$candidate" -c '$(IS_NEW_ENOUGH)' >/dev/null 2>&1; then chosen="$$candidate"; break; fi; \
	done; \
	if [ -z "$${chosen:-}" ]; then \
	  echo "No usable Python found: 3.11 or newer with its venv module is needed." >&2; \
	  echo "Install one (Debian, Ubuntu: python3 and python3-venv) or name it: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)" >&2; \
	  exit 1; \
	fi; \
	echo "creating .venv with $$("$$chosen" --version)"; \
	"$$chosen" -m venv .venv; \
	$(PY) -m pip install --quiet --disable-pip-version-check uv

# --inexact keeps uv itself, which the lock file does not name.
$(SYNCED): pyproject.toml uv.lock | $(UV)
	@echo "installing locked dependencies into .venv"
	@$(UV) sync --quiet --locked --all-extras --inexact --python $(PY)
	@touch $@

# CrewAI and the OpenAI Agents SDK want different versions of openai: one lock file, two environments.
$(CREWAI): pyproject.toml uv.lock | $(SYNCED)
	@echo "installing CrewAI into .venv-crewai"
	@UV_PROJECT_ENVIRONMENT=.venv-crewai $(UV) sync --quiet --locked --all-extras --no-group frameworks --group crewai --python $(PY)
	@touch $@

# Nothing is built when the build is up to date.
windows: $(SYNCED)  ## build the pages of ui/ into the package; Node comes with the locked dependencies
	@$(PY) tools/windows.py build

MAIN = --ignore tests/windows --ignore tests/crewai -n $(WORKERS)

# Browser tests run by themselves: Playwright keeps an event loop in its process, which other tests must not share.
# And after the others: their pages and the mesh behind some of them use CPU while they wait. CrewAI's run next to
# them.
BROWSER = "tests/windows -n $(WORKERS)" "$(CREWAI_PY) tests/crewai"
# Modules that all workers load are compiled once, parallel to the UI's build and tests, not by each at once.
COMPILE = $(PY) -m pytest --collect-only -qq -p no:cacheprovider tests/unit tests/contract tests/vectors tests/flows

# Of the steps before the tests one computes on one core and one waits for the network: run them in parallel.
test: $(SYNCED)  ## run all tests, those in a real browser too
	@$(COMPILE) >/dev/null 2>&1 & \
	{ $(MAKE) $(CREWAI) && $(PY) -m tools.chromium; } & fetched=$$!; \
	$(PY) tools/windows.py build; \
	$(PY) tools/windows.py test; \
	wait $$fetched; wait
	@$(PY) -m tools.suites "$(MAIN)"
	@$(PY) -m tools.suites $(BROWSER)

test-both: windows $(CREWAI)  ## run all tests, every flow on SQLite and on PostgreSQL, wheel and sdist built
	@$(PY) tools/windows.py test
	@$(PY) -m tools.chromium
	@BOTH=1 $(PY) -m tools.suites "$(MAIN)"
	@$(PY) -m tools.suites $(BROWSER)

check: $(SYNCED)  ## lint, format, types, layers, words, generated schemas, the same for ui/ and sdk-ts/
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/mypy
	@.venv/bin/lint-imports
	@$(PY) -m tools.features
	@$(PY) -m observatory.schemas --check
	@$(PY) tools/windows_types.py --check
	@$(PY) -m tools.licenses --check
	@$(PY) -m tools.words
	@$(PY) tools/windows.py check
	@$(PY) tools/windows.py test

bench: $(SYNCED)  ## measure; table on screen, JSON in bench/out
	@$(PY) -m bench

bench-peers: $(SYNCED)  ## measure OTLP in compared with Arize Phoenix, which gets its own environment in .peers
	@$(PY) -m bench.peers

soak: $(SYNCED)  ## the long fault runs: kill -9 under load and amid interventions, leaders paused and killed
	@$(PY) -m bench.kill --cycles 100
	@$(PY) -m bench.interrupted --cycles 200
	@$(PY) -m bench.schedulers
	@$(PY) -m bench.callers --cycles 40
	@$(PY) -m bench.webhooks
	@$(PY) -m bench.mesh_faults
	@$(PY) -m bench.flat
	@SEEDS=5000 $(PY) -m pytest -q tests/unit/gateway/test_schedule_simulation.py

trace: $(SYNCED)  ## requirements R1-R526: covered, needs no code, open
	@$(PY) tools/trace.py

demo: windows  ## run the product with a live simulated mesh
	@.venv/bin/observatory demo

mesh: windows  ## run two gateways on PostgreSQL and NATS behind a load balancer, without Docker
	@$(PY) -m tools.mesh

schemas: $(SYNCED)  ## regenerate schemas/ and the types of ui/ from the wire types
	@$(PY) -m observatory.schemas --write
	@$(PY) tools/windows_types.py

shots: windows  ## retake the pictures of docs/windows from the running demo
	@$(PY) -m tools.shots

licenses: $(SYNCED)  ## write the licenses of the packages built into the pages, which the wheel includes
	@$(PY) -m tools.licenses

sbom: $(SYNCED)  ## list all parts, Python and npm, as CycloneDX in dist/sbom.cdx.json
	@$(PY) -m tools.sbom

images: $(SYNCED)  ## ask Docker whether the pinned images exist and what their tags mean now
	@$(PY) -m tools.images

clean:  ## remove the environment and every cache
	@rm -rf .venv .venv-crewai .peers .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis dist bench/out
	@rm -rf ui/node_modules sdk-ts/dist src/observatory/http/windows .browser
	@find src tests bench tools examples -name __pycache__ -type d -prune -exec rm -rf {} +
