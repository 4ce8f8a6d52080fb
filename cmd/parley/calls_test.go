package main

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// liveKitServer returns the program of a LiveKit server, which make calls builds.
func liveKitServer(t *testing.T) string {
	path := os.Getenv("LIVEKIT_SERVER")
	if path == "" {
		t.Skip("LIVEKIT_SERVER is not set: make calls builds the program, which takes minutes, and runs this test")
	}
	return path
}

const (
	liveKitKey    = "parleykey"
	liveKitSecret = "a-secret-of-at-least-thirty-two-bytes"
)

// startLiveKit starts a LiveKit server and returns its port, and the file with its key.
func startLiveKit(t *testing.T) (port, keyFile string) {
	program := liveKitServer(t)
	_, port, _ = net.SplitHostPort(freeAddress(t))
	_, tcp, _ := net.SplitHostPort(freeAddress(t))
	dir := t.TempDir()
	config := filepath.Join(dir, "livekit.yaml")
	keyFile = filepath.Join(dir, "key")
	for file, text := range map[string]string{keyFile: liveKitKey + ": " + liveKitSecret + "\n",
		config: fmt.Sprintf("port: %s\nbind_addresses: [127.0.0.1]\nrtc:\n  tcp_port: %s\n  use_external_ip: false\n"+
			"keys:\n  %s: %s\nroom:\n  auto_create: false\n", port, tcp, liveKitKey, liveKitSecret)} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program, "--config", config, "--node-ip", "127.0.0.1")
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
		log.Close()
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("LiveKit:\n%s", text)
		}
	})
	eventually(t, "LiveKit answers", func() bool {
		r, err := http.Get("http://127.0.0.1:" + port)
		if err == nil {
			r.Body.Close()
		}
		return err == nil
	})
	return port, keyFile
}

// A real LiveKit server accepts the tokens and answers the requests: a call in a topic, its people, and the ends of
// their access.
func TestCallsWithLiveKit(t *testing.T) {
	port, keyFile := startLiveKit(t)
	at := demo(t, filepath.Join(t.TempDir(), "data"), "--livekit-url", "ws://127.0.0.1:"+port, "--livekit-key-file",
		keyFile).serving()
	olive, ann, bo := demoAccount(t, at, "olive@example.org"), demoAccount(t, at, "ann@example.org"),
		demoAccount(t, at, "bo@example.org")
	if s := ann.must(t, "POST", "register", nil); s["server_calls"] != true || s["realm_can_start_calls_group"] == nil {
		t.Errorf("the registration has %v, %v", s["server_calls"], s["realm_can_start_calls_group"])
	}
	start := func(who *account, form url.Values) map[string]any { return who.must(t, "POST", "calls/livekit", form) }
	topic := url.Values{"type": {"channel"}, "to": {"general"}, "topic": {"boats"}, "link_text": {"Join [now]"}}
	call := start(ann, topic)
	text := fmt.Sprint(bo.newest(t)["content"])
	if want := "[Join (now)]("; !strings.Contains(text, want) || !strings.Contains(text, fmt.Sprint(call["path"])) {
		t.Errorf("the message is %s", text)
	}
	if again := start(bo, topic); again["call_key"] != call["call_key"] {
		t.Errorf("a second call in the topic: %v", again)
	}
	path := "calls/livekit/" + fmt.Sprint(call["call_key"])
	answer := bo.must(t, "POST", path+"/token", nil)
	var claims jwt.MapClaims
	if _, err := jwt.ParseWithClaims(fmt.Sprint(answer["token"]), &claims,
		func(*jwt.Token) (any, error) { return []byte(liveKitSecret), nil }); err != nil {
		t.Fatal(err)
	}
	end, _ := claims.GetExpirationTime()
	if left := time.Until(end.Time); left > 5*time.Minute || left < 4*time.Minute {
		t.Errorf("the token is valid for %v", left)
	}
	// LiveKit checks the token without a connection.
	r, err := http.Get("http://127.0.0.1:" + port + "/rtc/validate?access_token=" + url.QueryEscape(
		fmt.Sprint(answer["token"])))
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("LiveKit refuses the token: %v, %v", r, err)
	}
	r.Body.Close()
	bo.must(t, "DELETE", "users/me/subscriptions", url.Values{"subscriptions": {`["general"]`}})
	bo.expectRefusal(t, path, nil, "The call has ended")
	if _, err := bo.call("POST", path+"/token", nil); err == nil {
		t.Error("a user who left the channel gets a token")
	}
	direct := start(ann, url.Values{"type": {"direct"}, "to": {`["bo@example.org"]`}})
	olive.expectRefusal(t, "calls/livekit/"+fmt.Sprint(direct["call_key"]), nil, "The call has ended")
	olive.must(t, "PATCH", "realm", url.Values{"can_start_calls_group": {`{"new":{"direct_members":[],` +
		`"direct_subgroups":[]}}`}})
	toCy := url.Values{"type": {"direct"}, "to": {`["cy@example.org"]`}}
	if _, err := ann.call("POST", "calls/livekit", toCy); err == nil {
		t.Error("a user without the permission starts a call")
	}
}

// Without the setting there are no calls, no field of the registration, and no page.
func TestCallsAreOff(t *testing.T) {
	at := demo(t, filepath.Join(t.TempDir(), "data")).serving()
	ann := demoAccount(t, at, "ann@example.org")
	s := ann.must(t, "POST", "register", nil)
	for _, name := range []string{"server_calls", "realm_can_start_calls_group"} {
		if v, ok := s[name]; ok {
			t.Errorf("%s is %v", name, v)
		}
	}
	_, err := ann.call("POST", "calls/livekit", url.Values{"type": {"direct"}, "to": {`["bo@example.org"]`}})
	if err == nil || !strings.Contains(err.Error(), "LiveKit is not configured") {
		t.Errorf("starting a call: %v", err)
	}
}
