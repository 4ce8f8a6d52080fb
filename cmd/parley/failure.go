package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"parley/snapshot"
)

// Exit codes: exitError is a command or a start that did not work, exitFatal a server that ended itself because it could
// no longer keep its promises; starting it again recovers.
const (
	exitError = 1
	exitFatal = 2
)

// newFatal ends the process at once, once, saying why: nothing is acknowledged any more, and what was acknowledged is on
// disk.
func newFatal(log *slog.Logger) func(error) {
	var once sync.Once
	return func(err error) {
		once.Do(func() {
			log.Error("cannot go on; stopping at once, nothing more is acknowledged", "error", err)
			fmt.Fprintln(os.Stderr, "parley: stopped: "+err.Error())
			os.Exit(exitFatal)
		})
		select {} // another goroutine is ending the process
	}
}

// stopOnFailure ends the process when a write to the data directory has failed, also one in the background.
func stopOnFailure(store *snapshot.Store, fatal func(error)) {
	<-store.Failed()
	fatal(store.Err())
}

// startFailure adds what to do to an error of opening a data directory, where the error does not say.
func startFailure(dir string, err error) error {
	var damage *snapshot.DamageError
	switch {
	case errors.As(err, &damage): // names its place and the way on
	case errors.Is(err, snapshot.ErrInUse), errors.Is(err, snapshot.ErrFailed):
	default:
		return fmt.Errorf("%w; if you suspect the disk, run parley log check %s", err, dir)
	}
	return err
}
