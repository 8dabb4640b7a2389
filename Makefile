# SPDX-License-Identifier: MIT
#
# A thin front: meson and ninja build, the scripts in tools/ do the rest.
#
#   make            builds build/errand-box, which runs from there
#   make deps       installs the Debian packages that are missing (root)
#   make demo       from nothing to a coding agent at work in a confined guest (root)
#   make test       everything that proves the program, sanitizers and real guests included (root)
#   make test-agents   every agent of data/agents in a real guest (root)
#   make check      lint: formatting, layers, headers, sources, shell scripts
#   make fuzz       fuzz targets with libFuzzer, FUZZ_SECONDS each (default 60)
#   make bench      the measurements of bench/, against peers that it installs (root)
#   make install    DESTDIR and PREFIX are honoured

BUILD ?= build
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
MESON_FLAGS ?=

.PHONY: all build need deps deps-test demo test test-agents check fuzz bench install clean

all: need build

# Says at once what is missing instead of letting the build fail on it.
need:
	@missing=$$(tools/deps --check build) || { \
		printf 'make: these packages are missing: %s\nmake: "make deps" installs them (as root)\n' \
			"$$(echo $$missing)" >&2; exit 1; }

build: $(BUILD)/build.ninja
	@ninja -C $(BUILD)

$(BUILD)/build.ninja:
	@meson setup $(BUILD) --prefix $(PREFIX) $(MESON_FLAGS)

deps:
	@tools/deps build run

deps-test:
	@tools/deps build run test

demo: deps build
	@tools/demo

test: deps-test
	@tools/run-tests

test-agents: deps-test build
	@tools/run-tests --only agents

check: deps-test build
	@tools/run-tests --only lint

fuzz: deps-test
	@tools/run-fuzz $(FUZZ_SECONDS)

bench: deps-test build
	@bench/broker/install
	@tools/run-bench

install: need build
	@meson install -C $(BUILD) --no-rebuild
	@[ -n "$(DESTDIR)" ] || [ "$$(id -u)" != 0 ] || ldconfig

clean:
	@rm -rf $(BUILD) build-asan build-fuzz
