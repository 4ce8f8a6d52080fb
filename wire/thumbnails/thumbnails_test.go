package thumbnails

import (
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"parley/actors/realm"
	"parley/wire"
)

// slowFiles fails to make thumbnails, slowly.
type slowFiles struct {
	wire.Files
	calls   atomic.Int32
	release chan struct{}
}

func (f *slowFiles) Thumbnail(realm.ID, string, bool) (string, error) {
	f.calls.Add(1)
	<-f.release
	return "", errors.New("disk failed")
}

var _ wire.ThumbnailQueue = (*Worker)(nil)

// TestAddNeverBlocks fills the queue behind a slow image; Close must end without working it off.
func TestAddNeverBlocks(t *testing.T) {
	f := &slowFiles{release: make(chan struct{})}
	w := Start(nil, f, slog.New(slog.DiscardHandler))
	w.mu.Lock()
	w.owned[1] = true
	w.mu.Unlock()
	for range MaxWaiting + 10 {
		w.Add(1, realm.Upload{ID: 1})
	}
	for began := time.Now(); f.calls.Load() == 0 && time.Since(began) < time.Minute; {
		time.Sleep(time.Millisecond)
	}
	close(w.stop)
	close(f.release)
	w.ended.Wait()
	if n := f.calls.Load(); n == 0 || n > MaxWaiting {
		t.Errorf("%d images were processed, want some of the %d in the queue", n, MaxWaiting)
	}
}
