package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"golang.org/x/crypto/nacl/secretbox"
)

// expectCode sends a request that must be refused with a code.
func expectCode(t *testing.T, who *account, code, method, path string, form url.Values) {
	t.Helper()
	if a, err := who.call(method, path, form); err == nil || a["code"] != code {
		t.Errorf("%s %s: %v %v, want %s", method, path, a, err, code)
	}
}

func TestEncryptedDeviceTestNotification(t *testing.T) {
	told := make(chan string, 10)
	bouncer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Requests []struct {
				Payload struct {
					Data string `json:"encrypted_data"`
				}
			} `json:"push_requests"`
		}
		json.NewDecoder(r.Body).Decode(&body)
		for _, x := range body.Requests {
			told <- x.Payload.Data
		}
		w.Write([]byte(`{"result":"success"}`))
	}))
	defer bouncer.Close()
	p := startProgram(t, parleyCommand("serve", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--demo",
		"--push-bouncer", bouncer.URL, "--push-bouncer-org", "o", "--push-bouncer-key", "k"))
	at := p.serving()
	ann, bot := demoAccount(t, at, "ann@example.org"), demoAccount(t, at, "demo-bot@example.org")
	expectCode(t, ann, "NO_ACTIVE_PUSH_DEVICE", "POST", "mobile_push/e2ee/test_notification", nil)
	expectCode(t, bot, "BAD_REQUEST", "POST", "mobile_push/e2ee/test_notification", nil)
	a, err := ann.call("POST", "register_client_device", nil)
	if err != nil {
		t.Fatal(err)
	}
	device := fmt.Sprint(a["device_id"])
	key := make([]byte, 33)
	copy(key, "1a key of thirty-two bytes, as it is.")
	if _, err := ann.call("POST", "mobile_push/register",
		url.Values{"device_id": {device}, "push_key_id": {"7"}, "push_key": {base64.StdEncoding.EncodeToString(key)},
			"token_kind": {"fcm"},
			"token_id":   {"AAECAwQFBgc="}, "bouncer_public_key": {"b"},
			"encrypted_push_registration": {"e"}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the test notification is accepted", func() bool { // when the bouncer has the token
		_, err := ann.call("POST", "mobile_push/e2ee/test_notification", url.Values{"device_id": {device}})
		return err == nil
	})
	sealed, _ := base64.StdEncoding.DecodeString(<-told)
	plain, ok := secretbox.Open(nil, sealed[24:], (*[24]byte)(sealed[:24]), (*[32]byte)(key[1:]))
	var said map[string]any
	if json.Unmarshal(plain, &said); !ok || said["type"] != "test" || said["realm_url"] != at ||
		said["realm_name"] == nil || said["user_id"] == nil {
		t.Errorf("the device decrypts %q", plain)
	}
	expectCode(t, ann, "NO_ACTIVE_PUSH_DEVICE", "POST", "mobile_push/e2ee/test_notification",
		url.Values{"device_id": {"999"}})
	// Notifications of messages are encrypted too.
	bo := demoAccount(t, at, "bo@example.org")
	me, _ := ann.call("GET", "users/me", nil)
	if _, err := bo.call("POST", "messages", url.Values{"type": {"direct"}, "to": {fmt.Sprintf("[%v]", me["user_id"])},
		"content": {"psst"}}); err != nil {
		t.Fatal(err)
	}
	select {
	case x := <-told:
		sealed, _ := base64.StdEncoding.DecodeString(x)
		plain, _ := secretbox.Open(nil, sealed[24:], (*[24]byte)(sealed[:24]), (*[32]byte)(key[1:]))
		said = nil
		if json.Unmarshal(plain, &said); said["type"] != "message" || said["content"] != "psst" ||
			said["recipient_type"] != "direct" || len(said["recipient_user_ids"].([]any)) != 2 || said["event"] != nil {
			t.Errorf("the device decrypts %q", plain)
		}
	case <-time.After(binaryTimeout):
		t.Fatal("the device received no notification")
	}
	if a, err := ann.call("GET", "server_settings", nil); err != nil || a["push_notifications_enabled"] != true {
		t.Errorf("server_settings: %v %v", a["push_notifications_enabled"], err)
	}
}

func TestNoPushService(t *testing.T) {
	k := newDemoClient(t)
	expectCode(t, k.people["ann"], "PUSH_SERVICE_NOT_CONFIGURED", "POST", "mobile_push/e2ee/test_notification", nil)
	expectCode(t, k.people["demo-bot"], "BAD_REQUEST", "POST", "mobile_push/e2ee/test_notification", nil)
	expectCode(t, k.people[""], "PUSH_SERVICE_NOT_CONFIGURED", "POST", "remotes/push/e2ee/register",
		url.Values{"realm_uuid": {"u"}, "token_id": {"t"}, "encrypted_push_registration": {"e"},
			"bouncer_public_key": {"b"}})
	expectCode(t, k.people[""], "REQUEST_VARIABLE_MISSING", "POST", "remotes/push/e2ee/register", nil)
	expectCode(t, k.people["ann"], "UNAUTHORIZED_PRINCIPAL", "POST", "realm/test_welcome_bot_custom_message",
		url.Values{"welcome_message_custom_text": {"hi"}})
	a := k.call("olive", "POST realm/test_welcome_bot_custom_message", "welcome_message_custom_text", "Be **kind**.")
	m := k.call("olive", fmt.Sprintf("GET messages/%v", a["message_id"]), "apply_markdown", "false")
	if x, _ := m["message"].(map[string]any); x["content"] != "Be **kind**." || x["sender_full_name"] != "Welcome Bot" {
		t.Errorf("the welcome message is %v", m)
	}
}

func TestDeleteMessageOfDeactivatedUser(t *testing.T) {
	k := newDemoClient(t)
	sent := k.call("bo", "POST messages", "type", "stream", "to", "general", "topic", "x", "content", "to be gone")
	expectCode(t, k.people["ann"], "BAD_REQUEST", "DELETE", fmt.Sprint("users/", k.ids["bo"]),
		url.Values{"actions": {`{"delete_public_channel_messages": true}`}})
	expectCode(t, k.people["olive"], "BAD_REQUEST", "DELETE", fmt.Sprint("users/", k.ids["bo"]),
		url.Values{"actions": {`{"delete_profile": 1}`}})
	if a := k.call("olive", "DELETE users/{bo}", "actions",
		`{"delete_profile": true, "delete_public_channel_messages": true}`); a["result"] != "success" {
		t.Fatalf("%v", a)
	}
	if u, _ := k.call("olive", "GET users/{bo}")["user"].(map[string]any); u["full_name"] != "Deleted user" ||
		u["is_active"] != false || u["is_deleted"] != true {
		t.Errorf("the account is %v", u)
	}
	for _, u := range k.must("ann", "GET users")["members"].([]any) {
		u := u.(map[string]any)
		if deleted := u["is_deleted"] == true; deleted != (u["user_id"] == float64(k.ids["bo"])) {
			t.Errorf("in the list: %v", u)
		}
	}
	inactive := k.must("ann", "POST register", "fetch_event_types", []string{"realm_user"})["realm_non_active_users"]
	if u := inactive.([]any)[0].(map[string]any); u["user_id"] != float64(k.ids["bo"]) || u["is_deleted"] != true {
		t.Errorf("in register: %v", u)
	}
	eventually(t, "the message is deleted", func() bool {
		_, err := k.people["olive"].call("GET", fmt.Sprintf("messages/%v", sent["id"]), nil)
		return err != nil
	})
}
