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

	"parley/actors"
	"parley/actors/realm"
	"parley/snapshot"
	"parley/snapshot/files"
	"parley/snapshot/search"
	"parley/wire"
	"parley/wire/courier"
	"parley/wire/httpd"
	"parley/wire/httpd/park"
	"parley/wire/mail"
	"parley/wire/markdown/preview"
	"parley/wire/previews"
	"parley/wire/push"
	"parley/wire/webhooks"
)

// settling is how long after its start a server for which more than throng connections wait gives the memory back that
// only starting needed, and begins with errands: either would take half of a small machine from those who all come at once.
const (
	settling = 2 * time.Second
	throng   = 256
)

// calm is for how long after its opening the store merges no tables and nothing is indexed: longer than everybody takes to
// come back.
const calm = search.Calm

// patience is how long a stopping server waits for what is in flight.
const patience = 15 * time.Second

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
	memory := newSteward()
	listeners, err := c.listen()
	if err != nil {
		return err
	}
	for _, l := range listeners {
		defer l.Close()
	}
	c.listening(listeners[0].Addr().String())
	if s.succession, err = newSuccession(s.log, listeners); err != nil {
		return err
	}
	heir := os.Getenv(predecessor) != ""
	room, preloaded, err := s.letIn(heir, listeners)
	if err != nil {
		return err
	}
	open := func() error { return s.open(heir, preloaded) }
	for _, step := range []func() error{open, s.equip, s.populate, s.openDoors} {
		if err := step(); err != nil {
			return errors.Join(err, s.abandon())
		}
	}
	stop := make(chan os.Signal, 4)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	failed := make(chan error, len(listeners))
	crowded := heir || room.Held() > throng
	if err := s.server.Admit(room); err != nil {
		return errors.Join(err, s.abandon())
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
		pause = settling
		defer time.AfterFunc(settling, debug.FreeOSMemory).Stop()
	} else {
		debug.FreeOSMemory()
	}
	s.takeUp(pause)
	s.log.Info("serving", "url", c.URL, "listen", c.Listen, "data", c.Data, "version", wire.Version, "organizations", len(s.house.Realms()), "started in", time.Since(began).Round(time.Millisecond).String())
	notify("READY=1\nMAINPID=" + strconv.Itoa(os.Getpid()))
	err = errors.Join(untilStopped(s.log, stop, s.succession, failed), s.close())
	signal.Stop(stop) // whoever still takes an answer is nothing to wait for then
	err = errors.Join(err, s.finish())
	s.log.Info("stopped", "data", c.Data, "connections passed", s.server.Stats().Passed)
	return err
}

// service is the parts of a server, in the order in which they are made.
type service struct {
	*config
	log *slog.Logger

	// What follows from the configuration alone.
	spec          crowdSpec
	limits        httpd.Limits
	issuers       map[string]string
	tlsConfig     *tls.Config
	pages, inside []netip.Prefix // whose pages may be previewed, and which bots' services may be called, nevertheless

	succession *succession
	store      *snapshot.Store
	secret     []byte
	sites      *siteTable
	library    *search.Library
	house      *actors.House
	kept       *files.Store
	passwords  *httpd.Passwords
	tools      *wire.Tools
	outside    *courier.Courier
	exports    *exporter
	sweeper    *sweeper
	server     *httpd.Server
	// rest ends what works beside the requests, and may be in the middle of something long.
	rest                      func() error
	closeControl, closeMeters func() error
	closeGate                 func(context.Context) error
}

