package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestSettingsPage(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	c := defaults()
	want := "| setting | default | meaning |\n|---|---|---|\n"
	c.eachSetting(func(name, help string, v reflect.Value) error {
		want += fmt.Sprintf("| `%s` | %s | %s |\n", name, settingText(v), help)
		return nil
	})
	if !strings.Contains(string(text), want) {
		t.Errorf("the README's table of settings must be\n%s", want)
	}
}

func TestSettings(t *testing.T) {
	file := func(text string) []string {
		f := filepath.Join(t.TempDir(), "parley.toml")
		if err := os.WriteFile(f, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return []string{"--config", f}
	}
	t.Setenv("PARLEY_LOGIN_LIMIT", "7")
	c, err := readConfig(append(file("rate-limit = 10\nlogin-limit = 6\nidle-timeout = \"90s\"\nlisten = \"[::1]:1\""), "--rate-limit", "11", "--login-limit=8"))
	if err != nil {
		t.Fatal(err)
	}
	if c.RateLimit != 11 || c.LoginLimit != 8 || c.AnonymousLimit != 100 || settingText(reflect.ValueOf(c.IdleTimeout)) != "1m30s" || c.URL != "http://[::1]:1" {
		t.Errorf("flags, environment, file, defaults: %+v", c)
	}
	if c, err = readConfig(file("login-limit = 6")); err != nil || c.LoginLimit != 7 {
		t.Errorf("the environment against the file: %d, %v", c.LoginLimit, err)
	}
	for want, args := range map[string][]string{
		`rate-limit: -1 is less than nothing`:         file("rate-limit = -1"),
		`read-timeout: -1s is less than nothing`:      {"--read-timeout", "-1s"},
		`--rate-limit: "many" is not a number`:        {"--rate-limit", "many"},
		`--idle-timeout: "1" is not a time`:           {"--idle-timeout", "1"},
		`--demo: "perhaps" is not true or false`:      {"--demo=perhaps"},
		`unknown setting "lisen"`:                     file(`lisen = "x"`),
		`read configuration: `:                        {"--config", filepath.Join(t.TempDir(), "none")},
		`unexpected argument "x"`:                     {"x"},
		`tls-cert and tls-key go together`:            {"--tls-cert", "a"},
		`flag provided but not defined: -rate-limits`: {"--rate-limits", "1"},
	} {
		if _, err := readConfig(args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", args, err, want)
		}
	}
}
