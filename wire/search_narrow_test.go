package wire

import (
	"errors"
	"testing"

	"parley/actors/realm"
	"parley/wire/form"
)

// newSmallRealm returns an organization with two users and messages in a public channel, a private channel and a
// direct conversation.
func newSmallRealm(t testing.TB) *realm.Realm {
	r := realm.New(1)
	r.SetClock(1_700_000_000)
	play := func(u realm.UserID, fn func(*realm.Turn) error) {
		t.Helper()
		_, _, _, err := realm.RunTurn(r, realm.Caller{User: u, System: u == 0, Client: "test"},
			realm.TurnEnv{Now: 1_700_000_000,
				Token: func(n int) string {
					return "0123456789abcdef"[:n]
				}, UUID: func() string { return "u" }, Hash: func(string) (h [32]byte) { return h }},
			func(t *realm.Turn) (realm.Done, error) { return realm.Done{}, fn(t) })
		if err != nil {
			t.Fatal(err)
		}
	}
	var ann, bo realm.UserID
	play(0, func(t *realm.Turn) error { _, err := realm.FoundRealm{Name: "Small"}.Decide(t); return err })
	play(0, func(t *realm.Turn) (err error) {
		if ann, err = (realm.CreateUser{Name: "Ann", Email: "ann@example.com"}).Decide(t); err == nil {
			bo, err = realm.CreateUser{Name: "Bo", Email: "bo@example.com"}.Decide(t)
		}
		return err
	})
	for _, c := range []struct {
		name    string
		private bool
	}{{"open", false}, {"closed", true}} {
		play(ann, func(t *realm.Turn) error {
			_, err := realm.Subscribe{Channels: []realm.ChannelToJoin{{Name: c.name}},
				New: realm.NewChannel{Private: c.private}}.Decide(t)
			return err
		})
		play(ann, func(t *realm.Turn) error {
			_, err := realm.SendMessage{ToChannel: true, ChannelName: c.name, Topic: "tea",
				Body: realm.Body{Text: "hi"}}.Decide(t)
			return err
		})
	}
	play(ann, func(t *realm.Turn) error {
		_, err := realm.SendMessage{People: []realm.Principal{{ID: bo}}, Body: realm.Body{Text: "hi"}}.Decide(t)
		return err
	})
	return r
}

// FuzzNarrow decodes any text as a narrow and runs it. It must be refused with a reason, or return messages that the
// caller can read. A second run must return the same.
func FuzzNarrow(f *testing.F) {
	for _, seed := range []string{`[]`, `[["is","dm"]]`, `[{"operator":"channel","operand":1,"negated":true}]`,
		`[["channel","open"],["topic","tea"]]`,
		`[{"operator":"dm","operand":[8,9]}]`, `[["with","1"],["near","2"]]`, `[["id","99999999999999999999"]]`,
		`[["sender","user8@example.com"]]`,
		`[{"operator":"with","operand":-1}]`, `[["stream","closed"],["is","unread"]]`,
		`[["channels","public"],["has","link"]]`, `[{"operator":"id","operand":4294967297}]`,
		`[["in","home"],["is","muted"]]`, `[["pm_with","bo@example.com, ,x"]]`, `[["search","tea"]]`,
		`[["topic","general chat"],["dm-including","8"]]`} {
		f.Add(seed, int64(2), 1, 1)
	}
	type narrowForm struct {
		Narrow form.Narrow `form:"narrow"`
	}
	decoder := form.Of[narrowForm]()
	r := newSmallRealm(f)
	f.Fuzz(func(t *testing.T, text string, anchor int64, before, after int) {
		values := form.Values{}
		values.Add(form.Query, "narrow", text)
		var in narrowForm
		if err := decoder.Decode(&values, &in); err != nil {
			if err.Msg == "" || err.Code == "" {
				t.Fatalf("refused without a reason: %+v", err)
			}
			return
		}
		terms, _ := narrowTerms(in.Narrow)
		for u := realm.UserID(0); u < 11; u++ {
			v := r.ViewAs(realm.Caller{User: u}, 1_700_000_001)
			n, err := v.Narrow(terms, realm.SearchHits{})
			var refusal *realm.Refusal
			if err != nil {
				if !errors.As(err, &refusal) || refusal.Msg == "" || refusal.Code == "" {
					t.Fatalf("user %d: refused without a reason: %v", u, err)
				}
				continue
			}
			g := realm.PageRange{Before: max(0, before), After: max(0, after)}
			for kind := realm.AnchorMessage; kind <= realm.AnchorDate; kind++ {
				p := n.Page(v.ResolveAnchor(&n, realm.Anchor{Kind: kind, ID: anchor}).ID(nil), g, nil)
				if len(v.VisibleMessages(p.IDs)) != len(p.IDs) {
					t.Fatalf("user %d: %v has messages that the user is not allowed to read", u, p.IDs)
				}
			}
			whole := n.Frozen()
			if a, b := len(whole.AllIDs(nil)), len(n.Page(0, realm.PageRange{After: 1000}, nil).IDs); a != b {
				t.Fatalf("user %d: %d messages as a whole, %d as a page", u, a, b)
			}
		}
	})
}
