# The tasks of development. CI runs these same targets: see .ci/run.

SHELL := /bin/bash
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/dynactor
BIN   := $(CACHE)/bin

GOLANGCI_LINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
BUF           := github.com/bufbuild/buf/cmd/buf@v1.75.0
PROTOC_GEN_GO := google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12

API    := . ./clustered ./conformance ./dynactortest
# How many interleavings of two writers are tried by each of two tests at a time.
SCHEDULES ?= 10000
# How long make soak goes on, and how long make fuzz looks at each target.
DURATION ?= 1m
FUZZTIME ?= 20s

GOTEST := go test -race -shuffle=on -count=1 -p 2 -timeout 20m
IMAGE  := $(or $(DYNACTOR_TEST_IMAGE),$(shell sed -n 's/^const defaultImage = "\(.*\)"$$/\1/p' dynactortest/container.go))

.PHONY: help demo demo-check demo-cluster demo-cluster-check test model mutants lint fmt api proto bench soak fuzz

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: ## run the bank example; needs only Go (ARGS="-endpoint URL" takes a server)
	go run ./examples/bank $(ARGS)

demo-cluster: ## run the bank on a cluster whose nodes are killed and split off, and audit it (ARGS are its flags)
	go run ./examples/bankcluster $(ARGS)

demo-check: ## run the bank example and check what it recovers
	@bash .ci/demo-check bank $(ARGS)

demo-cluster-check: ## run the bank on a cluster and check its last line
	@bash .ci/demo-check bankcluster $(ARGS)

test: ## run all tests on the embedded server, then on an emulator where there is one
	@echo "== embedded ring"
	env -u DYNAMODB_ENDPOINT -u DYNACTOR_RING $(GOTEST) ./...
	@echo "== $(SCHEDULES) schedules of two incarnations for each of two cores"
	go test -count=1 -timeout 20m -run '^TestInterleavings$$' -rapid.checks=$(SCHEDULES) -rapid.nofailfile .
	@if [ -n "$$CI$$DYNAMODB_ENDPOINT" ] || docker image inspect $(IMAGE) >/dev/null 2>&1 || docker pull -q $(IMAGE) 2>/dev/null; then \
		echo "== emulator ring"; \
		set -x; DYNACTOR_RING=emulator $(GOTEST) $$(go list ./... | grep -v /model); \
	else \
		echo "== emulator ring NOT run, no Docker with $(IMAGE): start it, or set DYNAMODB_ENDPOINT, and run make test again"; \
	fi

model: ## search the model of the design (ARGS="-rules", or "-without RULE" for a trace)
	go run ./model/cmd $(ARGS)

mutants: ## let the conformance suites catch the broken stores that are made for them
	@set -o pipefail; go test -count=1 -run '^TestMutants$$' -v ./conformance | awk ' \
		/mutants caught/ { sub(/.*: /, ""); last = $$0; next } \
		/^ *mutants_test.go/ && !/caught by/ || /^(panic|FAIL)/ { print } \
		END { print last }'

lint: ## vet, lint, and check formatting and go.mod
	@bash .ci/install $(BIN) $(GOLANGCI_LINT)
	go vet ./...
	$(BIN)/golangci-lint fmt --diff
	$(BIN)/golangci-lint run --timeout 15m
	go mod tidy -diff

fmt: ## format the code
	@bash .ci/install $(BIN) $(GOLANGCI_LINT)
	$(BIN)/golangci-lint fmt

api: ## regenerate the API listings in docs/api
	@mkdir -p docs/api
	@for p in $(API); do \
		name=$$(go list -f '{{.Name}}' $$p) && go doc -all $$p > docs/api/$$name.txt || exit 1; \
		echo docs/api/$$name.txt; \
	done

proto: ## regenerate the protobuf code
	@bash .ci/install $(BIN) $(BUF) $(PROTOC_GEN_GO)
	PATH="$(BIN):$$PATH" $(BIN)/buf generate

bench: ## print the cost and speed of each path (ARGS are its flags)
	go run ./bench $(ARGS)

soak: ## try to break all guarantees for DURATION (ARGS="-endpoint URL -seed N" are its flags)
	go run ./soak -duration $(DURATION) $(ARGS)

fuzz: ## fuzz each target for FUZZTIME; on the emulator where DYNAMODB_ENDPOINT is set
	@for target in $$(go test -list '^Fuzz' . | grep '^Fuzz'); do \
		echo "== $$target for $(FUZZTIME)"; \
		go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) . || exit 1; \
	done
