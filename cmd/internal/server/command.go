package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"parley/actors"
	"parley/cmd/internal/cluster"
	"parley/cmd/internal/control"
	"parley/cmd/internal/datadir"
	"parley/cmd/internal/imports"
	"parley/cmd/internal/migration"
	"parley/cmd/internal/operator"
	"parley/cmd/internal/sites"
	"parley/snapshot"
	"parley/wire"
	"parley/wire/httpd"
)

// Command executes a command of the operator: on the server that runs in a data directory, or on the directory itself
// if no server runs there.
func Command(dir, name string, args map[string]string) (map[string]any, error) {
	if answer, ran, err := control.Send(dir, name, args); ran {
		return answer, err
	}
	if _, err := os.Stat(dir); err != nil && name != "realm-create" {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if err := datadir.CheckVersion(dir); err != nil {
		return nil, err
	}
	node, err := cluster.OpenStopped(dir)
	if err != nil {
		return nil, err
	}
	log := slog.New(slog.DiscardHandler)
	store, err := snapshot.Open(dir, snapshot.Options{Log: log})
	if err != nil {
		return nil, err
	}
	secret, err := datadir.LoadSecret(dir)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	sites := sites.New("http://" + DefaultSettings().Listen)
	orgs, err := actors.Open(snapshot.Disk{Store: store}, actors.Options{
		Protocol: wire.SessionProtocol{}, Renderer: &wire.Renderer{}, Secret: secret, Log: log, Site: sites.Site,
		SleepAfter: actors.DefaultSleepAfter}) // those that sleep are not loaded
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	sites.Orgs = orgs
	o := &operator.Operator{Orgs: orgs, Site: sites.Site, SiteByID: sites.ByID, Passwords: httpd.NewPasswords(nil),
		Store: store, Push: &operator.PushService{Data: dir}, Data: dir, Sign: datadir.NewSigner(secret), Log: log,
		Node: node}
	answer, err := o.Run(name, args)
	if err = errors.Join(err, withShutdownTimeout(orgs.Close), store.Close()); err != nil {
		return nil, err
	}
	m, err := toMap(answer)
	if err == nil && m["first_message"] != nil {
		m["note"] = "no server is running in " + dir + ": start it before the first message"
	}
	return m, err
}

// toMap converts an answer to the form in which the control socket transmits it.
func toMap(v any) (m map[string]any, err error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return m, json.Unmarshal(data, &m)
}

// Import imports the organizations of another chat server's archive: into the server that runs in a data directory, or
// into the directory itself if no server runs there.
func Import(dir string, o migration.Options) ([]*migration.Report, error) {
	if o.Site == nil {
		o.Site = sites.New("http://" + DefaultSettings().Listen).Site
	}
	return imports.Run(dir, o)
}
