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
	account = append([]byte("\uFEFF"), account...) // as editors of Windows save it
	p := newPusher(t, Config{FCMAccount: writeFile(t, "account.json", account), FCMServer: s.URL})
	if err := p.Test(note, realm.PushToken{Kind: realm.PushFCM, Token: "here"}); err != nil {
		t.Error(err)
	}
	err := p.Test(note, realm.PushToken{Kind: realm.PushFCM, Token: "gone"})
	if !errors.Is(err, wire.ErrDeviceUnknown) {
		t.Errorf("an unknown device: %v", err)
	}
}

func TestNewWithoutConfig(t *testing.T) {
	if p, err := New(Config{}, nil); p != nil || err != nil {
		t.Errorf("%v %v", p, err)
	}
}
