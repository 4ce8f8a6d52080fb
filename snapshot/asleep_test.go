package snapshot

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"parley/actors/realm"
)

// What is known of a sleeping organization is valid until another process claims it or a fact is added.
func TestAsleep(t *testing.T) {
	fs := vfs.NewMem()
	s := mustOpen(t, fs)
	d := Disk{Store: s}
	c := mustClaim(t, s, 1)
	mustAppend(t, s, Entry{Realm: 1, Epoch: c.Epoch, Facts: facts("a", "b")})
	want := realm.Asleep{Epoch: c.Epoch, Seq: 2, StringID: "one", Due: realm.NeverDue}
	expect := func(what string, valid bool) {
		t.Helper()
		x, ok := d.Asleep(1)
		if ok != valid || ok && (x.StringID != "one" || x.Due != realm.NeverDue) {
			t.Errorf("%s: valid %v, %+v", what, ok, x)
		}
	}
	expect("before", false)
	if err := d.WriteAsleep(1, c.Epoch, &want); err != nil {
		t.Fatal(err)
	}
	expect("asleep", true)
	mustClose(t, s)
	s = mustOpen(t, fs)
	d = Disk{Store: s}
	expect("after a start", true)
	mustAppend(t, s, Entry{Realm: 1, Epoch: c.Epoch, After: 2, Facts: facts("c")})
	expect("after a fact", false)
	want.Seq = 3
	if err := d.WriteAsleep(1, c.Epoch, &want); err != nil {
		t.Fatal(err)
	}
	expect("asleep again", true)
	next := mustClaim(t, s, 1)
	expect("after a claim", false)
	if err := d.WriteAsleep(1, c.Epoch, &want); err == nil {
		t.Error("an older owner can write")
	}
	if err := d.WriteAsleep(1, next.Epoch, nil); err != nil {
		t.Fatal(err)
	}
	if _, found, err := s.get(headKey(1, headAsleep)); found || err != nil {
		t.Errorf("it is not removed: %v", err)
	}
}
