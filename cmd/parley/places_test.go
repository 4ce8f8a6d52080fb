package main

import (
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/actors/realm"
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
	"embed-dimensions", "embed-messages", "embed-organization-tokens", "replica-memory", "election-timeout",
	"checkpoint-interval",
}

// Each setting that can let data leave the machine belongs to a service. A new setting of these groups is put into
// server.Services, or into notPlaces.
func TestPlacesHaveAllSettings(t *testing.T) {
	var s server.Settings
	var known []string
	for _, x := range server.Services() {
		known = append(known, x.Settings...)
	}
	for _, x := range s.Table() {
		watched := slices.Contains([]string{registry.Mail, registry.Push, registry.Cluster, registry.TLS}, x.Group) ||
			strings.HasPrefix(x.Name, "files") || strings.HasPrefix(x.Name, "assist") ||
			strings.HasPrefix(x.Name, "translate") || strings.HasPrefix(x.Name, "antivirus") ||
			strings.HasPrefix(x.Name, "gif") || strings.HasPrefix(x.Name, "embed")
		if watched && !slices.Contains(known, x.Name) && !slices.Contains(notPlaces, x.Name) {
			t.Errorf("setting %s is of no service: add it to server.Services or to notPlaces", x.Name)
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

// The list of the command and that of owners agree: the places of a service are configured exactly if the settings use
// it.
func TestPlacesOfOperatorsAndOwnersAgree(t *testing.T) {
	o := newOutside(t)
	dir := t.TempDir()
	host, port, _ := net.SplitHostPort(o.smtp)
	key := filepath.Join(dir, "key")
	writeFile(t, key, "key\n")
	for name, text := range map[string]string{
		"few": "",
		"many": "smtp-host = \"" + host + "\"\nsmtp-port = " + port + "\n" +
			"smtp-tls = \"none\"\nimage-proxy = true\n" +
			"antivirus = \"" + o.smtp + "\"\nassist-url = \"" + o.http + "/model\"\nassist-model = \"m\"\n" +
			"translate-url = \"" + o.http + "/translation\"\n" +
			"embed-url = \"" + o.http + "/vectors\"\n" +
			"embed-model = \"m\"\n" +
			"gif-provider = \"giphy\"\ngif-key-file = \"" + key + "\"\n" +
			"assist-allow = \"127.0.0.0/8\"\n" +
			"push-bouncer = \"" + o.http + "/push\"\npush-bouncer-org = \"o\"\n" +
			"push-bouncer-key = \"k\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			config := filepath.Join(dir, name+".toml")
			writeFile(t, config, text)
			listed, code := runParley("places", "--config", config)
			if code != 0 {
				t.Fatal(listed)
			}
			p := startProgram(t, parleyCommand("serve", "--data", filepath.Join(dir, name), "--listen",
				"127.0.0.1:0", "--demo", "--demo-content=false", "--config", config))
			olive := demoAccount(t, p.serving(), "olive@example.org")
			used := map[realm.Place]bool{}
			for _, x := range server.Services() {
				if x.Unlisted != "" {
					continue
				}
				row := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(x.Name) + ` {2,}(.*?) {2,}`)
				line := row.FindStringSubmatch(listed)
				if line == nil {
					t.Errorf("%s is not in\n%s", x.Name, listed)
					continue
				}
				for _, place := range x.Places {
					used[place] = used[place] || line[1] != "off"
				}
			}
			used[realm.PlaceExternalPictures] = name == "many" // without image-proxy, only clients load them
			for place, want := range used {
				if x := placeOf(t, olive, place); x["configured"] != want {
					t.Errorf("configured of %s: %v; parley places says %t", place, x, want)
				}
			}
			p.stop()
		})
	}
}
