# make lint PATHS=…   lint a repository (the demo, when nothing is named)
# make test           everything that CI runs
# make readers        fetch programs that read reports, for their tests
# make hostile        only the tests with harmful repositories
# make fuzz SECONDS=… [SEED=…]
#                     look for files that trainlint fails on; the repositories on which it does are kept
# make oracle PROGRAM=axolotl RELEASE=0.21.0 CASES=1000 [SEED=…]
#                     ask the real program and trainlint about drawn documents, and list where they differ (see
#                     tests/oracle/README.md; makes the program's environment, some gigabytes)
# make dist           build source distribution and wheel with the tools that .ci/build.txt pins
# make audit          zizmor and actionlint on workflows and Action, pip-audit on the dependencies (needs a network)
# make locks          update .ci/build.txt and .ci/audit.txt
# make bench [BENCH_ARGS="--output benchmarks/results"]
#                     what starts, repositories and the worst shapes cost, as ratios
# make mutate SEED=…  invert 60 random conditions, one at a time, and list those that no test notices
# make format         format the code, and fix what ruff can fix
# make snapshots [RULE=FS101]
#                     update the report beside each bad fixture, of one rule or of all
# make limit-cases [PROGRAM=axolotl]
#                     update the generated cases of the limits, and list the limits that need one by hand
# make docs           update the snapshots, the rule pages and the outputs in README.md
# make whats-new [PROGRAM=axolotl]
#                     list the releases of all programs that are newer than those known
# make keep-up [CASES=1000]
#                     add these releases, ask the real programs, and write what to look at into .cache/keep-up.md
# make facts PROGRAM=axolotl RELEASE=0.22.0 [FROM=FILE DATE=2026-12-24]
#                     add a release from the registry or a file; without RELEASE, read all known ones again
# make changes PROGRAM=axolotl [FROM=FILE]
#                     show what the newest known release changed in the code of the claims that are not confirmed yet
# make confirm PROGRAM=axolotl [FROM=FILE]
#                     list the claims about the newest known release that are not confirmed yet

PYTHON ?= python3
PATHS ?= fixtures/demo
PYTEST_ARGS ?=
BENCH_ARGS ?=
SEED ?= 1
SECONDS ?= 60
CASES ?= 500

VENV := .venv
ifeq ($(OS),Windows_NT)
BIN := $(VENV)/Scripts
else
BIN := $(VENV)/bin
endif
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

INSTALLED := $(VENV)/.installed
DEV := $(VENV)/.installed-dev
BENCH := $(VENV)/.installed-bench
ORACLE := $(VENV)/.installed-oracle
WHEELHOUSE := $(VENV)/wheelhouse/.filled
ACTIONLINT := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
MULTITOOL_VERSION := 5.7.0
AZURE_VERSION := 5.281.0
READERS := .cache/npm/.sarif-multitool-$(MULTITOOL_VERSION)-azure-$(AZURE_VERSION)
REVIEWDOG_VERSION := 0.21.0
REVIEWDOG := .cache/bin/.reviewdog-$(REVIEWDOG_VERSION)

# Node brings its own certificates; those that the system trusts count too.
NODE_EXTRA_CA_CERTS ?= $(wildcard /etc/ssl/certs/ca-certificates.crt)
export NODE_EXTRA_CA_CERTS

.PHONY: help lint format test test-sdist test-minimum-versions hostile bench snapshots limit-cases docs facts confirm changes whats-new keep-up readers mutate fuzz oracle dist audit locks clean

help:
	@sed -n 's/^# //p' Makefile

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(INSTALLED): pyproject.toml | $(BIN)/python
	$(PIP) install --editable .
	@touch $@

$(DEV): pyproject.toml | $(BIN)/python
	$(PIP) install --editable '.[dev,consumers]'
	@touch $(INSTALLED) $@

$(BENCH): pyproject.toml | $(BIN)/python
	$(PIP) install --editable '.[bench]'
	@touch $(INSTALLED) $@

$(ORACLE): pyproject.toml | $(BIN)/python
	$(PIP) install --editable '.[oracle]'
	@touch $(INSTALLED) $@

# What the hook and the Action install, so that their tests need no network.
$(WHEELHOUSE): pyproject.toml | $(DEV)
	rm -rf $(dir $@)
	$(PIP) wheel --wheel-dir $(dir $@) hatchling .
	rm -f $(dir $@)trainlint-*.whl
	@touch $@

$(READERS):
	rm -rf .cache/npm
	mkdir -p .cache/npm
	npm install --prefix .cache/npm --loglevel error --fetch-retries 1 --no-audit --no-fund --ignore-scripts @microsoft/sarif-multitool@$(MULTITOOL_VERSION) azure-pipelines-task-lib@$(AZURE_VERSION)
	chmod +x .cache/npm/node_modules/@microsoft/sarif-multitool-*/Sarif.Multitool*
	@touch $@

$(REVIEWDOG):
	GOBIN=$(CURDIR)/.cache/bin go install github.com/reviewdog/reviewdog/cmd/reviewdog@v$(REVIEWDOG_VERSION)
	@touch $@

