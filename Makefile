# SPDX-License-Identifier: Apache-2.0
# The commands of a working copy. `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
BUILD ?= build
PYTHON ?= python3
JOBS ?= $(shell nproc)
VENV_PYTHON := .venv/bin/python

.DEFAULT_GOAL := help
.PHONY: help setup packages configure package build demo test test-cpp test-python fuzz sanitize mutate lint lint-text lint-cpp \
        format check-format wheel test-wheel bench install clean

help: ## This list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-14s %s\n", $$1, $$2}'

setup: ## Install missing Debian packages and the Python environment in .venv
	@PYTHON=$(PYTHON) deploy/setup.sh

packages: ## The first half of setup
	@PYTHON=$(PYTHON) deploy/setup.sh packages

configure: setup ## Set up and write the build folder; then `ninja -C build TARGET` builds one part
	@cmake -S . -B $(BUILD) -G Ninja -DPython_EXECUTABLE=$(CURDIR)/$(VENV_PYTHON) --log-level=NOTICE

# `.venv/bin/python -c 'import kernix'` then works from any folder.
package: configure ## Set up and build kernixd, kernixctl and the Python package, without tests
	@cmake --build $(BUILD) --parallel $(JOBS) --target python_package
	@$(VENV_PYTHON) -c 'import pathlib, sysconfig; pathlib.Path(sysconfig.get_path("purelib"), "kernix.pth").write_text("$(abspath $(BUILD))/python\n")'

build: package ## The same, and the tests
	@cmake --build $(BUILD) --parallel $(JOBS)

# Where set-up has put nvcc into .venv, an older one on PATH is not meant.
demo: export BRAINEVENT_NVCC_PREFER ?= $(shell compgen -G '.venv/lib/*/site-packages/nvidia/cu13/bin/nvcc' >/dev/null && echo pip)
demo: package ## Compile real kernels through a kernixd that starts by itself, and call them from JAX
	@$(VENV_PYTHON) python/examples/demo.py

test: build test-cpp test-python fuzz ## Set up, build, and run every test

test-cpp: build ## The C++ tests
	ctest --test-dir $(BUILD) --output-on-failure --parallel $(JOBS) --no-tests=error

test-python: build ## The Python tests
	$(VENV_PYTHON) -m pytest tests/python
	$(VENV_PYTHON) -m pytest tests/gpu

fuzz: packages ## A short run of each fuzzer of tests/fuzz, always the same one
	@cmake --preset fuzz --log-level=NOTICE
	@cmake --build --preset fuzz --parallel $(JOBS)
	ctest --preset fuzz --parallel $(JOBS)

# What runs under sanitizers: the tests of parts in one process. JAX, nvcc's output and forked clients are nothing that
# they can judge.
SANITIZERS ?= asan tsan

# A forked child has none of its parent's threads, which ThreadSanitizer takes for threads that it never joined.
sanitize: export TSAN_OPTIONS ?= report_thread_leaks=0
sanitize: packages ## All unit tests under AddressSanitizer and ThreadSanitizer (slow: it builds their parts twice more)
	@set -e; for preset in $(SANITIZERS); do \
	  cmake --preset $$preset --log-level=NOTICE; \
	  cmake --build build-$$preset --parallel $(JOBS) --target unit_tests; \
	  ctest --preset $$preset --label-regex '^unit$$' --parallel $(JOBS); \
	done

mutate: build ## Change the product on purpose, one promise at a time, and see that tests notice (MUTANTS=word: only some)
	$(VENV_PYTHON) deploy/mutate.py $(BUILD) $(MUTANTS)

lint: lint-text lint-cpp ## Both of them

lint-text: setup ## ruff, mypy, shellcheck
	$(VENV_PYTHON) -m ruff check
	$(VENV_PYTHON) -m mypy
	git ls-files -- '*.sh' .ci/run | xargs shellcheck

lint-cpp: build ## clang-tidy, with Clang's thread-safety analysis, over what changed since it was last clean
	$(VENV_PYTHON) deploy/clang_tidy.py $(BUILD)

format: ## Format all C++ sources
	git ls-files '*.cc' '*.h' | xargs -r clang-format -i

check-format: ## Fail when a C++ source is not formatted
	git ls-files '*.cc' '*.h' | xargs -r clang-format --dry-run --Werror

wheel: packages ## Build the self-contained wheel into dist/
	@deploy/wheel.sh $(PYTHON)

test-wheel: packages ## Build the wheel, install it into a bare environment outside the repository and use it there
	@wheel=$$(deploy/wheel.sh $(PYTHON)) && deploy/test_wheel.sh "$$wheel" $(PYTHON)

bench: ## Side by side with brainevent 0.3.0 (needs Python 3.12; makes an environment of its own)
	bench/run.sh

install: build ## Install libkernix, headers, kernixd and kernixctl (DESTDIR and CMAKE_INSTALL_PREFIX as usual)
	cmake --install $(BUILD)

clean: ## Remove what was built; the Python environment stays
	rm -rf $(BUILD) dist