// service makes what follows from the configuration alone, and refuses what does not make sense.
func (c *config) service() (s *service, err error) {
	s = &service{config: c, limits: httpd.Limits{User: c.RateLimit, Visitor: c.AnonymousLimit, Login: c.LoginLimit}}
	if s.log, err = c.logger(); err != nil {
		return nil, err
	}
	if c.Crowd != "" {
		if s.spec, err = parseCrowd(c.Crowd); err != nil {
			return nil, err
		}
	}
	for _, x := range []struct {
		name, list string
		into       *[]netip.Prefix
	}{{"trusted-proxies", c.Proxies, &s.limits.Proxies}, {"previews-allow", c.Previews, &s.pages}, {"webhooks-allow", c.Webhooks, &s.inside}} {
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
	if c.Unsynced {
		s.log.Warn("unsafe-no-sync: messages are acknowledged before they are on disk; a crash loses them. For measurements only")
	}
	return s, nil
}

// letIn accepts connections before anybody can be served: until the data is loaded they would overflow the backlog. A
// successor leaves that to its predecessor as long as that one serves, and loads meanwhile what it can.
func (s *service) letIn(heir bool, listeners []net.Listener) (room *park.Room, preloaded *actors.Preloaded, err error) {
	if heir {
		preloaded = preload(s.Data, s.log)
		room, err = succeed(s.config, listeners)
	} else {
		room, err = park.Hold(s.MaxConns, listeners...)
	}
	return room, preloaded, err
}

// takeUp begins, after a pause, with what the last process left undone.
func (s *service) takeUp(pause time.Duration) {
	everywhere := map[realm.ID]wire.Site{}
	for name, id := range s.house.Realms() {
		everywhere[id] = s.sites.of(name)
	}
	s.outside.Begin(pause, everywhere)
}

// open brings the organizations back.
func (s *service) open(heir bool, preloaded *actors.Preloaded) (err error) {
	if s.store, err = openStore(s.Data, heir, s.Unsynced, s.log); err != nil {
		return startFailure(s.Data, err)
	}
	fatal := fatally(s.log)
	go stopOnFailure(s.store, fatal)
	s.sites = siteMaker(s.URL)
	if s.secret, err = readSecret(s.Data); err != nil {
		return err
	}
	disk := snapshot.Disk{Store: s.store}
	s.library = search.OpenLibrary(searchDir(s.Data), disk, wire.SearchText, s.log)
	if s.house, err = actors.Open(disk, actors.Options{Secret: s.secret, Log: s.log, Fatal: fatal, Site: s.sites.of, Search: s.library, Preloaded: preloaded}); err != nil {
		return startFailure(s.Data, err)
	}
	s.sites.house = s.house
	s.kept, err = files.Open(filepath.Join(s.Data, "uploads"))
	return err
}

// equip makes what endpoints use, and what works beside them.
func (s *service) equip() error {
	house, host := s.house, s.sites.of("").Host
	s.passwords = httpd.NewPasswords()
	t := &wire.Tools{Files: fileStore{s.kept}, Sign: signer(s.secret), Signed: checker(s.secret), UploadQuota: int64(s.UploadQuota) << 20,
		HashPassword: s.passwords.Hash, CheckPassword: s.passwords.Check, HashKey: actors.HashKey, Token: actors.Token, LinkToken: house.LinkToken, JWTKeys: s.issuers,
		Version: wire.Version, Generation: time.Now().Unix(), Renderer: &house.Renderer, FetchPreview: preview.New(s.pages...).Fetch, Dev: s.Demo || s.Crowd != "",
		MailPattern: "%s@" + s.mailHost(host), Mail: true, DailyInvites: s.DailyInvites}
	s.tools = t
	post, err := s.post(host, t, s.log)
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
	s.outside = errands(house, t, post, pusher, webhooks.New(webhooks.Options{House: house, Tools: t, Log: s.log, Allow: s.inside}), s.log)
	house.Outside(s.outside, pusher != nil, s.Bouncer != "")
	s.exports = newExporter(house, s.sites, s.kept, s.log)
	s.sweeper = newSweeper(house, s.kept, s.log)
	t.Export = s.exports.add
	t.Taken = func(name string) bool { _, _, taken := house.RealmNamed(name); return taken }
	t.Thumbnails = wire.NewThumbnails(house, t.Files, s.log, slices.Collect(maps.Values(house.Realms())))
	s.rest = sync.OnceValue(func() error {
		s.exports.Close()
		s.sweeper.Close()
		t.Thumbnails.Close()
		return patiently(s.outside.Close)
	})
	return nil
}

// populate makes a demo organization or a crowd, where one is asked for and there is nothing yet.
func (s *service) populate() error {
	if len(s.house.Realms()) > 0 {
		return nil
	}
	if s.Crowd != "" {
		if err := makeCrowd(s.house, s.spec, os.Stdout); err != nil {
			return fmt.Errorf("make the crowd: %w", err)
		}
	} else if s.Demo {
		if err := makeDemo(s.house, s.URL, os.Stdout); err != nil {
			return fmt.Errorf("make the demo organization: %w", err)
		}
	}
	return nil
}

// openDoors makes the server, which admits nobody yet, and opens the other ways in: for the operator, for mail, for meters.
func (s *service) openDoors() (err error) {
	p := s.park()
	p.OnDrain, p.Late, p.TLS = s.house.Drain, true, s.tlsConfig
	s.server = httpd.New(httpd.Options{House: s.house, Tools: s.tools, Realms: s.sites, Log: s.log, Park: p, Limits: s.limits, Pictures: s.kept})
	s.succession.house, s.succession.store = s.house, s.store
	s.succession.long = func() int { return s.server.Stats().Long }
	s.succession.quiet = func() error {
		s.library.Leave()
		return s.rest()
	}
	if s.closeControl, err = serveControl(s.Data, &operator{s.house, s.sites, s.passwords, s.store, s.succession, s.kept}, s.log); err != nil {
		return err
	}
	if s.closeGate, err = s.gate(s.mailHost(s.sites.of("").Host), s.house, s.tools, s.log); err != nil {
		return err
	}
	s.closeMeters = func() error { return nil }
	if s.Debug != "" {
		s.closeMeters, err = serveMeters(s.Debug, &watched{s.house, s.store, s.server, s.library, s.passwords, s.exports, s.outside, s.kept, s.log.Handler().(moderate).texts})
	}
	return err
}

// abandon closes what a start that failed has opened.
func (s *service) abandon() (err error) {
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
	if s.succession.yielding && s.server.Retire(s.succession.passage) {
		time.Sleep(retirement)
	}
	err := errors.Join(patiently(s.closeGate), s.closeControl(), s.closeMeters(), patiently(s.server.Shutdown))
	// While the house can still answer. What is not done by then the next process does.
	err = errors.Join(err, s.rest(), patiently(s.house.Close))
	s.library.Stop()
	// A successor waits for the store alone: it opens the search index when it serves.
	return errors.Join(err, s.store.Close(), s.library.Close())
}

// finish waits for those who still take their answers.
func (s *service) finish() error {
	last := patience
	if s.succession.yielding {
		last = farewell
	}
	ctx, cancel := context.WithTimeout(context.Background(), last)
	defer cancel()
	return s.server.Finish(ctx)
}

// errands is what does the errands of organizations, each kind by its carrier.
func errands(house *actors.House, tools *wire.Tools, post *mail.Post, pusher *push.Pusher, services *webhooks.Caller, log *slog.Logger) *courier.Courier {
	o := courier.Options{House: house, Log: log,
		Carriers: map[realm.ErrandKind]courier.Carrier{realm.LetterErrand: post, realm.ServiceErrand: services, realm.MissedErrand: &mail.Missed{House: house, Now: time.Now, Elsewhere: house.Elsewhere},
			realm.PreviewErrand: &previews.Carrier{House: house, Tools: tools}},
		Slots: map[realm.ErrandKind]int{realm.LetterErrand: mail.Senders, realm.ServiceErrand: webhooks.Running, realm.PushErrand: push.Senders, realm.UnpushErrand: push.Senders, realm.RegisterErrand: push.Registrars, realm.MissedErrand: mail.Lookers,
			realm.PreviewErrand: previews.Fetchers}}
	if pusher != nil {
		means := push.Means{Push: pusher, House: house, Log: log, Now: time.Now}
		carrier := &push.Carrier{Means: means}
		o.Carriers[realm.PushErrand], o.Carriers[realm.UnpushErrand] = carrier, carrier
		o.Carriers[realm.RegisterErrand] = &push.Registrar{Means: means}
	}
	return courier.New(o)
}

// untilStopped returns when the server is to stop: somebody said so, its successor is ready, or it cannot accept.
func untilStopped(log *slog.Logger, signals <-chan os.Signal, s *succession, failed <-chan error) error {
	for {
		select {
		case err := <-failed:
			return err
		case <-s.yield:
			s.yielding = true
			log.Info("stopping: the successor takes over")
			return nil
		case sig := <-signals:
			if sig == syscall.SIGHUP {
				if _, err := s.begin(); err != nil {
					log.Error("no successor; this process goes on", "error", err)
				}
				continue
			}
			notify("STOPPING=1")
			log.Info("stopping", "signal", sig.String())
			return nil
		}
	}
}

// patiently gives what must come to an end patience for it.
func patiently(end func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
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
	house        *actors.House
}

func siteMaker(base string) *siteTable {
	scheme, host, ok := strings.Cut(base, "://")
	if !ok {
		scheme, host = "http", base
	}
	t := &siteTable{scheme: scheme, host: strings.TrimSuffix(host, "/")}
	t.suffix = "." + t.of("").Host
	return t
}

func (t *siteTable) of(name string) wire.Site {
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
			return t.of(name)
		}
	}
	return t.of("")
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
	id, site, ok := t.house.RealmNamed(name)
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
	if c.Cert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
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
