# make without a target lists the targets. Each works on a fresh clone with only Go and make.
SHELL := /bin/bash
GO ?= go
# All targets use the same flags, so that each package is compiled only once. Programs and tests contain no C code: that
# is the program that is shipped, so tests and figures are of it. Only the race detector needs C.
export GOFLAGS := $(strip $(GOFLAGS) -trimpath)
export CGO_ENABLED := 0

.PHONY: alerts-check bench bench-peers bench-proxies browser browser-big browser-firefox browser-kills browser-people browser-screens browser-shots browser-views build calls check clients clocks-cluster cluster-import conform conform-s3 crash crash-cluster cut-links damage-cluster docs freeze-cluster full-cluster help hooks kill kill-cluster kill-core-edges kill-edges kill-presence licenses linear-edges login mail man mirror mirror-edge mixed-releases mutants partition-cluster poison race release release-check rolling-upgrade run sim sim-actors sleep-cluster test test-beside types upgrades versions web web-check web-mirror
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

hooks: ## install the commit-msg hook that checks commit subjects
	git config core.hooksPath .github/hooks

# Stripped of the symbols for debuggers. Panics, profiles and `parley version` do not use them.
build: ## build bin/parley, one static file; VERSION=v1.2.3 sets its version
	$(GO) build -ldflags "-s -w$(if $(VERSION), -X main.version=$(VERSION))" -o bin/parley ./cmd/parley

release: ## write the files of a release to bin/release, the same bytes each time: make release VERSION=v1.2.3
	$(GO) run ./cmd/internal/release/build "$(VERSION)" bin/release

# helm is only a tool of this check: its build takes some minutes the first time.
HELM := helm.sh/helm/v3/cmd/helm@v3.22.0
release-check: ## build a release twice and compare, run the arm64 program, lint and render the chart (needs qemu-user)
	command -v helm >/dev/null || GOFLAGS= $(GO) install $(HELM)
	PATH="$$PATH:$$($(GO) env GOPATH)/bin" RELEASE=1 $(GO) test -count=1 -v -timeout 40m ./cmd/internal/release
	RELEASE=1 $(GO) test ./cmd/parley -run '^TestPackage' -count=1 -v -timeout 10m

docs: ## write the reference pages in .github/docs/reference
	$(GO) run ./cmd/parley docs reference .github/docs/reference

TYPES := wire/web/client/src/api/schema.ts
types: ## write the client's types of the protocol from the OpenAPI document (needs Node)
	dir=$$(mktemp -d) && trap "rm -r $$dir" EXIT && $(GO) run ./cmd/parley openapi --schemas >$$dir/openapi.json && \
	cd $$dir && npm exec --yes --package=typescript@5.9.3 --package=openapi-typescript@7.13.0 -- \
	openapi-typescript --root-types --root-types-no-schema-prefix <openapi.json >schema.ts && \
	{ echo "// Made by make types from the OpenAPI document with the digest"; \
	echo "// $$(sha256sum <openapi.json | cut -d' ' -f1)."; \
	sed '/^ *\/\*\* @enum {[a-z]*} \*\/$$/d' schema.ts; } >"$(abspath $(TYPES))"

licenses: ## write the notices of third-party code that the program prints
	$(GO) run ./cmd/internal/licenses/collect >notices.new
	mv notices.new cmd/internal/licenses/notices.txt

# Without KaTeX, whose later HTML is not the protocol's (wire/markdown/generate), and without the types of Node, whose
# version is that of Node. A version that needs a later Go than this one is left out.
node-names = $$(node -p 'const p = require("./package.json"); Object.keys({...p.dependencies, ...p.devDependencies}) \
	.filter(n => n != "katex" && n != "@types/node").map(n => n + "@latest").join(" ")')
versions: ## raise the direct dependencies to their newest versions (needs Node)
	for m in $$($(GO) list -m -f '{{if not (or .Indirect .Main)}}{{.Path}}{{end}}' all); do $(GO) get $$m || true; done
	$(GO) mod tidy
	for d in client browser; do (cd wire/web/$$d && npm install --save-exact --no-audit --no-fund $(node-names)) || exit; done
	$(MAKE) web licenses

web: ## build the client in the browser into wire/web/dist and run its tests (needs Node)
	cd wire/web/client && npm ci --no-audit --no-fund && npm run check && npm test && npm run build

web-check: web ## fail if wire/web/dist differs from the result of its sources
	@test -z "$$(git status --porcelain wire/web/dist)" || { git status --short wire/web/dist; echo "run make web and commit wire/web/dist"; exit 1; }

