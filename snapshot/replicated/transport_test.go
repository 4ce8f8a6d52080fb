package replicated

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// Entries are sent until the other node is reached, so Raft sees no failure after which it would wait longer and
// longer. The request stays the same. A node without space refuses them, and Raft does not wait longer and longer for
// it either. A leader of an older term, a node that was removed, and a heartbeat get the first error. A node that has
// failed sends nothing.
func TestPatientTransport(t *testing.T) {
	unreachable := errors.New("unreachable")
	tries, wanted := 0, true
	var failure error
	p := &retryingTransport{closing: make(chan struct{}), failed: func() error { return failure },
		confirmations: newConfirmations(),
		send: func(
			_ raft.ServerID, _ raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse,
		) error {
			if tries++; tries < 4 {
				return unreachable
			}
			resp.Success = args.LeaderCommitIndex == 4
			return nil
		},
		stillNeeded: func(term uint64, id raft.ServerID) bool { return wanted && term == 7 && id == "b" },
	}
	send := func(args raft.AppendEntriesRequest) (raft.AppendEntriesResponse, error) {
		tries = 0
		var resp raft.AppendEntriesResponse
		return resp, p.AppendEntries("b", "address", &args, &resp)
	}
	entries := raft.AppendEntriesRequest{Term: 7, PrevLogEntry: 5, LeaderCommitIndex: 4}
	if resp, err := send(entries); err != nil || !resp.Success || tries != 4 {
		t.Errorf("entries: %v after %d tries, %+v", err, tries, resp)
	}
	if _, err := send(raft.AppendEntriesRequest{Term: 7}); !errors.Is(err, unreachable) || tries != 1 {
		t.Errorf("heartbeat: %v after %d tries", err, tries)
	}
	wanted = false
	if _, err := send(entries); !errors.Is(err, unreachable) || tries != 1 {
		t.Errorf("entries that are not wanted any more: %v after %d tries", err, tries)
	}
	closing := make(chan struct{})
	close(closing)
	wanted, p.closing = true, closing
	if _, err := send(entries); !errors.Is(err, unreachable) || tries != 1 {
		t.Errorf("a node that closes: %v after %d tries", err, tries)
	}
	refusal := entries
	refusal.LeaderCommitIndex = 3
	p.send = func(
		_ raft.ServerID, _ raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse,
	) error {
		tries++
		resp.Term = args.Term
		return nil
	}
	if resp, err := send(refusal); err != nil || tries != 1 || resp.Success || !resp.NoRetryBackoff {
		t.Errorf("a node without space: %v after %d tries, %+v", err, tries, resp)
	}
	failure = errors.New("failed")
	if _, err := send(entries); !errors.Is(err, failure) || tries != 0 {
		t.Errorf("a node that has failed: %v after %d tries", err, tries)
	}
}

