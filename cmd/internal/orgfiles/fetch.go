package orgfiles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/actors/realm"
	"parley/cmd/internal/cluster"
	"parley/snapshot"
	"parley/snapshot/files"
	"parley/wire"
)

const (
	// maxFetchWait is how long a request waits until it may fetch a file from another core. The bucket's limit is the
	// same, so that a client sees no difference.
	maxFetchWait = 5 * time.Second
	// maxDownloadFetch is how long a request waits while its file comes from another core: a file of 100 MB takes 8 s
	// at 100 Mbit/s. A file that takes longer is there when the client asks again, because the transfer continues.
	maxDownloadFetch = 20 * time.Second
)

// Fetcher fetches files that this core lacks from the other cores. Without a bucket, a file is at first only on the
// core that was the leader when it was uploaded.
type Fetcher struct {
	files *files.Store
	core  atomic.Pointer[cluster.Leader] // see SetCore
	log   *slog.Logger
	// isReferenced reports whether a row names a file. A file that no row names is not fetched: it was deleted.
	isReferenced func(kind, name string) (bool, error)

	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	places  chan struct{} // holds an element for each file that is being fetched
	refused atomic.Int64  // downloads of files that no core could give
	ended   sync.WaitGroup

	mu      sync.Mutex
	running map[string]*fileFetch // by key
}

// fileFetch is the fetch of one file, for which several requests may wait.
type fileFetch struct {
	done chan struct{}
	err  error // after done is closed
}

func NewFetcher(f *files.Store, log *slog.Logger, isReferenced func(kind, name string) (bool, error),
) *Fetcher {
	ctx, cancel := context.WithCancel(context.Background())
	return &Fetcher{files: f, log: log, isReferenced: isReferenced, ctx: ctx, cancel: cancel,
		places: make(chan struct{}, cluster.MaxFileFetches), running: map[string]*fileFetch{}}
}

// Fetching returns the number of files that are being fetched.
func (f *Fetcher) Fetching() int64 {
	if f == nil {
		return 0
	}
	return int64(len(f.places))
}

// Refused returns how many downloads were refused because no core could give the file.
func (f *Fetcher) Refused() int64 {
	if f == nil {
		return 0
	}
	return f.refused.Load()
}

// ForRequest fetches a file that a request asks for. It returns nil if the file is here now, fs.ErrNotExist if no row
// names it, and wire.ErrFileElsewhere if no core can give it now.
func (f *Fetcher) ForRequest(kind, file string) error {
	var err error
	if kind != realm.ContentFile { // a row has named content; the address of the request names the others
		name := files.RowNameOf(kind, file)
		named := false
		if name != "" {
			named, err = f.isReferenced(kind, name)
		}
		if err != nil {
			return err
		}
		if !named {
			return fs.ErrNotExist
		}
	}
	x := f.begin(kind, file, "")
	t := time.NewTimer(maxDownloadFetch)
	defer t.Stop()
	select {
	case <-x.done:
		err = x.err
	case <-t.C:
		err = context.DeadlineExceeded
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, cluster.ErrNoCoreHas) && files.FilesOf(kind, files.RowNameOf(kind, file))[0] != file:
		return fs.ErrNotExist // the medium size of a logo, for example
	case errors.Is(err, wire.ErrNoSpace), snapshot.IsFull(err):
		return wire.ErrNoSpace
	}
	f.refused.Add(1)
	f.log.Warn("a file is not on this core and could not be fetched from another one", "file", file, "err", err)
	return wire.ErrFileElsewhere
}

// begin starts to fetch a file, unless that is in progress.
func (f *Fetcher) begin(kind, file, space string) *fileFetch {
	key := files.Key(kind, file)
	f.mu.Lock()
	defer f.mu.Unlock()
	if x := f.running[key]; x != nil {
		return x
	}
	x := &fileFetch{done: make(chan struct{})}
	f.running[key] = x
	f.ended.Go(func() {
		x.err = f.fetch(kind, file, space)
		f.mu.Lock()
		delete(f.running, key)
		f.mu.Unlock()
		close(x.done)
	})
	return x
}

