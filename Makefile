# What a person does with this tree. `make` alone lists it.

SHELL := /bin/sh
TOOL := go tool -modfile=tools/go.mod
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
FUZZTIME ?= 10s
SHORT ?= -short
GO_TEST ?= go test -race -timeout 20m

.DEFAULT_GOAL := help
.PHONY: help build test demo plugins generate freeze lint fmt fuzz bench check

help: ## say what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-11s %s\n", $$1, $$2 }' Makefile

build: ## the programs, into bin/
	CGO_ENABLED=0 go build -trimpath -ldflags "-X main.version=$(VERSION)" -o bin/ ./cmd/... ./examples/audit

test: ## tests with the race detector, the long ones left out (SHORT= for all)
	$(GO_TEST) $(SHORT) ./...

demo: build ## a fleet at work on this machine: one job over the Go toolchain's sources
	go run ./test/demo

plugins: ## compile the shipped policies to WebAssembly
	go run ./plugins/build

generate: ## the Go stubs of api/v1
	$(TOOL) buf generate

freeze: ## accept the wire contract of api/v1 as it is now
	$(TOOL) buf build -o api/v1/frozen.binpb

lint: lint-go lint-api ## what the linters say

fmt: ## format everything
	$(TOOL) golangci-lint fmt
	$(TOOL) buf format -w

fuzz: ## each fuzz target for FUZZTIME (10s)
	tools/fuzz.sh $(FUZZTIME)

bench: ## measure, and hold the numbers beside their floors
	go run ./test/bench

CHECKS := check-tidy check-format lint-go lint-api check-vet check-generated check-plugins check-darwin check-test fuzz

check: ## all that must be green before a change goes in
	tools/check.sh $(CHECKS)

# The parts of check. Each can be made alone.
.PHONY: $(CHECKS)

check-tidy:
	go mod tidy -diff

check-format:
	$(TOOL) golangci-lint fmt --diff
	$(TOOL) buf format --diff --exit-code

lint-go:
	$(TOOL) golangci-lint config verify
	$(TOOL) golangci-lint run ./...

lint-api:
	$(TOOL) buf lint
	$(TOOL) buf breaking --against api/v1/frozen.binpb

check-vet:
	go vet ./...

check-generated:
	tools/generated.sh

check-plugins:
	go run ./plugins/build -check

check-darwin:
	GOOS=darwin CGO_ENABLED=0 go build ./...

check-test: SHORT :=
check-test: test
