# Two commands on a fresh clone do everything: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Python's own pip installs into the environment where it can (22.3 or newer): to put another there takes longer than the rest.
LACKS_PIP = $(shell $(PYTHON) -c 'import pip; assert tuple(map(int, pip.__version__.split(".")[:2])) >= (22, 3)' 2>&1 || echo no)
PIP = $(if $(LACKS_PIP),$(BIN)/pip,$(PYTHON) -m pip --python $(BIN)/python) install --quiet --disable-pip-version-check
RUNS := $(VENV)/.runs
STAMP := $(VENV)/.installed
MACHINE ?= $(shell uname -m)
AARCH64 := CXX=aarch64-linux-gnu-g++ INSIGHT_TRACE_EMULATOR="qemu-aarch64 -L /usr/aarch64-linux-gnu"

.PHONY: fuzz soak storm faults demo test pytest test-upstream test-aarch64 wheel sbom lint bench format clean browser docs
demo: $(RUNS)
	$(BIN)/insight-trace demo

# Types and forms are checked beside the tests: that keeps one core busy for a minute.
test: $(STAMP) browser
	$(MAKE) --no-print-directory -j2 lint pytest

# Each worker begins with its own half: what the tests of one module share is made once. Modules are compiled once, for
# the workers and for what they start, also where the environment says that nothing compiled is to be written.
pytest: $(STAMP)
	PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX=$(CURDIR)/.pytest_cache/compiled \
	  $(BIN)/python -m pytest -n auto --dist worksteal -q

# What needs checkouts of other projects, or real recordings beside this one: name those that you have.
test-upstream: $(STAMP)
	INSIGHT_TRACE_SIMPLER="$(SIMPLER)" INSIGHT_TRACE_PYPTO="$(PYPTO)" INSIGHT_TRACE_PTO_ISA="$(PTO_ISA)" \
	  INSIGHT_TRACE_PTOAS="$(PTOAS)" $(if $(DATA),INSIGHT_TRACE_SHARED="$(DATA)") \
	  $(BIN)/python -m pytest -n auto -q -m upstream

# Browser tests use Debian's Chromium; where it cannot be installed they say so and are skipped.
browser:
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	  && apt-get update -qq && apt-get install -y -qq chromium >/dev/null; } \
	  || echo "chromium is not installed: browser tests will be skipped"

# Everything that is compiled, compiled for aarch64 and run by qemu: the same results, byte for byte.
test-aarch64: $(STAMP)
	@command -v aarch64-linux-gnu-g++ qemu-aarch64 >/dev/null || { apt-get update -qq \
	  && apt-get install -y -qq g++-aarch64-linux-gnu qemu-user >/dev/null; }
	$(BIN)/python tools/same_on_aarch64.py
	$(AARCH64) $(BIN)/python -m pytest -n auto -q tests/simulate

# A wheel with the compiled core in it: make wheel MACHINE=aarch64 compiles it with zig.
wheel: $(STAMP)
	@[ "$(MACHINE)" = "$$(uname -m)" ] || $(PIP) ziglang
	$(BIN)/python tools/build_wheel.py --machine $(MACHINE)

sbom: $(STAMP)
	$(BIN)/python tools/sbom.py --check
	$(BIN)/python tools/sbom.py -o sbom.json

# A searchable site of README and docs/ in site/; every link is checked.
docs: $(STAMP)
	@$(BIN)/python -c 'import material' 2>/dev/null || $(PIP) 'mkdocs-material>=9.5'
	$(BIN)/python tools/build_docs.py

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python tools/check_cpp_format.py

bench: $(STAMP)
	$(BIN)/python -m benchmarks.table --page docs/internals/benchmarks.md

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/python tools/check_cpp_format.py --fix

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache

# What runs, without what only tests need: the package is named to Python where it lies, which takes no build, and bytecode is
# made of what is imported alone. Compiling the simulator's core takes msgspec alone: it begins while the rest is installed, and
# whoever needs it first waits for it, or compiles it where this could not.
$(RUNS): pyproject.toml requirements.lock src/insight_trace_simpler_names.pth
	@$(PYTHON) -c 'import sys; v = sys.version_info; v >= (3, 11) or sys.exit("Insight Trace needs Python 3.11 or newer; \
	$(PYTHON) is %d.%d. Name another: make $(MAKECMDGOALS) PYTHON=python3.12" % v[:2])'
	$(PYTHON) -m venv $(if $(LACKS_PIP),,--without-pip) $(VENV)
	@sed -n '/^msgspec==/,/[^\\]$$/p' requirements.lock > $(VENV)/first.txt
	$(PIP) --no-compile --no-deps -r $(VENV)/first.txt
	@PYTHONPATH=src $(BIN)/python -m insight_trace.capture.builds > /dev/null 2>&1 &
	$(PIP) --no-compile -r requirements.lock
	@site="$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"; \
	  echo "$(CURDIR)/src" > "$$site/insight_trace.pth"; cp src/insight_trace_simpler_names.pth "$$site"
	printf '#!/bin/sh\nexec "%s" -m insight_trace "$$@"\n' "$(abspath $(BIN))/python" > $(BIN)/insight-trace
	chmod +x $(BIN)/insight-trace
	touch $@

$(STAMP): $(RUNS) requirements-dev.lock
	$(PIP) -r requirements-dev.lock
	$(PIP) --no-deps -e .
	touch $@

# Every reader over mutated inputs, soaking, killing, and every call failing: figures in docs/internals/reliability.md. `make fuzz SECONDS=600`;
# READER=NAME lets atheris, which is installed for that, drive one reader by coverage.
SECONDS ?= 60
KILLS ?= 60
POINTS ?= 6
fuzz: $(STAMP)
ifdef READER
	$(PIP) atheris
	$(BIN)/python tools/mutate_readers.py --atheris $(READER) -- -max_total_time=$(SECONDS)
else
	$(BIN)/python tools/mutate_readers.py --seconds $(SECONDS)
endif

soak: $(STAMP)
	$(BIN)/python tools/soak.py --seconds $(SECONDS)

storm: $(STAMP)
	$(BIN)/python tools/interrupt_commands.py kills $(KILLS)

faults: $(STAMP)
	$(BIN)/python tools/interrupt_commands.py faults $(POINTS)
