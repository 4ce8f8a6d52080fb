package push

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/nacl/secretbox"

	"parley/actors/realm"
	"parley/wire"
)

func notice(remove bool, tokens ...realm.PushToken) notification {
	return notification{
		PushOrigin: note, key: "u-u-7", removal: remove, tokens: tokens,
		alert:  alert{title: "#dev > x", subtitle: "Ann:", body: "hi"},
		apns:   map[string]any{"event": "message", "message_ids": []int{5}},
		fcm:    map[string]any{"event": "message", "zulip_message_id": 5, "content": "hi"},
		secret: []byte(`{"type":"message"}`),
	}
}

func TestAPNsNotification(t *testing.T) {
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	var mu sync.Mutex
	ids := map[string]bool{}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		var body struct {
			APS struct {
				Alert struct{ Title, Subtitle, Body string }
				Sound string
			}
			Zulip map[string]any
		}
		json.Unmarshal(text, &body)
		mu.Lock()
		ids[r.URL.Path+" "+r.Header.Get("apns-id")] = true
		mu.Unlock()
		if body.APS.Alert.Title != "#dev > x" || body.APS.Alert.Subtitle != "Ann:" || body.APS.Alert.Body != "hi" ||
			body.APS.Sound != "default" ||
			body.Zulip["event"] != "message" {
			t.Errorf("sent %s", text)
		}
		switch r.URL.Path {
		case "/3/device/dead":
			w.WriteHeader(410)
			io.WriteString(w, `{"reason":"Unregistered"}`)
		case "/3/device/b15e":
			w.WriteHeader(503)
			io.WriteString(w, `{"reason":"ServiceUnavailable"}`)
		}
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	p := newPusher(t,
		Config{APNsKey: writeFile(t, "key.p8", pkcs8(t, key)), APNsKeyID: "ABC", APNsTeam: "DEF", APNsServer: s.URL})
	p.apns.HTTPClient.Transport = s.Client().Transport
	apple := func(token string) realm.PushToken {
		return realm.PushToken{Kind: realm.PushAPNs, Token: token, App: "org.example.App"}
	}
	n := notice(false, apple("f00d"), apple("dead"), apple("b15e"))
	left, unregistered, err := p.notify(n)
	if !errors.Is(err, wire.ErrPushFailed) || len(left.tokens) != 1 || left.tokens[0].Token != "b15e" ||
		len(unregistered.Tokens) != 1 ||
		unregistered.Tokens[0].Token != "dead" {
		t.Errorf("left %v, gone %v: %v", left.tokens, unregistered.Tokens, err)
	}
	p.notify(left)
	if len(ids) != 3 {
		t.Errorf("three devices got notifications named %v", ids)
	}
}

func TestFCMNotification(t *testing.T) {
	key, _ := rsa.GenerateKey(rand.Reader, 2048)
	var sent []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/token" {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"access_token":"let-me-in","token_type":"Bearer","expires_in":3600}`)
			return
		}
		var body struct {
			Message struct {
				Token   string
				Android struct{ Priority string }
				Data    map[string]string
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		m := body.Message
		sent = append(sent, m.Token+" "+m.Android.Priority+" "+m.Data["event"]+" "+m.Data["zulip_message_id"])
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
	for _, remove := range []bool{false, true} {
		if _, _, err := p.notify(notice(remove, realm.PushToken{Kind: realm.PushFCM, Token: "phone"})); err != nil {
			t.Error(err)
		}
	}
	if got := strings.Join(sent, ", "); got != "phone high message 5, phone normal message 5" {
		t.Errorf("sent %s", got)
	}
	_, _, err := p.notify(notice(false, realm.PushToken{Kind: realm.PushAPNs, Token: "f00d"}))
	if !errors.Is(err, wire.ErrPushNotConfigured) {
		t.Errorf("without Apple's service: %v", err)
	}
}

func TestBouncerEncryptedNotification(t *testing.T) {
	secret := append([]byte{secretBoxKind}, make([]byte, 32)...)
	rand.Read(secret[1:])
	keyID, token := int64(2408), "AAECAwQFBgc="
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		asked = append(asked, r.URL.Path)
		var body struct {
			Realm    string   `json:"realm_uuid"`
			Android  []string `json:"android_devices"`
			Apple    []string `json:"apple_devices"`
			Requests []struct {
				Token    string `json:"token_id"`
				Priority string `json:"fcm_priority"`
				Payload  struct {
					KeyID int64  `json:"push_key_id"`
					Data  string `json:"encrypted_data"`
				}
			} `json:"push_requests"`
		}
		json.Unmarshal(text, &body)
		if body.Realm != "u-u" {
			t.Errorf("asked %s", text)
		}
		if strings.HasSuffix(r.URL.Path, "/push/notify") {
			if len(body.Android) != 1 || len(body.Apple) != 1 {
				t.Errorf("asked %s", text)
			}
			io.WriteString(w, `{"result":"success","deleted_devices":{"android_devices":["old"],"apple_devices":[]}}`)
			return
		}
		if strings.Contains(string(text), `"type"`) {
			t.Errorf("the bouncer can read %s", text)
		}
		x := body.Requests[0]
		sealed, err := base64.StdEncoding.DecodeString(x.Payload.Data)
		if err != nil || len(sealed) < 24 {
			t.Fatalf("%s: %v", text, err)
		}
		plain, ok := secretbox.Open(nil, sealed[24:], (*[24]byte)(sealed[:24]), (*[32]byte)(secret[1:]))
		if !ok || string(plain) != `{"type":"message"}` || x.Token != token || x.Priority != "high" ||
			x.Payload.KeyID != keyID {
			t.Errorf("the device reads %q of %s", plain, text)
		}
		io.WriteString(w, `{"result":"success","delete_token_ids":["AAECAwQFBgc="]}`)
	}))
	defer s.Close()
	p := newPusher(t, Config{Bouncer: s.URL, BouncerOrg: "org", BouncerKey: "key"})
	n := notice(false, realm.PushToken{Kind: realm.PushFCM, Token: "old"},
		realm.PushToken{Kind: realm.PushAPNs, Token: "f00d"})
	n.devices = []realm.Device{{ID: 1, TokenKind: "fcm", TokenID: &token, KeyID: &keyID, Key: secret}}
	left, unregistered, err := p.notify(n)
	if err != nil || len(left.tokens)+len(left.devices) != 0 || len(unregistered.Tokens) != 1 ||
		unregistered.Tokens[0].Token != "old" ||
		len(unregistered.Devices) != 1 {
		t.Errorf("left %v %v, gone %v: %v", left.tokens, left.devices, unregistered, err)
	}
	if len(asked) != 2 {
		t.Errorf("asked %v", asked)
	}
	s.Close()
	if left, _, err := p.notify(n); err == nil || len(left.tokens) != 2 || len(left.devices) != 1 {
		t.Errorf("without the bouncer %d and %d are left: %v", len(left.tokens), len(left.devices), err)
	}
}
