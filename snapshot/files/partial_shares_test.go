package files

import (
	"errors"
	"fmt"
	"testing"
)

// Of several spaces, each has at most half of MaxPartialUploads. One that begins more loses those that it finished
// first, and if it has none of these, it is refused. A single space has them all.
func TestPartialUploadsOfOneSpace(t *testing.T) {
	s, err := Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	several := true
	s.ShareBetween(func() bool { return several })
	for i := range MaxPartialUploads / 2 {
		id := fmt.Sprint("u", i)
		s.partialUploads[id] = &PartialUpload{ID: id, Space: "1", Owner: fmt.Sprint(i)}
	}
	begin := func(id, space string) error {
		_, err := s.reserveUpload(PartialUpload{ID: id, Space: space, Owner: "me"})
		return err
	}
	if err := begin("more", "1"); !errors.Is(err, ErrTooManyUploads) {
		t.Errorf("a space begins more than half: %v", err)
	}
	if err := begin("other", "2"); err != nil {
		t.Errorf("another space: %v", err)
	}
	s.partialUploads["u0"].Answer = "finished"
	if err := begin("next", "1"); err != nil || s.partialUploads["u0"] != nil {
		t.Errorf("a space that has finished one: %v", err)
	}
	several = false
	if err := begin("whole", "1"); err != nil {
		t.Errorf("the only space: %v", err)
	}
}
