# Bare `make` lists the targets; each works on a fresh clone with only Go and make.
SHELL := /bin/bash
GO ?= go

.PHONY: help hooks build docs man run test race poison check bench conform kill upgrades sim sim-actors crash mirror
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

hooks: ## install the commit-msg hook that checks commit subjects
	git config core.hooksPath .github/hooks

build: ## build bin/parley; VERSION=v1.2.3 sets its version
	$(GO) build -trimpath $(if $(VERSION),-ldflags "-X main.version=$(VERSION)") -o bin/parley ./cmd/parley

docs: ## write the reference pages in .github/docs/reference
	$(GO) run -trimpath ./cmd/parley docs reference .github/docs/reference

man: ## write the man pages to bin/man
	$(GO) run -trimpath ./cmd/parley docs man bin/man

PORT ?= 9991
run: build ## serve a demo organization on 127.0.0.1:9991; PORT=8080 chooses another port
	bin/parley serve --data ./data --listen 127.0.0.1:$(PORT) --demo

test: ## every test, short forms of the long ones
	$(GO) test -timeout 8m ./...

race: ## what runs at once, short, under the race detector (needs a C compiler)
	CGO_ENABLED=1 $(GO) test -race -short -timeout 15m ./actors ./actors/queue ./wire/httpd/...

poison: ## every test, with requests' memory overwritten as soon as their handlers have returned
	$(GO) test -timeout 15m -tags poison ./...

check: ## vet, staticcheck, gofmt
	$(GO) vet ./...
	$(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "not formatted:"; gofmt -l $$(git ls-files '*.go'); exit 1; }

bench: build ## every target of the load harness, short form: reached or missed (8 to 10 minutes)
	bin/parley bench targets --self --short

conform: build ## acceptance checks, contract crawler and real clients against bin/parley
	wire/contract/clients/run

kill: ## kill -9 a loaded server KILLS times (100) with CLIENTS pollers (60); SEED repeats
	KILLS=$${KILLS:-100} CLIENTS=$${CLIENTS:-60} $(GO) test ./cmd/parley -run '^TestKill$$' -count=1 -v -timeout 24h

upgrades: ## replace a loaded server UPGRADES times (100) by its successor, as it is and with poison; no request may fail
	UPGRADES=$${UPGRADES:-100} $(GO) test ./cmd/parley -run '^TestSeamlessUpgrade$$' -count=1 -v -timeout 60m
	UPGRADES=$${UPGRADES:-100} $(GO) test -tags poison ./cmd/parley -run '^TestSeamlessUpgrade$$' -count=1 -v -timeout 60m

sim: ## N seeded stories (20000) of the house on one thread: crashes, slow disks, clocks that jump; SEED picks the first
	N=$${N:-20000} $(GO) test ./actors -run '^TestSeeds$$' -count=1 -v -timeout 600m

sim-actors: ## N longer stories (200) with real mailboxes and requests; SEED repeats the first
	N=$${N:-200} $(GO) test ./actors -run '^TestSimulation$$' -count=1 -v -timeout 60m

mirror: ## N seeded crowds (1000) over every noun: what clients piece together from events is what a fresh register says; SEED picks the first
	N=$${N:-1000} $(GO) test ./actors -run '^TestMirrors$$' -count=1 -v -timeout 600m

crash: ## N power losses (20000) before every write of seeded runs, with 0, 50, 100 % of unsynced data kept; SEED picks the first run
	N=$${N:-20000} $(GO) test ./snapshot -run '^TestPowerLoss$$' -count=1 -v -timeout 600m