// errFetchesBusy is the error of a file that is not fetched, because too many are being fetched.
var errFetchesBusy = errors.New("too many files are being fetched from other cores at the same time")

func (f *Fetcher) fetch(kind, file, space string) error {
	t := time.NewTimer(maxFetchWait)
	defer t.Stop()
	select {
	case f.places <- struct{}{}:
		defer func() { <-f.places }()
	case <-t.C:
		return errFetchesBusy
	}
	core := f.core.Load()
	if core == nil {
		return errors.New("this core is starting")
	}
	return core.FetchFile(f.ctx, kind, file, func(size int64, r io.Reader) error {
		return f.files.Adopt(kind, file, space, size, r)
	})
}

// collect fetches the missing files of a list and returns those that no core has given, with the reason.
func (f *Fetcher) collect(list []Missing) (left []Missing, err error) {
	for _, m := range list {
		for i, file := range files.FilesOf(m.kind, m.name) {
			x := f.begin(m.kind, file, Space(m.realm))
			<-x.done
			if i > 0 && errors.Is(x.err, cluster.ErrNoCoreHas) {
				continue // the medium size of a logo, for example
			}
			if errors.Is(x.err, wire.ErrNoSpace) || snapshot.IsFull(x.err) {
				return nil, x.err
			}
			if x.err != nil {
				m.reason = x.err.Error()
				left = append(left, m)
				break
			}
		}
	}
	return left, nil
}

// Close ends the fetches.
func (f *Fetcher) Close() {
	if f != nil {
		f.cancel()
		f.ended.Wait()
	}
}

// Missing is a file that a row names and that is missing or damaged.
type Missing struct {
	realm   realm.ID
	kind    string
	name    string // in the row
	key     string // of the file
	damaged bool
	reason  string // why no other core has given it; "": unknown
}

func (m Missing) String() string {
	problem := "missing"
	if m.damaged {
		problem = "damaged"
	}
	text := fmt.Sprintf("%s: %s (organization %d)", problem, m.key, m.realm)
	if m.reason != "" {
		text += ": " + m.reason
	}
	return text
}

// listMissing returns the first missing files, one a line.
func listMissing(list []Missing) string {
	var b strings.Builder
	for i, m := range list {
		if i == maxShownFiles {
			fmt.Fprintf(&b, "and %d more\n", len(list)-i)
			break
		}
		fmt.Fprintln(&b, m)
	}
	return b.String()
}

// DescribeLacking says which files a backup would lack; "": none.
func DescribeLacking(list []Missing) string {
	if len(list) == 0 {
		return ""
	}
	return fmt.Sprintf("%d files are missing, which the rows of the backup name:\n%s", len(list),
		strings.TrimSpace(listMissing(list)))
}

// ErrLacking returns the error for a backup that would lack files.
func ErrLacking(lacking string) error {
	return errors.New(lacking + "\nStart the cores that have the files and run the command again. Files that are " +
		"lost for ever can be left out: --incomplete")
}

// CollectAll fetches all files that rows name and this core lacks. It returns those that no core has given. only, if
// not 0, is the organization whose files are needed.
func (f *Fetcher) CollectAll(disk snapshot.Disk, only realm.ID) (left []Missing, err error) {
	// Rows can end while files are fetched, and their files with them. The second look finds those that are still
	// missing.
	for range 2 {
		list, _, err := FindMissing(disk, f.files, only, false)
		if err != nil || len(list) == 0 {
			return nil, err
		}
		if left, err = f.collect(list); err != nil || len(left) == 0 {
			return nil, err
		}
	}
	return left, nil
}

// ForCores returns the function that opens files of a store for other cores.
func ForCores(store *files.Store) func(kind, name string) (cluster.StoredFile, error) {
	return func(kind, name string) (cluster.StoredFile, error) {
		if files.RowNameOf(kind, name) == "" {
			return nil, fs.ErrNotExist
		}
		return store.Open(kind, name)
	}
}

// SetCore sets the core that knows the other cores; nothing can be fetched before.
func (f *Fetcher) SetCore(c *cluster.Leader) { f.core.Store(c) }
