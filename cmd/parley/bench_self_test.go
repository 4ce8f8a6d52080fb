package main

import (
	"strings"
	"testing"
)

// The runs of parley bench that start a server of their own pass with the real program, also those whose tests have a
// server that only imitates it.
func TestBenchStartsParley(t *testing.T) {
	t.Parallel() // the runs have a fixed length
	for _, args := range []string{
		"chat --self --tls --http2 --users 20 --channels 2 --history 0 --rate 50 --duration 1 --quiet",
		"faults --self --kinds leak-later --one-in 400 --users 12 --channels 6 --rate 100 --duration 4 --late 5s",
	} {
		if out, code := runParley(append([]string{"bench"}, strings.Fields(args)...)...); code != 0 {
			t.Errorf("parley bench %s: exit code %d:\n%s", args, code, out)
		}
	}
}
