package s3

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParsePlace(t *testing.T) {
	for text, want := range map[string]string{
		"s3://abc": "s3://abc/?endpoint=https://s3.us-east-1.amazonaws.com&path-style=false&region=us-east-1",
		"s3://abc/a/b/?region=eu-1": "s3://abc/a/b/?endpoint=https://s3.eu-1.amazonaws.com&path-style=false&" +
			"region=eu-1",
		"s3://abc?endpoint=http://[::1]:9000&path-style=true": "s3://abc/?endpoint=http://[::1]:9000&path-style=true&" +
			"region=us-east-1",
	} {
		p, err := ParsePlace(text)
		if err != nil || p.String() != want {
			t.Errorf("%s is %s: %v", text, p, err)
		}
		if again, err := ParsePlace(p.String()); err != nil || again != p {
			t.Errorf("%s is read as %s: %v", p, again, err)
		}
	}
	for text, want := range map[string]string{
		"/srv/files":                           "must begin with s3://",
		"s3://AKIA:hunter2@abc":                "must not contain keys",
		"s3://ABC":                             "not the name of a bucket",
		"s3://abc/../x":                        "not a folder",
		"s3://abc/a b":                         "not a folder",
		"s3://abc?secret=hunter2":              "unknown parameter",
		"s3://abc?endpoint=ftp://x":            "endpoint must be",
		"s3://abc?endpoint=https://u:p@x":      "endpoint must be",
		"s3://abc?path-style=maybe":            "path-style must be",
		"s3://abc?region=a/b":                  "not a region",
		"s3://abc?region=a&region=b":           "given twice",
		"s3://" + strings.Repeat("a", 100):     "not the name of a bucket",
		"s3://abc/" + strings.Repeat("a", 900): "longer than",
	} {
		_, err := ParsePlace(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %q", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error has the secret: %v", err)
		}
	}
}

func TestCredentials(t *testing.T) {
	t.Setenv(envKey, "")
	t.Setenv(envSecret, "")
	if _, err := loadCredentials(""); err == nil || !strings.Contains(err.Error(), envKey) {
		t.Errorf("no keys: %v", err)
	}
	file := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, []byte("[other]\naws_access_key_id = a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := loadCredentials(file); err == nil || !strings.Contains(err.Error(), "[default]") {
		t.Errorf("a file without the section: %v", err)
	}
	if _, err := loadCredentials(file + ".none"); err == nil || !strings.Contains(err.Error(), "files-credentials") {
		t.Errorf("no file: %v", err)
	}
}
