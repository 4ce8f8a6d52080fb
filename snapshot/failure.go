package snapshot

import "fmt"

// callPebble runs a call into Pebble that may block for ever if a write fails. returned reports whether it has
// returned; otherwise Pebble is stuck.
func (s *Store) callPebble(call func() error) (returned bool, err error) {
	result := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				s.pebbleStuck.Store(true)
				result <- panicError(p)
			}
		}()
		result <- call()
	}()
	select {
	case err = <-result:
		returned = true
	case <-s.stopped:
	}
	if failure := s.Err(); failure != nil {
		return returned, failure
	}
	return returned, err
}

func panicError(p any) error {
	if err, ok := p.(error); ok {
		return err
	}
	return fmt.Errorf("%v", p)
}

// Failed returns a channel that is closed when a write has failed, even in the background. Err then returns the reason.
func (s *Store) Failed() <-chan struct{} { return s.failed }

// Err returns nil until a write has failed, and then an ErrFailed with the reason.
func (s *Store) Err() error {
	select {
	case <-s.failed:
		return s.failure
	default:
		return nil
	}
}

func (s *Store) fail(reason error) {
	s.failOnce.Do(func() {
		if IsFull(reason) {
			reason = fmt.Errorf("%w: %w", ErrFull, reason)
		}
		s.failure = &failedError{reason}
		s.o.Log.Error("data directory failed", "dir", s.dir, "err", reason)
		close(s.failed)
	})
}

// failAndBlock fails the store and blocks for ever. The goroutine keeps the Pebble locks that it holds.
func (s *Store) failAndBlock(reason error) {
	s.fail(reason)
	s.pebbleStuck.Store(true)
	s.stopOnce.Do(func() { close(s.stopped) })
	select {}
}

type failedError struct{ reason error }

func (e *failedError) Error() string   { return ErrFailed.Error() + ": " + e.reason.Error() }
func (e *failedError) Unwrap() []error { return []error{ErrFailed, e.reason} }

// fatalLogger handles Pebble's fatal errors. Pebble expects Fatalf not to return. Only the owner of the store may end
// the process, so Fatalf fails the store and blocks the goroutine for ever.
type fatalLogger struct{ s *Store }

func (l fatalLogger) Infof(string, ...any) {}

func (l fatalLogger) Errorf(format string, args ...any) {
	l.s.o.Log.Warn("Pebble reported an error", "err", fmt.Sprintf(format, args...))
}

func (l fatalLogger) Fatalf(format string, args ...any) {
	l.s.failAndBlock(fatalReason(format, args))
}

// fatalReason returns the error among the arguments, so that a full disk can be recognized.
func fatalReason(format string, args []any) error {
	for _, a := range args {
		if err, ok := a.(error); ok {
			return err
		}
	}
	return fmt.Errorf(format, args...)
}
