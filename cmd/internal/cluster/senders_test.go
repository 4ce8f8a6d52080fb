package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/actors/realm"
	"parley/snapshot/codec"
	"parley/wire/peer"
)

type wantLinkEntry struct {
	name, from string
	kind       byte
	isCall     bool
	example    any
}

// wantLink is what each message and call is for, independent of linkTable: who may send it, and an example that is
// valid. A message that is in no list is refused.
var wantLink = []wantLinkEntry{
	{"open", "core edge starting", msgOpen, false, realm.ID(1)},
	{"close", "core edge starting", msgClose, false, realm.ID(1)},
	{"close-queue", "core edge starting", msgCloseQueue, false, &queueMessage{Realm: 1, Queue: "x"}},
	{"tick", "core edge starting", msgTick, false, realm.ID(1)},
	{"report", "core edge starting", msgReport, false, &edgeReport{}},
	{"digest", "core edge starting", msgDigest, false, &digestMessage{}},
	{"adopt", "core edge starting", msgAdopt, false, &adoptMessage{Realm: 1}},
	{"hosted", "core edge starting", msgHosted, false, &hostedMessage{Realm: 1}},
	{"acks", "core edge starting", msgAcks, false, &acksMessage{Realm: 1}},
	{"online", "core edge starting", msgOnline, false, &onlineMessage{Realm: 1}},

	{"rows", "edge", callRows, true, realm.ID(1)},
	{"follow", "edge", callFollow, true, &followCall{Realm: 1, One: true}},
	{"text", "edge", callText, true, &textCall{Realm: 1}},
	{"texts", "edge", callTexts, true, &textsCall{Realm: 1}},
	{"forward", "core edge starting", callForward, true, &forwardCall{}},
	{"realm", "edge", callRealm, true, "x"},
	{"seq", "core edge starting", callSeq, true, realm.ID(1)},
	{"queues", "core starting", callQueues, true, "a"},
	{"import", "core", callImport, true, "no step"}, // the test has no replicated log
	{"command", "core edge starting", callCommand, true, &commandCall{Name: "x"}},
}

// wantFromLeader is every message of the leader.
var wantFromLeader = map[string]byte{"presence": msgPresence, "ephemeral": msgEphemeral, "ask-digest": msgAskDigest,
	"adopted": msgAdopted, "drop": msgDrop, "evict": msgEvict, "seqs": msgSeqs, "members": msgMembers}

// senderKinds are the kinds of nodes that a test is.
var senderKinds = []string{"core", "edge", "starting", "removed"}

// node joins a cluster as a kind of node. A removed one can connect until remove is called.
func (c *testCore) node(kind, id string) (identity *peer.Identity, remove func()) {
	c.t.Helper()
	var d *Directory
	switch kind {
	case "core", "starting":
		d = joinCore(c.t, c.Directory, id)
	default:
		d, _ = joinEdge(c.t, c.Directory, id)
	}
	identity, err := d.Identity()
	if err != nil {
		c.t.Fatal(err)
	}
	return identity, func() {
		if kind == "removed" {
			if err := c.Directory.Remove(id); err != nil {
				c.t.Fatal(err)
			}
		}
	}
}

