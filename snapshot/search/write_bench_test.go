package search

import (
	"fmt"
	"math/rand"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/actors/realm"
)

// BenchmarkWrite measures the CPU time of indexing a message's text, in all goroutines, for several batch sizes: go
// test ./snapshot/search -run XXX -bench Write -benchtime 50000x
func BenchmarkWrite(b *testing.B) {
	r := rand.New(rand.NewSource(1))
	words := vocabulary(r, 60_000)
	zipf := rand.NewZipf(r, 1.1, 20, uint64(len(words)-1))
	for _, size := range []int{50, 200, 500, 2000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			x, err := Open(b.TempDir())
			if err != nil {
				b.Fatal(err)
			}
			docs := make([]Doc, b.N)
			for i := range docs {
				var text strings.Builder
				for range 5 + r.Intn(25) {
					text.WriteString(words[zipf.Uint64()])
					text.WriteByte(' ')
				}
				docs[i] = newDoc(realm.MessageID(i+1), text.String())
			}
			before := cpu(b)
			b.ResetTimer()
			for at := 0; at < b.N; at += size {
				if err := x.Write(realm.Seq(at+1), docs[at:min(at+size, b.N)]); err != nil {
					b.Fatal(err)
				}
			}
			if err := x.Close(); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64((cpu(b)-before).Microseconds())/float64(b.N), "us-cpu/text")
		})
	}
}

func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkPark opens an index, writes a text and closes it. Most of its time is the wait for the disk.
func BenchmarkPark(b *testing.B) {
	dir := b.TempDir()
	for i := range b.N {
		x, err := Open(dir)
		if err != nil {
			b.Fatal(err)
		}
		doc := Doc{Ref: realm.BodyRef{Message: realm.MessageID(i%10 + 1)}, Text: "some words of a text"}
		if err := x.Write(realm.Seq(i), []Doc{doc}); err != nil {
			b.Fatal(err)
		}
		if err := x.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
