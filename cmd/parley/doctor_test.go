package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// The doctor reads the settings as the server does, names a fault with its remedy, and has an exit code for scripts.
func TestDoctor(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "parley.toml")
	writeFile(t, config, "listen = \"0.0.0.0:9991\"\ndemo = true\nurl = \"http://127.0.0.1:9991\"\n")
	out, code := runParley("doctor", "--config", config, "--data", dir)
	for _, want := range []string{"FAULT  exposure", "logs in as any user", "remedy: remove demo",
		"ok     disk space"} {
		if !strings.Contains(out, want) {
			t.Errorf("the report lacks %q:\n%s", want, out)
		}
	}
	if code != exitError {
		t.Errorf("the exit code is %d", code)
	}
	writeFile(t, config, "smtp-host = \"mail.example.org\"\nsmtp-port = 70000\n")
	if out, _ := runParley("doctor", "--config", config, "--data", dir); !strings.Contains(out, "FAULT  settings") ||
		!strings.Contains(out, "smtp-port must be between 1 and 65535") {
		t.Errorf("settings that the server refuses:\n%s", out)
	}
}
