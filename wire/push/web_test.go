package push

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"parley/actors/realm"
	"parley/wire"
)

// subscriber is a browser with a subscription.
type subscriber struct {
	key  *ecdh.PrivateKey
	auth []byte
}

func newSubscriber(t *testing.T) subscriber {
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	auth := make([]byte, 16)
	rand.Read(auth)
	return subscriber{key, auth}
}

func (s subscriber) token(address string) realm.PushToken {
	return realm.PushToken{Kind: realm.PushWeb, Token: address, Keys: realm.WebPushKeys{
		Public: base64.RawURLEncoding.EncodeToString(s.key.PublicKey().Bytes()),
		Secret: base64.RawURLEncoding.EncodeToString(s.auth),
	}}
}

// open decrypts the body of a notification as RFC 8291 and RFC 8188 describe it.
func (s subscriber) open(body []byte) (string, error) {
	if len(body) < 86 || body[20] != 65 {
		return "", errors.New("the header is not one of a notification")
	}
	salt, size, sender := body[:16], binary.BigEndian.Uint32(body[16:20]), body[21:86]
	if uint32(len(body)) > size {
		return "", errors.New("there is more than one record")
	}
	public, err := ecdh.P256().NewPublicKey(sender)
	if err != nil {
		return "", err
	}
	shared, err := s.key.ECDH(public)
	if err != nil {
		return "", err
	}
	derive := func(secret, salt []byte, info string, n int) []byte {
		out, err := hkdf.Key(sha256.New, secret, salt, info, n)
		if err != nil {
			panic(err)
		}
		return out
	}
	info := "WebPush: info\x00" + string(s.key.PublicKey().Bytes()) + string(sender)
	secret := derive(shared, s.auth, info, 32)
	block, err := aes.NewCipher(derive(secret, salt, "Content-Encoding: aes128gcm\x00", 16))
	if err != nil {
		return "", err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return "", err
	}
	text, err := gcm.Open(nil, derive(secret, salt, "Content-Encoding: nonce\x00", 12), body[86:], nil)
	if err != nil {
		return "", err
	}
	end := strings.LastIndexByte(string(text), 2) // the last record's delimiter; zeros follow
	if end < 0 || strings.Trim(string(text[end+1:]), "\x00") != "" {
		return "", errors.New("the padding is wrong")
	}
	return string(text[:end]), nil
}

func decode(t *testing.T, s string) []byte {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The example of RFC 8291 (appendix A) shows that the test reads notifications as browsers do.
func TestSubscriberReadsTheExample(t *testing.T) {
	key, err := ecdh.P256().NewPrivateKey(decode(t, "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94"))
	if err != nil {
		t.Fatal(err)
	}
	s := subscriber{key, decode(t, "BTBZMqHH6r4Tts7J_aSIgg")}
	text, err := s.open(decode(t,
		"DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6"+
			"TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"))
	if err != nil || text != "When I grow up, I want to be a watermelon" {
		t.Errorf("%q, %v", text, err)
	}
}

// checkVAPID checks the header by which a server identifies itself (RFC 8292).
func checkVAPID(t *testing.T, header, audience string) {
	t.Helper()
	rest, ok := strings.CutPrefix(header, "vapid t=")
	signed, key, cut := strings.Cut(rest, ", k=")
	if !ok || !cut {
		t.Fatalf("Authorization: %s", header)
	}
	point := decode(t, key)
	claims := jwt.MapClaims{}
	_, err := jwt.ParseWithClaims(signed, claims, func(*jwt.Token) (any, error) {
		return ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	}, jwt.WithValidMethods([]string{"ES256"}), jwt.WithAudience(audience), jwt.WithExpirationRequired())
	if err != nil {
		t.Errorf("the token of the server: %v", err)
	}
	if end, _ := claims.GetExpirationTime(); end == nil || time.Until(end.Time) > 24*time.Hour {
		t.Errorf("the token is valid until %v", end)
	}
	if claims["sub"] != "mailto:ops@example.com" {
		t.Errorf("contact: %v", claims["sub"])
	}
}

func TestWebNotification(t *testing.T) {
	browser := newSubscriber(t)
	var got []string
	var topics []string
	service := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		checkVAPID(t, r.Header.Get("Authorization"), "https://"+r.Host)
		if r.Method != "POST" || r.Header.Get("Content-Encoding") != "aes128gcm" || r.Header.Get("TTL") != "86400" ||
			r.Header.Get("Urgency") != "high" || len(body) > 4096 {
			t.Errorf("%s %v, %d bytes", r.Method, r.Header, len(body))
		}
		text, err := browser.open(body)
		if err != nil {
			t.Error(err)
		}
		got, topics = append(got, text), append(topics, r.Header.Get("Topic"))
		switch r.URL.Path {
		case "/gone":
			w.WriteHeader(410)
		case "/unknown":
			w.WriteHeader(404)
		case "/busy":
			w.WriteHeader(429)
		case "/refused":
			w.WriteHeader(403)
		default:
			w.WriteHeader(201)
		}
	}))
	defer service.Close()
	p := newPusher(t, Config{Web: WebConfig{Key: NewWebKey([]byte("secret")), Contact: "ops@example.com",
		Client: service.Client()}})
	at := func(path string) realm.PushToken { return browser.token(service.URL + path) }
	n := notice(false, at("/ok"), at("/gone"), at("/unknown"), at("/busy"))
	n.web = webMessage{id: n.key, Type: "message", Title: "Ann", Body: strings.Repeat("\u2028", maxWebText),
		Icon: "/user_avatars/1.png", Tag: "message 7", Hash: "#narrow/id/7", Realm: "https://chat.example.com"}
	left, answer, err := p.notify(n)
	if !errors.Is(err, wire.ErrPushFailed) || len(left.tokens) != 1 || left.tokens[0].Token != service.URL+"/busy" {
		t.Errorf("left: %v, %v", left.tokens, err)
	}
	if len(answer.Tokens) != 2 || answer.Tokens[0].Token != service.URL+"/gone" {
		t.Errorf("unknown: %v", answer.Tokens)
	}
	var m map[string]string
	if len(got) != 4 || json.Unmarshal([]byte(got[0]),
		&m) != nil || m["hash"] != "#narrow/id/7" || m["title"] != "Ann" {
		t.Errorf("sent: %q", got)
	}
	for _, topic := range topics {
		if topic != topics[0] || len(topic) != 32 {
			t.Errorf("topics: %v", topics)
		}
	}
	if _, _, err := p.notify(notice(false, at("/refused"))); !errors.Is(err, wire.ErrPushRefused) {
		t.Errorf("refused: %v", err)
	}
	if p.Test(note, at("/ok")) != nil || !strings.Contains(got[len(got)-1], `"type":"test"`) {
		t.Errorf("test notification: %s", got[len(got)-1])
	}
	key, again, other := NewWebKey([]byte("secret")), NewWebKey([]byte("secret")), NewWebKey([]byte("other"))
	if !key.Equal(again) || key.Equal(other) {
		t.Error("the key does not follow the secret")
	}
}
