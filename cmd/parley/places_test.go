package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/actors/registry"
	"parley/cmd/internal/server"
)

// notPlaces are the settings of mail, push, clusters, TLS and files that name no place to which data goes.
var notPlaces = []string{
	"smtp-user", "smtp-password", "smtp-from", "smtp-tls", "dkim-key", "dkim-selector", "mail-listen", "mail-dmarc",
	"mail-domain", "imap-user", "imap-password", "imap-tls", "imap-folder",
	"push-apns-key-id", "push-apns-team", "push-bouncer-org", "push-bouncer-key",
	"files-credentials", "antivirus-down", "node", "peer-listen", "max-replicas", "tls-cert", "tls-key",
	"tls-acme-email", "assist-model", "assist-key-file", "translate-key-file", "assist-allow", "gif-allow",
	"assist-user-tokens", "assist-organization-tokens", "embed-model", "embed-key-file",
	"embed-dimensions", "embed-messages", "embed-organization-tokens", "replica-memory", "election-timeout", "checkpoint-interval",
}

// Each setting that can let data leave the machine belongs to a place. A new setting of these groups is put into
// places, or into notPlaces.
func TestPlacesHaveAllSettings(t *testing.T) {
	var s server.Settings
	var known []string
	for _, p := range places(&s) {
		known = append(known, p.settings...)
	}
	for _, x := range s.Table() {
		watched := slices.Contains([]string{registry.Mail, registry.Push, registry.Cluster, registry.TLS}, x.Group) ||
			strings.HasPrefix(x.Name, "files") || strings.HasPrefix(x.Name, "assist") ||
			strings.HasPrefix(x.Name, "translate") || strings.HasPrefix(x.Name, "antivirus") ||
			strings.HasPrefix(x.Name, "gif") || strings.HasPrefix(x.Name, "embed")
		if watched && !slices.Contains(known, x.Name) && !slices.Contains(notPlaces, x.Name) {
			t.Errorf("setting %s is in no place: add it to places or to notPlaces", x.Name)
		}
	}
	for _, name := range slices.Concat(known, notPlaces) {
		if !slices.ContainsFunc(s.Table(), func(x registry.Setting) bool { return x.Name == name }) {
			t.Errorf("there is no setting %s", name)
		}
	}
}

// The command says which places the settings use.
func TestPlaces(t *testing.T) {
	config := filepath.Join(t.TempDir(), "parley.toml")
	writeFile(t, config, "smtp-host = \"mail.example.org\"\nantivirus = \"127.0.0.1:3310\"\n"+
		"assist-url = \"http://127.0.0.1:8080/v1\"\n")
	out, code := runParley("places", "--config", config)
	if code != 0 {
		t.Fatal(out)
	}
	for place, want := range map[string]string{"mail server": "mail.example.org:587", "virus scanner": "127.0.0.1:3310",
		"bucket": "off", "Google's push service": "off", "pages of links": "each organization",
		"language model": "http://127.0.0.1:8080/v1", "translations": "off"} {
		found := false
		for _, line := range strings.Split(out, "\n") {
			if fields := strings.SplitN(line, "  ", 2); fields[0] == place {
				found = strings.HasPrefix(strings.TrimSpace(fields[1]), want)
			}
		}
		if !found {
			t.Errorf("%s: want %s in\n%s", place, want, out)
		}
	}
}
