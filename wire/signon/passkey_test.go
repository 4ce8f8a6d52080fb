package signon

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"parley/actors/realm"
	"parley/wire/signon/signontest"
)

const passkeyOrigin = "https://chat.example.org"

var passkeyPlace = PasskeySite{URL: passkeyOrigin, Name: "Garden"}

// passkeyPair returns a user with one passkey, and the device that has it.
func passkeyPair(t *testing.T) (PasskeyUser, *signontest.Device) {
	t.Helper()
	device := signontest.NewDevice(passkeyOrigin)
	user := PasskeyUser{ID: 9, Name: "Ann Lee", Email: "ann@example.org"}
	q, options, err := passkeyPlace.AskPasskey(AddPasskey, user, time.UnixMilli(1000))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := device.Create(string(options))
	if err != nil {
		t.Fatal(err)
	}
	p, err := passkeyPlace.NewPasskey(q, user, answer)
	if err != nil {
		t.Fatal(err)
	}
	if p.Asked != 1000 || len(p.Key) == 0 || len(p.ID) == 0 {
		t.Errorf("the passkey: %+v", p)
	}
	user.Passkeys = []realm.Passkey{p}
	return user, device
}

// lost returns an answer with a field changed.
func lost(t *testing.T, answer string, change func(answer, response map[string]any)) string {
	t.Helper()
	var x map[string]any
	if err := json.Unmarshal([]byte(answer), &x); err != nil {
		t.Fatal(err)
	}
	change(x, x["response"].(map[string]any))
	b, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A passkey proves its user, as a factor and as a login; every lie of a browser or a device is refused.
func TestPasskeyAttacks(t *testing.T) {
	user, other := PasskeyUser{}, PasskeyUser{ID: 8}
	find := func(id realm.UserID) (PasskeyUser, error) {
		for _, u := range []PasskeyUser{user, other} {
			if u.ID == id {
				return u, nil
			}
		}
		return PasskeyUser{}, errPasskeyAnswer
	}
	same := func(d *signontest.Device, q *PasskeyQuestion) {}
	for _, x := range []struct {
		name   string
		use    PasskeyUse
		lie    func(*signontest.Device, *PasskeyQuestion)
		answer func(answer, response map[string]any)
		ok     bool
	}{
		{"a factor", PasskeyFactor, same, nil, true},
		{"a login", PasskeyInstead, same, nil, true},
		{"a factor without a PIN", PasskeyFactor,
			func(d *signontest.Device, _ *PasskeyQuestion) { d.Flags = signontest.UserPresent }, nil, true},
		{"a device that does not count", PasskeyFactor,
			func(d *signontest.Device, _ *PasskeyQuestion) { d.NoCount = true }, nil, true},
		{"a login without a PIN", PasskeyInstead,
			func(d *signontest.Device, _ *PasskeyQuestion) { d.Flags = signontest.UserPresent }, nil, false},
		{"a factor without a touch", PasskeyFactor,
			func(d *signontest.Device, _ *PasskeyQuestion) { d.Flags = 0 }, nil, false},
		{"the page of another site", PasskeyFactor,
			func(d *signontest.Device, _ *PasskeyQuestion) { d.Origin = "https://chat.example.net" }, nil, false},
		{"the page of another port", PasskeyFactor,
			func(d *signontest.Device, _ *PasskeyQuestion) { d.Origin += ":444" }, nil, false},
		{"a page without TLS", PasskeyInstead,
			func(d *signontest.Device, _ *PasskeyQuestion) { d.Origin = "http://chat.example.org" }, nil, false},
		{"the passkey of another host", PasskeyInstead,
			func(d *signontest.Device, _ *PasskeyQuestion) { d.RPID = "example.org" }, nil, false},
		{"another question", PasskeyFactor, func(_ *signontest.Device, q *PasskeyQuestion) {
			q.Session.Challenge = strings.Repeat("A", len(q.Session.Challenge))
		}, nil, false},
		{"the question of another user", PasskeyFactor,
			func(_ *signontest.Device, q *PasskeyQuestion) { q.User = other.ID }, nil, false},
		{"the name of another user", PasskeyInstead, func(d *signontest.Device, _ *PasskeyQuestion) {
			d.Handle = other.WebAuthnID()
		}, nil, false},
		{"no user", PasskeyInstead, func(d *signontest.Device, _ *PasskeyQuestion) { d.Handle = []byte{} }, nil, false},
		{"a long user", PasskeyInstead,
			func(d *signontest.Device, _ *PasskeyQuestion) { d.Handle = make([]byte, 64) }, nil, false},
		{"a question for a new passkey", AddPasskey, same, nil, false},
		{"no signature", PasskeyFactor, same, func(_, r map[string]any) { delete(r, "signature") }, false},
		{"another signature", PasskeyFactor, same, func(_, r map[string]any) { r["signature"] = "MAYCAQECAQE" }, false},
		{"no data", PasskeyFactor, same, func(_, r map[string]any) { delete(r, "authenticatorData") }, false},
		{"short data", PasskeyFactor, same, func(_, r map[string]any) { r["authenticatorData"] = "AAAA" }, false},
		{"no client data", PasskeyFactor, same, func(_, r map[string]any) { delete(r, "clientDataJSON") }, false},
		{"null client data", PasskeyFactor, same, func(_, r map[string]any) { r["clientDataJSON"] = nil }, false},
		{"no id", PasskeyFactor, same, func(a, _ map[string]any) { delete(a, "id"); delete(a, "rawId") }, false},
		{"another id", PasskeyFactor, same, func(a, _ map[string]any) { a["id"], a["rawId"] = "AAAA", "AAAA" }, false},
		{"another type", PasskeyFactor, same, func(a, _ map[string]any) { a["type"] = "password" }, false},
		{"no response", PasskeyFactor, same, func(a, _ map[string]any) { delete(a, "response") }, false},
		{"a long answer", PasskeyFactor, same,
			func(a, _ map[string]any) { a["more"] = strings.Repeat("x", maxPasskeyAnswer) }, false},
	} {
		var device *signontest.Device
		user, device = passkeyPair(t)
		asked := user
		if x.use == PasskeyInstead {
			asked = PasskeyUser{}
		}
		q, options, err := passkeyPlace.AskPasskey(x.use, asked, time.UnixMilli(2000))
		if err != nil {
			t.Fatal(err)
		}
		x.lie(device, &q)
		answer, err := device.GetAny(string(options))
		if err != nil {
			t.Fatal(err)
		}
		if x.answer != nil {
			answer = lost(t, answer, x.answer)
		}
		use, err := passkeyPlace.ProvePasskey(q, answer, find)
		if (err == nil) != x.ok || x.ok && (use.User != user.ID || use.Asked != 2000) {
			t.Errorf("%s: %+v %v", x.name, use, err)
		}
	}
}

// A copy of a device, which counts its own signatures, is noticed. So is a question that its user did not get.
func TestPasskeyCopies(t *testing.T) {
	user, device := passkeyPair(t)
	user.Passkeys[0].Count = 5
	q, options, err := passkeyPlace.AskPasskey(PasskeyFactor, user, time.UnixMilli(2000))
	if err != nil {
		t.Fatal(err)
	}
	for count, ok := range map[uint32]bool{3: false, 4: false, 5: true, 9: true} {
		device.Count = count // the answer has one more
		answer, err := device.Get(string(options))
		if err != nil {
			t.Fatal(err)
		}
		_, err = passkeyPlace.ProvePasskey(q, answer, func(realm.UserID) (PasskeyUser, error) { return user, nil })
		if (err == nil) != ok {
			t.Errorf("signature %d after 5: %v", count+1, err)
		}
	}
}

// A new passkey is only accepted for the user and the page of its question.
func TestNewPasskeyAttacks(t *testing.T) {
	user := PasskeyUser{ID: 9, Name: "Ann Lee", Email: "ann@example.org"}
	for name, lie := range map[string]func(*signontest.Device, *PasskeyQuestion){
		"another site": func(d *signontest.Device, _ *PasskeyQuestion) { d.Origin = "https://evil.example" },
		"another host": func(d *signontest.Device, _ *PasskeyQuestion) { d.RPID = "evil.example" },
		"another user": func(_ *signontest.Device, q *PasskeyQuestion) { q.User = 8 },
		"another use":  func(_ *signontest.Device, q *PasskeyQuestion) { q.Use = PasskeyFactor },
		"no touch":     func(d *signontest.Device, _ *PasskeyQuestion) { d.Flags = 0 },
		"another question": func(_ *signontest.Device, q *PasskeyQuestion) {
			q.Session.Challenge = "AAAAAAAAAAAAAAAAAAAAAA"
		},
	} {
		device := signontest.NewDevice(passkeyOrigin)
		q, options, err := passkeyPlace.AskPasskey(AddPasskey, user, time.UnixMilli(1))
		if err != nil {
			t.Fatal(err)
		}
		lie(device, &q)
		answer, err := device.Create(string(options))
		if err != nil {
			t.Fatal(err)
		}
		if p, err := passkeyPlace.NewPasskey(q, user, answer); err == nil {
			t.Errorf("%s: %+v", name, p)
		}
	}
	for _, answer := range []string{"", "{}", "null", "[]", `{"id":"a"}`, `{"response":null}`,
		strings.Repeat("[", 9000)} {
		q, _, err := passkeyPlace.AskPasskey(AddPasskey, user, time.UnixMilli(1))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := passkeyPlace.NewPasskey(q, user, answer); err == nil {
			t.Errorf("the answer %q is accepted", answer)
		}
	}
}

// Browsers have passkeys at addresses with a host name and TLS, and at names of their own machine.
func TestPasskeysWork(t *testing.T) {
	for address, want := range map[string]bool{"https://chat.example.org": true, "http://chat.example.org": false,
		"http://localhost:9991": true, "http://a.localhost:9991": true, "http://127.0.0.1:9991": false,
		"https://192.0.2.1": false, "https://[::1]": false, "": false, "::": false} {
		if got := PasskeysWork(address); got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
}
