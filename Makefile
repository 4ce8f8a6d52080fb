# Bare `make` lists the targets; each works on a fresh clone with only Go and make.
SHELL := /bin/bash
GO ?= go

.PHONY: help build run test check bench conform
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

build: ## build bin/parley
	$(GO) build -trimpath -o bin/parley ./cmd/parley

run: build ## serve a demo organization on 127.0.0.1:9991
	bin/parley serve --data ./data --listen 127.0.0.1:9991 --demo

test: ## every test, short forms of the long ones
	$(GO) test ./...

check: ## vet, staticcheck, gofmt
	$(GO) vet ./...
	$(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "not formatted:"; gofmt -l $$(git ls-files '*.go'); exit 1; }

bench: build ## every target of the load harness, short form: reached or missed (8 to 10 minutes)
	bin/parley bench targets --self --short

conform: build ## acceptance checks, contract crawler and real clients against bin/parley
	wire/contract/clients/run
