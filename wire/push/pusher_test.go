package push

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/actors/realm"
	"parley/wire"
)

var note = wire.PushOrigin{RealmUUID: "u-u", RealmName: "Acme", RealmURL: "https://chat.example.com", User: 9}

func writeFile(t *testing.T, name string, text []byte) string {
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func newPusher(t *testing.T, c Config) *Pusher {
	p, err := New(c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func pkcs8(t *testing.T, key any) []byte {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func TestAPNsTestNotification(t *testing.T) {
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		if r.ProtoMajor != 2 || !strings.HasPrefix(r.Header.Get("Authorization"), "bearer ey") ||
			r.Header.Get("apns-topic") != "org.example.App" ||
			!strings.Contains(string(text), `"event":"test"`) {
			t.Errorf("request %s %v %s", r.URL, r.Header, text)
		}
		if r.URL.Path == "/3/device/bad0" {
			w.WriteHeader(http.StatusGone)
			io.WriteString(w, `{"reason":"Unregistered"}`)
		}
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	p := newPusher(t,
		Config{APNsKey: writeFile(t, "key.p8", pkcs8(t, key)), APNsKeyID: "ABC", APNsTeam: "DEF", APNsServer: s.URL})
	p.apns.HTTPClient.Transport = s.Client().Transport
	if err := p.Test(note, realm.PushToken{Kind: realm.PushAPNs, Token: "c0ffee", App: "org.example.App"}); err != nil {
		t.Error(err)
	}
	err := p.Test(note, realm.PushToken{Kind: realm.PushAPNs, Token: "BAD0", App: "org.example.App"})
	if !errors.Is(err, wire.ErrDeviceUnknown) {
		t.Errorf("an unknown device: %v", err)
	}
}

func TestFCMTestNotification(t *testing.T) {
	key, _ := rsa.GenerateKey(rand.Reader, 2048)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/token" {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"access_token":"let-me-in","token_type":"Bearer","expires_in":3600}`)
			return
		}
		text, _ := io.ReadAll(r.Body)
		if r.URL.Path != "/v1/projects/acme/messages:send" || r.Header.Get("Authorization") != "Bearer let-me-in" ||
			!strings.Contains(string(text), `"event":"test"`) {
			t.Errorf("request %s %v %s", r.URL, r.Header, text)
		}
		if strings.Contains(string(text), `"token":"gone"`) {
			w.WriteHeader(404)
			io.WriteString(w, `{"error":{"status":"NOT_FOUND","details":[{"errorCode":"UNREGISTERED"}]}}`)
		}
	}))
	defer s.Close()
	account, _ := json.Marshal(map[string]string{
		"type":         "service_account",
		"project_id":   "acme",
		"client_email": "x@example.com",
		"private_key":  string(pkcs8(t, key)),
		"token_uri":    s.URL + "/token",
	})
	p := newPusher(t, Config{FCMAccount: writeFile(t, "account.json", account), FCMServer: s.URL})
	if err := p.Test(note, realm.PushToken{Kind: realm.PushFCM, Token: "here"}); err != nil {
		t.Error(err)
	}
	err := p.Test(note, realm.PushToken{Kind: realm.PushFCM, Token: "gone"})
	if !errors.Is(err, wire.ErrDeviceUnknown) {
		t.Errorf("an unknown device: %v", err)
	}
}

