package snapshot

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"parley/actors/realm"
)

// The bytes of format 1, as the first release wrote them. A later format is added next to it. These lines and
// testdata/format1.tar must stay and remain readable for ever.
func TestFormat1IsPinned(t *testing.T) {
	var h hasher
	record := make([]byte, recordHead+4)
	hash := h.put(record, 3, chain{0xaa, 0xbb}, &Record{Inputs: realm.Inputs{Seq: 1841}, Fact: []byte("fact")})
	value := append(make([]byte, valueHead), "value"...)
	setChecksum(value, rowKey(3, 7, []byte("key")))
	mark := &durabilityManifest{
		commits: 9,
		realms:  []position{{3, 2, 1841, hash, 1700}},
		files:   []durableFile{{"000004.log", 77}},
	}

	var got bytes.Buffer
	for _, line := range []struct {
		what  string
		bytes []byte
	}{
		{"journal key", journalKey(3, 1841)},
		{"record", record},
		{"hash", hash[:]},
		{"row key", rowKey(3, 7, []byte("key"))},
		{"row", value},
		{"body key", bodyKey(3, []byte("key"))},
		{"request key", requestKey(3, "key")},
		{"staged key", stagedKey(3, 5)},
		{"epoch key", headKey(3, headEpoch)},
		{"standing key", headKey(3, headSnapshot)},
		{"standing", snapshotState{seq: 1841, hash: hash, stagedChunks: 5, snapshots: 6}.encode()},
		{"commits key", commitsKey},
		{"meta key", metaKey("key")},
		{"staged rows", stagedRows()},
	} {
		fmt.Fprintf(&got, "%s %x\n", line.what, line.bytes)
	}
	got.Write(mark.encode())

	path := filepath.Join("testdata", "format1.txt")
	pinned, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(pinned) {
		t.Errorf(
			"the stored format has changed; give the new format a new number, and keep reading the old one.\n"+
				" got\n%s\npinned\n%s",
			got.String(),
			pinned,
		)
	}
	later := *mark
	later.at, later.closed = 1795451045123, true
	const format2 = "parley watermark 2\ntime 1795451045123 true\ncommits 9\n"
	if text := string(later.encode()); !strings.HasPrefix(text, format2) {
		t.Errorf("format 2 of the durability manifest has changed: %s", text)
	}
	for _, m := range []*durabilityManifest{mark, &later} {
		if w, err := decodeDurabilityManifest(m.encode()); err != nil || fmt.Sprint(w) != fmt.Sprint(m) {
			t.Errorf("durability manifest %v decodes to %v, %v", m, w, err)
		}
	}
}

func stagedRows() []byte {
	s := OpenMemory()
	defer s.Close()
	w := rowWriter{s: s}
	w.add(Row{Table: 7, Key: []byte("key"), Value: []byte("value")})
	w.add(Row{Table: 8, Key: []byte("gone"), Value: nil})
	w.add(Row{Table: 9, Key: nil, Value: []byte{}})
	return w.ops
}

// TestFormat1Opens restores a backup made by the first release, with facts and rows in tables and in the log.
func TestFormat1Opens(t *testing.T) {
	backup, err := os.ReadFile(filepath.Join("testdata", "format1.tar"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join("testdata", "format1-contents.txt"))
	if err != nil {
		t.Fatal(err)
	}
	fs := vfs.NewMem()
	if err := restore(bytes.NewReader(backup), "data", nil, smallOptions(fs)); err != nil {
		t.Fatal(err)
	}
	same(t, "findings", findings(t, fs), []string(nil))
	s := mustOpen(t, fs)
	if got := dumpStore(s); got != string(want) {
		t.Errorf("contents: %s", difference(got, string(want)))
	}
	c := mustClaim(t, s, 1)
	mustAppend(t, s, Entry{Realm: 1, Epoch: c.Epoch, After: c.Last, Facts: facts("continued")})
}

// Format 2 of a journal record has the inputs with which the fact is applied.
func TestRecordFormat2IsPinned(t *testing.T) {
	var h hasher
	want := Record{Inputs: realm.Inputs{Seq: 1841, Now: 1_700_000_000, Level: 300, Request: "request"},
		Fact: []byte("fact")}
	stored := make([]byte, want.size())
	hash := h.put(stored, 3, chain{0xaa, 0xbb}, &want)
	const pinned = "02e3f1aaa58d2fae3caabb0000000000000000000000000000" +
		"80e2cfaa06ac02077265717565737466616374"
	if got := fmt.Sprintf("%x", stored); got != pinned {
		t.Errorf("the stored format has changed; give the new format a new number, and keep reading the old one.\n"+
			"got\n%s\npinned\n%s", got, pinned)
	}
	got, before, this, err := h.get(stored, 3, 1841)
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) || before != (chain{0xaa, 0xbb}) || this != hash {
		t.Errorf("the record decodes to %v, %v", got, err)
	}
	for n := range len(stored) {
		if _, _, _, err := h.get(stored[:n], 3, 1841); err == nil {
			t.Errorf("a record of which only %d bytes are left decodes", n)
		}
	}
	bad := Record{Fact: []byte{0x80}}
	if bad.takeInputs() == nil {
		t.Error("unfinished inputs decode")
	}
}

// The inputs of every fact are the same after a restart, and those of an entry's requests are at their last fact.
func TestInputsOfFactsAreStored(t *testing.T) {
	fs := vfs.NewMem()
	s := mustOpen(t, fs)
	mustClaim(t, s, 1)
	mustAppend(t, s,
		Entry{Realm: 1, Epoch: 1, Facts: facts("before there were inputs")},
		Entry{
			Realm: 1, Epoch: 1, After: 1, Now: 100, Level: 1, Facts: facts("b", "c", "d"),
			Requests: []Request{{ID: "one", Seq: 3}, {ID: "two", Seq: 4}},
		},
		Entry{Realm: 1, Epoch: 1, After: 4, Now: 101, Level: 2, Facts: facts("e")},
	)
	mustClose(t, s)
	s = mustOpen(t, fs)
	var got []string
	if err := s.Tail(1, 0, func(r Record) error {
		got = append(got, fmt.Sprintf("%d %d %d %q %s", r.Seq, r.Now, r.Level, r.Request, r.Fact))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	same(t, "records", got, []string{`1 0 0 "" before there were inputs`, `2 100 1 "" b`, `3 100 1 "one" c`,
		`4 100 1 "two" d`, `5 101 2 "" e`})
}
