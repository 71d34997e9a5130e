# SPDX-License-Identifier: Apache-2.0
# The front door. Each target installs what is missing, says so, and costs little the second time.
.DEFAULT_GOAL := help
.PHONY: help demo test lint format asan asan-python tsan hardened fuzz package tidy docs wheel \
  release clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## the main job on the bundled data: a table of policies and report.html
	@scripts/setup.sh run
	.venv/bin/glidepath simulate data/workloads/supercom --compare --report report.html

test: ## every test: CTest, pytest, what `make lint` checks, and the site
	@scripts/setup.sh develop
	ctest --preset dev
	@scripts/skipped_tests.sh build/dev
	.venv/bin/python -m pytest -n auto --maxprocesses 4 --dist loadfile
	@$(MAKE) --no-print-directory lint docs

lint: ## formatting, types, the committed stub
	@scripts/setup.sh develop
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/python scripts/update_stub.py --check
	@scripts/clang-format.sh --check

format: ## rewrite the sources as the formatters want them
	@scripts/setup.sh develop
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .
	@scripts/clang-format.sh

asan: ## the C++ tests under the address and undefined-behaviour sanitizers
	@scripts/setup.sh develop
	@scripts/sanitize.sh asan

asan-python: ## tests of Python under the same sanitizers: what crosses the binding
	@scripts/setup.sh develop
	@scripts/asan_python.sh

tsan: ## the C++ tests under the thread sanitizer
	@scripts/setup.sh develop
	@scripts/sanitize.sh tsan

hardened: ## the C++ tests as a distribution hardens what it ships
	@scripts/setup.sh develop
	@scripts/sanitize.sh hardened

SECONDS = 60
fuzz: ## the fuzz programs by clang's libFuzzer, SECONDS=60 in all
	@scripts/setup.sh fuzz
	@scripts/fuzz.sh $(SECONDS)

package: ## the shared library without Ceres, installed and found by other programs
	@scripts/setup.sh develop
	@scripts/check_package.sh

tidy: ## clang-tidy over src/ (needs clang-tidy and libomp-dev; minutes)
	@scripts/setup.sh develop
	@scripts/clang-tidy.sh

docs: ## the site in build/docs/html; a warning is an error
	@scripts/setup.sh develop
	doxygen docs/Doxyfile
	.venv/bin/python -m sphinx -q -W --keep-going -b html -d build/docs/doctrees docs build/docs/html

wheel: ## dist/*.whl with Ceres inside, for an old C library, checked in a clean environment (minutes)
	@scripts/setup.sh run
	@scripts/wheel.sh

release: ## everything that a release needs, built and checked in dist/; says what to upload, uploads nothing
	@scripts/setup.sh develop
	@scripts/release.sh

clean: ## remove what was built, keep .venv
	rm -rf build dist report.html python/glidepath/_core*.so
