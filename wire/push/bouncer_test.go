package push

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/nacl/secretbox"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/push/bouncertest"
)

// bouncerScene is a realm whose notifications go through a bouncer.
type bouncerScene struct {
	*fakeServer
	bouncer  *bouncertest.Bouncer
	pusher   *Pusher
	uploader *Uploader
	bo       realm.UserID
	site     wire.Site
}

func newBouncerScene(t *testing.T) *bouncerScene {
	s := &bouncerScene{bouncer: bouncertest.New(), site: wire.Site{URL: "https://chat.example.org:8443",
		Host: "chat.example.org"}}
	s.fakeServer, s.bo = newFakeServer(t)
	http := httptest.NewServer(s.bouncer)
	t.Cleanup(http.Close)
	s.pusher = newPusher(t, Config{Bouncer: NewAccount(http.URL + "/")})
	s.uploader = &Uploader{
		Bouncer: s.pusher.Bouncer(), Server: s, Log: slog.New(slog.DiscardHandler), Now: time.Now,
		Sites: func() map[realm.ID]wire.Site { return map[realm.ID]wire.Site{1: s.site} },
	}
	return s
}

// register registers the server, and its organization if upload is set.
func (s *bouncerScene) register(upload bool) {
	s.t.Helper()
	r := ServerRegistration{Hostname: "chat.example.org:8443", Contact: "ops@example.net"}
	if created, err := s.pusher.Bouncer().RegisterServer(r, nil); err != nil || !created {
		s.t.Fatalf("registered: %t, %v", created, err)
	}
	if !upload {
		return
	}
	if _, err := s.uploader.Upload(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *bouncerScene) registration(r realm.DeviceRegistration) wire.PushRegistration {
	return wire.PushRegistration{DeviceRegistration: r, RealmUUID: s.r.Org().UUID, User: s.bo,
		UserUUID: s.r.PushUserUUID(s.bo)}
}

func (s *bouncerScene) notice(remove bool, tokens ...realm.PushToken) notification {
	n := notice(remove, tokens...)
	v := s.r.ViewAs(realm.Caller{System: true}, then)
	n.PushOrigin = wire.PushOriginOf(v, s.bo, s.site)
	return n
}

var (
	android = realm.PushToken{Kind: realm.PushFCM, Token: "phone"}
	// apple is spelled in base64, as old apps do.
	apple = realm.PushToken{Kind: realm.PushAPNs, Token: "wP/u", App: "org.example.App"}
)

// Each call has user_uuid with realm_uuid, no unknown members, Apple's tokens in hexadecimal, and payloads for both
// kinds of devices. The bouncer refuses everything else.
func TestClassicCallsThroughBouncer(t *testing.T) {
	s := newBouncerScene(t)
	s.register(true)
	for _, x := range []realm.PushToken{android, apple} {
		if err := s.pusher.Register(s.registration(realm.DeviceRegistration{Token: x})); err != nil {
			t.Fatalf("register: %v", err)
		}
	}
	if got := s.bouncer.Tokens(); !slices.Equal(got, []string{"c0ffee", "phone"}) {
		t.Errorf("the bouncer knows %q", got)
	}
	origin := s.notice(false).PushOrigin
	for _, x := range []realm.PushToken{android, apple} {
		if err := s.pusher.Test(origin, x); err != nil {
			t.Errorf("test: %v", err)
		}
	}
	unknown := realm.PushToken{Kind: realm.PushFCM, Token: "unknown"}
	if err := s.pusher.Test(origin, unknown); !errors.Is(err, wire.ErrDeviceUnknownToBouncer) {
		t.Errorf("test of an unknown device: %v", err)
	}
	s.bouncer.Deliveries()
	left, answer, err := s.pusher.notify(s.notice(false, android, unknown))
	if err != nil || len(left.tokens) > 0 || len(answer.Tokens) != 1 || answer.Tokens[0] != unknown {
		t.Errorf("notify: left %v, answer %v, %v", left.tokens, answer, err)
	}
	if answer.Rights == nil || !answer.Rights.Allowed {
		t.Errorf("notify: rights %v", answer.Rights)
	}
	delivered := map[string]bool{}
	for _, d := range s.bouncer.Deliveries() { // also to the device that this server did not name
		delivered[d.Token] = len(d.Payload) > 0
	}
	if !delivered["phone"] || !delivered["c0ffee"] {
		t.Errorf("delivered %v", delivered)
	}
	gone := realm.DeviceRegistration{Token: android, Gone: true}
	if err := s.pusher.Register(s.registration(gone)); err != nil {
		t.Errorf("unregister: %v", err)
	}
	var refused *wire.BouncerRefusal
	if err := s.pusher.Register(s.registration(gone)); !errors.As(err, &refused) ||
		refused.Text != "Token does not exist" {
		t.Errorf("unregister twice: %v", err)
	}
	if err := s.pusher.Register(s.registration(realm.DeviceRegistration{Gone: true})); err != nil {
		t.Errorf("unregister all: %v", err)
	}
	if got := s.bouncer.Tokens(); len(got) > 0 {
		t.Errorf("the bouncer still knows %q", got)
	}
	for _, r := range s.bouncer.Requests() {
		if r.Agent != "ZulipServer/"+wire.Version {
			t.Errorf("%s: User-Agent %q", r.Path, r.Agent)
		}
		if ignored := r.Answer["ignored_parameters_unsupported"]; ignored != nil {
			t.Errorf("%s: unknown parameters %v", r.Path, ignored)
		}
	}
}

// owners returns the texts of the messages that the owner got.
func (s *bouncerScene) ownersRead() string {
	var all []string
	for _, b := range s.texts {
		all = append(all, b.Text)
	}
	return strings.Join(all, "\n")
}

// Rights: before an upload "Missing data", then allowed, then refused for its size. Owners read the reason.
func TestRightsComeFromAnswers(t *testing.T) {
	s := newBouncerScene(t)
	system := realm.Caller{System: true}
	runCommand(s.fakeServer, system, realm.CreateUser{Name: "Olga", Email: "o@example.org", Role: realm.Owner})
	s.register(false)
	// the bouncer knows the server's feature level, but not its organizations
	if _, err := s.uploader.Bouncer.postForm("server/analytics", map[string][]string{"realm_counts": {"[]"},
		"installation_counts": {"[]"}, "api_feature_level": {"400"}}); err != nil {
		t.Fatal(err)
	}
	_, answer, err := s.pusher.notify(s.notice(false, android))
	if !errors.Is(err, wire.ErrPushRefused) || answer.Rights == nil || answer.Rights.Reason != "Missing data" {
		t.Fatalf("before the upload: %+v, %v", answer.Rights, err)
	}
	wire.ApplyPushAnswer(s, 1, s.bo, answer)
	if x := s.r.PushState(); x.Allowed || x.Reason != "Missing data" {
		t.Errorf("state %+v", x)
	}
	if text := s.ownersRead(); !strings.Contains(text, "Missing data") {
		t.Errorf("owners read %q", text)
	}
	if _, err := s.uploader.Upload(); err != nil || !s.r.PushState().Allowed {
		t.Errorf("after the upload: %+v, %v", s.r.PushState(), err)
	}
	if text := s.ownersRead(); !strings.Contains(text, "delivered again") {
		t.Errorf("owners read %q", text)
	}
	secret := s.r.PushState().Secret
	if !strings.HasPrefix(secret, "zuliprealm_") || len(secret) != 43 {
		t.Errorf("secret %q", secret)
	}
	for i := range 12 {
		runCommand(s.fakeServer, system, realm.CreateUser{Name: "User", Email: string(rune('a'+i)) + "@example.org"})
	}
	if _, err := s.uploader.Upload(); err != nil || s.r.PushState().Allowed || s.r.PushState().Secret != secret {
		t.Errorf("with 15 people: %+v, %v", s.r.PushState(), err)
	}
	_, answer, _ = s.pusher.notify(s.notice(false, android))
	wire.ApplyPushAnswer(s, 1, s.bo, answer)
	if text := s.ownersRead(); !strings.Contains(text, "https://zulip.com/plans/") {
		t.Errorf("owners read %q", text)
	}
	s.bouncer.Paid[s.r.Org().UUID] = then + 1000
	if _, err := s.uploader.Upload(); err != nil || s.r.PushState().End != then+1000 {
		t.Errorf("with a plan that ends: %+v, %v", s.r.PushState(), err)
	}
}

// A server that was restored from a backup continues at the bouncer's last id, and sends rows only for changes.
func TestAuditRowsContinueAfterRestore(t *testing.T) {
	s := newBouncerScene(t)
	s.register(true)
	s.uploader.Upload()
	other := &Uploader{Bouncer: NewBouncer(s.uploader.Bouncer.Account()), Server: s,
		Log: s.uploader.Log, Now: time.Now, Sites: s.uploader.Sites}
	if _, err := other.Upload(); err != nil {
		t.Fatal(err)
	}
	var rows []int
	for _, r := range s.bouncer.Requests() {
		if r.Path == "server/analytics" {
			rows = append(rows, strings.Count(r.Body, "event_type"))
		}
	}
	if !slices.Equal(rows, []int{1, 0, 1}) {
		t.Errorf("audit rows in the uploads: %v", rows)
	}
}

// An upload whose answer was lost is not repeated if the bouncer has stored it, so that no row exists twice. If the
// bouncer has not stored it, the rows are sent again. A change in between is a row of its own.
func TestUploadWithLostAnswer(t *testing.T) {
	const path = "server/analytics"
	s := newBouncerScene(t)
	s.register(false)
	rows := func() (n []int) {
		for _, r := range s.bouncer.Requests() {
			if r.Path == path {
				n = append(n, strings.Count(r.Body, "event_type"))
			}
		}
		return n
	}
	upload := func(name string, lost bool, want ...int) {
		t.Helper()
		if _, err := s.uploader.Upload(); (err != nil) != lost {
			t.Errorf("%s: %v", name, err)
		}
		if got := rows(); !slices.Equal(got, want) {
			t.Errorf("%s: uploads with %v audit rows, want %v", name, got, want)
		}
	}
	join := func(email string) {
		runCommand(s.fakeServer, realm.Caller{System: true}, realm.CreateUser{Name: "User", Email: email})
	}
	s.bouncer.Loses[path] = 1
	upload("the answer is lost", true, 1)
	upload("repeated", false, 0)
	join("one@example.org")
	s.bouncer.Fails[path] = 1
	upload("the bouncer fails before it stores anything", true, 1)
	upload("repeated", false, 1)
	join("two@example.org")
	s.bouncer.Loses[path] = 1
	upload("a lost answer after a change", true, 1)
	join("three@example.org")
	upload("after a further change", false, 1)
	upload("without a change", false, 0)
	if s.r.PushState().Reason == "Missing data" {
		t.Error("the bouncer's answers are not recorded")
	}
}

func TestEncryptedCallsThroughBouncer(t *testing.T) {
	s := newBouncerScene(t)
	s.register(false)
	id := bouncertest.TokenID("phone")
	r := realm.DeviceRegistration{Device: 1, TokenID: id, PublicKey: s.bouncer.PublicKey(),
		Encrypted: s.bouncer.Seal("phone", "fcm", "", time.Now().Unix())}
	err := s.pusher.Register(s.registration(r))
	if code, again := deviceFailure(err, true); !isMissingRealm(err) || !again {
		t.Errorf("before the upload: %v, code %s, again %t", err, code, again)
	}
	if _, err := s.uploader.Upload(); err != nil {
		t.Fatal(err)
	}
	if err := s.pusher.Register(s.registration(r)); err != nil {
		t.Errorf("register: %v", err)
	}
	for want, change := range map[string]func(*realm.DeviceRegistration){
		codePublicKey: func(r *realm.DeviceRegistration) { r.PublicKey = "another" },
		codeRefused:   func(r *realm.DeviceRegistration) { r.TokenID = bouncertest.TokenID("another") },
		codeExpired: func(r *realm.DeviceRegistration) {
			r.Encrypted = s.bouncer.Seal("phone", "fcm", "", time.Now().Unix()-25*3600)
		},
	} {
		x := r
		change(&x)
		if code, again := deviceFailure(s.pusher.Register(s.registration(x)), true); code != want || again {
			t.Errorf("got %s, again %t, want %s", code, again, want)
		}
	}
	secret := append([]byte{wire.PushKeyKind}, make([]byte, 32)...)
	keyID, unknown := int64(2408), "AAECAwQFBgc="
	n := s.notice(false)
	n.devices = []realm.Device{
		{ID: 1, TokenKind: "fcm", TokenID: &id, KeyID: &keyID, Key: secret},
		{ID: 2, TokenKind: "apns", TokenID: &unknown, KeyID: &keyID, Key: secret},
	}
	left, answer, err := s.pusher.notify(n)
	if err != nil || len(left.devices) > 0 || len(answer.Devices) != 1 || answer.Devices[0].ID != 2 ||
		answer.Rights == nil || !answer.Rights.Allowed {
		t.Errorf("notify: left %v, answer %+v, %v", left.devices, answer, err)
	}
	sent := s.bouncer.Deliveries()
	if len(sent) != 1 || sent[0].Token != "phone" {
		t.Fatalf("delivered %v", sent)
	}
	text, _ := json.Marshal(sent[0].Payload)
	if strings.Contains(string(text), `"type"`) {
		t.Errorf("the bouncer can read %s", text)
	}
	box, _ := base64.StdEncoding.DecodeString(sent[0].Payload["encrypted_data"].(string))
	plain, ok := secretbox.Open(nil, box[24:], (*[24]byte)(box[:24]), (*[32]byte)(secret[1:]))
	if !ok || string(plain) != `{"type":"message"}` {
		t.Errorf("the device reads %q", plain)
	}
}

// Failures of the bouncer are tried again; a failed upload changes no rights.
func TestFailingBouncer(t *testing.T) {
	s := newBouncerScene(t)
	if err := s.pusher.Register(s.registration(realm.DeviceRegistration{Token: android})); err == nil {
		t.Error("an unregistered server was accepted")
	}
	s.register(true)
	s.bouncer.Fails["push/notify"], s.bouncer.Fails["push/register"] = 1, 1
	if left, _, err := s.pusher.notify(s.notice(true, android)); !errors.Is(err, wire.ErrPushFailed) ||
		len(left.tokens) != 1 {
		t.Errorf("notify: left %v, %v", left.tokens, err)
	}
	// A limit of the bouncer is final, as with the reference server.
	s.bouncer.Limits["push/notify"] = 1
	if _, _, err := s.pusher.notify(s.notice(true, android)); !errors.Is(err, wire.ErrPushRefused) {
		t.Errorf("notify over the bouncer's limit: %v", err)
	}
	err := s.pusher.Register(s.registration(realm.DeviceRegistration{Token: android}))
	if _, again := deviceFailure(err, false); !again {
		t.Errorf("register: %v", err)
	}
	before := s.r.PushState()
	s.bouncer.Fails["server/analytics/status"] = 1
	if _, err := s.uploader.Upload(); err == nil || s.r.PushState() != before {
		t.Errorf("a failed upload changed the rights to %+v, %v", s.r.PushState(), err)
	}
}
