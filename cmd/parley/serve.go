package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley/actors"
	"parley/actors/realm"
	"parley/snapshot"
	"parley/snapshot/files"
	"parley/snapshot/search"
	"parley/wire"
	"parley/wire/dispatch"
	"parley/wire/httpd"
	"parley/wire/httpd/park"
	"parley/wire/mail"
	"parley/wire/markdown/preview"
	"parley/wire/previews"
	"parley/wire/push"
	"parley/wire/webhooks"
)

// startupDelay is how long after its start a server for which more than throng connections wait gives the memory back that
// eventsIf starting needed, and begins with errands: either would take half of a small machine from those who all come at once.
const (
	startupDelay = 2 * time.Second
	crowdedStart = 256
)

// mergeDelay is for how long after its opening the store merges no tables and nothing is indexed: longer than everybody takes to
// come back.
const mergeDelay = search.StartupRest

// shutdownTimeout is how long a stopping server waits for what is in flight.
const shutdownTimeout = 15 * time.Second

func serve(args []string) (err error) {
	c, err := readConfig(args)
	if err != nil {
		return err
	}
	s, err := c.service()
	if err != nil {
		return err
	}
	began := time.Now()
	memory := newGCTuner()
	listeners, err := c.listen()
	if err != nil {
		return err
	}
	for _, l := range listeners {
		defer l.Close()
	}
	c.setListenAddress(listeners[0].Addr().String())
	if s.handover, err = newHandover(s.log, listeners); err != nil {
		return err
	}
	heir := os.Getenv(predecessorEnv) != ""
	room, preloaded, err := s.acceptConnections(heir, listeners)
	if err != nil {
		return err
	}
	open := func() error { return s.open(heir, preloaded) }
	for _, step := range []func() error{open, s.buildTools, s.createDemo, s.openListeners} {
		if err := step(); err != nil {
			return errors.Join(err, s.closeFailedStart())
		}
	}
	stop := make(chan os.Signal, 4)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	failed := make(chan error, len(listeners))
	crowded := heir || room.Len() > crowdedStart
	if err := s.server.ServeBacklog(room); err != nil {
		return errors.Join(err, s.closeFailedStart())
	}
	for _, l := range listeners {
		go func() { failed <- s.server.Serve(l) }()
	}
	end := make(chan struct{})
	defer close(end)
	go memory.run(end)
	// What starting needed is garbage now: give it back before the long part begins. That, and what the last process left
	// undone, comes behind those who wait.
	pause := time.Duration(0)
	if crowded {
		pause = startupDelay
		defer time.AfterFunc(startupDelay, debug.FreeOSMemory).Stop()
	} else {
		debug.FreeOSMemory()
	}
	s.startOutbox(pause)
	s.log.Info("serving", "url", c.URL, "listen", c.Listen, "data", c.Data, "version", wire.Version, "organizations", len(s.house.Realms()), "started in", time.Since(began).Round(time.Millisecond).String())
	notifySystemd("READY=1\nMAINPID=" + strconv.Itoa(os.Getpid()))
	err = errors.Join(waitForStop(s.log, stop, s.handover, failed), s.close())
	signal.Stop(stop) // whoever still takes an answer is nothing to wait for then
	err = errors.Join(err, s.finish())
	s.log.Info("stopped", "data", c.Data, "connections passed", s.server.Stats().HandedOff)
	return err
}

// service is the parts of a server, in the order in which they are made.
type service struct {
	*config
	log *slog.Logger

	// What follows from the configuration alone.
	spec                             crowdSpec
	limits                           httpd.Limits
	issuers                          map[string]string
	tlsConfig                        *tls.Config
	previewNetworks, webhookNetworks []netip.Prefix // whose pages may be previewed, and which bots' services may be called, nevertheless

	handover    *handover
	store       *snapshot.Store
	secret      []byte
	sites       *siteTable
	library     *search.Service
	house       *actors.Server
	turnLatency *prometheus.HistogramVec
	renderer    wire.Renderer // shared by the realms and the endpoints: each organization's Markdown configuration is prepared once
	files       *files.Store
	passwords   *httpd.Passwords
	tools       *wire.Tools
	dispatcher  *dispatch.Dispatcher
	exports     *exporter
	sweeper     *sweeper
	server      *httpd.Server
	// rest ends what works beside the requests, and may be in the middle of something long.
	closeBackground            func() error
	closeControl, closeMetrics func() error
	closeSMTP                  func(context.Context) error
}

