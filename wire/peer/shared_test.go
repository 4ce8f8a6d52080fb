package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
)

// openTestLink opens a link of an edge.
func (c *testCluster) openTestLink(address string) *Link {
	c.t.Helper()
	l, err := c.identity("b", Edge).Open(c.t.Context(), address, []byte("here is b"))
	if err != nil {
		c.t.Fatal(err)
	}
	go l.Run(func([]byte) {})
	c.t.Cleanup(func() { l.Close(nil) })
	return l
}

type testCodedError struct{}

func (testCodedError) Error() string    { return "no" }
func (testCodedError) LinkCode() uint32 { return 77 }

// Calls that share a stream get their own answers and errors, long ones too, and do not wait for each other.
func TestSharedCalls(t *testing.T) {
	c, h := newTestCluster(t), newTestHandler()
	address, _ := c.serve(h)
	l := c.openTestLink(address)
	wait(t, h.connected)
	held, release := make(chan struct{}, 1), make(chan struct{})
	h.call = func(_ context.Context, request []byte, reply func([]byte) error) error {
		switch string(request) {
		case "fail":
			return testCodedError{}
		case "hold":
			held <- struct{}{}
			<-release
		case "long":
			return reply(bytes.Repeat([]byte("x"), 3*MaxFrame))
		}
		return reply(request)
	}
	var all sync.WaitGroup
	all.Go(func() {
		if a, err := l.CallShared(t.Context(), []byte("hold")); string(a) != "hold" || err != nil {
			t.Errorf("a call that was held: %q %v", a, err)
		}
	})
	wait(t, held)
	var others sync.WaitGroup
	for i := range 500 {
		others.Go(func() {
			request := bytes.Repeat([]byte(fmt.Sprint(i, " ")), 1+i*20)
			if a, err := l.CallShared(t.Context(), request); err != nil || !bytes.Equal(a, request) {
				t.Errorf("call %d: %d bytes, %v", i, len(a), err)
			}
		})
	}
	others.Wait()
	var coded *CallError
	if _, err := l.CallShared(t.Context(), []byte("fail")); !errors.As(err, &coded) || coded.Code != 77 ||
		coded.Message != "no" {
		t.Errorf("a call that failed: %v", err)
	}
	if a, err := l.CallShared(t.Context(), []byte("long")); len(a) != 3*MaxFrame || err != nil {
		t.Errorf("a long answer: %d bytes, %v", len(a), err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.CallShared(ended, []byte("hold")); !errors.Is(err, context.Canceled) {
		t.Errorf("a call whose caller has gone: %v", err)
	}
	close(release)
	all.Wait()
}

// When a link breaks, a call that was sent may have been carried out; a later one has not been.
func TestSharedCallsOfBrokenLink(t *testing.T) {
	c, h := newTestCluster(t), newTestHandler()
	address, _ := c.serve(h)
	l := c.openTestLink(address)
	p := wait(t, h.connected)
	held, release := make(chan struct{}, 1), make(chan struct{})
	defer close(release)
	h.call = func(context.Context, []byte, func([]byte) error) error {
		held <- struct{}{}
		<-release
		return nil
	}
	failed := make(chan error, 1)
	go func() {
		_, err := l.CallShared(t.Context(), []byte("hold"))
		failed <- err
	}()
	wait(t, held)
	p.Cut(errors.New("test"))
	var notSent *NotSent
	if err := wait(t, failed); err == nil || errors.As(err, &notSent) {
		t.Errorf("a call that was sent: %v", err)
	}
	if _, err := l.CallShared(t.Context(), []byte("later")); !errors.As(err, &notSent) {
		t.Errorf("a call after the end: %v", err)
	}
}

// Calls to a node of an older release have their own streams.
func TestSharedCallsOfOlderRelease(t *testing.T) {
	c, h := newTestCluster(t), newTestHandler()
	listener, err := Listen("127.0.0.1:0", c.identity("a", Core), LinkProtocol)
	if err != nil {
		t.Fatal(err)
	}
	older := newServer(h)
	older.register(sessionMethod, callMethod)
	c.run(older, listener)
	l := c.openTestLink(listener.Addr().String())
	wait(t, h.connected)
	for i := range 3 {
		if a, err := l.CallShared(t.Context(), []byte("hello")); string(a) != "hello" || err != nil {
			t.Errorf("call %d: %q %v", i, a, err)
		}
	}
}

// A stream that ends while its link works ends the link, so that the node opens another one and can call again. A node
// has one such stream, so that MaxSharedCalls limits its calls.
func TestSharedStreamEnds(t *testing.T) {
	c, h := newTestCluster(t), newTestHandler()
	address, _ := c.serve(h)
	l := c.openTestLink(address)
	wait(t, h.connected)
	first, err := l.newStream(l.ctx, sharedMethod)
	if err == nil {
		err = send(first, appendEntry(nil, 1, []byte("hello")))
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := receive(first); err != nil {
		t.Fatal(err)
	}
	if a, err := l.CallShared(t.Context(), []byte("second")); err == nil {
		t.Errorf("a call on a second stream: %q", a)
	}
	wait(t, h.ended)
	if l.Context().Err() == nil {
		t.Error("the link goes on without the stream")
	}
}

// An answer that fits into no message is an error of its call. The others are answered.
func TestSharedAnswerTooLong(t *testing.T) {
	c, h := newTestCluster(t), newTestHandler()
	address, _ := c.serve(h)
	l := c.openTestLink(address)
	wait(t, h.connected)
	h.call = func(_ context.Context, request []byte, reply func([]byte) error) error {
		if string(request) == "long" {
			return reply(make([]byte, maxSharedAnswer+1))
		}
		return reply(request)
	}
	if a, err := l.CallShared(t.Context(), []byte("long")); err == nil || err.Error() != errLongMessage.Error() {
		t.Errorf("a long answer: %d bytes, %v", len(a), err)
	}
	if a, err := l.CallShared(t.Context(), []byte("next")); string(a) != "next" || err != nil {
		t.Errorf("the next call: %q %v", a, err)
	}
}

// A node that sends something else than calls is cut off.
func TestSharedCallsAreChecked(t *testing.T) {
	for name, m := range map[string][]byte{
		"no number": bytes.Repeat([]byte{0xff}, 11),
		"too short": {1, 200, 'x'},
		"no length": {1},
	} {
		c, h := newTestCluster(t), newTestHandler()
		address, _ := c.serve(h)
		l := c.openTestLink(address)
		wait(t, h.connected)
		if err := l.sendShared(m); err != nil {
			t.Fatal(err)
		}
		if err := wait(t, h.ended); !errors.Is(err, errSharedCall) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// BenchmarkCalls compares calls that have a stream each with those that share one, 64 at the same time.
func BenchmarkCalls(b *testing.B) {
	c, h := newTestCluster(b), newTestHandler()
	address, _ := c.serve(h)
	l := c.openTestLink(address)
	wait(b, h.connected)
	request := bytes.Repeat([]byte("x"), 400)
	for name, call := range map[string]func(context.Context, []byte) ([]byte, error){
		"Own": l.CallOnce, "Shared": l.CallShared,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetParallelism(32)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := call(b.Context(), request); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

// sendShared sends a message on a new stream for calls.
func (l *Link) sendShared(m []byte) error {
	stream, err := l.newStream(l.ctx, sharedMethod)
	if err != nil {
		return err
	}
	return send(stream, m)
}

// testSharedCalls begins the calls whose request starts with "begin", and answers them after Flush.
type testSharedCalls struct {
	begun []func()
}

func (x *testSharedCalls) Begin(request []byte, done func([]byte, error)) bool {
	if !bytes.HasPrefix(request, []byte("begin")) {
		return false
	}
	x.begun = append(x.begun, func() { done(answerOf(request)) })
	return true
}

// answerOf returns the answer of the test to a call.
func answerOf(request []byte) ([]byte, error) {
	switch {
	case bytes.HasSuffix(request, []byte("fail")):
		return nil, testCodedError{}
	case bytes.HasSuffix(request, []byte("long")):
		return bytes.Repeat([]byte("x"), 3*MaxFrame), nil
	}
	return request, nil
}

func (x *testSharedCalls) Flush() {
	for _, f := range x.begun {
		go f()
	}
	x.begun = nil
}

// Calls that need not wait are begun together with others of their stream, more than may be unanswered at a time, and
// each gets its own answer.
func TestBegunCalls(t *testing.T) {
	c, h := newTestCluster(t), newTestHandler()
	h.shared = &testSharedCalls{}
	h.call = func(_ context.Context, request []byte, reply func([]byte) error) error { // of calls beyond the limit
		answer, err := answerOf(request)
		if err != nil {
			return err
		}
		return reply(answer)
	}
	address, _ := c.serve(h)
	l := c.openTestLink(address)
	wait(t, h.connected)
	var all sync.WaitGroup
	for i := range 2 * MaxSharedCalls {
		all.Go(func() {
			request := fmt.Append(nil, "begin ", i)
			if i%3 == 0 {
				request = fmt.Append(nil, "wait ", i)
			}
			if a, err := l.CallShared(t.Context(), request); err != nil || !bytes.Equal(a, request) {
				t.Errorf("call %d: %q, %v", i, a, err)
			}
		})
	}
	for range 20 {
		all.Go(func() {
			if a, err := l.CallShared(t.Context(), []byte("begin long")); len(a) != 3*MaxFrame || err != nil {
				t.Errorf("a long answer: %d bytes, %v", len(a), err)
			}
			var coded *CallError
			if _, err := l.CallShared(t.Context(), []byte("begin fail")); !errors.As(err, &coded) || coded.Code != 77 {
				t.Errorf("a call that failed: %v", err)
			}
		})
	}
	all.Wait()
}
