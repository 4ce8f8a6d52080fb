package search

import (
	"flag"
	"io/fs"
	"math/rand"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/actors/realm"
)

// The target is 50 ms at the 99th percentile for a million messages: go test -bench Find -messages 1000000.
var messages = flag.Int("messages", 50_000, "how many messages the benchmark indexes")

// vocabulary returns made-up words. As in a natural language, some are much more frequent than others.
func vocabulary(r *rand.Rand, n int) []string {
	syllables := strings.Fields(
		"ba ce di fo gu ha je ki lo mu na pe ri so tu va we xi yo zu an en in on un ar er ir or ur st tr pl",
	)
	ends := []string{"", "", "", "s", "ing", "ed", "ly", "ness"}
	out := make([]string, n)
	for i := range out {
		var b strings.Builder
		for range 1 + r.Intn(4) {
			b.WriteString(syllables[r.Intn(len(syllables))])
		}
		out[i] = b.String() + ends[r.Intn(len(ends))]
	}
	return out
}

func BenchmarkFind(b *testing.B) {
	r := rand.New(rand.NewSource(1))
	words := vocabulary(r, 60_000)
	zipf := rand.NewZipf(r, 1.1, 20, uint64(len(words)-1))
	dir := b.TempDir()
	x, err := Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer x.Close()
	began := time.Now()
	for at := 0; at < *messages; at += 1000 {
		var docs []Doc
		for i := range 1000 {
			var text strings.Builder
			for range 5 + r.Intn(25) {
				text.WriteString(words[zipf.Uint64()])
				text.WriteByte(' ')
			}
			docs = append(docs, newDoc(realm.MessageID(at+i+1), text.String()))
		}
		if err := x.Write(realm.Seq(at+1), docs); err != nil {
			b.Fatal(err)
		}
	}
	took := time.Since(began)
	warm := time.Now()
	if err := x.Warm(); err != nil {
		b.Fatal(err)
	}
	var size int64
	filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if i, e := d.Info(); e == nil && !d.IsDir() {
			size += i.Size()
		}
		return err
	})
	var mem runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&mem)
	b.Logf("%d messages indexed in %v, warm in %v, %d bytes a message on disk, heap %d MB, %d segments",
		*messages, took.Round(time.Millisecond), time.Since(warm).Round(time.Millisecond), size/int64(*messages),
		mem.HeapAlloc>>20, len(x.segments))
	for _, c := range []struct {
		name  string
		query func() string
	}{
		{"word", func() string { return words[zipf.Uint64()] }},
		{"three words", func() string {
			return words[zipf.Uint64()] + " " + words[zipf.Uint64()] + " " + words[zipf.Uint64()]
		}},
		{"commonest word", func() string { return words[0] }},
		{"phrase", func() string { return `"` + words[zipf.Uint64()] + " " + words[zipf.Uint64()] + `"` }},
		{"fragment", func() string { return `"` + words[zipf.Uint64()][1:] + `"` }},
	} {
		b.Run(c.name, func(b *testing.B) {
			var each []time.Duration
			for range b.N {
				q := Parse(c.query())
				began := time.Now()
				if _, _, err := x.Find(q); err != nil {
					b.Fatal(err)
				}
				each = append(each, time.Since(began))
			}
			slices.Sort(each)
			b.ReportMetric(float64(each[len(each)*99/100])/1e6, "ms-p99")
		})
	}
}
