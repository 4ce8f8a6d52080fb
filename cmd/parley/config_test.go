package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"parley/actors/registry"
	"parley/cmd/internal/server"
	"parley/wire/httpd/park"
)

// settingsOf returns the settings of a command line of `parley serve`, without starting a server.
func settingsOf(args ...string) (s server.Settings, err error) {
	root := newRootCommand()
	serve, _, err := root.Find([]string{"serve"})
	if err != nil {
		return s, err
	}
	if err := serve.ParseFlags(normalizeFlags(root, append([]string{"serve"}, args...))[1:]); err != nil {
		return s, err
	}
	if err := serve.ValidateArgs(serve.Flags().Args()); err != nil {
		return s, err
	}
	flags := serve.Flags().Lookup("listen").Value.(*settingFlag).values // shared by the flags of all settings
	s, _, err = readSettings(serve.Flags().Lookup("config").Value.String(), flags)
	return s, err
}

// configFile writes a configuration file and returns the flag that selects it.
func configFile(t *testing.T, text string) []string {
	t.Helper()
	f := filepath.Join(t.TempDir(), "parley.toml")
	writeFile(t, f, text)
	return []string{"--config", f}
}

// Flags win over the environment, the environment over the file, the file over the defaults.
func TestSourcesOfSettings(t *testing.T) {
	t.Setenv("PARLEY_LOGIN_LIMIT", "7")
	text := "rate-limit = 10\nlogin-limit = 6\nidle-timeout = \"90s\"\nlisten = \"[::1]:1\"\nlog-json = true"
	s, err := settingsOf(append(configFile(t, text), "--rate-limit", "11", "--login-limit=8", "-max-body", "5")...)
	if err != nil {
		t.Fatal(err)
	}
	want := server.DefaultSettings()
	want.RateLimit, want.LoginLimit, want.MaxBody, want.IdleTimeout = 11, 8, 5, 90*time.Second
	want.Listen, want.URL, want.LogJSON = "[::1]:1", "http://[::1]:1", true
	wanted := want.Table()
	for i, x := range s.Table() {
		if x.Text() != wanted[i].Text() {
			t.Errorf("setting %s is %s, want %s", x.Name, x.Text(), wanted[i].Text())
		}
	}
	if s, err = settingsOf(configFile(t, "login-limit = 6")...); err != nil || s.LoginLimit != 7 {
		t.Errorf("the environment against the file: %d, %v", s.LoginLimit, err)
	}
	if s, err = settingsOf("--demo", "--anonymous-rate-limit", "5"); err != nil || s.RateLimit != 0 ||
		s.AnonymousRateLimit != 5 {
		t.Errorf("rate limits of a demo: %d, %d, %v", s.RateLimit, s.AnonymousRateLimit, err)
	}
}

func TestInvalidSettings(t *testing.T) {
	for want, args := range map[string][]string{
		`rate-limit must not be negative: -1`:          configFile(t, "rate-limit = -1"),
		`read-timeout must not be negative: -1s`:       {"--read-timeout", "-1s"},
		`--rate-limit: "many" is not a number`:         {"--rate-limit", "many"},
		`--idle-timeout: "1" is not a duration`:        {"--idle-timeout", "1"},
		`--demo: "perhaps" is not true or false`:       {"--demo=perhaps"},
		`unknown setting "lisen"`:                      configFile(t, `lisen = "x"`),
		`rate-limit: `:                                 configFile(t, `rate-limit = "x"`),
		`read configuration: `:                         {"--config", filepath.Join(t.TempDir(), "none")},
		`unexpected argument "x"`:                      {"x"},
		`tls-cert and tls-key must be set together`:    {"--tls-cert", "a"},
		`unknown flag: --rate-limits`:                  {"--rate-limits", "1"},
		`smtp-port must be between 1 and 65535, not 0`: {"--smtp-host", "mail.example.org", "--smtp-port", "0"},
	} {
		if _, err := settingsOf(args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", args, err, want)
		}
	}
}

// Every setting has a field of its own, a group, a meaning and a name of its own.
func TestSettingsTable(t *testing.T) {
	seen := map[string]bool{}
	s := server.DefaultSettings()
	fields := map[any]bool{}
	for _, x := range s.Table() {
		if x.Type() == "" || x.Meaning == "" || !slices.Contains(registry.SettingGroups(), x.Group) || seen[x.Name] ||
			fields[x.Value] {
			t.Errorf("setting %s: type %s, group %q, meaning %q", x.Name, x.Type(), x.Group, x.Meaning)
		}
		seen[x.Name], fields[x.Value] = true, true
	}
	if p := (park.Config{}).WithDefaults(); s.ReadTimeout != p.ReadTimeout || s.IdleTimeout != p.IdleTimeout {
		t.Errorf("default timeouts %v and %v", s.ReadTimeout, s.IdleTimeout)
	}
}

// Flags with one dash work as they did with Go's flag package, and values are left alone.
func TestNormalizeFlags(t *testing.T) {
	for _, x := range []struct{ typed, want string }{
		{"serve -data d -listen=:1 --demo", "serve --data d --listen=:1 --demo"},
		{"serve -demo -url x", "serve --demo --url x"},
		{"serve --url -data", "serve --url -data"},
		{"serve -help", "serve --help"},
		{"serve -h", "serve -h"},
		{"realm create -name N -data d", "realm create --name N --data d"},
		{"user api-key -email a -only -data d", "user api-key --email a --only --data d"},
		{"user create --password - -email a", "user create --password - --email a"},
		{"backup - -data d", "backup - --data d"},
		{"restore f d -upto 3", "restore f d --upto 3"},
		{"log print d -from 3 -- -to", "log print d --from 3 -- -to"},
		{"bench chat -self", "bench chat -self"},
		{"-help", "--help"},
		{"", ""},
	} {
		got := strings.Join(normalizeFlags(newRootCommand(), strings.Fields(x.typed)), " ")
		if got != x.want {
			t.Errorf("%q becomes %q, want %q", x.typed, got, x.want)
		}
	}
}

// --help of every command prints to standard output and is no error.
func TestHelp(t *testing.T) {
	var check func(path []string, c *cobra.Command)
	check = func(path []string, c *cobra.Command) {
		for _, sub := range c.Commands() {
			check(append(slices.Clone(path), sub.Name()), sub)
		}
		if c.DisableFlagParsing {
			return
		}
		root, out := newRootCommand(), &bytes.Buffer{}
		root.SetOut(out)
		root.SetArgs(append(path, "--help"))
		if err := root.Execute(); err != nil || !strings.Contains(out.String(), "Usage:") {
			t.Errorf("%s --help: %v\n%s", strings.Join(path, " "), err, out)
		}
	}
	check(nil, newRootCommand())
}

func TestVersion(t *testing.T) {
	out, code := runParley("version")
	if code != 0 || !strings.HasPrefix(out, "parley ") || !strings.Contains(out, "feature level ") {
		t.Errorf("code %d: %s", code, out)
	}
	out, code = runParley()
	if code != exitError || !strings.Contains(out, "no command") {
		t.Errorf("without a command: code %d: %s", code, out)
	}
	if _, err := os.Stat("data"); err == nil {
		t.Error("a command created a data directory in the working directory")
	}
}
