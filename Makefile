# Every target sets up .venv by itself on first use, from the exact versions in requirements.lock.
PYTHON ?= python3
VENV := .venv
LOCK := requirements.lock
BIN := $(VENV)/bin
READY := $(VENV)/.ready
FLAGS := $(VENV)/.flags
STAGES := .cache/stages
# Tests start dozens of processes. Where bytecode is not kept, as in many containers, each one spends seconds on
# compiling the sources of what it imports.
export PYTHONDONTWRITEBYTECODE :=
export PYTHONPYCACHEPREFIX := $(CURDIR)/.cache/bytecode
CHECK_VERSION = import sys; sys.exit(sys.version_info < (3, 11) and "jaxdp needs Python 3.11 or newer; try: make PYTHON=python3.12 ...")
WORKERS ?= 2

.PHONY: run check test test-all test-part test-turn test-newest test-plain types wide parts durations coverage begin \
	set-up half-0 half-1 newer docs executed pages notebooks pages-data lint gpu-counts style bench lock release paper

# Each number of comparisons is a program, and compiling takes most of the time: the study has five, and 200 seeds.
run: $(READY)  ## the main job: what label privacy costs in reward estimation, as a figure
	$(BIN)/python -m jaxdp run reward-estimation $(foreach n,1000 10000,--num-samples $(n)) --seeds 100

check: $(READY)  ## one algorithm, file or folder, in a minute or two: make check NAME=rucb, make check NAME=jaxdp/stats
	@NEW_RESULTS=$(NEW_RESULTS) $(BIN)/python tests/loop/check.py "$(NAME)"

PARALLEL := pytest -n $(WORKERS) --dist worksteal
PYTEST := $(BIN)/python -m $(PARALLEL)

# Most of the tests' time is compiling. What does not hang on how lanes are vectorised is compiled without optimisation,
# by the older and quicker emitters, one module a program.
QUICKLY := --xla_backend_optimization_level=0 --xla_cpu_parallel_codegen_split_count=1
OLDER := --xla_cpu_use_fusion_emitters=false
# A shell that has these flags would otherwise pass them to the optimised stages too, which then test nothing.
XLA_FLAGS := $(filter-out $(QUICKLY) $(OLDER),$(XLA_FLAGS))
PLAINLY = XLA_FLAGS="$(XLA_FLAGS) $$(cat $(FLAGS))"

# Runs a command as a named stage, and prints its seconds.
stage = start=$$(date +%s); status=0; $(2) || status=$$?; \
	echo "stage $(1): $$(($$(date +%s) - start)) s" | tee -a $(STAGES); exit $$status
# The test files that use a mark: the others need not be imported.
MARKED = $$(grep -rl --include='test_*.py' 'mark\.$(1)' tests)

# One thread: two of them parse everything twice, for nearly double the work. The other core has the tests in 64 bits.
TYPES := $(BIN)/pyright --pythonpath $(BIN)/python
WIDE = JAX_ENABLE_X64=1 $(BIN)/python -m pytest -m "precision and not slow" $(call MARKED,precision)

test: begin $(FLAGS)  ## style, types, and the tests that are not slow: in 32 bits, and in 64 bits what hangs on the precision
	@$(call stage,style,$(MAKE) --no-print-directory style)
	@$(MAKE) --no-print-directory --jobs=2 types wide
	@$(call stage,32 bits,$(PLAINLY) $(PYTEST) -m "not slow and not optimised")
	@$(call stage,optimised,$(PYTEST) -m "optimised and not slow" $(call MARKED,optimised))
	@cat $(STAGES)

types:
	@$(call stage,types,$(TYPES))

wide:
	@$(call stage,64 bits beside types,$(PLAINLY) $(WIDE))

# The seconds of stages are those since the outermost make began.
begin:
	@mkdir -p .cache
	@if [ $(MAKELEVEL) = 0 ]; then rm -f $(STAGES); fi

# The long run, in parts.
LONG = WORKERS=$(WORKERS) QUICKLY="$$(cat $(FLAGS))" $(BIN)/python -m tests.loop.parts
test-all: test  ## everything: `make test`, then all parts of the long run
	$(LONG) all
	@cat $(STAGES)

test-part: begin $(FLAGS)  ## one part of the long run: make test-part PART=0
	$(LONG) run $(or $(PART),$(error name a part, as in make test-part PART=0; make parts lists them))

test-turn: $(FLAGS)
	$(LONG) turn $(COMMITS) $(SECONDS)

parts: $(FLAGS)  ## lists the parts of the long run, and what `make test` leaves out
	$(LONG) show

