package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/wire/peer"
)

// newDirectory returns the directory of the first core of a new cluster, in a folder of the test.
func newDirectory(t *testing.T, node string) (d *Directory, data string) {
	t.Helper()
	data = filepath.Join(t.TempDir(), node)
	if err := Init(data, node, "127.0.0.1:9992"); err != nil {
		t.Fatal(err)
	}
	d, err := OpenDirectory(data)
	if err != nil {
		t.Fatal(err)
	}
	return d, data
}

// joinRequest returns a request to join with a token, and the key of the node.
func joinRequest(t *testing.T, token, node string, now time.Time) (r peer.JoinRequest, key []byte) {
	t.Helper()
	parsed, err := peer.ParseToken(token)
	if err != nil {
		t.Fatal(err)
	}
	key, request, err := peer.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return peer.JoinRequest{Secret: parsed.Secret, Node: node, Version: peer.Version, Clock: now.UnixMilli(),
		Request: request}, key
}

// newToken returns a token for an edge.
func newToken(t *testing.T, d *Directory, now time.Time) string {
	t.Helper()
	token, err := d.NewToken(peer.Edge, now)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// joinEdge lets an edge join, and returns its directory.
func joinEdge(t *testing.T, core *Directory, node string) (d *Directory, data string) {
	t.Helper()
	now := time.Now()
	r, key := joinRequest(t, newToken(t, core, now), node, now)
	answer := core.Admit(r, now)
	if answer.Error != "" {
		t.Fatal(answer.Error)
	}
	data = filepath.Join(t.TempDir(), node)
	d, err := Join(answer, data, node, "", key)
	if err != nil {
		t.Fatal(err)
	}
	return d, data
}

// A token is valid for one node and for an hour. Each refusal says why, and what to do; a refused node can use the
// token later.
func TestTokens(t *testing.T) {
	d, data := newDirectory(t, "a")
	began := time.Unix(1_800_000_000, 0)
	token := newToken(t, d, began)
	try := func(token, node string, now time.Time, change func(*peer.JoinRequest)) string {
		t.Helper()
		r, _ := joinRequest(t, token, node, now)
		if change != nil {
			change(&r)
		}
		return d.Admit(r, now).Error
	}
	expect := func(what, got, want string) {
		t.Helper()
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	later := began.Add(time.Minute)
	expect("another secret", try(token, "b", later, func(r *peer.JoinRequest) { r.Secret = "x" }),
		"the token is not known to this cluster; parley cluster token prints a new one")
	expect("another version", try(token, "b", later, func(r *peer.JoinRequest) { r.Version++ }),
		"run the same release on both")
	for _, hours := range []time.Duration{3, -3} {
		expect("a clock that is far off", try(token, "b", later, func(r *peer.JoinRequest) {
			r.Clock = later.Add(hours * time.Hour).UnixMilli()
		}), "more than 2h0m0s: set it, for example with NTP")
	}
	expect("an id with a space", try(token, "b c", later, nil), "is not the id of a node")
	expect("the id of the core", try(token, "a", later, nil), "choose another --node")
	expect("a request that is none", try(token, "b", later, func(r *peer.JoinRequest) { r.Request = []byte("x") }),
		"signing request")
	expect("after an hour", try(token, "b", began.Add(peer.TokenLifetime), nil),
		"the token expired at 2027-01-15T09:00:00Z")
	expect("a second before", try(token, "b", began.Add(peer.TokenLifetime-time.Second), func(r *peer.JoinRequest) {
		r.Clock -= int64(time.Hour / time.Millisecond) // a clock that is an hour off is no reason to refuse
	}), "")
	expect("a second use", try(token, "c", later, nil), "the token was used by node b at")
	again, err := OpenDirectory(data) // as after a crash
	if err != nil {
		t.Fatal(err)
	}
	r, _ := joinRequest(t, token, "c", later)
	expect("a second use after a restart", again.Admit(r, later).Error, "the token was used by node b")
	newToken(t, d, began.Add(3*peer.TokenLifetime))
	expect("a forgotten token", try(token, "c", began.Add(3*peer.TokenLifetime), nil), "not known to this cluster")
	if err := d.Remove("b"); err != nil {
		t.Fatal(err)
	}
	expect("the id of a removed node", try(newToken(t, d, later), "b", later, nil), "or had, a node b")
	if err := d.checkMember("b"); err == nil || !strings.Contains(err.Error(), "join with a new token") {
		t.Errorf("a removed node: %v", err)
	}
	if _, err := peer.ParseToken("parley1.abc"); err == nil || !strings.Contains(err.Error(), "parley cluster token") {
		t.Errorf("a text that is no token: %v", err)
	}
}

// A core has an address at which other nodes reach it, also after its next start.
func TestAddressOfCore(t *testing.T) {
	d, _ := newDirectory(t, "a")
	now := time.Now()
	token, err := d.NewToken(peer.Core, now)
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"", "127.0.0.1", "127.0.0.1:0", ":9992", "0.0.0.0:9992", "[::]:9992", "a:b"} {
		r, _ := joinRequest(t, token, "b", now)
		r.Address = address
		if got := d.Admit(r, now).Error; !strings.Contains(got, "a core needs --peer-listen HOST:PORT") {
			t.Errorf("%q: %q", address, got)
		}
		if d.SetPeerListen(address) == nil || Init(t.TempDir(), "c", address) == nil {
			t.Errorf("%q is accepted at a start", address)
		}
	}
	r, _ := joinRequest(t, token, "b", now)
	r.Address = "b.example.org:9992"
	if got := d.Admit(r, now).Error; got != "" {
		t.Errorf("a name: %s", got)
	}
}

// A cluster does not give out tokens without end.
func TestTokensAreLimited(t *testing.T) {
	d, _ := newDirectory(t, "a")
	now := time.Now()
	d.Tokens = make([]storedToken, MaxTokens)
	for i := range d.Tokens {
		d.Tokens[i] = storedToken{Role: peer.Edge, Expires: now.Unix()}
	}
	if _, err := d.NewToken(peer.Edge, now); err == nil || !strings.Contains(err.Error(), "they expire after an hour") {
		t.Errorf("one token too many: %v", err)
	}
	newToken(t, d, now.Add(peer.TokenLifetime+2*time.Second))
	if _, err := d.NewToken("boss", now); err == nil {
		t.Error("there is a role boss")
	}
}

// A data directory with the certificate of another node is not used.
func TestCertificateOfAnotherNode(t *testing.T) {
	core, _ := newDirectory(t, "a")
	b, dataB := joinEdge(t, core, "b")
	_, dataC := joinEdge(t, core, "c")
	if id, err := b.Identity(); err != nil || id.Node != "b" || id.Role != peer.Edge {
		t.Fatalf("identity of b: %+v, %v", id, err)
	}
	for _, name := range []string{certificateFile, keyFile} {
		content, err := os.ReadFile(filepath.Join(dataC, folder, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dataB, folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b, err := OpenDirectory(dataB)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = b.Identity(); err == nil || !strings.Contains(err.Error(), "is the certificate of the edge c, but the "+
		"data directory is that of the edge b: restore the file") {
		t.Errorf("the certificate of another node: %v", err)
	}
}
