package main

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
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

// Users start and join a call at an edge. The edge, its core and a LiveKit server are processes. The edge shows the
// users in the call, also after the core was killed. Users who lose the channel are removed from the call. Users who
// leave the call are shown no more.
func TestCallsWithLiveKitAtEdge(t *testing.T) {
	port, keyFile := startLiveKit(t)
	c := startEdgesOf(t, 0, "--livekit-url", "ws://127.0.0.1:"+port, "--livekit-key-file", keyFile)
	edge := c.addEdge("b")
	olive, ann, bo := demoAccount(t, edge.url(), "olive@example.org"), demoAccount(t, edge.url(), "ann@example.org"),
		demoAccount(t, edge.url(), "bo@example.org")
	atCore := demoAccount(t, c.core.url(), "ann@example.org")
	place := url.Values{"type": {"channel"}, "to": {"general"}, "topic": {"boats"}}
	path := "calls/livekit/" + fmt.Sprint(ann.must(t, "POST", "calls/livekit", place)["call_key"])
	shows := func(names ...string) {
		t.Helper()
		for _, who := range []*account{ann, atCore} {
			eventually(t, fmt.Sprintf("%s shows %v in the call", who.url, names), func() bool {
				a, err := who.call("GET", path, nil)
				return err == nil && slices.Equal(namesOf(a["present"]), names)
			})
		}
	}
	leaveAnn := joinLiveKit(t, port, ann.must(t, "POST", path+"/token", nil))
	joinLiveKit(t, port, bo.must(t, "POST", path+"/token", nil))
	shows("Ann Lee", "Bo Park")
	c.core.kill()
	c.start(c.core, "--livekit-url", "ws://127.0.0.1:"+port, "--livekit-key-file", keyFile)
	shows("Ann Lee", "Bo Park")
	olive.must(t, "DELETE", "users/me/subscriptions", url.Values{"subscriptions": {`["general"]`},
		"principals": {`["bo@example.org"]`}})
	shows("Ann Lee")
	bo.expectRefusal(t, path, nil, "The call has ended")
	leaveAnn()
	shows()
}

// namesOf returns the names of the people in a call.
func namesOf(present any) []string {
	names := []string{}
	list, _ := present.([]any)
	for _, p := range list {
		names = append(names, fmt.Sprint(p.(map[string]any)["full_name"]))
	}
	slices.Sort(names)
	return names
}

// joinLiveKit opens a connection to LiveKit, which makes the user of a token present, and returns how to end it.
func joinLiveKit(t *testing.T, port string, answer map[string]any) (leave func()) {
	t.Helper()
	r, err := http.NewRequest("GET", "http://127.0.0.1:"+port+"/rtc?auto_subscribe=1&sdk=go&version=1.0.0&protocol=9"+
		"&access_token="+url.QueryEscape(fmt.Sprint(answer["token"])), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"},
		"Sec-Websocket-Key": {"AAAAAAAAAAAAAAAAAAAAAA=="}}
	a, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || a.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("LiveKit answers %v, %v", a, err)
	}
	end := sync.OnceFunc(func() { a.Body.Close() })
	t.Cleanup(end)
	return end
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
