package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// The reference pages agree with the program: settings, bounds, metrics, commands and extensions.
func TestReferencePages(t *testing.T) {
	pages := referencePages()
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		file, err := os.ReadFile(filepath.Join("../../.github/docs/reference", name))
		if err != nil || string(file) != pages[name] {
			t.Errorf(".github/docs/reference/%s is out of date (%v); run: make docs", name, err)
		}
	}
}
