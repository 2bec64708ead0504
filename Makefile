# SPDX-License-Identifier: MIT OR Apache-2.0
# Front door of the project. Only git, make and what README.md names are needed
# on the host: everything else runs in a private Debian tree (tools/env).

# Kernel that the module is built for and the tests run on: 7.2, 7.3 or debug.
KERNEL ?= 7.2
# Programs of the virtual machine: all, bat (basic ones, and what depends on the version of the
# kernel) or paths (all that reaches code of the module). The last two are brief.
SET ?= all
# Kernels for which make clippy lints the module.
LINT ?= 7.2 7.3
# What a stress run does where the specification asks for a million rounds.
ROUNDS ?= 1000000
# The same for fences: native ones have ten times as many, a tenth are handed over.
FENCE_ROUNDS ?= $(ROUNDS)
# How long `make fuzz` runs.
FUZZ_SECONDS ?= 60
# How long `make fuzz-ioctl` runs, and which programs it begins with: another number, others.
TIME ?= 600
SEED ?=
# A kernel build tree with Rust support makes `modules` a plain external build.
KDIR ?=
# Where make install puts things; ALIASES=no leaves out libdxcore.so and libdxg.so,
# WSLDIR=/usr/lib/wsl/lib places the names of the library there too.
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
BINDIR ?= $(PREFIX)/bin
INCLUDEDIR ?= $(PREFIX)/include
DESTDIR ?=
WSLDIR ?=
# In front of /lib/modules.
INSTALL_MOD_PATH ?=
ALIASES ?= yes

enter := tools/env/enter
# A value with a quote is one argument all the same.
quoted = '$(subst ','\'',$(1))'
install = tools/install --prefix $(call quoted,$(PREFIX)) --libdir $(call quoted,$(LIBDIR)) \
	--bindir $(call quoted,$(BINDIR)) --includedir $(call quoted,$(INCLUDEDIR)) \
	--destdir $(call quoted,$(DESTDIR)) $(if $(WSLDIR),--wsldir $(call quoted,$(WSLDIR))) \
	$(if $(filter no,$(ALIASES)),--no-aliases)
module := tools/env/module $(if $(KDIR),--kdir $(KDIR),--kernel $(KERNEL))

.PHONY: modules
modules: ## build opendxg.ko for KERNEL, or for the build tree KDIR
	@$(module) modules

# The tree sees the root of the host as /host.
.PHONY: modules_install
modules_install: ## install what make modules built in INSTALL_MOD_PATH/lib/modules/RELEASE/updates; depmod is up to you
	@$(module) modules_install INSTALL_MOD_DIR=updates \
		INSTALL_MOD_PATH=$(call quoted,$(if $(KDIR),,/host)$(abspath $(INSTALL_MOD_PATH)))

.PHONY: demo
demo: vm-parts ## boot a stock kernel and let programs share a fence, a picture and the work of engines
	@tools/demo/run --kernel $(KERNEL)

.PHONY: test
test: ## run all tests: on the host, then in a virtual machine on KERNEL
	@SET=$(SET) tools/env/test $(KERNEL) host vm interop

.PHONY: test-host
test-host: ## run the tests that need no virtual machine
	@tools/env/test $(KERNEL) host

.PHONY: miri
miri: ## run the rules and the client crate under Miri, where a toolchain of the host has it
	@tools/host/check miri

.PHONY: verify
verify: ## check the protocol of native fences in Spin, herd7 (where it is) and loom, without each barrier
	@tools/verify/run

.PHONY: fuzz
fuzz: ## fuzz the core of the software GPU twice for FUZZ_SECONDS (60), led by coverage
	@FUZZ_SECONDS=$(FUZZ_SECONDS) tools/fuzz/run engine
	@FUZZ_SECONDS=$(FUZZ_SECONDS) tools/fuzz/run ring

.PHONY: fuzz-ioctl
fuzz-ioctl: vm-parts ## make calls by chance on the debug kernel for TIME seconds (600), led by coverage
	@FUZZ_SECONDS=$(TIME) tools/fuzz/ioctl $(SEED)

.PHONY: test-vm
test-vm: ## run the tests in the virtual machine
	@SET=$(SET) tools/env/test $(KERNEL) vm

