# Each goal is one command and does its own set-up. `make` alone lists them.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
CARGO ?= cargo
# Where cargo builds, and where the goals keep their own tools and logs.
TARGET := $(or $(CARGO_TARGET_DIR),target)
export CARGO_TARGET_DIR := $(abspath $(TARGET))
WEIR := $(TARGET)/release/weir
TOOLS := $(CARGO_TARGET_DIR)/tools

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: demo
demo: build ## an origin, a pool that is too small, one that is right, none at all, and where the time went
	@$(WEIR) demo

.PHONY: build
build: ## the release binary
	@.ci/setup cc
	$(CARGO) build --release --locked --package weir

.PHONY: install
install: ## weir into ~/.cargo/bin
	@.ci/setup cc
	$(CARGO) install --locked --path crates/weir

# In the dev profile: release links each test program with fat LTO, which takes longer than the tests do, and only
# dev checks arithmetic for overflow.
.PHONY: test
test: lint ## everything: format, clippy, all tests, tidy; with cargo-deny where it is installed
	@.ci/setup nginx openssl curl
	@mkdir -p $(TARGET); log=$(TARGET)/test.log; status=0; \
	$(CARGO) test --workspace --locked --no-fail-fast 2>&1 | tee $$log || status=$$?; \
	deny='not checked (make deny installs cargo-deny)'; \
	if command -v cargo-deny $(TOOLS)/bin/cargo-deny >/dev/null; then \
	  $(MAKE) deny && deny='as deny.toml allows' || { deny='not as deny.toml allows'; status=1; }; \
	fi; \
	awk -v status=$$status -v deny="$$deny" ' \
	  /^test result:/ { programs++; passed += $$4; failed += $$6; ignored += $$8 } \
	  /^test .* FAILED$$/ { names = names "\n    " $$2 } \
	  END { \
	    printf "\nSummary\n  format, clippy   clean\n  dependencies     %s\n", deny; \
	    printf "  tests            %d passed, %d failed, %d ignored, in %d programs%s\n", \
	      passed, failed, ignored, programs, names; \
	    print "  " (status == 0 ? "PASSED" : "FAILED") \
	  }' $$log; \
	exit $$status

.PHONY: lint
lint: ## rustfmt and clippy, warnings denied
	@.ci/setup cc
	@$(CARGO) fmt --version >/dev/null 2>&1 || rustup component add rustfmt
	@$(CARGO) clippy --version >/dev/null 2>&1 || rustup component add clippy
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

.PHONY: fmt
fmt: ## format the sources
	$(CARGO) fmt --all

# Advisories come from a git repository, licences and sources do not: ADVISORIES=1 asks for them too.
.PHONY: deny
deny: ## what is in the dependency tree, against deny.toml
	@command -v cargo-deny $(TOOLS)/bin/cargo-deny >/dev/null || $(CARGO) install --locked --root $(TOOLS) cargo-deny
	PATH="$$PATH:$(TOOLS)/bin" cargo-deny --locked check --hide-inclusion-graph licenses bans sources $(if $(ADVISORIES),advisories)

# Arguments for bench/run.py: make bench ARGS='--quick --only tls'.
.PHONY: bench
bench: build ## Weir against its peers, in one run; kept in bench/results
	@bench/setup.sh $(TOOLS)
	@PATH="$(TOOLS)/bin:$$PATH" bench/run.py --weir $(WEIR) $(ARGS)

# cargo-fuzz needs a nightly compiler. FUZZ_SECONDS is for each target.
FUZZ_SECONDS ?= 60
.PHONY: fuzz
fuzz: ## each fuzz target for FUZZ_SECONDS
	@.ci/setup cc c++
	@command -v cargo-fuzz >/dev/null || $(CARGO) install --locked cargo-fuzz
	@rustup toolchain list | grep -q ^nightly || rustup toolchain install --profile minimal nightly
	@for target in $$($(CARGO) +nightly fuzz list); do \
	  $(CARGO) +nightly fuzz run "$$target" -- -max_total_time=$(FUZZ_SECONDS) </dev/null; \
	done

.PHONY: setup
setup: ## what the goals above would install, all at once
	@.ci/setup cc c++ nginx openssl curl wrk h2load
	@bench/setup.sh $(TOOLS)
