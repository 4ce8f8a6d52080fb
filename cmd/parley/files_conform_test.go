package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"parley/snapshot/files/s3/s3test"
)

// TestConformWithBucket runs make conform's checks against servers that keep their files in a bucket.
func TestConformWithBucket(t *testing.T) {
	if os.Getenv("CONFORM") == "" {
		t.Skip("it runs all checks of make conform: make conform-s3 sets CONFORM=1")
	}
	bucket := s3test.Start(t)
	run := exec.Command("../../wire/contract/clients/run")
	run.Env = append(os.Environ(), "CONFORM_FILES="+strings.Replace(bucket.URL(""), "/?", "?", 1))
	run.Env = append(run.Env, bucket.Env()...)
	run.Stdout, run.Stderr = os.Stdout, os.Stderr
	if err := run.Run(); err != nil {
		t.Errorf("conform: %v", err)
	}
	if n := len(bucket.Objects("python-package/content")); n == 0 {
		t.Error("the checks have stored no file in the bucket")
	} else {
		t.Logf("the Python client has left %d files", n)
	}
}