// joinCore lets a core join.
func joinCore(t *testing.T, core *Directory, node string) *Directory {
	t.Helper()
	now := time.Now()
	token, err := core.NewToken(peer.Core, now)
	if err != nil {
		t.Fatal(err)
	}
	r, key := joinRequest(t, token, node, now)
	r.Address = "127.0.0.1:9"
	answer := core.Admit(r, now)
	if answer.Error != "" {
		t.Fatal(answer.Error)
	}
	d, err := Join(answer, filepath.Join(t.TempDir(), node), node, r.Address, key)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// rawLink is a link on which a test sends any bytes.
type rawLink struct {
	*peer.Link
	t     *testing.T
	ended chan error
	kinds chan byte // of the messages that it has received
}

// testGreeting returns the greeting of a node of this release.
func testGreeting() greeting {
	return greeting{Version: peer.Version, Clock: time.Now().UnixMilli(), Level: realm.Level, NoSecret: true}
}

func (c *testCore) rawLink(id *peer.Identity) *rawLink {
	c.t.Helper()
	hello := testGreeting()
	link, err := id.Open(c.t.Context(), c.Addr(), codec.EncodeRow(&hello))
	if err != nil {
		c.t.Fatal(err)
	}
	l := &rawLink{link, c.t, make(chan error, 1), make(chan byte, 1000)}
	go func() { l.ended <- l.Run(func(m []byte) { l.kinds <- m[0] }) }()
	c.t.Cleanup(func() { link.Close(nil) })
	return l
}

// accepts sends a message and reports whether the leader accepts it: then it also answers the next report.
func (l *rawLink) accepts(m []byte) bool {
	l.t.Helper()
	l.Send(m)
	l.Send(encodeReport(&edgeReport{}))
	for {
		select {
		case kind := <-l.kinds:
			if kind == msgSeqs {
				return true
			}
		case <-l.ended:
			return false
		case <-time.After(testTimeout):
			l.t.Fatal("the leader neither answers nor ends the link")
		}
	}
}

// Every kind of message and call is sent as every kind of node: messages that the node may not send are refused.
func TestEveryCallAsEverySender(t *testing.T) {
	c := startTestCore(t, "")
	for _, kind := range senderKinds {
		n := 0
		connect := func() *rawLink {
			n++
			id, remove := c.node(kind, fmt.Sprintf("%s-%d", kind, n))
			l := c.rawLink(id)
			remove()
			return l
		}
		link := connect()
		for k := range 256 {
			for _, isCall := range []bool{false, true} {
				i := slices.IndexFunc(wantLink, func(x wantLinkEntry) bool {
					return x.kind == byte(k) && x.isCall == isCall
				})
				m, allowed, name := []byte{byte(k), 0xc0}, false, fmt.Sprintf("%d (unknown, call %v)", k, isCall)
				if i >= 0 {
					name, m = wantLink[i].name, encode(byte(k), wantLink[i].example)
					allowed = slices.Contains(strings.Fields(wantLink[i].from), kind)
				}
				if !isCall && i < 0 { // it is dropped: the node may run a newer release
					continue
				}
				if !isCall {
					if got := link.accepts(m); got != allowed {
						t.Errorf("message %s of a node that is %s: accepted is %v", name, kind, got)
					}
					if link.Context().Err() != nil || !allowed {
						link = connect()
					}
					continue
				}
				err := link.Call(t.Context(), m, func([]byte) error { return nil })
				var answered *peer.CallError
				refused := errors.As(err, &answered) && (answered.Code == CodeRefused || i < 0)
				if refused == allowed {
					t.Errorf("call %s of a node that is %s: %v", name, kind, err)
				}
			}
		}
	}
}

// No node gets the server's secret in the answer to its greeting. An edge of an older release, which needs it, is
// refused and learns why. A core of an older release has it in a file, and is not refused.
func TestGreetingHasNoSecret(t *testing.T) {
	c := startTestCore(t, "")
	c.Secret = []byte("the server's secret of 32 bytes")
	for kind, refused := range map[string]bool{"edge": true, "core": false, "starting": false} {
		for _, noSecret := range []bool{true, false} {
			id, _ := c.node(kind, fmt.Sprintf("%s-%v", kind, noSecret))
			hello := testGreeting()
			hello.NoSecret, hello.Program = noSecret, "v1"
			link, err := id.Open(t.Context(), c.Addr(), codec.EncodeRow(&hello))
			if err == nil {
				if bytes.Contains(link.Answer(), c.Secret) {
					t.Errorf("a node that is %s gets the secret", kind)
				}
				link.Close(nil)
			}
			if wrong := refused && !noSecret; wrong != (err != nil) {
				t.Errorf("a node that is %s, without secret %v: %v", kind, noSecret, err)
			}
			if err != nil && (!errors.Is(err, peer.ErrRefused) || IsDuplicate(err) ||
				!strings.Contains(err.Error(), "install the release of the core at the edge")) {
				t.Errorf("the refusal of an older edge: %v", err)
			}
		}
	}
}

// Each protocol is for the nodes that need it.
func TestEveryProtocolAsEverySender(t *testing.T) {
	c := startTestCore(t, "")
	raft := newRaftLinks(c.Node.listener, nil, c.Directory)
	defer raft.Close()
	accepted := make(chan string, 10)
	go func() {
		for {
			x, err := raft.Accept()
			if err != nil {
				return
			}
			node, _, _ := peer.NodeOf(x)
			accepted <- node
		}
	}()
	want := map[string]string{peer.LinkProtocol: "core edge starting", peer.HTTPProtocol: "core edge starting",
		peer.RaftProtocol: "core starting", peer.FilesProtocol: "core"}
	if len(want) != len(protocolSenders) {
		t.Errorf("there are %d protocols for nodes", len(protocolSenders))
	}
	try := map[string]func(*peer.Identity) (bool, error){
		peer.LinkProtocol: func(id *peer.Identity) (bool, error) {
			hello := testGreeting()
			l, err := id.Open(t.Context(), c.Addr(), codec.EncodeRow(&hello))
			if err == nil {
				l.Close(nil)
			}
			return err == nil, err
		},
		peer.HTTPProtocol: func(id *peer.Identity) (bool, error) {
			x, err := id.Dial(t.Context(), c.Addr(), peer.HTTPProtocol)
			if err != nil {
				return false, err
			}
			defer x.Close()
			fmt.Fprintf(x, "GET /user_uploads/1/x HTTP/1.1\r\nHost: localhost\r\n\r\n")
			text, _ := io.ReadAll(x)
			// A request that names no organization is refused later, for that reason.
			return strings.Contains(string(text), "the organization of a request"), errors.New(string(text))
		},
		peer.FilesProtocol: func(id *peer.Identity) (bool, error) {
			x, err := id.Dial(t.Context(), c.Addr(), peer.FilesProtocol)
			if err != nil {
				return false, err
			}
			defer x.Close()
			fmt.Fprintf(x, "GET /content?name=x HTTP/1.0\r\n\r\n")
			text, _ := io.ReadAll(x)
			return strings.HasPrefix(string(text), "HTTP/1.0 404 "), errors.New(string(text))
		},
		peer.RaftProtocol: func(id *peer.Identity) (bool, error) {
			x, err := id.Dial(t.Context(), c.Addr(), peer.RaftProtocol)
			if err != nil {
				return false, err
			}
			defer x.Close()
			closed := make(chan error, 1)
			go func() { _, err := x.Read(make([]byte, 1)); closed <- err }()
			select {
			case node := <-accepted:
				return node == id.Node, nil
			case err := <-closed:
				return false, err
			}
		},
	}
	for protocol, from := range want {
		for _, kind := range append(senderKinds, "removed core") {
			name := strings.TrimPrefix(protocol, "parley-") + "-" + strings.ReplaceAll(kind, " ", "-")
			id, remove := c.node(strings.TrimPrefix(kind, "removed "), name)
			if kind == "starting" {
				id, remove = c.node(kind, "starting-"+name)
			}
			remove()
			if kind == "removed core" {
				if err := c.Directory.Remove(name); err != nil {
					t.Fatal(err)
				}
			}
			allowed, err := try[protocol](id)
			if want := slices.Contains(strings.Fields(from), kind); allowed != want {
				t.Errorf("%s by a node that is %s: allowed is %v, %v", protocol, kind, allowed, err)
			}
		}
	}
}

// The tables, the lists of this test and the constants name the same messages.
func TestLinkTables(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "messages.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	constants := map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.ValueSpec); ok {
			for _, name := range s.Names {
				if strings.HasPrefix(name.Name, "msg") || strings.HasPrefix(name.Name, "call") {
					constants[name.Name] = true
				}
			}
		}
		return true
	})
	if got := len(linkTable) + len(leaderTable); got != len(constants) {
		t.Errorf("%d messages and calls are in the tables, %d are declared: %v", got, len(constants), constants)
	}
	if len(wantLink) != len(linkTable) || len(wantFromLeader) != len(leaderTable) {
		t.Errorf("the tables have %d and %d entries, this test %d and %d", len(linkTable), len(leaderTable),
			len(wantLink), len(wantFromLeader))
	}
	page, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	described := regexp.MustCompile(`[a-z-]+`).FindAllString(string(page), -1)
	for name := range wantFromLeader {
		if !slices.Contains(described, name) {
			t.Errorf("doc.go does not have the message %s of the leader", name)
		}
	}
	for _, x := range wantLink {
		e := findEntry(x.kind, x.isCall)
		if e == nil || e.name != x.name || e.limit <= 0 || e.limit > peer.MaxMessage {
			t.Errorf("%s: the table has %+v", x.name, e)
		}
		if !slices.Contains(described, x.name) {
			t.Errorf("doc.go does not have %s", x.name)
		}
	}
	for _, x := range leaderTable {
		if kind, ok := wantFromLeader[x.name]; !ok || kind != x.kind {
			t.Errorf("%s is not known to this test", x.name)
		}
	}
}

