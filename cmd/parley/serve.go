package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
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
	"parley/wire/push"
	"parley/wire/webhooks"
)

// settling is how long after its start a server for which more than throng connections wait gives the memory back that
// only starting needed, and begins with errands: either would take half of a small machine from those who all come at once.
const (
	settling = 2 * time.Second
	throng   = 256
)

// calm is for how long after its opening the store merges no tables: longer than everybody takes to come back.
const calm = 5 * time.Second

// patience is how long a stopping server waits for what is in flight.
const patience = 15 * time.Second

func serve(args []string) error {
	c, err := readConfig(args)
	if err != nil {
		return err
	}
	log, err := c.logger()
	if err != nil {
		return err
	}
	var spec crowdSpec
	if c.Crowd != "" {
		if spec, err = parseCrowd(c.Crowd); err != nil {
			return err
		}
	}
	limits := httpd.Limits{User: c.RateLimit, Visitor: c.AnonymousLimit, Login: c.LoginLimit}
	if limits.Proxies, err = httpd.ParseProxies(c.Proxies); err != nil {
		return fmt.Errorf("trusted-proxies: %w", err)
	}
	issuers, err := c.jwtKeys()
	if err != nil {
		return err
	}
	tlsConfig, err := c.tls()
	if err != nil {
		return err
	}
	pages, err := httpd.ParseProxies(c.Previews)
	if err != nil {
		return fmt.Errorf("previews-allow: %w", err)
	}
	if c.Unsynced {
		log.Warn("unsafe-no-sync: messages are acknowledged before they are on disk; a crash loses them. For measurements only")
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
	succession, err := newSuccession(log, listeners)
	if err != nil {
		return err
	}
	// Until the data is loaded nobody is served, but everybody is let in: they would overflow the backlog. A successor
	// leaves that to its predecessor as long as that one serves.
	var room *park.Room
	heir := os.Getenv(predecessor) != ""
	if !heir {
		if room, err = park.Hold(c.MaxConns, listeners...); err != nil {
			return err
		}
	}
	var preloaded *actors.Preloaded
	if heir {
		preloaded = preload(c.Data, log)
		if room, err = succeed(&c, listeners); err != nil {
			return err
		}
	}
	store, err := openStore(c.Data, heir, c.Unsynced, log)
	if err != nil {
		return startFailure(c.Data, err)
	}
	fatal := fatally(log)
	go stopOnFailure(store, fatal)
	sites := siteMaker(c.URL)
	secret, err := readSecret(c.Data)
	if err != nil {
		return errors.Join(err, store.Close())
	}
	disk := snapshot.Disk{Store: store}
	library := search.OpenLibrary(searchDir(c.Data), disk, wire.SearchText, log)
	house, err := actors.Open(disk, actors.Options{Secret: secret, Log: log, Fatal: fatal, Site: sites.of, Search: library, Preloaded: preloaded})
	if err != nil {
		return errors.Join(startFailure(c.Data, err), library.Close(), store.Close())
	}
	sites.house = house
	passwords := httpd.NewPasswords()
	kept, err := files.Open(filepath.Join(c.Data, "uploads"))
	if err != nil {
		return errors.Join(err, library.Close(), store.Close())
	}
	tools := &wire.Tools{Files: fileStore{kept}, Sign: signer(secret), Signed: checker(secret), UploadQuota: int64(c.UploadQuota) << 20, HashPassword: passwords.Hash, CheckPassword: passwords.Check, HashKey: actors.HashKey, Token: actors.Token, Version: wire.Version, Generation: time.Now().Unix(), Renderer: &house.Renderer, FetchPreview: preview.New(pages...).Fetch, Dev: c.Demo || c.Crowd != ""}
	post, err := c.post(sites.of("").Host, house.LinkToken, log)
	if err != nil {
		return errors.Join(err, library.Close(), store.Close())
	}
	pusher, err := push.New(push.Config{APNsKey: c.APNsKey, APNsKeyID: c.APNsKeyID, APNsTeam: c.APNsTeam, FCMAccount: c.FCMAccount, Bouncer: c.Bouncer, BouncerOrg: c.BouncerOrg, BouncerKey: c.BouncerKey}, log)
	if err != nil {
		return errors.Join(err, library.Close(), store.Close())
	}
	if pusher != nil {
		tools.Push = pusher
	}
	tools.MailPattern = "%s@" + c.mailHost(sites.of("").Host)
	tools.Mail, tools.DailyInvites, tools.LinkToken = true, c.DailyInvites, house.LinkToken
	inside, err := httpd.ParseProxies(c.Webhooks)
	if err != nil {
		return errors.Join(fmt.Errorf("webhooks-allow: %w", err), library.Close(), store.Close())
	}
	outside := errands(house, tools, post, pusher, webhooks.New(webhooks.Options{House: house, Tools: tools, Log: log, Allow: inside}), log)
	house.Outside(outside, pusher != nil, c.Bouncer != "")
	exports := newExporter(house, sites, kept, log)
	sweeper := newSweeper(house, kept, log)
	tools.Export = exports.add
	tools.Taken = func(name string) bool { _, _, taken := house.RealmNamed(name); return taken }
	tools.JWTKeys = issuers
	tools.Thumbnails = wire.NewThumbnails(house, tools.Files, log, slices.Collect(maps.Values(house.Realms())))
	if c.Crowd != "" && len(house.Realms()) == 0 {
		if err := makeCrowd(house, spec, os.Stdout); err != nil {
			return fmt.Errorf("make the crowd: %w", err)
		}
	} else if c.Demo && len(house.Realms()) == 0 {
		if err := makeDemo(house, c.URL, os.Stdout); err != nil {
			return fmt.Errorf("make the demo organization: %w", err)
		}
	}
	parkConfig := c.park()
	parkConfig.OnDrain, parkConfig.Late, parkConfig.TLS = house.Drain, true, tlsConfig
	server := httpd.New(httpd.Options{House: house, Tools: tools, Realms: sites, Log: log, Park: parkConfig, Limits: limits, Pictures: kept})
	// What works beside the requests, and may be in the middle of something long.
	rest := sync.OnceValue(func() error {
		exports.Close()
		sweeper.Close()
		tools.Thumbnails.Close()
		return patiently(outside.Close)
	})
	succession.house, succession.store = house, store
	succession.long = func() int { return server.Stats().Long }
	succession.quiet = func() error {
		library.Leave()
		return rest()
	}
	closeControl, err := serveControl(c.Data, &operator{house, sites, passwords, store, succession, kept}, log)
	if err != nil {
		return errors.Join(err, store.Close())
	}
	closeGate, err := c.gate(c.mailHost(sites.of("").Host), house, log)
	if err != nil {
		return errors.Join(err, store.Close())
	}
	closeMeters := func() error { return nil }
	if c.Debug != "" {
		closeMeters, err = serveMeters(c.Debug, &watched{house, store, server, library, passwords, exports, outside})
		if err != nil {
			return errors.Join(err, store.Close())
		}
	}
	stop := make(chan os.Signal, 4)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	failed := make(chan error, len(listeners))
	crowded := heir || room.Held() > throng
	if err := server.Admit(room); err != nil {
		return errors.Join(err, store.Close())
	}
	for _, l := range listeners {
		go func() { failed <- server.Serve(l) }()
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
	everywhere := map[realm.ID]wire.Site{}
	for name, id := range house.Realms() {
		everywhere[id] = sites.of(name)
	}
	outside.Begin(pause, everywhere)
	log.Info("serving", "url", c.URL, "listen", c.Listen, "data", c.Data, "version", wire.Version, "organizations", len(house.Realms()), "started in", time.Since(began).Round(time.Millisecond).String())
	notify("READY=1\nMAINPID=" + strconv.Itoa(os.Getpid()))
	err = untilStopped(log, stop, succession, failed)
	if succession.yielding {
		if server.Retire(succession.passage) {
			time.Sleep(retirement)
		}
	}
	// What a successor opens too goes first, the data directory last.
	err = errors.Join(err, patiently(closeGate), closeControl(), closeMeters(), patiently(server.Shutdown))
	// While the house can still answer. What is not done by then the next process does.
	err = errors.Join(err, rest(), patiently(house.Close))
	library.Stop()
	// A successor waits for the store alone: it opens the search index when it serves.
	err = errors.Join(err, store.Close(), library.Close())
	signal.Stop(stop) // whoever still takes an answer is nothing to wait for then
	last := patience
	if succession.yielding {
		last = farewell
	}
	ctx, cancel := context.WithTimeout(context.Background(), last)
	defer cancel()
	err = errors.Join(err, server.Finish(ctx))
	log.Info("stopped", "data", c.Data, "connections passed", server.Stats().Passed)
	return err
}

// errands is what does the errands of organizations, each kind by its carrier.
func errands(house *actors.House, tools *wire.Tools, post *mail.Post, pusher *push.Pusher, services *webhooks.Caller, log *slog.Logger) *courier.Courier {
	o := courier.Options{House: house, Log: log,
		Carriers: map[realm.ErrandKind]courier.Carrier{realm.LetterErrand: post, realm.ServiceErrand: services, realm.MissedErrand: &mail.Missed{House: house, Now: time.Now, Elsewhere: house.Elsewhere}},
		Slots:    map[realm.ErrandKind]int{realm.LetterErrand: mail.Senders, realm.ServiceErrand: webhooks.Running, realm.PushErrand: push.Senders, realm.UnpushErrand: push.Senders, realm.RegisterErrand: push.Registrars, realm.MissedErrand: mail.Lookers}}
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