# Programs are compiled without those of earlier runs, as `make test` does in a fresh checkout.
MEASURED := .cache/measured
MEASURE = JAX_COMPILATION_CACHE_DIR="$(CURDIR)/$(MEASURED)/jax" JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0 \
	$(1) $(PYTEST) --measure $(MEASURED)/$(2) $(or $(FILES),$(if $(ALL),,--unmeasured))
MERGE := $(BIN)/python -m tests.loop.durations
durations: $(FLAGS)  ## measures tests that have no duration; those in FILES="..." again, or with ALL=1 all of them
	rm -rf $(MEASURED) && mkdir -p $(MEASURED)
	-$(call MEASURE,$(PLAINLY),plain) -m "not optimised"
	-$(call MEASURE,,optimised) -m optimised
	$(MERGE) $(MEASURED)/plain $(MEASURED)/optimised
	-$(call MEASURE,$(PLAINLY) JAX_ENABLE_X64=1,wide) --unmeasured
	$(MERGE) $(MEASURED)/wide

# Its packages are beside those of the lock: plugins that pytest finds slow down every later run.
COVERAGE := .cache/coverage
COVERED = COVERAGE_FILE="$(CURDIR)/$(COVERAGE)/lines" PYTHONPATH="$(CURDIR)/$(COVERAGE)/packages" $(BIN)/python -m
RECORD = --cov --cov-append --cov-report=
coverage: $(FLAGS)  ## counts the lines of jaxdp that `make test` runs, in processes that tests start too (half an hour)
	rm -rf $(COVERAGE)
	$(INSTALL) --target $(COVERAGE)/packages pytest-cov==7.1.0 coverage==7.17.5
	$(PLAINLY) $(COVERED) $(PARALLEL) $(RECORD) -m "not slow and not optimised"
	$(COVERED) $(PARALLEL) $(RECORD) -m "optimised and not slow" $(call MARKED,optimised)
	$(PLAINLY) JAX_ENABLE_X64=1 $(COVERED) $(PARALLEL) $(RECORD) -m "precision and not slow" $(call MARKED,precision)
	$(COVERED) coverage report --skip-covered --sort=cover

# The first of these that is 3.13 or newer; pyenv's own names do not run where another version is chosen.
PYENV = $(or $(shell pyenv root 2>/dev/null),$(HOME)/.pyenv)
NEWEST = $(PYTHON_NEWEST) python3.13 $(wildcard $(PYENV)/versions/3.13*/bin/python) python3
IS_NEWEST = $(shell $(1) -c 'import sys; sys.exit(sys.version_info < (3, 13))' 2>/dev/null && echo $(1))
NONE_NEWEST = found no Python 3.13 or newer; name one: make test-newest PYTHON_NEWEST=/path/to/python3.13
ITS_PYTHON = PYTHON=$(or $(firstword $(foreach python,$(NEWEST),$(call IS_NEWEST,$(python)))),$(error $(NONE_NEWEST)))
ON_NEWEST = $(MAKE) VENV=.venv-newest LOCK=requirements-newest.lock $(ITS_PYTHON)

# What JAXDP_PLAIN turns off is speed; what compiled programs look like is not tested then.
PLAIN_TESTS = $$(find tests/algorithms -name "test_golden*.py") tests/random --ignore tests/random/test_threefry.py
test-newest: begin  ## `make test` in .venv-newest, with Python 3.13 and the newest JAX; a part of it without JAX's unstable modules
	$(ON_NEWEST) test
	$(ON_NEWEST) test-plain
	$(ON_NEWEST) newer

test-plain: $(FLAGS)
	JAXDP_PLAIN=1 $(PLAINLY) $(PYTEST) -m "not slow and not optimised" $(PLAIN_TESTS)

# Only reported: what is tested are the versions of the lock.
newer: $(READY)
	@echo 'pip, without $(LOCK):' $$($(BIN)/python -m pip install --disable-pip-version-check --dry-run --upgrade \
		--upgrade-strategy eager --no-build-isolation --editable . 2>&1 | grep '^Would install' || echo 'could not be asked')

KEPT := JAX_COMPILATION_CACHE_DIR="$(CURDIR)/.cache/jax" JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0
RUN_NOTEBOOKS = QUICKLY="$$(cat $(FLAGS))" $(KEPT) $(BIN)/python notebooks/make.py run
notebooks: $(FLAGS)  ## executes every notebook in full; what they show goes to results/notebooks
	$(RUN_NOTEBOOKS)

