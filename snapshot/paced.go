package snapshot

import (
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// pacedChunk is how many bytes a PacedWriter writes at a time: a disk of 100 MB/s writes them in 10 ms, which is about
// the time of a few commits.
const pacedChunk = 1 << 20

// PacedWriter writes a large file of a running node, and leaves half of the disk's time to commits. After each
// pacedChunk bytes it syncs them, because the file system would else write all of them when a commit syncs the log, and
// then rests for as long as the chunk took.
type PacedWriter struct {
	file vfs.File
	left int           // bytes until the next sync
	busy time.Duration // of the current chunk
}

// NewPacedWriter returns a PacedWriter of a file. The caller syncs and closes the file.
func NewPacedWriter(f vfs.File) *PacedWriter { return &PacedWriter{file: f, left: pacedChunk} }

// Write writes all of p. The file may modify p.
func (w *PacedWriter) Write(p []byte) (n int, err error) {
	for len(p) > 0 && err == nil {
		began, done := time.Now(), 0
		done, err = w.file.Write(p[:min(len(p), w.left)])
		n, p = n+done, p[done:]
		if w.left -= done; w.left == 0 && err == nil {
			err = w.file.SyncData()
		}
		w.busy += time.Since(began)
		if w.left == 0 {
			time.Sleep(w.busy)
			w.left, w.busy = pacedChunk, 0
		}
	}
	return n, err
}
