package main

import (
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"parley/actors/realm"
)

// outside counts what reaches the places outside the server. Every place refuses for now, so that the server tries
// again.
type outside struct {
	mu     sync.Mutex
	counts map[string]int
	http   string // address of all places that speak HTTP; the first part of a path is the name of the place
	tls    string // the same, for push services of browsers
	smtp   string // host:port
	ca     string // file with the certificate
}

func newOutside(t *testing.T) *outside {
	t.Helper()
	o := &outside{counts: map[string]int{}}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		if name == "twirp" { // of LiveKit
			o.count("livekit")
			fmt.Fprint(w, "{}")
			return
		}
		o.count(name)
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	o.http, o.tls, o.ca = plain.URL, secure.URL, filepath.Join(t.TempDir(), "ca.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	if err := os.WriteFile(o.ca, certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	o.smtp = l.Addr().String()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			o.count("email")
			fmt.Fprint(c, "421 not now\r\n")
			c.Close()
		}
	}()
	return o
}

func (o *outside) count(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.counts[name]++
}

func (o *outside) of(name string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.counts[name]
}

// flags returns the settings of a server that uses the places. keys is a file with a key.
func (o *outside) flags(dir, data string) ([]string, error) {
	key, call := filepath.Join(dir, "key"), filepath.Join(dir, "livekit")
	if err := os.WriteFile(key, []byte("key\n"), 0o600); err != nil {
		return nil, err
	}
	if err := os.WriteFile(call, []byte("parley: "+strings.Repeat("s", 40)), 0o600); err != nil {
		return nil, err
	}
	host, port, _ := net.SplitHostPort(o.smtp)
	local := "127.0.0.0/8"
	return []string{"serve", "--data", data, "--listen", "127.0.0.1:0", "--demo", "--demo-content=false",
		"--webhooks-allow", local, "--previews-allow", local, "--assist-allow", local, "--gif-allow", local,
		"--image-proxy", "--assist-url", o.http + "/model", "--assist-model", "m", "--translate-url",
		o.http + "/translation", "--embed-url", o.http + "/vectors", "--embed-model", "m",
		"--gif-provider", "giphy", "--gif-key-file", key, "--gif-url", o.http + "/gif",
		"--livekit-url", "ws" + strings.TrimPrefix(o.http, "http"), "--livekit-key-file", call,
		"--smtp-host", host, "--smtp-port", port, "--smtp-tls", "none",
		"--push-bouncer", o.http + "/push", "--push-bouncer-org", "o", "--push-bouncer-key", "k"}, nil
}

// placeUser is a user whose requests lead to places.
type placeUser struct {
	*account
	t       *testing.T
	bot     string // an outgoing-webhook bot
	bo      string // another user, with a phone and a browser
	message string // a message with a picture of another site
	path    string // of that picture at the server
}

