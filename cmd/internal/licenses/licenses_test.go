package licenses

import (
	"strings"
	"testing"
)

// The notices in the program are those of the modules it is built from.
func TestNoticesAreCurrent(t *testing.T) {
	want, err := Collect("../../..", "./cmd/parley")
	if err != nil {
		t.Fatal(err)
	}
	if Notices != want {
		t.Error("the modules or their licenses have changed: run make licenses")
	}
	for _, part := range []string{"The Go standard library", "github.com/cockroachdb/pebble/v2 v", "Apache License",
		"preact ", "Permission is hereby granted, free of charge"} {
		if !strings.Contains(Notices, part) {
			t.Errorf("the notices lack %q", part)
		}
	}
}