// The certificate, the membership and the vote decide together the kind of a node.
func TestSenderOf(t *testing.T) {
	c := startTestCore(t, "")
	c.node("core", "b")
	c.node("starting", "starting-c")
	c.node("edge", "e")
	expect := func(node string, role peer.Role, want Sender) {
		t.Helper()
		if got := c.Directory.senderOf(node, role, c.HasVote); got != want {
			t.Errorf("node %s with the certificate of a %s is %v, want %v", node, role, got, want)
		}
	}
	expect("b", peer.Core, FromCore)
	expect("starting-c", peer.Core, FromStarting)
	expect("e", peer.Edge, FromEdge)
	expect("e", peer.Core, FromRemoved)
	expect("b", peer.Edge, FromRemoved)
	expect("b", "boss", FromRemoved)
	expect("x", peer.Core, FromRemoved)
	if err := c.Directory.Remove("b"); err != nil {
		t.Fatal(err)
	}
	expect("b", peer.Core, FromRemoved)
	again, err := OpenDirectory(filepath.Dir(c.Directory.path))
	if err != nil {
		t.Fatal(err)
	}
	if !again.IsRemoved("b") || again.IsRemoved("e") {
		t.Error("the removal is forgotten after a restart")
	}
}

// Bytes that are no message do not stop the leader, whatever an edge sends.
func TestHostileMessages(t *testing.T) {
	c := startTestCore(t, "")
	id, _ := c.node("edge", "e")
	link := c.rawLink(id)
	random := rand.New(rand.NewPCG(1, 2))
	try := func(m []byte) {
		t.Helper()
		isCall := len(m) > 0 && findEntry(m[0], true) != nil
		if isCall {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			link.Call(ctx, m, func([]byte) error { return nil })
			return
		}
		if !link.accepts(m) {
			link = c.rawLink(id)
		}
	}
	try(nil)
	for _, x := range wantLink {
		if x.kind == callFollow {
			continue // it waits for facts, so an example that is changed may take for ever
		}
		valid := codec.EncodeRow(x.example)
		try([]byte{x.kind})
		// More fields than any message has: a newer release may send some.
		for _, n := range []byte{1, 9, 15} {
			try(append([]byte{x.kind, 0x90 | n}, make([]byte, n)...))
			try(append([]byte{x.kind, 0x90 | n}, strings.Repeat("\xc0", int(n))...))
		}
		for range 20 {
			m := append([]byte{x.kind}, valid...)
			m[1+random.IntN(len(valid))] = byte(random.Uint32())
			try(m)
		}
		try(append([]byte{x.kind, 0xdd}, "\xff\xff\xff\xff"...)) // 4 billion elements
	}
	long := append(encode(callRealm, "x"), make([]byte, smallLimit)...)
	if _, err := link.CallOnce(t.Context(), long); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("a message that is too long: %v", err)
	}
}

