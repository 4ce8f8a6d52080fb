package server

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/cmd/internal/certificates"
	"parley/cmd/internal/datadir"
)

// A start warns about settings that open the server to other machines.
func TestStartWarnsOfExposure(t *testing.T) {
	for _, x := range []struct {
		settings Settings
		want     string // "" for no warning
	}{
		{Settings{Demo: true, Listen: "127.0.0.1:9991"}, ""},
		{Settings{Demo: true, Listen: "[::1]:9991"}, ""},
		{Settings{Demo: true, Listen: "localhost:9991"}, ""},
		{Settings{Listen: "0.0.0.0:9991"}, ""},
		{Settings{Demo: true, Listen: ":9991"}, "demo:"},
		{Settings{Demo: true, Listen: "0.0.0.0:9991"}, "demo:"},
		{Settings{DemoCrowd: "users=5", Listen: "192.0.2.1:9991"}, "demo:"},
		{Settings{Listen: "127.0.0.1:9991", DebugListen: "127.0.0.1:9992"}, ""},
		{Settings{Listen: "127.0.0.1:9991", DebugListen: ":9992"}, "debug-listen:"},
	} {
		var log bytes.Buffer
		s := &Server{Settings: x.settings, log: slog.New(slog.NewTextHandler(&log, nil))}
		s.warnOfExposure()
		if got := log.String(); x.want == "" && got != "" || !strings.Contains(got, x.want) {
			t.Errorf("%+v: log %q, want %q", x.settings, got, x.want)
		}
	}
}

// A start warns about a data directory, a secret or a key that other users of the machine can open.
func TestStartWarnsOfOpenModes(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	secret, key := filepath.Join(data, datadir.SecretFile), filepath.Join(data, "key.pem")
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{secret, key} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range []struct {
		path string
		mode os.FileMode
		warn bool
	}{
		{data, 0o700, false}, {data, 0o750, false}, {data, 0o755, true}, {data, 0o770, true},
		{secret, 0o600, false}, {secret, 0o640, true}, {secret, 0o604, true},
		{key, 0o640, false}, {key, 0o644, true},
	} {
		if err := os.Chmod(x.path, x.mode); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		settings := Settings{Data: data, TLS: certificates.Settings{TLSKey: key}}
		s := &Server{Settings: settings, log: slog.New(slog.NewTextHandler(&log, nil))}
		s.warnOfOpenModes()
		if got := log.String(); strings.Contains(got, "file="+x.path+" ") != x.warn {
			t.Errorf("mode %v of %s: log %q; warning: %v", x.mode, x.path, got, x.warn)
		}
		os.Chmod(x.path, map[bool]os.FileMode{true: 0o700, false: 0o600}[x.path == data])
	}
}
