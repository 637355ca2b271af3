# SPDX-License-Identifier: Apache-2.0
# The commands for a working copy. `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
BUILD ?= build
PYTHON ?= python3
JOBS ?= $(shell nproc)
VENV_PYTHON := .venv/bin/python

.DEFAULT_GOAL := help
.PHONY: help setup setup-product packages configure package build demo test test-cpp test-python python-tests fuzz sanitize mutate \
        verify-shortcuts lint lint-text lint-cpp format check-format wheel wheels test-wheel test-wheels deb test-deb test-image test-aarch64 release docs test-docs bench install clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-14s %s\n", $$1, $$2}'

setup: ## Install missing Debian packages and the Python environment in .venv
	@PYTHON=$(PYTHON) deploy/setup.sh

setup-product: ## Install only the packages to build and run kernix, without its tests
	@PYTHON=$(PYTHON) deploy/setup.sh product

packages: ## Install the missing Debian packages only
	@PYTHON=$(PYTHON) deploy/setup.sh packages

configure: setup-product ## Set up and write the build folder; then `ninja -C build TARGET` builds one part
	@cmake -S . -B $(BUILD) -G Ninja -DPython_EXECUTABLE=$(CURDIR)/$(VENV_PYTHON) --log-level=NOTICE

# `.venv/bin/python -c 'import kernix'` and `.venv/bin/kernixctl` then work from any folder.
package: configure ## Set up and build kernixd, kernixctl and the Python package, without tests
	@cmake --build $(BUILD) --parallel $(JOBS) --target python_package
	@$(VENV_PYTHON) deploy/use_build.py $(BUILD)

build: setup package ## Set up and build everything, including the tests
	@cmake --build $(BUILD) --parallel $(JOBS)

# If set-up has installed nvcc in .venv, use it instead of an older one on PATH.
demo: export BRAINEVENT_NVCC_PREFER ?= $(shell compgen -G '.venv/lib/*/site-packages/nvidia/cu13/bin/nvcc' >/dev/null && echo pip)
demo: package ## Compile real kernels through a kernixd that starts automatically, and call them from JAX
	@$(VENV_PYTHON) python/examples/demo.py

# The Python tests wait for processes, and leave a seventh of two cores idle. The fuzzers take what is left.
test: build test-cpp ## Set up, build, and run every test
	@echo 'Python tests and fuzzers, side by side: the output of each follows when it ends'
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target python-tests fuzz

# Tests wait for compilers and processes: one more at a time than there are cores takes 207 s instead of 227.
test-cpp: build ## Run the C++ tests
	ctest --test-dir $(BUILD) --output-on-failure --parallel $$(($(JOBS) + 1)) --no-tests=error

test-python: build ## Run the Python tests
	@$(MAKE) --no-print-directory python-tests

python-tests: # Run the Python tests with what is built
	$(VENV_PYTHON) -m pytest --numprocesses $(JOBS) --dist loadfile tests/python
	$(VENV_PYTHON) -m pytest tests/gpu

fuzz: packages ## Run each fuzzer of tests/fuzz for a short time
	@cmake --preset fuzz --log-level=NOTICE
	@nice -n 5 cmake --build --preset fuzz --parallel $(JOBS)
	nice -n 5 ctest --preset fuzz --parallel $(JOBS)

# Sanitizers run the tests of components in one process. They cannot judge JAX, nvcc's output and forked clients.
sanitize: setup ## Run unit tests under AddressSanitizer and ThreadSanitizer (SANITIZE='--minutes 2': what fits in that time)
	$(VENV_PYTHON) deploy/sanitize.py $(SANITIZE)

mutate: build ## Break one promise after another in the sources, and check that tests fail (MUTANTS=word: only some)
	$(VENV_PYTHON) deploy/mutate.py $(BUILD) $(MUTANTS)

# Real kernels, if `make bench` has installed brainevent.
FILES ?= $(shell find $(BUILD)/bench-venv -path '*/brainevent/*.cu' 2>/dev/null)

verify-shortcuts: export BRAINEVENT_NVCC_PREFER ?= pip
verify-shortcuts: package ## Compile odd and real kernels with kernixd's shortcuts and by whole calls of nvcc, and compare (VERIFY=--short)
	$(VENV_PYTHON) tests/corpus/verify_shortcuts.py $(VERIFY) $(FILES)

lint: lint-text lint-cpp ## Run lint-text and lint-cpp

lint-text: setup ## Run ruff, mypy and shellcheck, and look for includes that go around the rooms and for mutants that fit no source
	$(VENV_PYTHON) -m ruff check
	$(VENV_PYTHON) -m mypy
	$(VENV_PYTHON) deploy/mutate.py
	git ls-files -- '*.sh' .ci/run | xargs shellcheck
	@! git grep -nE '#include "\.\.?/' -- '*.cc' '*.h' || { echo 'Name a header by its room: "daemon/exec/action.h"'; exit 1; }