// closings are the places that owners can close, with the setting and what leads there. A place can have several names
// here: count is that of outside.
var closings = []struct {
	place          realm.Place
	count          string
	setting, value string
	do             func(u *placeUser, o *outside)
}{
	{realm.PlaceMobilePush, "push", "allow_mobile_push", "false", (*placeUser).direct},
	{realm.PlaceBrowserPush, "browser", "allow_browser_push", "false", (*placeUser).direct},
	{realm.PlaceLinkPreviews, "page", "inline_url_embed_preview", "false", func(u *placeUser, o *outside) {
		u.say(u.t, "links", "general", o.http+"/page")
	}},
	{realm.PlaceExternalPictures, "picture", "allow_external_pictures", "false", func(u *placeUser, o *outside) {
		if u.path == "" {
			u.message = u.say(u.t, "pictures", "general", o.http+"/picture/cat.gif")
			m := u.must(u.t, "GET", "messages/"+u.message, nil)["message"].(map[string]any)
			u.path = externalPicture.FindStringSubmatch(m["content"].(string))[1]
		}
		fetch(u.t, u.url, nil, u.path)
	}},
	{realm.PlaceGIFs, "gif", "gif_rating_policy", "0", func(u *placeUser, _ *outside) { u.call("GET", "gifs", nil) }},
	{realm.PlaceModels, "model", realm.AssistantSetting, "false", func(u *placeUser, _ *outside) {
		u.call("GET", "messages/summary", nil)
	}},
	{realm.PlaceTranslations, "translation", realm.AssistantSetting, "false", func(u *placeUser, o *outside) {
		u.call("GET", "messages/"+u.say(u.t, "words", "general", "some words")+"/translation",
			url.Values{"language": {"de"}})
	}},
	{realm.PlaceVectors, "vectors", realm.MeaningSetting, "false", func(u *placeUser, _ *outside) {
		u.call("GET", "messages/meaning", url.Values{"query": {"words"}})
	}},
	{realm.PlaceMessageEmails, "email", "allow_message_emails", "false", (*placeUser).direct},
	{realm.PlaceOutgoingWebhooks, "bot", "allow_outgoing_webhooks", "false", func(u *placeUser, _ *outside) {
		u.say(u.t, "", u.bot, "to your service")
	}},
	{realm.PlaceCallRooms, "livekit", "allow_livekit_calls", "false", func(u *placeUser, _ *outside) {
		call, err := u.account.call("POST", "calls/livekit", url.Values{"type": {"direct"}, "to": {u.bo}})
		if err == nil {
			u.must(u.t, "POST", fmt.Sprint("calls/livekit/", call["call_key"], "/token"), nil)
		}
	}},
}

func (u *placeUser) direct(*outside) { u.say(u.t, "", u.bo, "a direct message") }

// waitingJobs are the bounds of jobs that lead to places.
var waitingJobs = []string{"emails", "webhook_calls", "missed_messages", "push_notifications", "push_registrations",
	"link_previews"}

// TestClosedPlacesGetNothing lets a server send data to places that are down for the moment, so that much waits. Then
// an owner closes all places. From then on nothing reaches them: neither what waits, nor after kill -9, nor new
// messages. The list of places says when data last went there.
func TestClosedPlacesGetNothing(t *testing.T) {
	o := newOutside(t)
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	flags, err := o.flags(dir, data)
	if err != nil {
		t.Fatal(err)
	}
	debug := freeAddress(t)
	start := func() (p *program, at string) {
		c := parleyCommand(append(flags, "--debug-listen", debug)...)
		c.Env = append(c.Environ(), "SSL_CERT_FILE="+o.ca)
		p = startProgram(t, c)
		return p, p.serving()
	}
	p, at := start()
	setDemoPasswords(t, data, "bo@example.org")
	olive, bo := demoAccount(t, at, "olive@example.org"), demoAccount(t, at, "bo@example.org")
	u := &placeUser{account: demoAccount(t, at, "ann@example.org"), t: t}
	for _, s := range []url.Values{pairs(realm.AssistantSetting, "true"),
		pairs(realm.MeaningSetting, "true"), pairs("inline_url_embed_preview", "true")} {
		olive.must(t, "PATCH", "realm", s)
	}
	u.bo = fmt.Sprintf("[%v]", bo.must(t, "GET", "users/me", nil)["user_id"])
	bo.must(t, "PATCH", "settings", url.Values{"email_notifications_batching_period_seconds": {"1"}})
	bo.must(t, "POST", "users/me/android_gcm_reg_id", url.Values{"token": {"phone"}})
	newBrowser(t, at).logIn("bo@example.org", browserPassword).must("POST", "users/me/web_push",
		pairs("endpoint", o.tls+"/browser/bo", "p256dh",
			"BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4", "auth",
			"BTBZMqHH6r4Tts7J_aSIgg"))
	u.bot = fmt.Sprintf("[%v]", u.must(t, "POST", "bots", url.Values{"full_name": {"Robo"}, "short_name": {"robo"},
		"bot_type": {"3"}, "payload_url": {`"` + o.http + `/bot"`}, "interface_type": {"1"}})["user_id"])
	for _, c := range closings {
		c.do(u, o)
	}
	for _, c := range closings {
		eventually(t, "data goes to "+c.count, func() bool { return o.of(c.count) > 0 })
		if x := placeOf(t, olive, c.place); x["open"] != true || x["configured"] != true || x["last_used"] == nil {
			t.Errorf("used: %v", x)
		}
	}

	for _, c := range closings {
		olive.must(t, "PATCH", "realm", pairs(c.setting, c.value))
	}
	eventually(t, "the room of the call is removed", func() bool { // by the last request to LiveKit
		before := o.of("livekit")
		_, err := u.call("GET", "calls/livekit/unknown", nil)
		return err != nil && before > 1 && readWaiting(t, debug, "calls_per_organization") == 0
	})
	p.kill() // what waits is tried again at once
	before := map[string]int{}
	for _, c := range closings {
		before[c.count] = o.of(c.count)
	}
	p, at = start()
	olive.url, u.url = at, at
	for _, c := range closings {
		c.do(u, o)
	}
	for _, of := range waitingJobs {
		eventually(t, of+" wait no longer", func() bool { return readWaiting(t, debug, of) == 0 })
	}
	for _, c := range closings {
		if n := o.of(c.count) - before[c.count]; n != 0 {
			t.Errorf("%d requests reach %s after it was closed", n, c.count)
		}
		if x := placeOf(t, olive, c.place); x["open"] != false || x["last_used"] != nil || x["setting"] != c.setting {
			t.Errorf("closed: %v", x)
		}
	}
	p.stop()
}

