package server

import (
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"parley/cmd/internal/datadir"
)

// A data directory that a newer program has served is refused by servers and by operators' commands, and stays as
// it is. One without a version, or of an older program, is served and gets the version.
func TestNewerDataDirectoryIsRefused(t *testing.T) {
	s := startDemo(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(s.Data, datadir.VersionFile)
	if text, err := os.ReadFile(path); err != nil || string(text) != strconv.Itoa(datadir.Version())+"\n" {
		t.Fatalf("version file: %q, %v", text, err)
	}
	start := func() error {
		settings := DefaultSettings()
		settings.Data, settings.Listen = s.Data, "127.0.0.1:0"
		if err := settings.Check(func(string) bool { return false }); err != nil {
			return err
		}
		again, err := Start(Config{Settings: settings, Log: slog.New(slog.DiscardHandler)})
		if err == nil {
			err = again.Close()
		}
		return err
	}
	for text, want := range map[string]string{
		strconv.Itoa(datadir.Version() + 1): "served by a newer parley",
		"":                                  "not a version number",
		"new":                               "not a version number",
		"-1":                                "not a version number",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := start(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("version %q: starting: %v", text, err)
		}
		if _, err := Command(s.Data, "realm-list", nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("version %q: a command: %v", text, err)
		}
		if now, err := os.ReadFile(path); err != nil || string(now) != text {
			t.Errorf("version %q became %q, %v", text, now, err)
		}
	}
	if err := os.WriteFile(path, []byte("1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := start(); err != nil {
		t.Errorf("an older directory: %v", err)
	}
	if v, err := datadir.ReadVersion(s.Data); err != nil || v != datadir.Version() {
		t.Errorf("after a start: version %d, %v", v, err)
	}
}
