package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A trace contains no names, and can be replayed.
func TestRecordAndReplay(t *testing.T) {
	srv := httptest.NewServer(newFake(""))
	defer srv.CloseClientConnections()
	target, _ := url.Parse(srv.URL)
	var trace bytes.Buffer
	rec := httptest.NewServer(NewRecorder(target, &trace))
	defer rec.Close()
	ask := func(method, path, who string, v url.Values) {
		req, err := http.NewRequest(method, rec.URL+"/api/v1/"+path, strings.NewReader(v.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		if method == "GET" {
			req.URL.RawQuery, req.Body, req.ContentLength = v.Encode(), nil, 0
		} else {
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		if who != "" {
			req.SetBasicAuth(who, "secretkey")
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	const admin = "admin@fake.invalid"
	ask("GET", "server_settings", "", nil)
	ask("POST", "users", admin, url.Values{"email": {"zoe@fake.invalid"}, "full_name": {"Zoe Secret"}})
	ask("POST", "users/me/subscriptions", admin, url.Values{"subscriptions": {`[{"name":"hidden plans"}]`}})
	for i := 0; i < 5; i++ {
		ask("POST", "messages", admin, url.Values{"type": {"channel"}, "to": {"1"}, "topic": {"takeover"},
			"content": {"buy the company"}})
	}
	ask("POST", "messages/flags", admin, url.Values{"messages": {"[100,101]"}, "op": {"add"}, "flag": {"read"}})
	ask("POST", "messages/100/reactions", admin, url.Values{"emoji_name": {"tada"}})
	ask("GET", "messages", admin, url.Values{"anchor": {"newest"}, "num_before": {"5"}, "num_after": {"0"},
		"narrow": {`[{"operator":"channel","operand":1},{"operator":"topic","operand":"takeover"}]`}})
	ask("POST", "users/me/presence", "zoe@fake.invalid", url.Values{"status": {"active"}})

	for _, secret := range []string{"admin", "zoe", "Zoe", "secret", "hidden", "takeover", "company", "fake.invalid"} {
		if strings.Contains(trace.String(), secret) {
			t.Errorf("the trace contains %q:\n%s", secret, trace.String())
		}
	}
	steps, err := ReadTrace(bytes.NewReader(trace.Bytes()))
	if err != nil || len(steps) != 12 {
		t.Fatalf("%d steps, %v", len(steps), err)
	}
	if s := steps[9]; s.Path != "/api/v1/messages/m0/reactions" || s.Params["emoji_name"] != "tada" ||
		s.User != steps[3].User {
		t.Errorf("the reaction became %+v", s)
	}
	if s := steps[10]; s.Params["narrow"] != "channel:c0 topic" {
		t.Errorf("the narrow became %q", s.Params["narrow"])
	}
	// Replay the milliseconds of the recording slowly, so that a message exists before a user reacts to it.
	var slowly bytes.Buffer
	for i := range steps {
		steps[i].At = int64(i) * 50_000
		if err := json.NewEncoder(&slowly).Encode(&steps[i]); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "trace.jsonl")
	if err := os.WriteFile(file, slowly.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	exe, _ := os.Executable()
	if code := Main([]string{"replay", file, "--self", "--exe", exe, "--serve=--demo", "--speed", "0.5"}, &out,
		&errs); code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, out.String(), errs.String())
	}
	for kind, n := range map[string]int{"send": 5, "react": 1, "presence": 1, "read": 1} {
		if !strings.Contains(out.String(), fmt.Sprintf("%8s  %d ", kind, n)) &&
			!strings.Contains(strings.Join(strings.Fields(out.String()), " "), fmt.Sprintf("%s %d ", kind, n)) {
			t.Errorf("the replay has no %d × %s:\n%s", n, kind, out.String())
		}
	}
}
