package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Outbox jobs of a killed server are done after its restart: a call of a bot's service, a push notification and the
// email of an invitation.
func TestOutboxJobsSurviveKill(t *testing.T) {
	up := make(chan bool) // closed when the external services answer
	called := make(chan string, 100)
	outside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		select {
		case <-up:
		default:
			called <- "early " + r.URL.Path
			<-r.Context().Done()
			return
		}
		if r.URL.Path == "/bot" {
			io.WriteString(w, `{"content": "I received you"}`)
		}
		called <- r.URL.Path + " " + string(text)
	}))
	defer outside.Close()
	data := filepath.Join(t.TempDir(), "data")
	flags := []string{"serve", "--data", data, "--listen", "127.0.0.1:0", "--demo", "--webhooks-allow", "127.0.0.0/8",
		"--push-bouncer", outside.URL, "--push-bouncer-org", "o", "--push-bouncer-key", "k"}
	p := startProgram(t,
		parleyCommand(append(flags, "--smtp-host", "127.0.0.1", "--smtp-port", "1", "--smtp-tls", "none")...))
	at := p.serving()
	ann, bo := demoAccount(t, at, "ann@example.org"), demoAccount(t, at, "bo@example.org")
	olive := demoAccount(t, at, "olive@example.org")
	bot := ann.must(t, "POST", "bots", url.Values{"full_name": {"Robo"}, "short_name": {"robo"}, "bot_type": {"3"},
		"payload_url": {`"` + outside.URL + `/bot"`}, "interface_type": {"1"}})
	bo.must(t, "POST", "users/me/android_gcm_reg_id", url.Values{"token": {"phone"}})
	me := bo.must(t, "GET", "users/me", nil)
	ann.must(t, "POST", "messages", url.Values{"type": {"direct"}, "to": {fmt.Sprintf("[%v]", me["user_id"])},
		"content": {"for your **phone**"}})
	ann.must(t, "POST", "messages", url.Values{"type": {"direct"}, "to": {fmt.Sprintf("[%v]", bot["user_id"])},
		"content": {"for your service"}})
	olive.must(t, "POST", "invites", url.Values{"invitee_emails": {"new@example.net"}, "stream_ids": {"[]"}})
	for range 2 { // both calls are in progress
		select {
		case x := <-called:
			if !strings.HasPrefix(x, "early ") {
				t.Fatalf("unexpected call %s", x)
			}
		case <-time.After(binaryTimeout):
			t.Fatal("the server called no service")
		}
	}
	p.kill()
	close(up)
	p = startProgram(t, parleyCommand(flags...))
	at = p.serving()
	ann, bo = demoAccount(t, at, "ann@example.org"), demoAccount(t, at, "bo@example.org")
	var notified map[string]any
	service := false
	for notified == nil || !service {
		select {
		case x := <-called:
			path, text, _ := strings.Cut(x, " ")
			if path == "/bot" {
				service = strings.Contains(text, "for your service")
			} else if strings.HasSuffix(path, "/push/notify") {
				json.Unmarshal([]byte(text), &notified)
			}
		case <-time.After(binaryTimeout):
			t.Fatalf("after the restart: the service was called: %v, the notification: %v", service, notified)
		}
	}
	load, _ := notified["gcm_payload"].(map[string]any)
	if load["event"] != "message" || load["content"] != "for your phone" || load["recipient_type"] != "private" ||
		load["sender_full_name"] == "" || load["user_id"] != me["user_id"] {
		t.Errorf("the notification is %v", load)
	}
	eventually(t, "the bot answers once", func() bool {
		a := ann.must(t, "GET", "messages", url.Values{"anchor": {"newest"}, "num_before": {"50"}, "num_after": {"0"},
			"apply_markdown": {"false"}})
		n := 0
		for _, m := range a["messages"].([]any) {
			if m.(map[string]any)["content"] == "I received you" {
				n++
			}
		}
		return n == 1
	})
	eventually(t, "the invitation is in the outbox", func() bool {
		list, _ := filepath.Glob(filepath.Join(data, "outbox", "*.eml"))
		if len(list) != 1 {
			return false
		}
		text, err := os.ReadFile(list[0])
		return err == nil && strings.Contains(string(text), "/join/") &&
			strings.Contains(string(text), "new@example.net")
	})
	// A push notification is removed when its message is read.
	bo.must(t, "POST", "mark_all_as_read", nil)
	for {
		select {
		case x := <-called:
			if strings.Contains(x, `"event":"remove"`) {
				if !strings.Contains(x, fmt.Sprint(load["zulip_message_id"])) {
					t.Errorf("removed: %s", x)
				}
				return
			}
		case <-time.After(binaryTimeout):
			t.Fatal("no notification was removed")
		}
	}
}

