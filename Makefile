# The front door. All else is CMake: presets in CMakePresets.json, options in cmake/.
PRESET ?= release
PREFIX ?= /usr/local
# Threads that compile or test at once.
JOBS ?= $(shell nproc)
# INSTALL=no: use what is there, install nothing.
INSTALL ?= yes
# For example -DGXP_WERROR=ON.
CMAKE_ARGS ?=
# gpu-bundle: the one GPU architecture that it is for. gpu-check: which parts (all), and where its report goes.
GPU_ARCH ?= 90a
PARTS ?=
OUT ?= build/gpu-check
BUILD := build/$(PRESET)

packages = $(if $(filter yes,$(INSTALL)),cmake/install-packages.sh,:)
configure = cmake --preset $(PRESET) $(CMAKE_ARGS)

.PHONY: help demo test test-long build install docs lint gpu-bundle gpu-check clean

help: ## Show this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

demo: ## Train a small GPT on real text, about two minutes; TEXT=FILE: on that text
	@$(packages) build $(if $(TEXT),,demo)
	@$(configure) -DGXP_TESTS=OFF
	@cmake --build $(BUILD) -j $(JOBS) --target gxp
	@examples/demo.sh $(BUILD)/cmd/gxp $(if $(TEXT),"$(TEXT)")

test: ## Build and run every test
	@$(packages) build test
	@$(configure) -DGXP_TESTS=ON
	@cmake --build $(BUILD) -j $(JOBS)
	@ctest --test-dir $(BUILD) -j $(JOBS) -C folders -LE case --output-on-failure

test-long: test ## Also run the tests that take minutes: a killed rank, each system call that fails, the demo, RDMA in a virtual machine; readers with 10^7 inputs each: hours
	@$(packages) demo faults fuzz rdma
	@ctest --test-dir $(BUILD) --output-on-failure -C long -L long
	@GXP_TEST_COMBINATIONS=all ctest --test-dir $(BUILD) --output-on-failure -C folders -R '^(collective|emulated_cuda|kernels|replay|train)$$'
	@cmake --preset fuzz
	@cmake --build build/fuzz -j $(JOBS) --target gxp_fuzz
	@cd build/fuzz && ../../tests/fuzz/run.sh tests/fuzz/gxp_fuzz

build: ## Build build/release/cmd/gxp
	@$(packages) build
	@$(configure) -DGXP_TESTS=OFF
	@cmake --build $(BUILD) -j $(JOBS) --target gxp
	@cmake/gpu_hint.sh $(BUILD)

install: build ## Install under PREFIX, /usr/local; DESTDIR is honoured
	@cmake --install $(BUILD) --prefix $(PREFIX)

docs: build ## Update the generated parts of man/ and completions/
	@cmake --build $(BUILD) --target docs

lint: ## Check format and run clang-tidy on what differs from HEAD; ALL=1: on all, BASE=COMMIT: since then
	@$(packages) build test lint
	@cmake --preset dev -B build/lint -DCMAKE_UNITY_BUILD=ON -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON -DGXP_TESTS=OFF
	@cmake/lint.sh build/lint $(if $(ALL),all,$(or $(BASE),HEAD))

gpu-bundle: ## Pack what gpu-check needs on a machine with a GPU and without nvcc; GPU_ARCH=90a: for an H100 or H200
	@$(packages) build test
	@cmake --preset cuda -DGXP_TESTS=ON -DGXP_BENCH=ON -DCMAKE_CUDA_ARCHITECTURES=$(GPU_ARCH)-real
	@cmake --build build/cuda -j $(JOBS) --target gxp gxp_cuda_test gxp_cuda_bench gxp_kernel_times
	@bench/gpu_bundle.sh build/cuda build/gpu-bundle

gpu-check: ## Check and measure the CUDA backend on the GPU here; PARTS="smoke full sweep", OUT=DIR, CUDA_BUILD=DIR
ifdef STAND_INS
	@python3 tests/gpu_check/dry_run.py --show $(OUT) $(PARTS)
else
ifndef CUDA_BUILD
	@$(packages) build test
	@cmake --preset cuda -DGXP_TESTS=ON -DGXP_BENCH=ON
	@cmake --build build/cuda -j $(JOBS) --target gxp gxp_cuda_test gxp_cuda_bench gxp_kernel_times
endif
	@python3 bench/gpu_check.py --build $(or $(CUDA_BUILD),build/cuda) --out $(OUT) $(PARTS)
endif

clean: ## Remove build/ and what the demo wrote
	@rm -rf build run/demo
