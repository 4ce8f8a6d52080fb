package migration

import (
	"bufio"
	"bytes"
	"cmp"
	"container/heap"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// mergeBuffer is how many bytes of each run are in memory while runs are merged.
const mergeBuffer = 64 << 10

// sorter implements imports.Sorter: it collects items up to limit bytes, writes them as a sorted run, and merges the
// runs. Runs that continue each other are one run, so items that arrive in order are only written and read.
type sorter struct {
	dir    string
	limit  int
	data   []byte // items of the present run
	items  []sortItem
	runs   []*os.File
	last   []byte // the last key of the last run
	sealed bool
}

// sortItem is the place of an item in data.
type sortItem struct{ from, key, end int }

// itemOverhead is the memory of an item besides its bytes.
const itemOverhead = 24

func newSorter(dir string, limit int64) *sorter {
	return &sorter{dir: dir, limit: int(max(limit, 1<<16))}
}

func (s *sorter) Add(key, item []byte) error {
	if s.sealed {
		return errors.New("BUG: Add after Sorted")
	}
	from := len(s.data)
	s.data = append(append(s.data, key...), item...)
	s.items = append(s.items, sortItem{from, from + len(key), len(s.data)})
	if len(s.data)+itemOverhead*len(s.items) >= s.limit/2 { // growing slices take up to twice their length
		return s.writeRun()
	}
	return nil
}

func (s *sorter) key(i sortItem) []byte { return s.data[i.from:i.key] }

func (s *sorter) writeRun() error {
	if len(s.items) == 0 {
		return nil
	}
	slices.SortStableFunc(s.items, func(a, b sortItem) int { return bytes.Compare(s.key(a), s.key(b)) })
	n := len(s.runs)
	if n == 0 || bytes.Compare(s.last, s.key(s.items[0])) > 0 {
		f, err := unlinkedFile(s.dir)
		if err != nil {
			return fmt.Errorf("sort: %w", err)
		}
		s.runs, n = append(s.runs, f), n+1
	}
	w := bufio.NewWriterSize(s.runs[n-1], 1<<20)
	var head []byte
	for _, i := range s.items {
		head = binary.AppendUvarint(head[:0], uint64(i.key-i.from))
		head = binary.AppendUvarint(head, uint64(i.end-i.key))
		w.Write(head)
		w.Write(s.data[i.from:i.end]) // bufio keeps the error
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("sort: %w", err)
	}
	s.last = append(s.last[:0], s.key(s.items[len(s.items)-1])...)
	s.data, s.items = s.data[:0], s.items[:0]
	return nil
}

// unlinkedFile returns an empty file without a name. The system frees it when it is closed or the process ends.
func unlinkedFile(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "run-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// run is a run that is being merged.
type run struct {
	r         *bufio.Reader
	number    int
	buf       []byte
	key, item []byte
}

func (r *run) next() error {
	k, err := binary.ReadUvarint(r.r)
	if err != nil {
		return err
	}
	n, err := binary.ReadUvarint(r.r)
	if err != nil {
		return io.ErrUnexpectedEOF
	}
	r.buf = slices.Grow(r.buf[:0], int(k+n))[:k+n]
	if _, err := io.ReadFull(r.r, r.buf); err != nil {
		return io.ErrUnexpectedEOF
	}
	r.key, r.item = r.buf[:k], r.buf[k:]
	return nil
}

type runHeap []*run

func (h runHeap) Len() int { return len(h) }
func (h runHeap) Less(i, j int) bool {
	return cmp.Or(bytes.Compare(h[i].key, h[j].key), cmp.Compare(h[i].number, h[j].number)) < 0
}
func (h runHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *runHeap) Push(x any)   { *h = append(*h, x.(*run)) }
func (h *runHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

func (s *sorter) Sorted(fn func(key, item []byte) error) error {
	if !s.sealed {
		if err := s.writeRun(); err != nil {
			return err
		}
		s.data, s.items, s.sealed = nil, nil, true
	}
	var h runHeap
	for i, f := range s.runs {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return fmt.Errorf("sort: %w", err)
		}
		r := &run{r: bufio.NewReaderSize(f, mergeBuffer), number: i}
		if err := r.next(); err != nil {
			return fmt.Errorf("sort: %w", err)
		}
		h = append(h, r)
	}
	heap.Init(&h)
	for len(h) > 0 {
		r := h[0]
		if err := fn(r.key, r.item); err != nil {
			return err
		}
		switch err := r.next(); {
		case errors.Is(err, io.EOF):
			heap.Pop(&h)
		case err != nil:
			return fmt.Errorf("sort: %w", err)
		default:
			heap.Fix(&h, 0)
		}
	}
	return nil
}

func (s *sorter) Close() error {
	var err error
	for _, f := range s.runs {
		err = errors.Join(err, f.Close())
	}
	s.runs, s.data, s.items = nil, nil, nil
	return err
}
