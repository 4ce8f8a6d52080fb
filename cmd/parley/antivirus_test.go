package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"parley/snapshot/files/clamd/clamdtest"
)

// virusScanner starts a scanner that finds a virus in files that contain VIRUS.
func virusScanner(t *testing.T) (address string, end func()) {
	t.Helper()
	return clamdtest.Start(t, 1<<20, func(file []byte) string {
		if bytes.Contains(file, []byte("VIRUS")) {
			return "stream: Test.Virus FOUND\x00"
		}
		return "stream: OK\x00"
	})
}

// Files with a virus are refused in uploads and in mails, which are refused as a whole. Without the scanner, files are
// refused or stored as the operator wants.
func TestUploadsWithVirusScanner(t *testing.T) {
	for _, policy := range []string{"refuse", "accept"} {
		scanner, end := virusScanner(t)
		smtpAddress := freeAddress(t)
		at := demo(t, t.TempDir(), "--antivirus", scanner, "--antivirus-down", policy, "--mail-listen",
			smtpAddress).serving()
		ann := demoAccount(t, at, "ann@example.org")
		upload := func(text string) (int, map[string]any) {
			t.Helper()
			status, a, err := ann.upload(map[string]io.Reader{"a.txt": strings.NewReader(text)})
			if err != nil {
				t.Fatal(err)
			}
			return status, a
		}
		if status, a := upload("clean"); status != 200 {
			t.Errorf("a clean file: %d %v", status, a)
		}
		if status, a := upload("a VIRUS"); status != 400 || a["code"] != "BAD_REQUEST" ||
			!strings.Contains(a["msg"].(string), "Test.Virus") {
			t.Errorf("a file with a virus: %d %v", status, a)
		}
		before := ann.newest(t)["id"]
		to := ann.must(t, "GET", "streams/1/email_address", nil)["email"].(string)
		mail := "Subject: x\nContent-Disposition: attachment; filename=a.txt\n\na VIRUS\n"
		if err := sendMail(t, smtpAddress, "x@example.com", to, mail); err == nil ||
			!strings.Contains(err.Error(), "cannot be posted") || ann.newest(t)["id"] != before {
			t.Errorf("a mail with a virus: %v", err)
		}
		end()
		status, a := upload("unknown")
		want, code := 200, ""
		if policy == "refuse" {
			want, code = 503, "FILES_UNAVAILABLE"
		}
		if got, _ := a["code"].(string); status != want || got != code {
			t.Errorf("%s, without the scanner: %d %v", policy, status, a)
		}
	}
	out, code := runParley("serve", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--antivirus", "x",
		"--antivirus-down", "refuse")
	if code == 0 || !strings.Contains(out, "antivirus must be host:port") {
		t.Errorf("a wrong address: %d %s", code, out)
	}
}