// An organization that shows no pictures of other sites finds no GIFs: clients would load them from the provider.
func TestNoGIFsWithoutExternalPictures(t *testing.T) {
	o := newOutside(t)
	dir := t.TempDir()
	flags, err := o.flags(dir, filepath.Join(dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	p := startProgram(t, parleyCommand(flags...))
	at := p.serving()
	olive, ann := demoAccount(t, at, "olive@example.org"), demoAccount(t, at, "ann@example.org")
	hasKey := func() bool {
		a := ann.must(t, "POST", "register", nil)
		return fmt.Sprint(a["giphy_api_key"], a["klipy_api_key"], a["tenor_api_key"]) != ""
	}
	if !hasKey() {
		t.Error("official clients get no key")
	}
	olive.must(t, "PATCH", "realm", pairs("allow_external_pictures", "false"))
	if hasKey() {
		t.Error("official clients get a key although the place is closed")
	}
	if _, err := ann.call("GET", "gifs", nil); err == nil || !strings.Contains(err.Error(), "does not send data") {
		t.Errorf("without pictures of other sites: %v", err)
	}
	if n := o.of("gif"); n != 0 {
		t.Errorf("the provider got %d requests", n)
	}
	p.stop()
}

// A client that names no capability of ours registers without any setting of ours: the protocol lacks these fields.
func TestRegistrationsWithoutExtensions(t *testing.T) {
	k := newDemoClient(t)
	other := k.must("ann", "POST register")
	ours := k.must("ann", "POST register", "client_capabilities", map[string]bool{"short_user_list": true})
	shown := 0
	for _, x := range realm.OrgSettings {
		field := "realm_" + x.Name
		if _, ok := other[field]; ok == x.Extension {
			t.Errorf("%s for a client without our capability: %t", field, ok)
		}
		if _, ok := ours[field]; ok && x.Extension {
			shown++
		}
	}
	if shown == 0 {
		t.Error("clients with our capability get no setting of ours")
	}
}

// placeOf returns a place of the list.
func placeOf(t *testing.T, by *account, name realm.Place) map[string]any {
	t.Helper()
	for _, x := range by.must(t, "GET", "places", nil)["places"].([]any) {
		if p := x.(map[string]any); p["name"] == string(name) {
			return p
		}
	}
	t.Fatalf("%s is not in the list", name)
	return nil
}

// readWaiting returns how much of a bound is used.
func readWaiting(t *testing.T, debug, bound string) int {
	t.Helper()
	return readMetric(t, debug, `parley_bound_used\{of="`+bound+`"\}`)
}