.PHONY: test-interop
test-interop: ## let other drivers use our memory: Mesa's lavapipe (make test-vm builds what it needs)
	@tools/env/test $(KERNEL) interop

.PHONY: stress
stress: ## run the stress tests as often and as long as the specification says, or with ROUNDS=1000 in part
	@ROUNDS=$(ROUNDS) FENCE_ROUNDS=$(FENCE_ROUNDS) tools/env/test $(KERNEL) stress

.PHONY: kills
kills: ## kill clients at any moment, a tenth beside one that is measured, a million or ROUNDS
	@ROUNDS=$(ROUNDS) tools/env/test $(KERNEL) kills

.PHONY: nightly
nightly: ## run everything on everything: all kernels, stress, Miri, mutants, longer loom (many hours)
	@.ci/run nightly

.PHONY: requirements
requirements: ## list which tests showed each requirement in the last `make test`
	@$(enter) tools/requirements $(KERNEL)

.PHONY: bench
bench: vm-parts ## measure against ntsync, drm_syncobj, dma-buf and others; results in build/bench
	@tools/bench/run --kernel $(KERNEL)

.PHONY: bench-against
bench-against: vm-parts ## measure against another COMMIT, in turns, in one boot
	@KERNEL=$(KERNEL) tools/bench/against "$(COMMIT)"

.PHONY: bench-wine
bench-wine: vm-parts ## measure against the server of Debian's Wine; results in build/bench/wine
	@tools/wine/run --kernel $(KERNEL)

.PHONY: trace-instructions
trace-instructions: vm-parts ## count the instructions of one operation of the benchmark: CALL=signal
	@tools/trace/run "$(CALL)" --kernel $(KERNEL)

.PHONY: images
images: vm-parts ## make the pictures of Documentation/images again
	@tools/images/run --kernel $(KERNEL)

.PHONY: clippy
clippy: ## lint the module, for the kernels of LINT (7.2 and 7.3), and the tools
	@$(if $(KDIR),$(module) --clippy modules,\
		for kernel in $(LINT); do tools/env/module --kernel $$kernel --clippy modules || exit; done)
	@$(enter) sh -c 'cd tools && cargo clippy --workspace --all-targets --locked -- -D warnings'

.PHONY: fmt
fmt: ## format the module and the tools
	@$(enter) sh -c 'tools/env/rustfmt && cd tools && cargo fmt --all && cd fuzz && cargo fmt'

.PHONY: fmt-check
fmt-check: ## check the format of the module and the tools
	@$(enter) sh -c 'tools/env/rustfmt --check && cd tools && cargo fmt --all --check && cd fuzz && cargo fmt --check'

.PHONY: rust-analyzer
rust-analyzer: ## write rust-project.json, which gives an editor the kernel crates
	@$(module) rust-analyzer

.PHONY: vm-parts
vm-parts: ## build what a virtual machine holds: the module and the shim
	@$(module) modules
	@$(enter) tools/env/stage

.PHONY: build
build: ## build libd3dkmt.so and the command opendxg, for make install
	@$(enter) tools/env/build

# Copies only, and never enters the tree: it may run as root.
.PHONY: install
install: ## install what make build built below PREFIX: library, headers, the command opendxg
	@$(install)

.PHONY: uninstall
uninstall: ## remove what make install installed, with the same variables
	@$(install) --uninstall

.PHONY: deb
deb: ## build Debian packages in build/deb: modules for all stock kernels that Debian offers, library, command
	@tools/deb/build

.PHONY: test-deb
test-deb: ## install, use, upgrade and remove the packages on a Debian machine, on 7.2 and 7.3
	@tools/deb/test

.PHONY: clean
clean: ## remove everything that was built, keep the cache
	rm -rf build rust-project.json

.PHONY: distclean
distclean: clean ## remove the cache too: the Debian tree, kernels and crates
	@tools/env/remove

.PHONY: help
help: ## show this list
	@echo 'usage: make [TARGET] [KERNEL=7.2|7.3|debug] [SET=all|bat|paths] [KDIR=DIR] [ROUNDS=N]'
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1|\2/p' Makefile | while IFS='|' read -r target text; do \
		printf '  %-15s %s\n' "$$target" "$$text"; done