// service makes what follows from the configuration alone, and refuses what does not make sense.
func (c *config) service() (s *service, err error) {
	s = &service{config: c, limits: httpd.Limits{User: c.RateLimit, Visitor: c.AnonymousLimit, Login: c.LoginLimit}}
	if s.log, err = c.logger(); err != nil {
		return nil, err
	}
	if c.DemoCrowd != "" {
		if s.spec, err = parseCrowd(c.DemoCrowd); err != nil {
			return nil, err
		}
	}
	for _, x := range []struct {
		name, list string
		into       *[]netip.Prefix
	}{{"trusted-proxies", c.TrustedProxies, &s.limits.Proxies}, {"previews-allow", c.PreviewsAllow, &s.previewNetworks}, {"webhooks-allow", c.WebhooksAllow, &s.webhookNetworks}} {
		if *x.into, err = httpd.ParseProxies(x.list); err != nil {
			return nil, fmt.Errorf("%s: %w", x.name, err)
		}
	}
	if s.issuers, err = c.jwtKeys(); err != nil {
		return nil, err
	}
	if s.tlsConfig, err = c.tls(); err != nil {
		return nil, err
	}
	if c.NoSync {
		s.log.Warn("unsafe-no-sync: messages are acknowledged before they are on disk; a crash loses them. For measurements only")
	}
	return s, nil
}

// acceptConnections accepts connections before anybody can be served: until the data is loaded they would overflow the backlog. A
// successor leaves that to its predecessor as long as that one serves, and loads meanwhile what it can.
func (s *service) acceptConnections(heir bool, listeners []net.Listener) (room *park.Backlog, preloaded *actors.Preloaded, err error) {
	if heir {
		preloaded = preload(s.Data, s.log)
		room, err = takeOver(s.config, listeners)
	} else {
		room, err = park.CollectBacklog(s.MaxConnections, listeners...)
	}
	return room, preloaded, err
}

// startOutbox begins, after a pause, with what the last process left undone.
func (s *service) startOutbox(pause time.Duration) {
	everywhere := map[realm.ID]wire.Site{}
	for name, id := range s.house.Realms() {
		everywhere[id] = s.sites.site(name)
	}
	s.dispatcher.Begin(pause, everywhere)
}

// open brings the organizations back.
func (s *service) open(heir bool, preloaded *actors.Preloaded) (err error) {
	if s.store, err = openStore(s.Data, heir, s.NoSync, s.log); err != nil {
		return startFailure(s.Data, err)
	}
	fatal := newFatal(s.log)
	go stopOnFailure(s.store, fatal)
	s.sites = newSiteTable(s.URL)
	if s.secret, err = readSecret(s.Data); err != nil {
		return err
	}
	disk := snapshot.Disk{Store: s.store}
	s.library = search.OpenService(searchDir(s.Data), disk, wire.SearchText, s.log)
	s.turnLatency = newTurnLatency()
	observer := func(kind string) actors.Observer { return s.turnLatency.WithLabelValues(kind) }
	if s.house, err = actors.Open(disk, actors.Options{TurnLatency: observer, Protocol: wire.SessionProtocol{}, Renderer: &s.renderer, Secret: s.secret, Log: s.log, Fatal: fatal, Site: s.sites.site, Search: s.library, Preloaded: preloaded}); err != nil {
		return startFailure(s.Data, err)
	}
	s.sites.house = s.house
	s.files, err = files.Open(filepath.Join(s.Data, "uploads"))
	return err
}

// buildTools makes what endpoints use, and what works beside them.
func (s *service) buildTools() error {
	house, host := s.house, s.sites.site("").Host
	s.passwords = httpd.NewPasswords()
	t := &wire.Tools{Files: fileStore{s.files}, Sign: newSigner(s.secret), VerifySignature: newSignatureChecker(s.secret), UploadQuota: int64(s.UploadQuota) << 20,
		HashPassword: s.passwords.Hash, CheckPassword: s.passwords.Check, HashKey: actors.HashKey, Token: actors.Token, LinkToken: house.LinkToken, JWTKeys: s.issuers,
		Version: wire.Version, Generation: time.Now().Unix(), Renderer: &s.renderer, FetchPreview: preview.New(s.previewNetworks...).Fetch, Dev: s.Demo || s.DemoCrowd != "",
		ChannelMailPattern: "%s@" + s.mailHost(host), MailEnabled: true, DailyInvites: s.DailyInvites}
	s.tools = t
	post, err := s.newMailer(host, t, s.log)
	if err != nil {
		return err
	}
	pusher, err := push.New(push.Config{APNsKey: s.APNsKey, APNsKeyID: s.APNsKeyID, APNsTeam: s.APNsTeam, FCMAccount: s.FCMAccount, Bouncer: s.Bouncer, BouncerOrg: s.BouncerOrg, BouncerKey: s.BouncerKey}, s.log)
	if err != nil {
		return err
	}
	if pusher != nil {
		t.Push = pusher
	}
	s.dispatcher = newDispatcher(house, t, post, pusher, webhooks.New(webhooks.Options{House: house, Tools: t, Log: s.log, Allow: s.webhookNetworks}), s.log)
	house.SetOutbox(s.dispatcher, pusher != nil, s.Bouncer != "")
	s.exports = newExporter(house, s.sites, s.files, s.log)
	s.sweeper = newSweeper(house, s.files, s.log)
	t.StartExport = s.exports.add
	t.SubdomainTaken = func(name string) bool { _, _, taken := house.RealmByName(name); return taken }
	t.Thumbnails = wire.NewThumbnails(house, t.Files, s.log, slices.Collect(maps.Values(house.Realms())))
	s.closeBackground = sync.OnceValue(func() error {
		s.exports.Close()
		s.sweeper.Close()
		t.Thumbnails.Close()
		return withShutdownTimeout(s.dispatcher.Close)
	})
	return nil
}