// A pipeline leaves out requests without entries that repeat the last commit index, until they are needed to notice a
// lost link.
func TestSparingPipeline(t *testing.T) {
	sent := &countingPipeline{}
	p := &throttledPipeline{AppendPipeline: sent, failed: func() error { return nil }}
	send := func(commit uint64, entries ...*raft.Log) {
		t.Helper()
		args := &raft.AppendEntriesRequest{LeaderCommitIndex: commit, Entries: entries}
		if _, err := p.AppendEntries(args, nil); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(n int, what string) {
		t.Helper()
		if sent.count != n {
			t.Errorf("%s: %d requests were sent, not %d", what, sent.count, n)
		}
	}
	send(7)
	expect(1, "the first one")
	send(7)
	expect(1, "nothing new")
	send(8)
	expect(2, "a committed entry")
	send(8, &raft.Log{Index: 9})
	expect(3, "an entry")
	p.sent = p.sent.Add(-idleRequestInterval)
	send(8)
	expect(4, "nothing new for some time")
}

// A pipeline tells the other node at once which entry is committed: not one that it has not sent, and not one of
// another term, which may be another entry there.
func TestPipelineSendsCommits(t *testing.T) {
	sent := &countingPipeline{}
	p := &throttledPipeline{AppendPipeline: sent, failed: func() error { return nil }}
	expect := func(index, term, want uint64) {
		t.Helper()
		before := sent.count
		p.sendCommit(index, term)
		switch {
		case want == 0 && sent.count != before:
			t.Errorf("entry %d of term %d: %+v was sent", index, term, sent.last)
		case want != 0 && (sent.count != before+1 || sent.last.LeaderCommitIndex != want || sent.last.Term != term ||
			sent.last.PrevLogEntry != 12 || sent.last.PrevLogTerm != 3 || len(sent.last.Entries) > 0):
			t.Errorf("entry %d of term %d: %d requests, the last %+v", index, term, sent.count-before, sent.last)
		}
	}
	expect(5, 3, 0) // nothing was sent yet
	args := &raft.AppendEntriesRequest{Term: 3, PrevLogEntry: 10, PrevLogTerm: 2, LeaderCommitIndex: 9,
		Entries: []*raft.Log{{Index: 11, Term: 3}, {Index: 12, Term: 3}}}
	if _, err := p.AppendEntries(args, nil); err != nil {
		t.Fatal(err)
	}
	expect(9, 3, 0)
	expect(12, 4, 0)
	expect(11, 3, 11)
	expect(11, 3, 0)
	expect(15, 3, 12)
	args = &raft.AppendEntriesRequest{Term: 3, PrevLogEntry: 12, LeaderCommitIndex: 12}
	if _, err := p.AppendEntries(args, nil); err != nil {
		t.Fatal(err)
	}
	if sent.count != 3 {
		t.Errorf("the commit index was sent again: %d requests", sent.count)
	}
	p.failed = func() error { return errors.New("failed") }
	p.last.PrevLogEntry = 13
	expect(13, 3, 0)
}

// Raft stops to read answers after a refusal, while it still sends. A request does not wait for that reader: otherwise
// the other node would get no entries any more, and this node could not close.
func TestPipelineDoesNotWaitForReader(t *testing.T) {
	network := newNetwork()
	open := func() (*retryingTransport, raft.ServerAddress) {
		links := network.listen(t, "127.0.0.1:0")
		transport := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{Stream: streamLayer{links},
			MaxPool: 1, Timeout: testTimeout, Logger: newLogger(slog.New(slog.DiscardHandler))})
		t.Cleanup(func() { transport.Close() })
		return &retryingTransport{NetworkTransport: transport, commits: &commits{},
			failed: func() error { return nil }}, raft.ServerAddress(links.own)
	}
	sender, _ := open()
	receiver, address := open()
	go func() {
		for r := range receiver.NetworkTransport.Consumer() {
			r.Respond(&raft.AppendEntriesResponse{Term: 7}, nil) // a refusal
		}
	}()
	p, err := sender.AppendEntriesPipeline("b", address)
	if err != nil {
		t.Fatal(err)
	}
	const requests = 20
	sent := make(chan error, 1)
	go func() {
		for i := range uint64(requests) {
			args := &raft.AppendEntriesRequest{Term: 7, PrevLogEntry: 5 + i, Entries: []*raft.Log{{Index: 6 + i}}}
			if _, err := p.AppendEntries(args, &raft.AppendEntriesResponse{}); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	select {
	case err := <-sent:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(testTimeout):
		t.Fatal("a request waits for the reader of earlier answers")
	}
	for i := range uint64(requests) {
		if f := <-p.Consumer(); f.Request().PrevLogEntry != 5+i {
			t.Fatalf("answer %d is for entry %d", i, f.Request().PrevLogEntry)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}

// countingPipeline counts requests.
type countingPipeline struct {
	raft.AppendPipeline
	count int
	last  raft.AppendEntriesRequest
}

func (p *countingPipeline) AppendEntries(
	args *raft.AppendEntriesRequest, _ *raft.AppendEntriesResponse,
) (raft.AppendFuture, error) {
	p.count, p.last = p.count+1, *args
	return nil, nil
}

// A node that closes waits for a heartbeat that it handles, which may write to the log, and handles no other one.
func TestCloseWaitsForHeartbeats(t *testing.T) {
	network := newNetwork()
	open := func() (*retryingTransport, raft.ServerAddress) {
		links := network.listen(t, "127.0.0.1:0")
		transport := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{Stream: streamLayer{links},
			MaxPool: 1, Timeout: testTimeout, Logger: newLogger(slog.New(slog.DiscardHandler))})
		return &retryingTransport{NetworkTransport: transport}, raft.ServerAddress(links.own)
	}
	sender, _ := open()
	p, address := open()
	closing := make(chan struct{})
	p.closing = closing
	handled, began, release := 0, make(chan bool), make(chan bool)
	p.SetHeartbeatHandler(func(r raft.RPC) {
		began <- true
		<-release
		handled++
		r.Respond(&raft.AppendEntriesResponse{}, nil)
	})
	heartbeat := raft.AppendEntriesRequest{RPCHeader: raft.RPCHeader{Addr: []byte("a")}, Term: 1}
	go sender.NetworkTransport.AppendEntries("b", address, &heartbeat, &raft.AppendEntriesResponse{})
	<-began
	close(closing)
	closed := make(chan int)
	go func() {
		p.Close()
		closed <- handled
	}()
	select {
	case <-closed:
		t.Fatal("the transport has closed while a heartbeat was being handled")
	case <-time.After(100 * time.Millisecond): // it waits
	}
	close(release)
	if n := <-closed; n != 1 {
		t.Errorf("%d heartbeats were handled", n)
	}
	sender.NetworkTransport.Close()
}