# The executed notebooks are kept: one is executed again when its script, or what it runs, has changed.
# With more jobs than cores, pages are cut into smaller parts, and no core waits for the longest one.
SPHINX = JAX_PLATFORMS=cpu $(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet --jobs 6
docs: begin $(FLAGS)  ## the site, in results/site/html; a warning is an error
	@$(MAKE) --no-print-directory --jobs=2 executed pages
	@$(call stage,site,$(SPHINX) -d .cache/site -b html docs results/site/html)
	@$(call stage,check of the site,$(BIN)/python docs/check_site.py results/site/html)
	@cat $(STAGES)

executed: $(FLAGS)
	@$(call stage,notebooks,$(RUN_NOTEBOOKS) --changed)

pages: $(VENV)/.ready-docs
	@$(call stage,pages beside notebooks,JAX_PLATFORMS=cpu $(BIN)/python docs/site_pages/pages.py)

# A learner that no instance fits makes the lines with a minus fail, as do results of other versions, which stay: this is shown.
pages-data: $(READY)  ## plays the benchmark (hours) with learners that changed or have no results; all of them with ALL=1
	$(BIN)/python docs/site_pages/measured.py $(if $(ALL),--remove-all,--remove)
	-$(BIN)/python -m jaxdp bench --all --quick --out benchmarks/suite/quick
	-$(BIN)/python -m jaxdp bench --all --out benchmarks/suite/full
	-$(BIN)/python -m jaxdp bench --all --unit person --out benchmarks/suite/full
	$(BIN)/python docs/site_pages/choices.py
	$(BIN)/python docs/site_pages/stopping.py $(if $(ALL),--all)
	$(BIN)/python docs/site_pages/measured.py

lint: style
	$(TYPES)

style: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports

bench: $(READY)  ## one table of speeds, meant to take under ten minutes; rows by name: make bench ONLY="rucb; ucb"
	$(BIN)/python benchmarks/run.py $(if $(ONLY),"$(ONLY)") $(BENCH_OPTIONS)

release: $(READY)  ## builds a version and tries it in an empty environment, uploads nothing: make release VERSION=0.2.0
	$(BIN)/python release.py "$(or $(VERSION),$(error name a version, as in make release VERSION=0.2.0))"

paper: $(READY)  ## draws the figure of paper/paper.md from committed results
	$(BIN)/python paper/figures.py

# In an environment of its own: CUDA's wheels have 4.4 GB. No GPU is needed.
gpu-counts:  ## counts what a round costs on a GPU, and fails if more than in benchmarks/gpu/counts.json; WRITE=1 writes it
	$(MAKE) --no-print-directory VENV=.venv-gpu LOCK=requirements-gpu.lock $(ITS_PYTHON) .venv-gpu/.ready
	.venv-gpu/bin/python benchmarks/gpu_counts.py $(if $(WRITE),--write) $(foreach name,$(NAME),"$(name)")

COMPILE := uv pip compile --universal --no-header --no-emit-index-url pyproject.toml --upgrade
TESTED := --extra test --extra dask --extra parquet --extra accounting --extra bench
lock:  ## renews the files of exact versions from pyproject.toml (needs uv on the PATH)
	$(COMPILE) --python-version 3.11 $(TESTED) -o requirements.lock
	$(COMPILE) --python-version 3.13 $(TESTED) -o requirements-newest.lock
	$(COMPILE) --python-version 3.11 --extra docs -c requirements.lock -o docs/requirements.lock

$(READY): $(LOCK) pyproject.toml
	@mkdir -p .cache
	@$(call stage,set-up,$(MAKE) --no-print-directory set-up)

set-up:
	$(PYTHON) -c '$(CHECK_VERSION)'
	$(PYTHON) -m venv $(VENV)
	@awk '!/^ *(#|$$)/ { print > ("$(VENV)/lock-" number++ % 2) }' $(LOCK)
	$(MAKE) --no-print-directory --jobs=2 half-0 half-1
	$(INSTALL) --no-build-isolation --editable .
	-$(BIN)/python -m compileall -q -j 2 -x '/_?tests?/' -p '$(CURDIR)' jaxdp \
		$$(for name in $(IMPORTED); do echo $(VENV)/lib/python*/site-packages/$$name; done)
	touch $(READY)

# pip unpacks one package at a time. Bytecode of the packages that the library imports is compiled afterwards, in two
# processes; the first command would take longer for it.
IMPORTED := jax jaxlib numpy scipy pandas xarray matplotlib optax chex zarr typer
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps
half-0 half-1: half-%:
	$(INSTALL) --no-compile -r $(VENV)/lock-$*

# XLA stops at a flag that it does not know, as newer versions do at this one: it is tried first.
$(FLAGS): $(READY)
	XLA_FLAGS=$(OLDER) $(BIN)/python -c 'import jax; jax.devices()' 2>/dev/null && echo $(QUICKLY) $(OLDER) >$@ || echo $(QUICKLY) >$@

# What only the site needs is not installed for the tests.
$(VENV)/.ready-docs: $(READY) docs/requirements.lock
	@$(call stage,set-up of the site,$(INSTALL) --no-compile -r docs/requirements.lock)
	touch $@