// Registrations of push tokens, encrypted or not, reach the push bouncer although it was down and the server was killed
// meanwhile. The app gets its answer at once.
func TestRegistrationsSurviveKill(t *testing.T) {
	up := make(chan bool)             // closed when the bouncer answers
	received := make(chan string, 10) // the requests since then
	early := make(chan bool, 10)
	bouncer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.ParseForm()
		select {
		case <-up:
			received <- strings.TrimPrefix(r.URL.Path, "/api/v1/remotes/push/") + " " + r.PostForm.Get("token") +
				r.PostForm.Get("token_id") + " " + r.PostForm.Get("encrypted_push_registration")
			io.WriteString(w, `{"result":"success"}`)
		default:
			early <- true
			<-r.Context().Done()
		}
	}))
	defer bouncer.Close()
	flags := []string{"serve", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--demo", "--push-bouncer",
		bouncer.URL, "--push-bouncer-org", "o", "--push-bouncer-key", "k"}
	p := startProgram(t, parleyCommand(flags...))
	ann := demoAccount(t, p.serving(), "ann@example.org")
	must := func(path string, form url.Values) map[string]any {
		t.Helper()
		a, err := ann.call("POST", path, form)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		return a
	}
	must("users/me/android_gcm_reg_id", url.Values{"token": {"phone"}})
	device := fmt.Sprint(must("register_client_device", nil)["device_id"])
	must("mobile_push/register", url.Values{"device_id": {device}, "push_key_id": {"7"}, "push_key": {"MTEx"},
		"token_kind": {"fcm"}, "token_id": {"AAECAwQFBgc="}, "bouncer_public_key": {"b"},
		"encrypted_push_registration": {"sealed"}})
	if _, err := ann.call("DELETE", "users/me/android_gcm_reg_id", url.Values{"token": {"phone"}}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-early:
	case <-time.After(binaryTimeout):
		t.Fatal("the bouncer received no request")
	}
	state := func() map[string]any {
		devices, _ := must("register", url.Values{"fetch_event_types": {`["device"]`}})["devices"].(map[string]any)
		d, _ := devices[device].(map[string]any)
		return d
	}
	if d := state(); d["push_token_id"] != nil || d["pending_push_token_id"] != "AAECAwQFBgc=" {
		t.Errorf("before the bouncer answers the device is %v", d)
	}
	p.kill()
	close(up)
	p = startProgram(t, parleyCommand(flags...))
	ann = demoAccount(t, p.serving(), "ann@example.org")
	for _, want := range []string{"register phone ", "e2ee/register AAECAwQFBgc= sealed", "unregister phone "} {
		select {
		case got := <-received:
			if got != want {
				t.Errorf("the bouncer received %q, want %q", got, want)
			}
		case <-time.After(binaryTimeout):
			t.Fatalf("the bouncer did not receive %q", want)
		}
	}
	eventually(t, "the device is registered", func() bool {
		d := state()
		return d["push_token_id"] == "AAECAwQFBgc=" && d["pending_push_token_id"] == nil &&
			d["push_registration_error_code"] == nil
	})
	p.stop()
}
