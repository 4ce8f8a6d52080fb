// Command build writes the files of a release: build VERSION DIR. `make release` calls it.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"parley/cmd/internal/licenses"
	"parley/cmd/internal/release"
)

func main() {
	if err := build(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release: "+err.Error())
		os.Exit(1)
	}
}

func build(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: build VERSION DIR")
	}
	out, err := filepath.Abs(args[1])
	if err != nil {
		return err
	}
	source, err := filepath.Abs(".")
	if err != nil {
		return err
	}
	r, err := release.New(args[0], source, out)
	if err != nil {
		return err
	}
	r.Notices = licenses.Notices
	return r.Build()
}
