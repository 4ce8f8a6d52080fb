package actors

import (
	"strings"
	"testing"
	"unsafe"

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

// Everything that reads a large text shares the memory of the cache: 30 answers with the same ten texts of 200 kB took
// 60 MB besides. Also after a text has moved to the younger generation.
func TestLargeTextsAreShared(t *testing.T) {
	c := newTextCache(8 << 20)
	ref := func(n int) realm.BodyRef { return realm.BodyRef{Message: realm.MessageID(n)} }
	large := func(n int) realm.Body {
		return realm.Body{Text: strings.Repeat(string(rune('a'+n%26)), 10_000), HTML: strings.Repeat("x", 200_000)}
	}
	c.put(1, ref(0), large(0))
	first, _ := c.get(1, ref(0))
	for n := 1; n < 60; n++ { // more than two generations
		c.put(1, ref(n), large(n))
		b, ok := c.get(1, ref(0))
		if !ok || b != large(0) || unsafe.StringData(b.HTML) != unsafe.StringData(first.HTML) {
			t.Fatalf("after %d texts it was found: %v, and was copied", n, ok)
		}
		if size := c.young.size + c.old.size; size > 9<<20 {
			t.Fatalf("%d bytes in memory", size)
		}
	}
	if n := testing.AllocsPerRun(100, func() { c.get(1, ref(0)) }); n != 0 {
		t.Errorf("reading a large text allocates %v times", n)
	}
	before := c.young.size + c.old.size
	c.drop(1, ref(0))
	if freed := before - c.young.size - c.old.size; freed < 210_000 || first != large(0) {
		t.Errorf("%d bytes were freed by dropping a text", freed)
	}
	if _, ok := c.get(1, ref(0)); ok {
		t.Error("a dropped text is found")
	}
}
