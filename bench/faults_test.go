package bench

import (
	"bytes"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestFaultsOfProxyAreFound requires that a run finds each kind of fault that a proxy makes, with its message or queue.
func TestFaultsOfProxyAreFound(t *testing.T) {
	srv := httptest.NewServer(newFake(""))
	defer srv.CloseClientConnections()
	for kind := range faultKinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			args := []string{"--target", srv.URL, "--kinds", kind, "--one-in", "400", "--users", "12", "--channels",
				"6",
				"--rate", "100", "--duration", "4", "--late", "1s", "--delay", "2s"}
			for attempt := 1; ; attempt++ {
				var out, errs bytes.Buffer
				code := faultsMain(args, &out, &errs)
				if code == 0 {
					return
				}
				// On a loaded machine the proxy can lack an opportunity: such a run says nothing about finding.
				if attempt < 4 && strings.Contains(out.String(), kind+": 0 injected") {
					continue
				}
				t.Fatalf("exit code %d:\n%s%s", code, out.String(), errs.String())
			}
		})
	}
}

// TestUnstoredSendsAreReported requires that a run reads acknowledged sends again.
func TestUnstoredSendsAreReported(t *testing.T) {
	s := smallScenario("chat")
	s.Sample = 0
	s.Phases = []Phase{{Name: "open", Count: 40, Closed: 4}}
	res, out := runAgainst(t, newFake("unstored"), s)
	if res.BrokenByKind["not stored"] != 1 || res.Broken != 1 || res.Violations[0].Message == 0 ||
		time.Since(res.Violations[0].At) > time.Minute {
		t.Errorf("a message that was not stored is not the only violation:\n%s", out)
	}
}

// TestExistingAccounts requires that a run with accounts of a file creates nothing and uses only the named channels.
func TestExistingAccounts(t *testing.T) {
	f := newFake("")
	for _, name := range []string{"a", "b", "c"} {
		f.addUser(name+"@fake.invalid", name)
	}
	for i, name := range []string{"general", "secret"} {
		c := &fakeChannel{ID: int64(i + 1), Name: name, Subs: map[int64]bool{}}
		for _, u := range f.byID {
			c.Subs[u.ID] = true
		}
		f.channels = append(f.channels, c)
	}
	srv := httptest.NewServer(f)
	defer srv.CloseClientConnections()
	file := filepath.Join(t.TempDir(), "accounts.csv")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := func(more ...string) []string {
		return append([]string{"chat", "--target", srv.URL, "--accounts", file, "--history", "0", "--duration", "0.5",
			"--quiet"}, more...)
	}
	for _, text := range []string{"email,key\na@fake.invalid,k\nb@fake.invalid,k\n",
		"a@fake.invalid,open sesame\nc@fake.invalid,open sesame\n", "host,password,email\n,open " +
			"sesame,c@fake.invalid\n"} {
		write(text)
		code, out, errs := runMain(args("--only-channels", "general")...)
		if code != 0 || !strings.Contains(out, "from a file of accounts") {
			t.Fatalf("accounts %q: exit code %d:\n%s%s", text, code, out, errs)
		}
	}
	if len(f.users) != 4 || len(f.channels) != 2 || len(f.messages) == 0 {
		t.Errorf("%d users, %d channels and %d messages afterwards", len(f.users), len(f.channels), len(f.messages))
	}
	for _, m := range f.messages {
		if m.Channel == nil || m.Channel.Name != "general" {
			t.Error("a message was sent to a channel that --only-channels does not name")
		}
	}
	for text, want := range map[string]string{"": "no account", "email,key\n": "no account",
		"email\na@b\n":                 "needs the columns",
		"email,key\na@fake.invalid,\n": "key or password", "email,key\na@fake.invalid,k,7\n": "wrong number of fields",
		"email,key\nnobody@fake.invalid,k\n": "status 401", "a@fake.invalid,wrong\n": "status 400"} {
		write(text)
		if code, _, errs := runMain(args()...); code != 2 || !strings.Contains(errs, want) || strings.Count(errs,
			"\n") != 1 {
			t.Errorf("accounts %q: exit code %d, want 2 and one line with %q: %s", text, code, want, errs)
		}
	}
	write("a@fake.invalid,open sesame\n")
	for _, more := range [][]string{{"--only-channels", "none"}, {"--users", "2"}, {"--adopt"}} {
		if code, _, errs := runMain(args(more...)...); code != 2 {
			t.Errorf("%v: exit code %d: %s", more, code, errs)
		}
	}
}