// A removed node loses its open link, its streams and its other connections at once, and edges connect to no core that
// was removed.
func TestRemovalEndsConnections(t *testing.T) {
	c := startTestCore(t, "")
	id, _ := c.node("edge", "e")
	link := c.rawLink(id)
	followed := make(chan error, 1)
	began := make(chan bool, 100)
	go func() {
		call := encode(callFollow, &followCall{Realm: 1})
		followed <- link.Call(t.Context(), call, func([]byte) error { began <- true; return nil })
	}()
	<-began
	file, err := id.Dial(t.Context(), c.Addr(), peer.HTTPProtocol)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	c.node("core", "b")
	other := startTestEdge(c, "other", nil)
	eventually(t, "the edge is ready", other.IsReady)
	for _, node := range []string{"e", "b"} {
		if err := c.Directory.Remove(node); err != nil {
			t.Fatal(err)
		}
		c.CutOff(node)
	}
	for what, ended := range map[string]chan error{"link": link.ended, "stream": followed} {
		select {
		case <-ended:
		case <-time.After(testTimeout):
			t.Fatalf("the %s of a removed node stays", what)
		}
	}
	file.SetReadDeadline(time.Now().Add(testTimeout))
	var timeout net.Error
	if _, err := file.Read(make([]byte, 1)); errors.As(err, &timeout) && timeout.Timeout() {
		t.Error("the connection for files of a removed node stays")
	}
	eventually(t, "the edge knows the removed core", func() bool { return other.Directory.IsRemoved("b") })
	if other.Directory.IsRemoved("a") || !other.IsReady() {
		t.Error("the other edge is affected")
	}
	// The edge refuses the core before its disk says so.
	eventually(t, "the edge's disk names the removed core", func() bool {
		again, err := OpenDirectory(filepath.Dir(other.Directory.path))
		return err == nil && again.IsRemoved("b")
	})
}
