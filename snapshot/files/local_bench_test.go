package files

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"parley/actors/realm"
)

// BenchmarkLocalFiles compares files of the data directory through Store and Blobs with the same work on plain files:
// an upload is hashed, written, synced and renamed, and a download is read with a buffer. Both take turns, so that the
// machine treats them alike. It reports the median times, and the median of Blobs divided by that of plain files.
func BenchmarkLocalFiles(b *testing.B) {
	for _, size := range []int{16 << 10, 1 << 20} {
		content := bytes.Repeat([]byte("0123456789abcdef"), size/16)
		b.Run(fmt.Sprintf("upload/%dkB", size>>10), func(b *testing.B) {
			s, plain := openBenchmarkStore(b)
			compare(b, func(i int) error {
				saved, err := s.Save(fmt.Sprint("store ", i), bytes.NewReader(content), 1<<30)
				if err == nil {
					err = s.Release(saved.Hash, nil)
				}
				return err
			}, func(i int) error {
				return writePlain(plain, fmt.Sprint("plain ", i), bytes.NewReader(content))
			})
		})
		b.Run(fmt.Sprintf("download/%dkB", size>>10), func(b *testing.B) {
			s, _ := openBenchmarkStore(b)
			saved, err := s.Save("1", bytes.NewReader(content), 1<<30)
			if err != nil {
				b.Fatal(err)
			}
			path := filepath.Join(s.dir, filepath.FromSlash(ContentKey(saved.Hash)))
			buffer := make([]byte, copyBuffer)
			compare(b, func(int) error {
				x, err := s.Open(realm.ContentFile, saved.Hash)
				if err != nil {
					return err
				}
				defer x.Close()
				r, err := x.Section(0, x.Size())
				if err != nil {
					return err
				}
				defer r.Close()
				_, err = io.CopyBuffer(onlyWriter{io.Discard}, r, buffer)
				return err
			}, func(int) error {
				f, err := os.Open(path)
				if err != nil {
					return err
				}
				defer f.Close()
				info, err := f.Stat()
				if err != nil {
					return err
				}
				_, err = io.CopyBuffer(onlyWriter{io.Discard}, io.NewSectionReader(f, 0, info.Size()), buffer)
				return err
			})
		})
	}
}

// onlyWriter hides the other methods of a writer, as a connection with TLS has none.
type onlyWriter struct{ io.Writer }

func openBenchmarkStore(b *testing.B) (s *Store, plain string) {
	b.Helper()
	dir := b.TempDir()
	s, err := Open(filepath.Join(dir, "store"), nil)
	if err != nil {
		b.Fatal(err)
	}
	plain = filepath.Join(dir, "plain")
	if err := os.MkdirAll(filepath.Join(plain, "incoming"), 0o700); err != nil {
		b.Fatal(err)
	}
	return s, plain
}

// writePlain stores an upload without Store.
func writePlain(dir, space string, r io.Reader) error {
	f, err := os.CreateTemp(filepath.Join(dir, "incoming"), "upload-*")
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	h.Write([]byte(space))
	if _, err := io.CopyBuffer(io.MultiWriter(f, h), onlyReader{r}, make([]byte, copyBuffer)); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	name := hex.EncodeToString(h.Sum(nil))
	path := filepath.Join(dir, "content", name[:2], name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// onlyReader hides the other methods of a reader, as the body of a request has none.
type onlyReader struct{ io.Reader }

// compare runs two functions in turn.
func compare(b *testing.B, blobs, plain func(i int) error) {
	b.Helper()
	var took [2][]time.Duration
	for i := 0; b.Loop(); i++ {
		for k := range took {
			which := (i + k) % 2 // each is the first one as often as the other
			began := time.Now()
			var err error
			if which == 0 {
				err = blobs(i)
			} else {
				err = plain(i)
			}
			if err != nil {
				b.Fatal(err)
			}
			took[which] = append(took[which], time.Since(began))
		}
	}
	var median [2]float64
	for k := range took {
		slices.Sort(took[k])
		median[k] = float64(took[k][len(took[k])/2].Nanoseconds())
	}
	b.ReportMetric(median[0], "ns/blobs")
	b.ReportMetric(median[1], "ns/plain")
	b.ReportMetric(median[0]/median[1], "blobs/plain")
}