web-mirror: ## check in N random runs (100) that the client's store equals a new registration; SEED repeats
	dir=$$(mktemp -d) && trap "rm -r $$dir" EXIT && cd wire/web/client && npm ci --no-audit --no-fund && \
	(cd ../../.. && RECORD=$$dir N=$${N:-100} $(GO) test ./actors -run '^TestMirrors$$' -count=1 -timeout 60m) && \
	PARLEY_RECORDS=$$dir npm test

man: ## write the man pages to bin/man
	$(GO) run ./cmd/parley docs man bin/man

PORT ?= 9991
run: build ## serve a demo organization on 127.0.0.1:9991; PORT=8080 chooses another port
	bin/parley serve --data ./data --listen 127.0.0.1:$(PORT) --demo

test: ## run every test, the long ones in their short form
	$(GO) test -timeout 16m ./...

# The tests of the program with several processes wait most of the time.
SEVERAL := '^Test(Cluster|Edge|Edges|Kill|Bucket|Upgrade)'
test-beside: ## as test, with the longest tests of the program beside the others
	$(GO) test -timeout 20m ./cmd/parley -run $(SEVERAL) & several=$$!; failed=0; \
	$(GO) test -timeout 16m $$($(GO) list ./... | grep -v /cmd/parley$$) || failed=1; \
	$(GO) test -timeout 20m ./cmd/parley -skip $(SEVERAL) || failed=1; wait $$several || failed=1; exit $$failed

race: ## run the tests of concurrent code under the race detector (needs a C compiler)
	CGO_ENABLED=1 $(GO) test -race -short -timeout 15m ./actors ./actors/queue ./wire/httpd/... ./wire/peer \
	./cmd/internal/cluster
	CGO_ENABLED=1 $(GO) test -race -short -skip PowerLoss -timeout 15m ./snapshot/replicated

poison: ## run every test, overwriting the memory of requests when their handlers return
	$(GO) test -timeout 15m -tags poison ./...