lint-cpp: build ## Run clang-tidy, with Clang's thread-safety analysis, on files that changed since they were last clean
	$(VENV_PYTHON) deploy/clang_tidy.py $(BUILD)

format: packages ## Format all C++ sources
	git ls-files '*.cc' '*.h' | xargs -r clang-format -i

check-format: packages ## Fail if a C++ source is not formatted
	git ls-files '*.cc' '*.h' | xargs -r clang-format --dry-run --Werror

wheel: packages ## Build the self-contained wheel into dist/
	@deploy/wheel.sh $(PYTHON)

wheels: packages ## Build a wheel for each Python that is here, 3.10 to 3.14 (PYTHONS='python3.12 python3.13')
	@deploy/wheel.sh $(PYTHONS)

test-wheels: packages ## Build these wheels and try them in clean roots of seven systems (needs root, 25 minutes)
	@PYTHON=$(PYTHON) deploy/setup.sh deb
	@wheels=$$(deploy/wheel.sh $(PYTHONS)) && deploy/test_wheel_roots.sh $$wheels

# Versions of JAX that test-wheel tries besides the one in .venv: the oldest that kernix supports. From 0.11 on, JAX needs
# PYTHON=python3.12.
JAX ?= 0.5.0

test-wheel: packages ## Build the wheel, install it into bare environments outside the repository and use it there
	@wheel=$$(deploy/wheel.sh $(PYTHON)) && deploy/test_wheel.sh "$$wheel" $(PYTHON) && \
	  deploy/test_jax.sh "$$wheel" $(PYTHON) $(JAX)

deb: build ## Make Debian packages of what is built, in dist/
	@PYTHON=$(PYTHON) deploy/setup.sh deb
	@deploy/deb.sh $(BUILD)

test-deb: build ## Make the Debian packages and try them in a clean root (needs root)
	@PYTHON=$(PYTHON) deploy/setup.sh deb
	@packages=$$(deploy/deb.sh $(BUILD)) && deploy/test_deb.sh "$$(. /etc/os-release && echo $$VERSION_CODENAME)" $$packages

test-image: packages ## Build the wheel and an image with it, and compile in it (needs root)
	@PYTHON=$(PYTHON) deploy/setup.sh deb
	@deploy/test_image.sh "$$(deploy/wheel.sh $(PYTHON))"

test-aarch64: package ## Build for aarch64 and use it in qemu-user: C++ kernels load and compute
	@PYTHON=$(PYTHON) deploy/setup.sh cross
	@deploy/test_aarch64.sh $(BUILD)

release: build ## Make all packages of a release into dist/: wheels, Debian 12's and Ubuntu 24.04's, and what is in each (needs root)
	@PYTHON=$(PYTHON) deploy/setup.sh deb
	@deploy/release.sh $(BUILD) $(PYTHONS)

docs: packages ## Build the documentation site into build/site
	@deploy/docs.sh $(PYTHON)

test-docs: docs setup ## Open the documentation site in Chromium
	$(VENV_PYTHON) -m pytest tests/site

BENCH_PYTHON := $(BUILD)/bench-venv/bin/python

# A ratio above its bar fails, but the tables after it are printed, too. The last three need the tests' engine; what they
# print in docs/scaling.md is of longer runs.
bench: package ## Measure loads, nodes that share, and an idle kernixd's memory; compare with brainevent 0.3.0 (Python 3.12, 31 minutes)
	@cmake --build $(BUILD) --parallel $(JOBS) --target bench_hits bench_enclosures kernixctl
	@tests/support/engine/install.sh
	@status=0; for command in $(BUILD)/bin/bench_hits $(BUILD)/bin/bench_enclosures bench/run.sh '$(BENCH_PYTHON) bench/shortcuts.py' \
	  '$(BENCH_PYTHON) bench/shortcuts.py --enclosures' \
	  '$(BENCH_PYTHON) bench/many.py' '$(BENCH_PYTHON) bench/bundle.py' '$(BENCH_PYTHON) bench/warmup.py' '$(BENCH_PYTHON) bench/autotune.py' '$(BENCH_PYTHON) bench/idle.py' \
	  '$(VENV_PYTHON) bench/upstream.py --build $(BUILD) --rounds 7' \
	  '$(VENV_PYTHON) bench/fleet.py --build $(BUILD) --nodes 1,3 --kernels 40' \
	  '$(VENV_PYTHON) bench/overflow.py --build $(BUILD) --rounds 1'; do \
	  echo "$$command"; $$command || status=1; \
	done; exit $$status

install: build ## Install libkernix, headers, kernixd and kernixctl (DESTDIR and CMAKE_INSTALL_PREFIX as usual)
	cmake --install $(BUILD)

clean: ## Remove the build output; the Python environment stays
	rm -rf $(BUILD) build-aarch64 build-wheel dist
