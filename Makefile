# A small door to Meson and ninja. `make demo` and `make test` are all one needs.
#
#   make          release build in build/release
#   make debug    with AddressSanitizer and UBSan in build/debug
#   make demo     three tasks from PyTorch to a verified kernel, and their report
#   make test     format, lint, unit and end-to-end tests, release and sanitizers
#   make install  into PREFIX (default /usr/local), DESTDIR honoured
#   make dist     relocatable tarballs in dist/
#   make wheel    Python wheels in dist/, x86_64 and aarch64
#   make deb      a Debian package in dist/
#   make image    an OCI image in dist/ (mmdebstrap, root)
#   make check    format, lint and unit tests: at most 2 minutes, between edits
#   make tsan     what has threads under ThreadSanitizer: 5 minutes
#   make sweep    the large generated sweeps: hours (docs/testing.md)
#   make docs     the documentation as a site in build/site
#   make torch    a current PyTorch for cutegen, where the machine has only an old one (some gigabytes)
#   make format, make lint
#
# Set-up (setup/setup.sh) is part of each: it installs what is missing and nothing else.
PREFIX ?= /usr/local
TOOLS := $(or $(CUTEGEN_TOOLS),$(or $(XDG_DATA_HOME),$(HOME)/.local/share)/cutegen)
# Looked up when used: set-up may just have put it there.
MESON = $(or $(wildcard $(TOOLS)/venv/bin/meson),meson)
export TOOLS MESON

all: build/release/build.ninja
	@ninja -C build/release

debug: build/debug/build.ninja
	@ninja -C build/debug

build/release/build.ninja: | setup
	@mkdir -p build
	@$(MESON) setup build/release --prefix=$(PREFIX) >build/setup.log 2>&1 || { cat build/setup.log; exit 1; }

build/debug/build.ninja: | setup
	@mkdir -p build
	@$(MESON) setup build/debug -Ddebug=true -Doptimization=g -Db_sanitize=address,undefined \
	    -Db_lundef=false >build/setup.log 2>&1 || { cat build/setup.log; exit 1; }

setup:
	@setup/setup.sh run

demo: all
	@tests/e2e/demo.sh

test:
	@setup/setup.sh test
	@tests/run.sh

check: all
	@setup/setup.sh test
	@tests/check.sh

tsan: all
	@setup/setup.sh test
	@tests/tsan.sh

sweep: all
	@tests/sweep.sh

docs:
	@setup/setup.sh docs
	@setup/docs.py $(TOOLS)/venv/bin/mkdocs

lint:
	@setup/setup.sh test
	@tests/lint.sh

format:
	@setup/setup.sh test
	@tests/format.sh --write

torch:
	@setup/setup.sh torch

install: all
	@$(MESON) configure build/release -Dprefix=$(abspath $(PREFIX))
	@ninja -C build/release >/dev/null
	@$(MESON) install -C build/release --no-rebuild --quiet
	@echo "installed in $(DESTDIR)$(abspath $(PREFIX))"

dist:
	@setup/setup.sh dist
	@setup/dist.sh

wheel:
	@setup/setup.sh dist
	@setup/wheel.py

deb:
	@setup/setup.sh dist
	@setup/deb.sh

image:
	@setup/setup.sh dist
	@setup/image.py

clean:
	@rm -rf build dist

.PHONY: all debug setup torch demo test check tsan sweep docs lint format install dist wheel deb image clean
