package snapshot

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The bytes of format 1, as the first release wrote them. A later format is added next to it. These lines and
// testdata/format1.tar must stay and remain readable for ever.
func TestFormat1IsPinned(t *testing.T) {
	var h hasher
	record := make([]byte, recordHead+4)
	hash := h.put(record, 3, 1841, chain{0xaa, 0xbb}, []byte("fact"))
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
	w.add(Row{7, []byte("key"), []byte("value")})
	w.add(Row{8, []byte("gone"), nil})
	w.add(Row{9, nil, []byte{}})
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
