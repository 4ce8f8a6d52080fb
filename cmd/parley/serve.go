package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"parley/actors"
	"parley/actors/realm"
	"parley/snapshot"
	"parley/wire"
	"parley/wire/httpd"
	"parley/wire/httpd/park"
)

// patience is how long a stopping server waits for what is in flight.
const patience = 15 * time.Second

func serve(args []string) error {
	fs := flag.NewFlagSet("serve", flag.ContinueOnError)
	data := fs.String("data", "./data", "data directory")
	listen := fs.String("listen", "127.0.0.1:9991", "address to listen on")
	external := fs.String("url", "", "external URL, such as https://chat.example.org (default: http:// and the listen address)")
	demo := fs.Bool("demo", false, "make a demo organization in an empty data directory, and allow development logins")
	demoCrowd := fs.String("demo-crowd", "", "like --demo, with a seeded crowd for load tests: `users=N,channels=M,zipf=Z,hundred=H,messages=K,realms=R,seed=S`")
	if err := fs.Parse(args); err != nil {
		return err
	}
	var spec crowdSpec
	if *demoCrowd != "" {
		var err error
		if spec, err = parseCrowd(*demoCrowd); err != nil {
			return err
		}
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	store, err := snapshot.Open(*data, snapshot.Options{Log: log})
	if err != nil {
		return err
	}
	base := *external
	if base == "" {
		base = "http://" + *listen
	}
	sites := siteMaker(base)
	house, err := actors.Open(snapshot.Disk{Store: store}, actors.Options{Log: log, Site: sites.of})
	if err != nil {
		return errors.Join(err, store.Close())
	}
	sites.house = house
	passwords := httpd.NewPasswords()
	tools := &wire.Tools{HashPassword: passwords.Hash, CheckPassword: passwords.Check, HashKey: actors.HashKey, Token: actors.Token, Version: wire.Version, Generation: time.Now().Unix(), Dev: *demo || *demoCrowd != ""}
	l, err := net.Listen("tcp", *listen)
	if err != nil {
		return errors.Join(err, store.Close())
	}
	if *demoCrowd != "" && len(house.Realms()) == 0 {
		if err := makeCrowd(house, spec, os.Stdout); err != nil {
			return fmt.Errorf("make the crowd: %w", err)
		}
	} else if *demo && len(house.Realms()) == 0 {
		if err := makeDemo(house, base, os.Stdout); err != nil {
			return fmt.Errorf("make the demo organization: %w", err)
		}
	}
	server := httpd.New(httpd.Options{House: house, Tools: tools, Realms: sites, Log: log, Park: park.Config{OnDrain: house.Drain}})
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	log.Info("serving", "url", base, "data", *data)
	select {
	case err = <-failed:
	case s := <-stop:
		log.Info("stopping", "signal", s.String())
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return errors.Join(err, server.Shutdown(ctx), house.Close(ctx), store.Close())
}

// siteTable knows where organizations are reached: the external URL's host is the root organization, its subdomains the
// others.
type siteTable struct {
	scheme, host string
	house        *actors.House
}

func siteMaker(base string) *siteTable {
	scheme, host, ok := strings.Cut(base, "://")
	if !ok {
		scheme, host = "http", base
	}
	return &siteTable{scheme: scheme, host: strings.TrimSuffix(host, "/")}
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

// ByHost finds the organization behind a Host header; unknown hosts mean the root organization.
func (t *siteTable) ByHost(host string) (realm.ID, wire.Site) {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	own := t.host
	if h, _, err := net.SplitHostPort(own); err == nil {
		own = h
	}
	name := ""
	if sub, ok := strings.CutSuffix(host, "."+own); ok && sub != "www" {
		name = sub
	}
	id, site, _ := t.house.RealmNamed(name)
	return id, site
}
