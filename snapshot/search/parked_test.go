package search

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"parley/actors/realm"
)

// openFiles returns how many files below a directory this process has open.
func openFiles(t *testing.T, dir string) (n int) {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("the open files of a process cannot be counted here: ", err)
	}
	for _, e := range list {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, dir) {
			n++
		}
	}
	return n
}

func noTopics(realm.TopicID) ([]realm.TopicName, error) { return nil, nil }

// Many organizations are searched with few open files: indexes that were used longest ago are closed, and opened again
// for the next search, which finds the texts that were written meanwhile.
func TestFewIndexesAreOpen(t *testing.T) {
	const realms, most = 40, 4
	dir := t.TempDir()
	d := &fakeDisk{texts: map[realm.BodyRef]string{}}
	d.send(1, "apple")
	open := func() *Service {
		s := OpenService(dir, d, func(b realm.Body) string { return b.Text }, slog.New(slog.DiscardHandler))
		s.maxOpen = most
		for id := range realm.ID(realms) {
			s.Attach(id+1, d.last(), d.from, d.readText)
		}
		return s
	}
	find := func(s *Service, id realm.ID, word string, want int) {
		t.Helper()
		hits, _, ready, err := s.Find(id, d.last(), word, noTopics)
		if err != nil || !ready || hits[0].Messages.Len() != want {
			t.Fatalf("%q of organization %d: %v, ready %v, %v; want %d", word, id, hits, ready, err, want)
		}
	}
	few := func(s *Service) {
		t.Helper()
		end := time.Now().Add(20 * time.Second)
		for s.Opened() > most || openFiles(t, dir) > most*descriptorsPerOpen {
			if time.Now().After(end) {
				t.Fatalf("%d indexes are open with %d files, want at most %d", s.Opened(), openFiles(t, dir), most)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	s := open()
	for id := range realm.ID(realms) {
		find(s, id+1, "apple", 1)
	}
	few(s)
	for i := range realm.MessageID(3) {
		texts := d.send(i+2, fmt.Sprintf("pear p%d", i))
		for id := range realm.ID(realms) {
			s.Feed(id+1, d.last(), texts)
		}
	}
	texts := d.edit(1, 1, "plum")
	for id := range realm.ID(realms) {
		s.Feed(id+1, d.last(), texts)
		find(s, id+1, "pear", 3)
		find(s, id+1, "apple", 0)
	}
	few(s)
	s.Detach(1) // its index may be closed
	s.Attach(1, d.last(), d.from, d.readText)
	find(s, 1, "plum", 1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if n := openFiles(t, dir); n > 0 {
		t.Errorf("%d files are open after Close", n)
	}
	scans := d.scans
	s = open()
	for id := range realm.ID(realms) {
		find(s, id+1, "plum", 1)
	}
	if d.scans > scans {
		t.Errorf("%d comparisons with all texts after a restart, want none", d.scans-scans)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// A server with many new organizations stops in time: their texts are indexed by the next process.
func TestStopLeavesTexts(t *testing.T) {
	const realms = 40
	dir := t.TempDir()
	d := &fakeDisk{texts: map[realm.BodyRef]string{}}
	d.send(1, "apple")
	open := func() *Service {
		s := OpenService(dir, d, func(b realm.Body) string { return b.Text }, slog.New(slog.DiscardHandler))
		for id := range realm.ID(realms) {
			s.Attach(id+1, d.last(), d.from, d.readText)
		}
		return s
	}
	s := open()
	s.stopTime = 0
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if d.scans > 0 {
		t.Errorf("a stop without time has read the texts of %d organizations", d.scans)
	}
	s = open()
	for id := range realm.ID(realms) {
		hits, _, ready, err := s.Find(id+1, d.last(), "apple", noTopics)
		if err != nil || !ready || hits[0].Messages.Len() != 1 {
			t.Fatalf("organization %d after the stop: %v, ready %v, %v", id+1, hits, ready, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