// createDemo makes a demo organization or a crowd, where one is asked for and there is nothing yet.
func (s *service) createDemo() error {
	if len(s.house.Realms()) > 0 {
		return nil
	}
	if s.DemoCrowd != "" {
		if err := createCrowd(s.house, s.spec, os.Stdout); err != nil {
			return fmt.Errorf("make the crowd: %w", err)
		}
	} else if s.Demo {
		if err := createDemo(s.house, s.URL, os.Stdout); err != nil {
			return fmt.Errorf("make the demo organization: %w", err)
		}
	}
	return nil
}

// openListeners makes the server, which admits nobody yet, and opens the other ways in: for the operator, for mail, for meters.
func (s *service) openListeners() (err error) {
	p := s.park()
	p.OnDrain, p.AnswersLatePolls, p.TLS = s.house.Drain, true, s.tlsConfig
	s.server = httpd.New(httpd.Options{Server: s.house, Tools: s.tools, Realms: s.sites, Log: s.log, Park: p, Limits: s.limits, Files: s.files})
	s.handover.house, s.handover.store = s.house, s.store
	s.handover.longRequests = func() int { return s.server.Stats().LongRequests }
	s.handover.stopBackground = func() error {
		s.library.HandOff()
		return s.closeBackground()
	}
	if s.closeControl, err = serveControl(s.Data, &operator{s.house, s.sites, s.passwords, s.store, s.handover, s.files}, s.log); err != nil {
		return err
	}
	if s.closeSMTP, err = s.openSMTP(s.mailHost(s.sites.site("").Host), s.house, s.tools, s.log); err != nil {
		return err
	}
	s.closeMetrics = func() error { return nil }
	if s.DebugListen != "" {
		s.closeMetrics, err = serveMetrics(s.DebugListen, &metricsCollector{s.turnLatency, s.house, s.store, s.server, s.library, s.passwords, s.exports, s.dispatcher, s.files, s.log.Handler().(limitedHandler).texts})
	}
	return err
}

// closeFailedStart closes what a start that failed has opened.
func (s *service) closeFailedStart() (err error) {
	if s.library != nil {
		err = s.library.Close()
	}
	if s.store != nil {
		err = errors.Join(err, s.store.Close())
	}
	return err
}

// close ends what serves. What a successor opens too goes first, the data directory last.
func (s *service) close() error {
	if s.handover.yielded && s.server.PrepareShutdown(s.handover.passage) {
		time.Sleep(closingDelay)
	}
	err := errors.Join(withShutdownTimeout(s.closeSMTP), s.closeControl(), s.closeMetrics(), withShutdownTimeout(s.server.Shutdown))
	// While the house can still answer. What is not done by then the next process does.
	err = errors.Join(err, s.closeBackground(), withShutdownTimeout(s.house.Close))
	s.library.Stop()
	// A successor waits for the store alone: it opens the search index when it serves.
	return errors.Join(err, s.store.Close(), s.library.Close())
}

// finish waits for those who still take their answers.
func (s *service) finish() error {
	last := shutdownTimeout
	if s.handover.yielded {
		last = downloadTimeout
	}
	ctx, cancel := context.WithTimeout(context.Background(), last)
	defer cancel()
	return s.server.FinishAnswers(ctx)
}

