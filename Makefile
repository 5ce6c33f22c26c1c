# Every target makes its own .venv. Needed on the machine: make, a C compiler, and Python 3.11 or newer
# with venv and headers. PYTHON=python3.12 make test chooses the interpreter.

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python

# Imports come from the checkout or from the virtual environment, never from the caller's settings.
unexport PYTHONPATH
unexport PYTHONHOME
# Without compiled files, each process of each run would parse all sources, and pytest rewrite all tests, again.
unexport PYTHONDONTWRITEBYTECODE
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# Objects of the compiled modules by the hash of all they are made of: one changed function costs seconds.
export VPNROUTER_OBJECT_CACHE ?= $(CURDIR)/build/objects

# Stamps: an environment with build tools; dependencies of a target; a built wheel; the wheel installed.
MADE := $(VENV)/stamp-made
TEST_NEEDS := $(VENV)/stamp-test-needs
DEMO_NEEDS := $(VENV)/stamp-demo-needs
WHEEL := build/$(if $(LATEST),latest,wheel)
BUILT := $(WHEEL)/stamp-built
INSTALLED := $(VENV)/stamp-installed

# Where LATEST is set, the newest releases are installed, otherwise those of the files of constraints.
BUILD_NEEDS = import tomllib; print("build", *tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")
PIP_INSTALL = VPNROUTER_PURE=1 $(PY) -m pip install --progress-bar off $(if $(LATEST),--upgrade)

SOURCES := pyproject.toml hatch_build.py compile_modules.py README.md LICENSE \
	$(shell find vpnrouter -type f -not -name '*.py[co]' -not -name '*.so')
CHECKED := vpnrouter $(foreach folder,bench fuzz,$(if $(wildcard $(folder)/*.py),$(folder)))

# With this path and PYTHONSAFEPATH, `vpnrouter` is the installed wheel although the programs beside it
# come from the checkout.
BESIDE := $(VENV)/beside
FROM_WHEEL := PYTHONSAFEPATH=1 PYTHONPATH=$(BESIDE)

# The pure run has what compilation can change; the compiled run has everything, with all examples that are drawn.
# Exceptions can be planted in the pure files only: the compiled run does not collect that one.
PURE_FOLDERS := topics wire selectors spool core bridges properties conformance
PURE_TESTS := $(wildcard $(addprefix tests/,$(PURE_FOLDERS)) tests/test_build.py) tests/server/test_planted_faults.py
# One process for each core, and one more, because many tests wait for a router (WORKERS=0: all in one process).
WORKERS ?= $(shell expr $$(nproc 2>/dev/null || echo 1) + 1)
PYTEST := $(PY) -m pytest --numprocesses $(WORKERS) --dist loadgroup --no-loadscope-reorder
# What a developer runs all the time: the pure files, fewer drawn examples, what needs no Spark and waits for nothing.
CHECK_FOLDERS := topics wire selectors spool settings config core bridges events trace plan properties conformance
CHECK_TESTS := $(addprefix tests/,$(CHECK_FOLDERS)) $(filter-out tests/test_build.py,$(wildcard tests/test_*.py))
# Brokers stand in /usr/sbin, which is not on everybody's path.
has = $(shell PATH="$$PATH:/usr/sbin" command -v $(1))
NO_PEERS := $(if $(and $(call has,mosquitto),$(call has,nats-server)),,and not peers)
COMPILER := $(if $(filter-out 0,$(VPNROUTER_PURE)),,$(call has,$(or $(CC),cc)))

.NOTPARALLEL:
.PHONY: constraints demo check test test-pure test-compiled test-slow test-latest test-long bench bench-direct clean
.PHONY: lint lint-rules lint-format lint-types lint-layers lint-compiled lint-calls

demo: $(DEMO_NEEDS) $(INSTALLED)
	$(VENV)/bin/vpnrouter demo

check: lint
	VPNROUTER_EXPECT_BUILD=pure HYPOTHESIS_PROFILE=check $(PYTEST) --quiet -m "not slow" $(CHECK_TESTS)

test: test-pure test-compiled

test-pure: $(TEST_NEEDS)
	@echo "== tests on the pure files of the checkout"
	VPNROUTER_EXPECT_BUILD=pure HYPOTHESIS_PROFILE=check $(PYTEST) -m "not slow and not spark $(NO_PEERS)" $(PURE_TESTS)

ifeq ($(COMPILER),)
test-compiled:
	@echo "== no C compiler here, or VPNROUTER_PURE is set: only the pure build was tested"
else
test-compiled: $(TEST_NEEDS) $(INSTALLED) $(BESIDE)
	@echo "== tests on the compiled, installed wheel"
	$(if $(NO_PEERS),@echo "== mosquitto or nats-server is missing: tests that need them are left out")
	VPNROUTER_EXPECT_BUILD=compiled $(FROM_WHEEL) \
		$(PYTEST) -m "not slow $(NO_PEERS)" --durations=20 tests
endif

# The newest release of everything that pyproject.toml allows, in an environment of its own.
test-latest:
	$(MAKE) test VENV=.venv-latest LATEST=1

test-slow: $(TEST_NEEDS) $(INSTALLED) $(BESIDE)
	VPNROUTER_EXPECT_BUILD=compiled $(FROM_WHEEL) \
		$(PYTEST) -m "slow and not long $(NO_PEERS)" --durations=20 tests

test-long: $(TEST_NEEDS) $(INSTALLED) $(BESIDE)
	VPNROUTER_EXPECT_BUILD=pure HYPOTHESIS_PROFILE=long VPNROUTER_LONG=1 $(PYTEST) $(PURE_TESTS)
	VPNROUTER_EXPECT_BUILD=compiled HYPOTHESIS_PROFILE=long VPNROUTER_LONG=1 $(FROM_WHEEL) $(PYTEST) tests

# `make -k lint` shows what all six have to say.
lint: lint-rules lint-format lint-types lint-layers lint-compiled lint-calls

lint-rules: $(TEST_NEEDS)
	$(PY) -m ruff check .

lint-format: $(TEST_NEEDS)
	$(PY) -m ruff format --check .

lint-types: $(TEST_NEEDS)
	$(PY) -m mypy --strict $(CHECKED) hatch_build.py compile_modules.py lint_compiled.py lint_calls.py

lint-layers: $(TEST_NEEDS)
	$(VENV)/bin/lint-imports

# What the compiled build would never free, which no test of the pure files can show.
lint-compiled: $(TEST_NEEDS)
	$(PY) lint_compiled.py

lint-calls: $(TEST_NEEDS)
	$(PY) lint_calls.py

bench: bench-direct

bench-direct: $(TEST_NEEDS) $(INSTALLED) $(BESIDE)
	$(FROM_WHEEL) $(PY) -m bench.direct

.PHONY: bench-guaranteed
bench-guaranteed: $(TEST_NEEDS) $(INSTALLED) $(BESIDE)
	$(FROM_WHEEL) $(PY) -m bench.guaranteed

# What a release publishes: the source archive, and compiled wheels for each Python and machine that pyproject.toml
# names under tool.cibuildwheel. On Linux they are built in containers, which takes Docker or Podman.
.PHONY: wheels
wheels: $(MADE)
	$(PY) -m pip install --quiet "cibuildwheel>=3"
	rm -rf dist
	$(PY) -m build --no-isolation --sdist --outdir dist .
	$(PY) -m cibuildwheel --output-dir dist dist/*.tar.gz

# Small faults, one at a time in a copy of the tree: the tests have to notice those that they noticed before.
# ONLY="bridges queue-count-off-by-one" chooses areas and faults, JOBS=2 how many are tried at the same time.
.PHONY: mutants
JOBS ?= 1
mutants: $(TEST_NEEDS)
	$(PY) tests/mutants/run.py --jobs $(JOBS) $(ONLY)

.PHONY: fuzz
SECONDS ?= 60
fuzz: $(TEST_NEEDS)
	for driver in mqtt link amqp topics sessions links amqp_links; do \
		echo "== fuzz.$$driver"; $(PY) -m fuzz.$$driver --seconds $(SECONDS) || exit 1; done
	$(MAKE) fuzz-growth

# Growth is looked for in the compiled build where there is one: what it leaks is its own.
.PHONY: fuzz-growth
fuzz-growth: $(TEST_NEEDS) $(if $(COMPILER),$(INSTALLED) $(BESIDE))
	for protocol in mqtt amqp link http websocket; do \
		echo "== fuzz.growth, $$protocol"; \
		$(if $(COMPILER),$(FROM_WHEEL)) $(PY) -m fuzz.growth --protocol $$protocol --seconds $(SECONDS) || exit 1; done

# The releases that are tested together, with their hashes, for each Python that pyproject.toml allows: what builds
# the package, what it and its extras need, and what only the tests need. The files name no package index. Look at
# the difference, run the tests, and commit it.
LOCK = build/constraints/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate --no-emit-index-url --no-emit-find-links
constraints:
	$(PYTHON) -m venv build/constraints && build/constraints/bin/python -m pip install --quiet uv
	$(PYTHON) -c '$(BUILD_NEEDS)' > build/constraints/build.in
	$(LOCK) build/constraints/build.in --output-file constraints-build.txt
	$(LOCK) --constraint constraints-build.txt \
		--extra demo --extra otel --extra simulate --extra spark pyproject.toml --output-file constraints.txt
	$(LOCK) --constraint constraints-build.txt --constraint constraints.txt \
		--extra test pyproject.toml --output-file build/constraints/test.txt
	awk 'FILENAME != ARGV[3] { known[$$0]; next } /==/ { skip = $$0 in known } !skip' \
		constraints-build.txt constraints.txt build/constraints/test.txt > tests/constraints.txt
	echo 'moto[server]>=5.2.5' > build/constraints/moto.in
	$(LOCK) build/constraints/moto.in --output-file tests/endtoend/clusters/peers/moto.txt
	printf '%s\n' 'deltalake>=1.6' 'pyiceberg[pyarrow]>=0.12' > build/constraints/reader.in
	$(LOCK) build/constraints/reader.in --output-file tests/report/lakehouse/peer/reader.txt

clean:
	rm -rf $(VENV) .venv-latest build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(MADE): pyproject.toml constraints-build.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "$(PYTHON) is no Python 3.11 or newer; say PYTHON=/path/to/python3 make ..." >&2; exit 1; }
	test -x $(PY) || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo "no venv in $(PYTHON) (Debian: apt-get install python3-venv)" >&2; exit 1; }
	$(PIP_INSTALL) $(if $(LATEST),$$($(PY) -c '$(BUILD_NEEDS)'),--require-hashes --requirement constraints-build.txt)
	touch $@

# Archives without a wheel are built by the releases of constraints-build.txt, too.
$(DEMO_NEEDS): $(MADE) constraints.txt
	@echo "== installing what the router and the demonstration need (a few minutes the first time: Spark is large)"
	$(PIP_INSTALL) --no-build-isolation $(if $(LATEST),'.[demo]',--require-hashes --requirement constraints.txt)
	touch $@

$(TEST_NEEDS): $(DEMO_NEEDS) tests/constraints.txt
	@echo "== installing what the tests need"
	$(PIP_INSTALL) --no-build-isolation $(if $(LATEST),'.[test]',--require-hashes --requirement tests/constraints.txt)
	$(if $(LATEST),rm -f $(INSTALLED))
	touch $@

# By way of the source archive: what a wheel is made of is what the archive holds.
$(BUILT): $(SOURCES) | $(MADE)
	rm -rf $(WHEEL)
	$(PY) -m build --no-isolation --outdir $(WHEEL) .
	touch $@

$(INSTALLED): $(BUILT)
	$(PY) -m pip install --quiet --no-deps --force-reinstall $(WHEEL)/*.whl
	$(VENV)/bin/vpnrouter --version
	touch $@

$(BESIDE): | $(MADE)
	mkdir -p $@
	for folder in bench fuzz tests; do ln -sfn ../../$$folder $@/$$folder; done
