SHELL := /usr/bin/env bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

TOOL := go tool -modfile=scripts/tools/go.mod
export PATH := $(CURDIR)/.build/tools:$(PATH)

# How long each fuzz target runs, how often each benchmark runs, and more flags
# for go test: make test TESTFLAGS=-v
FUZZTIME ?= 20s
COUNT ?= 6
TESTFLAGS ?=
# Empty: the campaigns of kills, queues and searches that take minutes each run too.
SHORT ?= -short
export FUZZTIME COUNT
# How the tests and their programs are compiled in three quarters of the time: without
# debugging information, and with memory in place of time for the compiler.
COMPILE := GOGC=400 GOFLAGS="$(GOFLAGS) -gcflags=all=-dwarf=false -ldflags=-w"
GO_TEST = $(COMPILE) go test -exec '$(CURDIR)/scripts/test-exec' -race -shuffle=on -parallel 4 -vet=off $(SHORT) $(TESTFLAGS)

# The packages whose tests measure jobs, and those whose tests take longest, the longest first.
MEASURING := ./test/e2e/slurm ./test/e2e
LONGEST := ./test/e2e/slurm ./driver/slurm ./test/e2e ./controller/evaluate/replay ./driver/slurm/broker ./test/worlds ./driver/nomad \
	./test/scenario ./driver/local ./test/faultslurm ./controller/cmd/pitchpipe/command ./exporter/cmd/pitchpipe-exporter ./test/faultnomad

.PHONY: help build demo unit test check lint fmt generate bench bench-exporter bench-kmeans bench-mind bench-nomad bench-pipeline bench-search bench-slurm e2e e2e-nomad e2e-slurm fault-nomad fault-search fault-slurm fuzz cover package regret worlds clean

help: ## list what make can do
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build the programs into bin/
	@scripts/build

demo: build ## show the whole way of a job on this machine, in about twelve minutes
	@bin/pitchpipe demo

unit: ## run the tests that need no scheduler, under a minute once they are compiled
	@scripts/unit $(TESTFLAGS)

test: ## install what the tests need, where it is missing, and run those that do not take minutes
	@# While packages are installed, the tests are compiled.
	@$(COMPILE) go list -race -test -export ./... >/dev/null 2>&1 & \
		scripts/setup-test && scripts/setup-slurm && $(if $(SHORT),,scripts/setup-jobs &&) \
		echo "compiling the tests with the race detector: the first time this takes minutes" && wait
	@# Most of these tests wait for schedulers and processes: four packages share two cores,
	@# each with four tests at a time, and those that take longest begin first. With all tests,
	@# those that measure jobs run before the others, so that nothing disturbs the jobs. Vet is a
	@# gate of make check.
	@failed=0; $(if $(SHORT),,$(GO_TEST) -timeout 60m -p 1 $(MEASURING) || failed=1;) \
		$(GO_TEST) -timeout $(if $(SHORT),20m,60m) -p $(if $(SHORT),4,2) \
		$(if $(SHORT),$(LONGEST) ./...,$$(go list $(LONGEST) ./... | grep -v /test/e2e)) || failed=1; exit $$failed

check: ## every gate: format, lint, vet, tests, rules, generated pages, coverage, scripts
	@scripts/setup-check
	@echo "format"; $(TOOL) golangci-lint fmt --diff
	@echo "lint"; $(TOOL) golangci-lint run
	@echo "vet"; go vet ./...
	@echo "vulnerabilities"; scripts/check-vulnerabilities
	@echo "scripts"; scripts/check-scripts
	@echo "limits"; scripts/check-limits
	@echo "generated pages"; scripts/check-generated
	@PITCHPIPE_REQUIRE_TOOLS=1 $(MAKE) test SHORT=
	@$(MAKE) cover

lint: ## run the linters that .golangci.yml names
	@$(TOOL) golangci-lint run

fmt: ## format the code and sort the imports
	@$(TOOL) golangci-lint fmt

generate: ## rewrite the pages that are made from tables in the code
	@scripts/setup-slurm && scripts/generate

bench: ## run the benchmarks and compare them with the run before
	@scripts/bench-go

e2e: ## run the end-to-end tests, with real schedulers where they are on PATH
	@scripts/e2e

e2e-slurm: ## tune jobs on a private Slurm in both modes, end with the table
	@scripts/e2e-slurm

e2e-nomad: ## tune the job files that ship on Nomad, the real agent where nomad is on PATH
	@scripts/e2e-nomad

fault-slurm: ## 200 faults in a private Slurm and the controllers, and what became of every job
	@scripts/fault slurm

fault-search: ## 100 kills of a search's controller and of Slurm's processes, and what became of every trial
	@scripts/fault search

fault-nomad: ## 200 faults in Nomad and the controllers, and what became of every job
	@scripts/fault nomad

bench-slurm: ## what it costs to watch 10,000 queued jobs, and how soon a new one is seen
	@scripts/bench slurm

bench-exporter: ## what the exporter costs, beside node_exporter
	@scripts/bench exporter

bench-nomad: ## what it costs to watch 1,000 jobs of Nomad, and how soon a new one is seen
	@scripts/bench nomad

bench-search: ## what a search of 1,000 trials costs the controller, on a simulated cluster
	@scripts/bench search

bench-kmeans: ## k-means beside scikit-learn's, to the same inertia
	@scripts/bench-kmeans

bench-mind: ## the tables and plots of the tuner's mind, over recorded runs
	@scripts/bench mind

bench-pipeline: ## searches of training programs: system knobs fixed, searched and pipelined; BENCH=short for less
	@scripts/bench pipeline

regret: ## record what settings cost here, and what a class's settings cost where it is met anew
	@scripts/regret

worlds: ## play 200 random jobs in virtual time: what tuning saves and costs, beside the aims
	@scripts/worlds

fuzz: ## run every fuzz target for FUZZTIME, 20s unless told
	@scripts/fuzz

cover: ## fail where a pure package has under 90 % statement coverage
	@scripts/cover

package: ## build the deb and rpm packages into .build/packages
	@scripts/package/build

clean: ## remove what was built
	@rm -rf bin .build