// newDispatcher is what does the newDispatcher of organizations, each kind by its carrier.
func newDispatcher(house *actors.Server, tools *wire.Tools, post *mail.Sender, pusher *push.Pusher, services *webhooks.Client, log *slog.Logger) *dispatch.Dispatcher {
	o := dispatch.Options{House: house, Log: log,
		Handlers: map[realm.OutboxJobKind]dispatch.Handler{realm.OutboxEmail: post, realm.OutboxWebhook: services, realm.OutboxMissedMessage: &mail.MissedMessages{House: house, Now: time.Now, HasOtherAccount: house.HasAccountElsewhere},
			realm.OutboxPreview: &previews.Fetcher{House: house, Tools: tools}},
		Concurrency: map[realm.OutboxJobKind]int{realm.OutboxEmail: mail.MaxSending, realm.OutboxWebhook: webhooks.MaxCalling, realm.OutboxPush: push.MaxNotifying, realm.OutboxPushRemoval: push.MaxNotifying, realm.OutboxRegistration: push.MaxRegistering, realm.OutboxMissedMessage: mail.MaxChecking,
			realm.OutboxPreview: previews.MaxFetching}}
	if pusher != nil {
		means := push.Options{Pusher: pusher, House: house, Log: log, Now: time.Now}
		carrier := &push.Notifier{Options: means}
		o.Handlers[realm.OutboxPush], o.Handlers[realm.OutboxPushRemoval] = carrier, carrier
		o.Handlers[realm.OutboxRegistration] = &push.Registrar{Options: means}
	}
	return dispatch.New(o)
}

// waitForStop returns when the server is to stop: somebody said so, its successor is ready, or it cannot accept.
func waitForStop(log *slog.Logger, signals <-chan os.Signal, s *handover, failed <-chan error) error {
	for {
		select {
		case err := <-failed:
			return err
		case <-s.ready:
			s.yielded = true
			log.Info("stopping: the successor takes over")
			return nil
		case sig := <-signals:
			if sig == syscall.SIGHUP {
				if _, err := s.startSuccessor(); err != nil {
					log.Error("no successor; this process goes on", "error", err)
				}
				continue
			}
			notifySystemd("STOPPING=1")
			log.Info("stopping", "signal", sig.String())
			return nil
		}
	}
}

// withShutdownTimeout gives what must come to an end patience for it.
func withShutdownTimeout(end func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	return end(ctx)
}

// searchDir is where the full-text indexes are.
func searchDir(data string) string { return filepath.Join(data, "search") }

// siteTable knows where organizations are reached: the external URL's host is the root organization, its subdomains the
// others.
type siteTable struct {
	scheme, host string
	suffix       string // of the organizations' hosts: a dot and the server's own, without a port
	house        *actors.Server
}

func newSiteTable(base string) *siteTable {
	scheme, host, ok := strings.Cut(base, "://")
	if !ok {
		scheme, host = "http", base
	}
	t := &siteTable{scheme: scheme, host: strings.TrimSuffix(host, "/")}
	t.suffix = "." + t.site("").Host
	return t
}

func (t *siteTable) site(name string) wire.Site {
	host := t.host
	if name != "" {
		host = name + "." + host
	}
	plain := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		plain = h
	}
	return wire.Site{URL: t.scheme + "://" + host, Host: plain, Name: name}
}

// byID is the site of an organization by its id.
func (t *siteTable) byID(id realm.ID) wire.Site {
	for name, r := range t.house.Realms() {
		if r == id {
			return t.site(name)
		}
	}
	return t.site("")
}

// ByHost finds the organization behind a Host header; unknown hosts mean the root organization. Where there is none, its
// name is all that is known.
func (t *siteTable) ByHost(host string) (realm.ID, wire.Site) {
	if strings.IndexByte(host, ':') >= 0 {
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
	}
	name := ""
	if sub, ok := strings.CutSuffix(host, t.suffix); ok && sub != "www" {
		name = sub
	}
	id, site, ok := t.house.RealmByName(name)
	if !ok {
		site.Name = name
	}
	return id, site
}

// tls is the certificate the server speaks TLS with, or nil.
func (c *config) tls() (*tls.Config, error) {
	if c.ACME != "" {
		return c.acmeTLS(), nil
	}
	if c.TLSCert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
	if err != nil {
		return nil, fmt.Errorf("load certificate: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

// secretFile lies in the data directory; API keys follow from it. It is not part of a backup: after a restore without
// it, keys that are in use go on, and logins get new ones.
const secretFile = "secret"

// readSecret reads the server's secret, or makes it at the first start.
func readSecret(dir string) ([]byte, error) {
	path := filepath.Join(dir, secretFile)
	data, err := os.ReadFile(path)
	if err == nil && len(data) >= 32 {
		return data, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read the server's secret: %w", err)
	}
	secret := []byte(actors.Token(64))
	if err := os.WriteFile(path, secret, 0o600); err != nil {
		return nil, fmt.Errorf("write the server's secret: %w", err)
	}
	return secret, nil
}
