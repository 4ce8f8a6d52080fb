package realm_test

import (
	"fmt"
	"slices"
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

// addBrowser is a subscription at an address.
func addBrowser(address string) realm.AddPushToken {
	return realm.AddPushToken{Kind: realm.PushWeb, Token: address, Keys: realm.WebPushKeys{Public: "p", Secret: "s"}}
}

// notifiedAt returns the addresses at which the server would notify a user.
func notifiedAt(s *Scene, u realm.UserID) (list []string) {
	for _, x := range s.ViewAs(u).NotifiedPushTokens(u) {
		list = append(list, x.Token)
	}
	return list
}

// Only browser sessions subscribe browsers: API keys and expired sessions do not.
func TestWebPushNeedsSession(t *testing.T) {
	s := New(t)
	ann := s.Join("Ann")
	refusal := "Notifications of browsers need a browser session."
	ExpectRefusal(s, ann, addBrowser("https://push.example.com/1"), refusal)
	one, _ := openSession(s, ann, "one")
	s.Advance(realm.BrowserSessionSeconds + 2*24*3600)
	want := "Not logged in: API authentication or user session required"
	if _, err := TryAs(s, one, addBrowser("https://push.example.com/1")); err == nil || err.Error() != want {
		t.Errorf("an expired session: %v", err)
	}
	if l := s.Realm.PushTokensOf(ann); len(l) != 0 {
		t.Errorf("stored: %v", l)
	}
	Do(s, ann, realm.AddPushToken{Kind: realm.PushFCM, Token: "phone"}) // phones have no session
}

// A user has few browsers, and fewer of one push host, whatever its subdomain, port and letters; the oldest leave.
// Phones do not leave for browsers.
func TestWebPushLimits(t *testing.T) {
	s := New(t)
	ann := s.Join("Ann")
	one, _ := openSession(s, ann, "one")
	Do(s, ann, realm.AddPushToken{Kind: realm.PushFCM, Token: "phone"})
	for host, alike := range map[string][3]string{
		"subdomains": {"https://a.example.com/", "https://b.example.com/", "https://example.com/"},
		"ports":      {"https://one.test:1/", "https://one.test:2/", "https://one.test/"},
		"letters":    {"https://Two.test/", "https://tWo.test/", "https://two.test./"},
		"addresses":  {"https://[::ffff:192.0.2.1]/", "https://192.0.2.1:1/", "https://192.0.2.1/"},
	} {
		for _, x := range alike {
			DoAs(s, one, addBrowser(x))
		}
		got := notifiedAt(s, ann)
		if slices.Contains(got, alike[0]) || !slices.Contains(got, alike[1]) || !slices.Contains(got, alike[2]) {
			t.Errorf("%s: notified at %v, want the last two of %v", host, got, alike)
		}
	}
	want := []string{"phone"}
	for i := range 64 {
		x := fmt.Sprintf("https://push%d.test/", i)
		if DoAs(s, one, addBrowser(x)); i >= 64-realm.MaxWebPush {
			want = append(want, x)
		}
	}
	if got := notifiedAt(s, ann); !slices.Equal(got, want) {
		t.Errorf("notified at %v, want %v", got, want)
	}
	if n := len(s.Realm.PushTokensOf(ann)); n != len(want) {
		t.Errorf("%d tokens are stored, want %d", n, len(want))
	}
}

// Rows from before the limits are not notified above them, nor without a session.
func TestWebPushOldRows(t *testing.T) {
	s := New(t)
	ann := s.Join("Ann")
	_, opened := openSession(s, ann, "one")
	row := []realm.PushToken{{Kind: realm.PushWeb, Token: "https://key.test/"}}
	for i := range 20 {
		row = append(row, realm.PushToken{Kind: realm.PushWeb, Token: fmt.Sprintf("https://push%d.test/", i),
			Session: opened.ID})
	}
	Do(s, System, turnFunc(func(tn *realm.Turn) { tn.Record(&realm.PushTokensChanged{User: ann, List: row}) }))
	got := notifiedAt(s, ann)
	if len(got) != realm.MaxWebPush || got[0] != "https://push10.test/" {
		t.Errorf("notified at %v", got)
	}
}

// A subscription ends with its session, however it ends, and not with another one.
func TestWebPushEndsWithSession(t *testing.T) {
	hash := "$argon2id$"
	for name, c := range map[string]struct {
		end  func(s *Scene, ann realm.UserID, first realm.Caller, opened realm.OpenedBrowserSession)
		left int
	}{
		"logout": {func(s *Scene, ann realm.UserID, first realm.Caller, o realm.OpenedBrowserSession) {
			DoAs(s, first, realm.EndBrowserSessions{User: ann, ID: o.ID})
		}, 1},
		"expiry": {func(s *Scene, _ realm.UserID, _ realm.Caller, _ realm.OpenedBrowserSession) {
			s.Advance(realm.BrowserSessionSeconds + 2*24*3600)
		}, 0},
		"deactivation": {func(s *Scene, ann realm.UserID, _ realm.Caller, _ realm.OpenedBrowserSession) {
			Do(s, System, realm.DeactivateUser{User: ann})
		}, 0},
		"a new password": {func(s *Scene, _ realm.UserID, first realm.Caller, _ realm.OpenedBrowserSession) {
			DoAs(s, first, realm.ChangeSettings{Password: &hash})
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(t)
			ann := s.Join("Ann")
			one, opened := openSession(s, ann, "one")
			two, _ := openSession(s, ann, "two")
			DoAs(s, one, addBrowser("https://one.test/"))
			DoAs(s, two, addBrowser("https://two.test/"))
			c.end(s, ann, one, opened)
			if got := notifiedAt(s, ann); len(got) != c.left {
				t.Errorf("notified at %v, want %d", got, c.left)
			}
		})
	}
}
