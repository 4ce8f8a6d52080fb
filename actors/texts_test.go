package actors

import (
	"strings"
	"testing"

	"parley/actors/realm"
)

// The cache returns exactly the texts that were put in, and stays within its limit.
func TestTextCache(t *testing.T) {
	c := newTextCache(8 << 20)
	ref := func(n int) realm.BodyRef { return realm.BodyRef{Message: realm.MessageID(n), Version: uint16(n % 3)} }
	body := func(n int) realm.Body {
		text := strings.Repeat(string(rune('a'+n%26)), 1+n*7919%8000)
		if n%500 == 0 {
			text = strings.Repeat(text, 1+chunkBytes/len(text))
		}
		return realm.Body{Text: text, HTML: "<p>" + text + "</p>"}
	}
	is := func(n int, want bool) {
		t.Helper()
		b, ok := c.get(1, ref(n))
		if ok != want || ok && b != body(n) {
			t.Fatalf("text %d found: %v, want %v; %.20q", n, ok, want, b.Text)
		}
	}
	const last = 3000
	for n := range last {
		c.put(1, ref(n), body(n))
		is(0, true) // read all the time, so it stays
		is(n, true)
		if n > 10 {
			is(n-10, true)
		}
		if size := c.young.size + c.old.size; size > 9<<20 {
			t.Fatalf("%d bytes in memory", size)
		}
	}
	is(1, false) // not read for a long time
	if _, ok := c.get(2, ref(last-1)); ok {
		t.Error("got a text of another organization")
	}
	if b, ok := c.peek(1, ref(last-1)); !ok || b != body(last-1) {
		t.Error("peek does not find the newest text")
	}
	c.drop(1, ref(last-1))
	is(last-1, false)
}