check: ## run go vet, staticcheck and gofmt, and test the alert rules if promtool is installed
	$(GO) vet ./...
	$(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "not formatted:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	@if command -v promtool >/dev/null; then $(MAKE) alerts-check; else \
	echo "the alert rules are not tested: promtool is not installed (Debian package prometheus)"; fi

alerts-check: ## test the alert rules of .deploy/alerts.yml (needs promtool)
	promtool check rules .deploy/alerts.yml
	promtool test rules .deploy/alerts_test.yml

bench-peers: build ## compare the load generator with k6 (builds it) and locust (installs it): the same sends, within 10 %
	bench/peers/run

bench-proxies: ## run the load generator behind haproxy and nginx with TLS (those that are installed)
	go test -count=1 -v -run TestBehindProxies ./bench

bench: build ## check every performance target, in the short form (8 to 10 minutes)
	bin/parley bench targets --self --short

conform: build ## run acceptance checks, contract crawler and real clients against bin/parley
	wire/contract/clients/run
	$(GO) test -count=1 -timeout 120s -run 'Sample|OutAndIn|Hostile' ./cmd/internal/migration

clients: build ## generate clients in Python, TypeScript and Go from the API description, and let them talk (needs Node)
	python3 wire/contract/clients/generated.py

conform-s3: build ## run the checks of conform with files in a bucket; kill -9 KILLS times (20), S3 down OUTAGE s (60)
	CONFORM=1 $(GO) test ./cmd/parley -run '^TestConformWithBucket$$' -count=1 -v -timeout 30m
	KILLS=$${KILLS:-20} OUTAGE=$${OUTAGE:-60} $(GO) test ./cmd/parley -run '^Test(Bucket|Files|Regular|Interrupted|RestoreDrill|ClusterBucket)' -count=1 -v -timeout 60m

login: ## log in at login providers of others, which it installs (needs Node); skips those that it cannot install
	LOGIN=1 $(GO) test ./cmd/parley -run '^TestReal' -count=1 -v -timeout 20m

mail: ## send mail through mail servers of others (needs root, swaks, dovecot-imapd, dovecot-lmtpd, dovecot-sieve, opensmtpd, openssl, python3)
	MAIL=1 $(GO) test ./cmd/parley -run '^TestMailThroughRealServers' -count=1 -v -timeout 10m

# The newest version that the module proxy has with all its modules. It has directives that go install does not accept, so
# it is built from a copy.
LIVEKIT := github.com/livekit/livekit-server@v1.9.12
calls: build ## hold calls at a LiveKit server, which it builds, with the fake camera of Chromium (needs Node; 5 minutes)
	dir=$$(mktemp -d) && trap "rm -rf $$dir" EXIT && export GOFLAGS= && $(GO) mod download $(LIVEKIT) && \
	cp -r "$$($(GO) env GOMODCACHE)/$(LIVEKIT)" $$dir/source && chmod -R u+w $$dir/source && \
	(cd $$dir/source && $(GO) build -o $$dir/livekit-server ./cmd/server) && \
	export LIVEKIT_SERVER=$$dir/livekit-server && $(GO) test ./cmd/parley -run '^TestCallsWithLiveKit' -count=1 -v && \
	wire/web/browser/run calls_test.js

browser: build ## drive the pages with Chromium and check them with axe-core (needs Node; installs the rest)
	wire/web/browser/run

browser-firefox: build ## drive the views of the client with Firefox, without what its protocol cannot (needs Node; installs the rest)
	wire/web/browser/run firefox

browser-views: build ## check every view of the client with all rules of axe-core in MODES (all): light,dark,contrast,rtl
	MODES=$${MODES:-all} wire/web/browser/run every_view_test.js

browser-kills: build ## kill -9 the server KILLS times (50) while people type in Chromium, then 60 seconds offline
	KILLS=$${KILLS:-50} OFFLINE_SECONDS=$${OFFLINE_SECONDS:-60} wire/web/browser/run kills_test.js

browser-big: build ## measure the client in an organization of 1,000,000 messages (3 minutes; use a quiet machine)
	wire/web/browser/run big_realm.js

browser-people: build ## measure an organization of PARLEY_CROWD users (1,000,000), PARLEY_CONNECTED (10,000) connected
	wire/web/browser/run big_people.js

SHOTS ?= bin/shots
browser-shots: build ## write screenshots of the client's views into SHOTS (bin/shots); VIEWS='inbox|topic' chooses some
	wire/web/browser/run shots "$(abspath $(SHOTS))" "$(VIEWS)"

browser-screens: build ## renew the screenshots of .github/docs/screens.md
	wire/web/browser/run shots "$(abspath .github/docs/screens)" "" page

kill: ## kill -9 a loaded server KILLS times (100) with CLIENTS pollers (60); SEED repeats a run
	KILLS=$${KILLS:-100} CLIENTS=$${CLIENTS:-60} $(GO) test ./cmd/parley -run '^TestKill$$' -count=1 -v -timeout 24h

kill-cluster: ## kill -9 a random one of three loaded cores KILLS times (100) with CLIENTS pollers (30) and SLEEPERS organizations that sleep and wake (0); SEED repeats a run
	KILLS=$${KILLS:-100} CLIENTS=$${CLIENTS:-30} $(GO) test ./cmd/parley -run '^TestClusterKill$$' -count=1 -v -timeout 24h

kill-presence: ## kill -9 the leader, then all three cores; the presence of users may be 31 seconds old
	PRESENCE=all $(GO) test ./cmd/parley -run '^TestClusterPresence$$' -count=1 -v -timeout 10m

full-cluster: ## fill the disk of one core, then of all three, under load (needs root or user namespaces)
	FULL=1 $(GO) test ./cmd/parley -run '^TestCluster(FullDisk|AllDisksFull)$$' -count=1 -v -timeout 10m

damage-cluster: ## flip a bit in the log of the leader, in the tables of another core, and in an old text; replace them
	DAMAGE=1 $(GO) test ./cmd/parley -run '^TestClusterDamage' -count=1 -v -timeout 10m
	$(GO) test ./snapshot/replicated -run 'Damaged|EveryByte' -count=1 -v -timeout 10m

freeze-cluster: ## stop the leader and another core for FREEZES seconds ("1 4 12") while clients of all cores read; SEED
	FREEZES="$${FREEZES:-1 4 12}" $(GO) test ./cmd/parley -run '^TestClusterFreeze$$' -count=1 -v -timeout 30m

partition-cluster: ## cut, delay and half-cut the network between three cores in eight ways, then CUTS times (20) at random (needs root), with SLEEPERS organizations that sleep and wake (0); SEED repeats
	PARTITIONS=all $(GO) test ./cmd/parley -run '^TestCluster(Partition|Cuts)$$' -count=1 -v -timeout 30m

# Builds this program and that of PREVIOUS, a commit or a program file, for the command that follows.
define with-previous
dir=$$(mktemp -d) && trap "rm -r $$dir" EXIT && $(GO) build -o $$dir/program ./cmd/parley && \
	previous="$${PREVIOUS:-HEAD}" && if [ -f "$$previous" ]; then cp "$$previous" $$dir/previous; else \
	mkdir $$dir/source && git archive "$$previous" | tar -x -C $$dir/source && \
	(cd $$dir/source && $(GO) build -o $$dir/previous ./cmd/parley); fi && \
	PREVIOUS=$$dir/previous PROGRAM=$$dir/program
endef

rolling-upgrade: ## replace three loaded cores, POLLERS polls (5000); PREVIOUS is the commit or program file to begin with
	$(with-previous) POLLERS=$${POLLERS:-5000} \
	$(GO) test ./cmd/parley -run '^TestRollingUpgrade$$' -count=1 -v -timeout 60m

mixed-releases: ## run PREVIOUS, a commit (HEAD) or program file, and this release in one cluster, upgrade and downgrade
	$(with-previous) $(GO) test ./cmd/parley -run '^TestClusterMixedReleases$$' -count=1 -v -timeout 10m

clocks-cluster: ## let each of three cores lead whose clocks differ by an hour; set the clocks while they run
	CLOCKS=all $(GO) test ./cmd/parley -run '^TestCluster(Clocks|ClockSet)$$' -count=1 -v -timeout 10m

cluster-import: ## import MESSAGES messages (20000) into three cores: stop the import, kill the leader during the next one
	MESSAGES=$${MESSAGES:-20000} $(GO) test ./cmd/parley -run '^TestClusterImport$$' -count=1 -v -timeout 10m

mutants: ## build faults in, such as no check of epochs, and require that a test fails for each
	MUTANTS=1 $(GO) test ./cmd/parley -run '^TestMutants$$' -count=1 -v -timeout 60m

sleep-cluster: ## let organizations sleep on a server and on three cores: backup, restore, kills, upgrade, erase
	SLEEPERS=1 $(GO) test ./cmd/parley -run '^Test(ClusterSleeps|CommandsWhileAsleep)$$' -count=1 -v -timeout 15m

kill-edges: ## kill -9 one of three edges KILLS times (100) with POLLERS clients (9500); SEED repeats a run
	KILLS=$${KILLS:-100} POLLERS=$${POLLERS:-9500} $(GO) test ./cmd/parley -run '^TestEdgeKillPollers$$' -count=1 -v -timeout 24h

kill-core-edges: ## kill -9 a core under three edges KILLS times (100) with CLIENTS pollers (60); SEED repeats a run
	KILLS=$${KILLS:-100} CLIENTS=$${CLIENTS:-60} $(GO) test ./cmd/parley -run '^TestCoreKillUnderEdges$$' -count=1 -v -timeout 24h

cut-links: ## delay, cut and block the links of two edges ROUNDS times (50) with CLIENTS pollers (30); SEED repeats a run
	ROUNDS=$${ROUNDS:-50} CLIENTS=$${CLIENTS:-30} $(GO) test ./cmd/parley -run '^TestEdgeLinks$$' -count=1 -v -timeout 24h

linear-edges: ## look N times (50) for an order of SENDS (60) sends by 8 clients of two edges under faults; SEED repeats a run
	N=$${N:-50} SENDS=$${SENDS:-60} $(GO) test ./cmd/parley -run '^TestEdgesLinearizable$$' -count=1 -v -timeout 24h

upgrades: ## upgrade a loaded server UPGRADES times (100), also with poison; no request may fail
	UPGRADES=$${UPGRADES:-100} $(GO) test ./cmd/parley -run '^TestSeamlessUpgrade$$' -count=1 -v -timeout 60m
	UPGRADES=$${UPGRADES:-100} $(GO) test -tags poison ./cmd/parley -run '^TestSeamlessUpgrade$$' -count=1 -v -timeout 60m

sim: ## simulate N random runs (20000) of the actors on one thread: crashes, slow disks, clock jumps; SEED repeats
	N=$${N:-20000} $(GO) test ./actors -run '^TestSeeds$$' -count=1 -v -timeout 600m

sim-actors: ## simulate N longer runs (200) with real mailboxes and requests; SEED repeats
	N=$${N:-200} $(GO) test ./actors -run '^TestSimulation$$' -count=1 -v -timeout 60m

mirror: ## check in N random runs (1000) that clients' state from events equals a new registration; SEED repeats
	N=$${N:-1000} $(GO) test ./actors -run '^TestMirrors$$' -count=1 -v -timeout 600m

mirror-edge: ## check the same in N random runs (100) through an edge, against edge and core; SEED repeats
	N=$${N:-100} $(GO) test ./cmd/internal/server -run '^TestMirrorsThroughEdge$$' -count=1 -v -timeout 600m

crash: ## simulate N power losses (20000) before every write, with 0, 50 or 100 % of unsynced data kept; SEED repeats
	N=$${N:-20000} $(GO) test ./snapshot -run '^TestPowerLoss$$' -count=1 -v -timeout 600m

crash-cluster: ## simulate N power losses (100000) of a cluster's node, in its log and its store; SEED repeats
	N=$${N:-100000} $(GO) test ./snapshot/replicated -run '^TestPowerLoss$$' -count=1 -v -timeout 600m
