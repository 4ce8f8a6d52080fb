package cluster

import (
	"context"
	"net"
	"runtime"
	"testing"
	"time"
)

// A request that waits for a node whose link has ended is not answered any more, so it ends.
func TestOwnerConnEndsWithLink(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	link, cancel := context.WithCancel(t.Context())
	c := newOwnerConn(link, a)
	ended := make(chan error, 1)
	go func() {
		_, err := c.Read(make([]byte, 1))
		ended <- err
	}()
	cancel()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("an answer without a byte")
		}
	case <-time.After(10 * maxStall):
		t.Fatal("the request waits for ever")
	}
}

// A stream that still sends bytes is not ended, nor one that is not read because its client is slow.
func TestOwnerConnKeepsStreams(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	c := newOwnerConn(t.Context(), a)
	defer c.Close()
	answers := make(chan error)
	read := func() {
		_, err := c.Read(make([]byte, 1))
		answers <- err
	}
	for range 3 {
		go read()
		for c.waiting.Load() == 0 {
			runtime.Gosched()
		}
		if c.isStalled() {
			t.Error("a stream has ended between two bytes")
		}
		if _, err := b.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if err := <-answers; err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		if c.isStalled() {
			t.Error("a stream has ended while its client was slow")
		}
	}
}
