package s3

import (
	"errors"
	"testing"

	"parley/actors/admission"
	"parley/snapshot/files"
)

// Of several spaces, each sends at most half of MaxUploads to the bucket at a time. The others can send the rest.
func TestUploadsOfOneSpace(t *testing.T) {
	b := &Bucket{shares: admission.NewShares(MaxUploads, nil)}
	b.ShareBetween(func() bool { return true })
	for range MaxUploads / 2 {
		if !b.shares.Take("1", 1) {
			t.Fatal("a space has less than half")
		}
	}
	if err := b.PutFor("1", "content/none", nil); !errors.Is(err, files.ErrUnavailable) || b.refused[0].Load() != 1 {
		t.Errorf("an upload beyond half: %v", err)
	}
	if !b.shares.Take("2", MaxUploads/2) {
		t.Error("another space has less than half")
	}
}
