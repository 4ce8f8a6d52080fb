package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The README's table of bounds is the program's.
func TestBoundsPage(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	c := defaults()
	r := &metricReading{park: c.park().WithDefaults()}
	want := "| bound | limit | of | past it |\n|---|---|---|---|\n"
	for _, b := range bounds {
		limit := fmt.Sprint(b.limit(r))
		if b.name == "connections" {
			limit = "`max-connections`"
		}
		want += fmt.Sprintf("| `%s` | %s | %s | %s |\n", b.name, limit, b.unit, b.overflow)
	}
	if !strings.Contains(string(text), want) {
		t.Errorf("the README's table of bounds must be\n%s", want)
	}
}