# Programs that read reports, for their tests.
readers:
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory $(READERS) || echo 'npm failed: tests of SARIF and Azure are skipped' >&2; \
	else echo 'no npm here: tests of SARIF and Azure are skipped' >&2; fi
	@if command -v go >/dev/null; then $(MAKE) --no-print-directory $(REVIEWDOG) || echo 'go failed: tests with reviewdog are skipped' >&2; \
	else echo 'no go here: tests with reviewdog are skipped' >&2; fi

lint: $(INSTALLED)
	@$(BIN)/trainlint check $(PATHS) || test $$? -eq 1

format: $(DEV)
	$(BIN)/ruff check --fix --exit-zero --silent .
	$(BIN)/ruff format .

test: $(DEV) $(WHEELHOUSE) readers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest $(PYTEST_ARGS)

# The tests of the unpacked source distribution, in an environment of their own.
test-sdist: $(DEV)
	rm -rf .cache/sdist
	$(BIN)/python -m hatchling build --target sdist --directory .cache/sdist
	tar -xzf .cache/sdist/trainlint-*.tar.gz -C .cache/sdist --strip-components 1
	$(PYTHON) -m venv .cache/sdist/.venv
	cd .cache/sdist && $(PIP) install '.[test]' && $(BIN)/python -m pytest $(PYTEST_ARGS)

# The oldest dependencies that pyproject.toml allows.
test-minimum-versions:
	rm -rf .cache/minimum
	$(PYTHON) -m venv .cache/minimum/.venv
	cd .cache/minimum && $(PIP) install uv && $(BIN)/uv pip compile --quiet --resolution lowest-direct ../../pyproject.toml --output-file minimum.txt
	cd .cache/minimum && $(PIP) install --constraint minimum.txt --editable '../..[test]' && cat minimum.txt
	.cache/minimum/$(BIN)/python -m pytest $(PYTEST_ARGS)

hostile: $(DEV) $(WHEELHOUSE)
	$(BIN)/python tests/hostile/all.py $(PYTEST_ARGS)

dist:
	rm -rf dist .cache/build
	$(PYTHON) -m venv .cache/build
	.cache/build/$(notdir $(BIN))/python -m pip --disable-pip-version-check --quiet install --require-hashes --no-deps --requirement .ci/build.txt
	.cache/build/$(notdir $(BIN))/python -m build --no-isolation --outdir dist

audit:
	rm -rf .cache/audit
	$(PYTHON) -m venv .cache/audit
	.cache/audit/$(notdir $(BIN))/python -m pip --disable-pip-version-check --quiet install --require-hashes --no-deps --requirement .ci/audit.txt
	.cache/audit/$(notdir $(BIN))/zizmor --no-progress .
	go run $(ACTIONLINT)
	.cache/audit/$(notdir $(BIN))/pip-audit --strict --progress-spinner off .
	.cache/audit/$(notdir $(BIN))/pip-audit --strict --progress-spinner off --disable-pip --require-hashes --requirement .ci/build.txt --requirement .ci/audit.txt

locks:
	rm -rf .cache/locks
	$(PYTHON) -m venv .cache/locks
	.cache/locks/$(notdir $(BIN))/python -m pip --disable-pip-version-check --quiet install uv
	for name in build audit; do .cache/locks/$(notdir $(BIN))/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-annotate --custom-compile-command 'make locks' .ci/$$name.in --output-file .ci/$$name.txt || exit; done

bench: $(BENCH)
	$(BIN)/python benchmarks/measure.py $(BENCH_ARGS)

mutate: $(DEV)
	$(BIN)/python tools/mutate.py --seed $(SEED)

fuzz: $(DEV)
	$(BIN)/python tools/fuzz.py --seconds $(SECONDS) --seed $(SEED)

oracle: $(ORACLE)
	@PYTHONPATH=tools:tests $(BIN)/python -m oracle $(PROGRAM) $(RELEASE) --cases $(CASES) --seed $(SEED)

snapshots: $(DEV)
	$(BIN)/python tools/snapshots.py $(RULE)

limit-cases: $(DEV)
	$(BIN)/python tools/limit_cases.py $(PROGRAM)

docs: snapshots
	$(BIN)/python tools/rule_facts.py $(RULE)
	$(BIN)/python tools/docs.py
	$(BIN)/python tools/readme.py

whats-new: $(DEV)
	@PYTHONPATH=tools $(BIN)/python tools/whats_new.py $(PROGRAM)

keep-up: $(DEV) $(ORACLE)
	@mkdir -p .cache
	PYTHONPATH=tools:tests $(BIN)/python tools/keep_up.py .cache/keep-up.md --cases $(CASES)

facts: $(DEV)
	PYTHONPATH=tools $(BIN)/python -m wheel_facts $(PROGRAM) $(if $(RELEASE),--release $(RELEASE)) $(if $(FROM),--from $(FROM)) $(if $(DATE),--date $(DATE))

confirm: $(DEV)
	PYTHONPATH=tools $(BIN)/python -m wheel_facts $(PROGRAM) --confirm $(if $(FROM),--from $(FROM))

changes: $(DEV)
	@PYTHONPATH=tools $(BIN)/python -m wheel_facts $(PROGRAM) --changes $(if $(FROM),--from $(FROM))

clean:
	rm -rf $(VENV) .cache build dist
