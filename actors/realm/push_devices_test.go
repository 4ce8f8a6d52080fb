package realm_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

func TestPushTokensBelongToTheirUser(t *testing.T) {
	s := New(t)
	ann, bo := s.Join("Ann"), s.Join("Bo")
	bot := s.JoinBot("Helper", ann)
	add := realm.AddPushToken{Kind: realm.PushAPNs, Token: "c0ffee", App: "org.example"}
	ExpectRefusal(s, bot, add, "This endpoint does not accept bot requests.")
	ExpectRefusal(s, ann, realm.AddPushToken{Kind: realm.PushFCM}, "Empty or invalid length token")
	Do(s, ann, add)
	Do(s, ann, add)
	Do(s, bo, add)
	if n := len(s.Realm.PushTokensOf(ann)); n != 1 {
		t.Errorf("Ann has %d tokens", n)
	}
	ExpectRefusal(s, ann, realm.RemovePushToken{Kind: realm.PushFCM, Token: "c0ffee"}, "Token does not exist")
	Do(s, ann, realm.RemovePushToken{Kind: realm.PushAPNs, Token: "c0ffee"})
	ExpectRefusal(s, ann, realm.RemovePushToken{Kind: realm.PushAPNs, Token: "c0ffee"}, "Token does not exist")
	if n := len(s.Realm.PushTokensOf(bo)); n != 1 {
		t.Errorf("Bo has %d tokens", n)
	}
	for i := range 70 {
		Do(s, ann, realm.AddPushToken{Kind: realm.PushFCM, Token: fmt.Sprint(i)})
	}
	if list := s.Realm.PushTokensOf(ann); len(list) != 64 || list[63].Token != "69" {
		t.Errorf("Ann has %d tokens", len(list))
	}
}

func TestDeviceRegistrationsReachBouncer(t *testing.T) {
	s := New(t)
	ann := s.Join("Ann")
	Do(s, ann, realm.AddPushToken{Kind: realm.PushFCM, Token: "before"})
	if list := outboxJobs(s, realm.OutboxRegistration); len(list) > 0 {
		t.Fatalf("without a bouncer: %v", list)
	}
	s.PushBouncer = true
	bouncerJobs := func(what string, want ...string) {
		t.Helper()
		var got []string
		var ids []int64
		for _, e := range outboxJobs(s, realm.OutboxRegistration) {
			x := e.Registration
			got = append(got, fmt.Sprintf("%v %s %s %t", e.User == ann, x.Token.Token, x.Token.App, x.Gone))
			ids = append(ids, e.ID)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: the bouncer is told %q, want %q", what, got, want)
		}
		if len(ids) > 0 {
			Do(s, System, realm.FinishOutboxJobs{IDs: ids})
		}
	}
	bouncerJobs("nothing")
	Do(s, ann, realm.AddPushToken{Kind: realm.PushFCM, Token: "before"})
	bouncerJobs("a token that is known", "true before  false")
	Do(s, ann, realm.AddPushToken{Kind: realm.PushAPNs, Token: "c0ffee", App: "org.example"})
	Do(s, ann, realm.RemovePushToken{Kind: realm.PushAPNs, Token: "c0ffee"})
	bouncerJobs("one that comes and goes", "true c0ffee org.example false", "true c0ffee  true")
	ExpectRefusal(s, ann, realm.RemovePushToken{Kind: realm.PushAPNs, Token: "c0ffee"}, "Token does not exist")
	Do(s, System, realm.RemovePushToken{User: ann, Kind: realm.PushFCM, Token: "before"})
	bouncerJobs("one that the service says is dead")
	for i := range 64 {
		Do(s, ann, realm.AddPushToken{Kind: realm.PushFCM, Token: fmt.Sprint(i)})
	}
	if list := outboxJobs(s, realm.OutboxRegistration); len(list) != 32 {
		t.Errorf("%d registrations of one user wait", len(list))
	}
	for _, e := range outboxJobs(s, realm.OutboxRegistration) {
		Do(s, System, realm.FinishOutboxJobs{IDs: []int64{e.ID}})
	}
	Do(s, ann, realm.AddPushToken{Kind: realm.PushFCM, Token: "64"})
	bouncerJobs("one too many", "true 0  true", "true 64  false")
	Do(s, ann, realm.IssueAPIKey{User: ann, Only: true})
	bouncerJobs("another key", "true   true")
}

