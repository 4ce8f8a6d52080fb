package s3

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"time"

	"github.com/minio/minio-go/v7"

	"parley/snapshot/files"
)

// errorResponse returns the answer of the server that an error is made of; nil if the server has not answered.
func errorResponse(err error) *minio.ErrorResponse {
	var r minio.ErrorResponse
	if errors.As(err, &r) && r.StatusCode != 0 {
		return &r
	}
	return nil
}

// finish counts a request and converts its error. A server that did not answer, or answered that it cannot work, counts
// as unreachable until a probe succeeds.
func (b *Bucket) finish(op Op, key string, err error) error {
	b.requests[op].Add(1)
	if err == nil {
		return nil
	}
	r := errorResponse(err)
	if r != nil && r.StatusCode == http.StatusNotFound && r.Code != minio.NoSuchBucket {
		return fmt.Errorf("%s: %w", key, fs.ErrNotExist)
	}
	b.failures[op].Add(1)
	err = fmt.Errorf("%s %s: %w", op, key, err)
	switch {
	case r == nil, r.StatusCode >= 500 && r.StatusCode != http.StatusServiceUnavailable:
		b.setDown(err)
	default: // wrong keys, no bucket, too many requests: an operator has to know, but other requests may succeed
		b.log.Error("the store of files refused a request", "op", op.String(), "key", key, "err", err)
	}
	return fmt.Errorf("%w: %w", files.ErrUnavailable, err)
}

// Ready returns an error that wraps files.ErrUnavailable while the server cannot be reached.
func (b *Bucket) Ready() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down.IsZero() {
		return nil
	}
	return fmt.Errorf("%w since %s", files.ErrUnavailable, b.down.UTC().Format(time.RFC3339))
}

// Down returns since when the server cannot be reached; zero: it can.
func (b *Bucket) Down() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.down
}

// setDown refuses further requests and starts the probe.
func (b *Bucket) setDown(cause error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.down.IsZero() || b.stop.Err() != nil {
		return
	}
	b.down, b.cause = time.Now(), cause
	b.log.Error("the store of files cannot be reached: uploads and downloads are refused, messages are not",
		"endpoint", b.place.Endpoint, "bucket", b.place.Bucket, "err", cause)
	b.transport.CloseIdleConnections()
	b.ended.Go(b.probeUntilReady)
}

func (b *Bucket) probeUntilReady() {
	t := time.NewTicker(probeInterval)
	defer t.Stop()
	for {
		select {
		case <-b.stop.Done():
			return
		case <-t.C:
		}
		if b.Probe() != nil {
			continue
		}
		b.mu.Lock()
		took := time.Since(b.down)
		b.down, b.cause = time.Time{}, nil
		b.mu.Unlock()
		b.log.Info("the store of files can be reached again", "took", took.Round(time.Millisecond).String())
		return
	}
}

// Probe asks the server for the bucket, whatever is known about it. The error names the setting to change.
func (b *Bucket) Probe() error {
	ctx, cancel := context.WithTimeout(b.stop, probeTimeout)
	defer cancel()
	ok, err := b.client.BucketExists(ctx, b.place.Bucket)
	if err != nil {
		return fmt.Errorf("files: bucket %s at %s cannot be reached: %w", b.place.Bucket, b.place.Endpoint, err)
	}
	if !ok {
		return fmt.Errorf("files: there is no bucket %s at %s; make it first", b.place.Bucket, b.place.Endpoint)
	}
	return nil
}

// Watch probes in the background, so that a server that cannot be reached at the start is reported then. When it can be
// reached, Watch calls ready until it returns true.
func (b *Bucket) Watch(ready func() bool) {
	b.ended.Go(func() {
		if err := b.Probe(); err != nil && b.stop.Err() == nil {
			b.setDown(err)
		}
		t := time.NewTicker(probeInterval)
		defer t.Stop()
		for b.Ready() != nil || !ready() {
			select {
			case <-b.stop.Done():
				return
			case <-t.C:
			}
		}
	})
}

// Stats are the numbers of metrics.
type Stats struct {
	Requests, Failures map[Op]int64
	Uploads, Downloads int64 // in progress
	// Uploads and downloads that were refused because too many were in progress.
	RefusedUploads, RefusedDownloads int64
	Down                             bool
}

// Stats returns the numbers of metrics.
func (b *Bucket) Stats() Stats {
	s := Stats{Requests: map[Op]int64{}, Failures: map[Op]int64{}, Uploads: int64(len(b.uploads)),
		Downloads: int64(len(b.downloads)), Down: !b.Down().IsZero()}
	s.RefusedUploads, s.RefusedDownloads = b.refused[0].Load(), b.refused[1].Load()
	for _, op := range Ops() {
		s.Requests[op], s.Failures[op] = b.requests[op].Load(), b.failures[op].Load()
	}
	return s
}
