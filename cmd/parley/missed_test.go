package main

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMissedMessagesAreMailed: what somebody who is not here is written, and does not read, comes to him by mail, one for
// the conversation, though the server is killed before its time.
func TestMissedMessagesAreMailed(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	p := demo(t, data)
	at := p.serving()
	ann, bo := demoPerson(t, at, "ann@example.org"), demoPerson(t, at, "bo@example.org")
	bo.must(t, "PATCH", "settings", url.Values{"email_notifications_batching_period_seconds": {"3"}})
	me := fmt.Sprintf("[%v]", bo.must(t, "GET", "users/me", nil)["user_id"])
	for _, text := range []string{"the first", "the *second*"} {
		ann.must(t, "POST", "messages", url.Values{"type": {"direct"}, "to": {me}, "content": {text}})
	}
	p.kill()
	p = start(t, parley("serve", "--data", data, "--listen", "127.0.0.1:0", "--demo"))
	p.serving()
	eventually(t, "one letter to Bo tells of both", func() bool {
		list, _ := filepath.Glob(filepath.Join(data, "outbox", "*.eml"))
		n := 0
		for _, name := range list {
			text, err := os.ReadFile(name)
			if err == nil && strings.Contains(string(text), "To: <bo@example.org>") && strings.Contains(string(text), "the first") && strings.Contains(string(text), "the second") {
				n++
			}
		}
		return n == 1
	})
}