func TestDeviceRegistration(t *testing.T) {
	s := New(t)
	ann, bo := s.Join("Ann"), s.Join("Bo")
	s.PushBouncer = true
	id := Do(s, ann, realm.AddDevice{})
	s.ExpectEvents(ann, "device")
	s.ExpectNoEvents(bo)
	ExpectRefusal(s, bo, realm.RemoveDevice{ID: id}, "Invalid 'device_id'")
	key, token := int64(7), "AAAAAAAAAAA="
	ExpectRefusal(s, ann, realm.RegisterDevice{ID: id, Kind: "fcm", Token: &token},
		"The first registration of a device needs a key and a token.")
	Do(s, ann, realm.RegisterDevice{ID: id, KeyID: &key, Key: []byte("k"), Kind: "fcm", Token: &token})
	ExpectRefusal(s, ann, realm.RegisterDevice{ID: id, Kind: "fcm", Token: &token},
		"A registration for the device already in progress.")
	ExpectRefusal(s, ann, realm.FinishDeviceRegistration{ID: id, Token: token}, "Invalid 'device_id'")
	ExpectRefusal(s, System, realm.FinishDeviceRegistration{ID: id, Token: "another"}, "Invalid 'device_id'")
	Do(s, System, realm.FinishDeviceRegistration{ID: id, Token: token, Failure: "REQUEST_EXPIRED"})
	if d := s.Realm.DevicesOf(ann)[0]; d.TokenID != nil || *d.PendingToken != token ||
		*d.Failure != "REQUEST_EXPIRED" ||
		*d.Updated != s.Now {
		t.Errorf("after a failure: %+v", d)
	}
	Do(s, ann, realm.RegisterDevice{ID: id, Kind: "fcm", Token: &token})
	Do(s, System, realm.FinishDeviceRegistration{ID: id, Token: token})
	s.ExpectEvents(ann, "device")
	if d := s.Realm.DevicesOf(ann)[0]; *d.TokenID != token || d.PendingToken != nil || d.Failure != nil ||
		*d.Updated != s.Now {
		t.Errorf("registered: %+v", d)
	}
	Do(s, ann, realm.AddDevice{})
	Do(s, ann, realm.RemoveDevice{ID: id})
	s.ExpectEvents(ann, "device")
	if n := len(s.Realm.DevicesOf(ann)); n != 1 {
		t.Errorf("%d devices are left", n)
	}
}

func TestEncryptedDeviceReplacesPlainToken(t *testing.T) {
	s := New(t)
	s.PushBouncer = true
	ann, bo := s.Join("Ann"), s.Join("Bo")
	for _, u := range []realm.UserID{ann, bo} {
		Do(s, u, realm.AddPushToken{Kind: realm.PushFCM, Token: "fcm token"})
	}
	Do(s, ann, realm.AddPushToken{Kind: realm.PushFCM, Token: "c0ffee"})
	Do(s, ann, realm.AddPushToken{Kind: realm.PushAPNs, Token: "c0ffee", App: "org.example"})
	Do(s, ann, realm.AddPushToken{Kind: realm.PushAPNs, Token: "wP/u", App: "org.example"}) // c0ffee in base64
	tokens := func(what string, want ...string) {
		t.Helper()
		var got []string
		for _, x := range s.Realm.PushTokensOf(ann) {
			got = append(got, fmt.Sprint(x.Kind, x.Token))
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: Ann's tokens are %q, want %q", what, got, want)
		}
	}
	register := func(kind, token, failure string) {
		t.Helper()
		h := sha256.Sum256([]byte(token))
		id, key := base64.StdEncoding.EncodeToString(h[:8]), int64(7)
		d := Do(s, ann, realm.AddDevice{})
		Do(s, ann, realm.RegisterDevice{ID: d, KeyID: &key, Key: []byte("k"), Kind: kind, Token: &id})
		Do(s, System, realm.FinishDeviceRegistration{ID: d, Token: id, Failure: failure})
	}
	register("fcm", "fcm token", "REQUEST_EXPIRED")
	tokens("after a failure", "2fcm token", "2c0ffee", "1c0ffee", "1wP/u")
	register("fcm", "fcm token", "")
	tokens("one of Google's", "2c0ffee", "1c0ffee", "1wP/u")
	register("apns", "c0ffee", "")
	tokens("one of Apple's", "2c0ffee")
	if n := len(s.Realm.PushTokensOf(bo)); n != 1 {
		t.Errorf("Bo has %d tokens", n)
	}
	var gone []string
	for _, e := range outboxJobs(s, realm.OutboxRegistration) {
		if e.Registration.Gone {
			gone = append(gone, e.Registration.Token.Token)
		}
	}
	if fmt.Sprint(gone) != "[fcm token c0ffee wP/u]" {
		t.Errorf("the bouncer is told to remove %q", gone)
	}
}
