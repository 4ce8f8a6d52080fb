package files

import (
	"errors"
	"fmt"
	"io"
)

// Scanner examines files before they are stored. Scan returns nil, an *InfectedError, ErrNotScanned or
// ErrTooLargeToScan. It is called by several goroutines.
type Scanner interface{ Scan(r io.Reader) error }

// InfectedError refuses a file with a virus.
type InfectedError struct{ Name string } // of the virus

func (e *InfectedError) Error() string { return "the file contains " + e.Name }

// ErrNotScanned refuses a file that could not be examined for now, and ErrTooLargeToScan one that never can be.
var (
	ErrNotScanned     = errors.New("the file could not be examined for viruses")
	ErrTooLargeToScan = errors.New("the file is too large to be examined for viruses")
)

// UseScanner lets a scanner examine each upload before it is stored. Pictures of users and organizations are not
// examined: they are decoded and encoded again. Call it before the first upload.
func (s *Store) UseScanner(x Scanner) { s.scanner = x }

// scan examines a file and sets it back to its beginning.
func (s *Store) scan(f io.ReadSeeker) error {
	if s.scanner == nil {
		return nil
	}
	_, err := f.Seek(0, io.SeekStart)
	if err == nil {
		if err := s.scanner.Scan(f); err != nil {
			return err
		}
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return fmt.Errorf("examine upload: %w", err)
	}
	return nil
}