func TestBouncerTestNotification(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := map[string]any{}
		if strings.HasSuffix(r.URL.Path, "register") {
			for _, k := range []string{"realm_uuid", "token_id"} {
				body[k] = r.PostFormValue(k)
			}
		} else {
			json.NewDecoder(r.Body).Decode(&body)
		}
		if org, key, _ := r.BasicAuth(); org != "org" || key != "key" || body["realm_uuid"] != "u-u" {
			t.Errorf("request %s %v %v", r.URL, r.Header, body)
		}
		switch {
		case body["token"] == "unknown":
			w.WriteHeader(400)
			io.WriteString(w, `{"code":"INVALID_PUSH_DEVICE_TOKEN","msg":"Device not recognized"}`)
		case body["token_id"] == "late":
			w.WriteHeader(400)
			io.WriteString(w, `{"code":"INVALID_BOUNCER_PUBLIC_KEY","msg":"no"}`)
		case body["token_id"] == "broken":
			w.WriteHeader(500)
		}
	}))
	defer s.Close()
	p := newPusher(t, Config{Bouncer: s.URL + "/", BouncerOrg: "org", BouncerKey: "key"})
	if err := p.Test(note, realm.PushToken{Kind: realm.PushFCM, Token: "known"}); err != nil {
		t.Error(err)
	}
	err := p.Test(note, realm.PushToken{Kind: realm.PushAPNs, Token: "unknown"})
	if !errors.Is(err, wire.ErrDeviceUnknownToBouncer) {
		t.Errorf("an unknown device: %v", err)
	}
	for id, want := range map[string]string{"fine": "", "late": "INVALID_BOUNCER_PUBLIC_KEY"} {
		r := realm.DeviceRegistration{Device: 1, TokenID: id}
		code, err := p.Register(wire.PushRegistration{RealmUUID: "u-u", DeviceRegistration: r})
		if err != nil || code != want {
			t.Errorf("registering %s: %q, %v, want %q", id, code, err, want)
		}
	}
	broken := realm.DeviceRegistration{Device: 1, TokenID: "broken"}
	_, err = p.Register(wire.PushRegistration{RealmUUID: "u-u", DeviceRegistration: broken})
	if !errors.Is(err, wire.ErrPushFailed) {
		t.Errorf("a failing bouncer: %v", err)
	}
}

// The bouncer takes registrations as forms.
func TestBouncerRegistration(t *testing.T) {
	var received []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if org, key, _ := r.BasicAuth(); org != "org" || key != "key" {
			t.Errorf("request with %v", r.Header)
		}
		r.ParseForm()
		received = append(received, r.Method+" "+r.URL.Path+" "+r.PostForm.Encode())
		if r.PostForm.Get("token") == "strange" {
			w.WriteHeader(400)
			io.WriteString(w, `{"result":"error","code":"BAD_REQUEST","msg":"Token does not exist"}`)
		}
	}))
	defer s.Close()
	p := newPusher(t, Config{Bouncer: s.URL, BouncerOrg: "org", BouncerKey: "key"})
	for _, c := range []struct {
		r    realm.DeviceRegistration
		want string
		code string
	}{
		{
			realm.DeviceRegistration{Token: realm.PushToken{Kind: realm.PushFCM, Token: "a b"}},
			"register realm_uuid=u-u&token=a+b&token_kind=2&user_id=9", "",
		},
		{
			realm.DeviceRegistration{Token: realm.PushToken{Kind: realm.PushAPNs, Token: "c0ffee", App: "org.example"}},
			"register ios_app_id=org.example&realm_uuid=u-u&token=c0ffee&token_kind=1&user_id=9", "",
		},
		{
			realm.DeviceRegistration{Token: realm.PushToken{Kind: realm.PushAPNs, Token: "strange"}, Gone: true},
			"unregister realm_uuid=u-u&token=strange&token_kind=1&user_id=9", "BAD_REQUEST",
		},
		{realm.DeviceRegistration{Gone: true}, "unregister/all realm_uuid=u-u&user_id=9", ""},
		{
			realm.DeviceRegistration{Device: 3, TokenID: "t", Encrypted: "e", PublicKey: "k"},
			"e2ee/register bouncer_public_key=k&encrypted_push_registration=e&realm_uuid=u-u&token_id=t", "",
		},
	} {
		received = nil
		code, err := p.Register(wire.PushRegistration{DeviceRegistration: c.r, RealmUUID: "u-u", User: 9})
		if want := "POST /api/v1/remotes/push/" + c.want; err != nil || code != c.code || len(received) != 1 ||
			received[0] != want {
			t.Errorf("%+v: %q %v, received %q, want %q", c.r, code, err, received, want)
		}
	}
	unreachable := newPusher(t, Config{FCMServer: "x", APNsServer: "y", Bouncer: "http://127.0.0.1:1"})
	if _, err := unreachable.Register(wire.PushRegistration{}); err == nil {
		t.Error("registered at a bouncer that does not exist")
	}
}

func TestNewWithoutConfig(t *testing.T) {
	if p, err := New(Config{}, nil); p != nil || err != nil {
		t.Errorf("%v %v", p, err)
	}
}
