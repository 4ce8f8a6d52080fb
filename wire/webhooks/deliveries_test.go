package webhooks

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"testing"

	"parley/actors/realm"
)

// ann is the owner of the bot, who has the lowest id of the people in the fake server.
func (s *fakeServer) ann() realm.Caller {
	return realm.Caller{User: s.r.FindByEmail("ann@example.org").ID, Client: "test"}
}

// deliveries returns the last calls of the bot's service as its owner sees them.
func (s *fakeServer) deliveries() realm.BotDeliveryList {
	s.t.Helper()
	return runCommand(s, s.ann(), realm.ListBotDeliveries{Bot: s.r.FindByEmail("robo-bot@example.org").ID})
}

// A call is signed as the Standard Webhooks specification says, with the secret that the owner sees. The owner sees how
// often the service was called, and how it ended.
func TestSignedCallIsListed(t *testing.T) {
	var header http.Header
	var body []byte
	note := func(status int, answer string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			header = r.Header
			body, _ = io.ReadAll(r.Body)
			w.WriteHeader(status)
			io.WriteString(w, answer)
		}
	}
	s := newFakeServer(t, startService(t, note(503, ""), note(200, `{"content": "done"}`)), false)
	s.startDispatcher("127.0.0.0/8")
	s.nextBotMessage()
	l := s.deliveries()
	if len(l.List) != 1 || l.Waiting != 0 {
		t.Fatalf("the owner sees %+v", l)
	}
	if d := l.List[0]; d.Attempts != 2 || d.Status != 200 || d.Why != "" || d.Message == 0 || d.Time != 1_700_000_000 {
		t.Errorf("the owner sees %+v", d)
	}
	secret, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(l.Secret, "whsec_"))
	if err != nil || len(secret) != 32 {
		t.Fatalf("the secret is %q", l.Secret)
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(header.Get("webhook-id") + "." + header.Get("webhook-timestamp") + "." + string(body)))
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	if got := header.Get("webhook-signature"); got != want || header.Get("webhook-timestamp") != "1700000000" ||
		header.Get("webhook-id") == "" || header.Get("webhook-id") != header.Get("idempotency-key") {
		t.Errorf("signature %q instead of %q; %v", got, want, header)
	}
}

// A failure is listed with its reason.
func TestFailedCallIsListed(t *testing.T) {
	s := newFakeServer(t, startService(t, answerWith(502, "no <b>upstream</b>")), false)
	s.startDispatcher("127.0.0.0/8")
	s.nextBotMessage() // the bot's message about the failure
	s.nextBotMessage() // the notification of the owner
	d := s.deliveries().List[0]
	if d.Attempts != maxAttempts || d.Status != 502 || !strings.Contains(d.Why, "502: no <b>upstream</b>") {
		t.Errorf("the owner sees %+v", d)
	}
}

// The owner can test the service. Neither its answer nor its failure becomes a message.
func TestServiceTest(t *testing.T) {
	for name, x := range map[string]struct {
		status      int
		answer      string
		text, wants string
	}{
		"works": {200, `{"content": "all is well"}`, "all is well", ""},
		"fails": {403, "go away", "", "go away"},
	} {
		t.Run(name, func(t *testing.T) {
			called := make(chan bool, 1)
			s := newFakeServer(t, startService(t, answerWith(200, "{}"), func(w http.ResponseWriter, r *http.Request) {
				answerWith(x.status, x.answer)(w, r)
				called <- true
			}), false)
			id := runCommand(s, s.ann(), realm.TestService{Bot: s.r.FindByEmail("robo-bot@example.org").ID})
			if l := s.deliveries(); l.Waiting != 2 || len(l.List) != 0 {
				t.Errorf("before the calls the owner sees %+v", l)
			}
			c := s.startDispatcher("127.0.0.0/8")
			<-called
			c.Close(context.Background())
			d := s.deliveries().List[0]
			if d.ID != id || d.Message != 0 || d.Answer != x.text || !strings.Contains(d.Why, x.wants) ||
				d.Status != int64(x.status) {
				t.Errorf("the owner sees %+v", d)
			}
			if len(s.botMessages) != 0 {
				t.Errorf("the test became a message: %s", <-s.botMessages)
			}
		})
	}
}
