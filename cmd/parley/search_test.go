package main

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/cmd/internal/datadir"
)

// searchIDs returns the ids of the messages that a search finds.
func searchIDs(t *testing.T, p *account, words string) []int64 {
	t.Helper()
	a, err := p.call("GET", "messages", url.Values{"anchor": {"newest"}, "num_before": {"50"},
		"narrow": {`[["search",` + quoted(words) + `]]`}})
	if err != nil {
		t.Fatal(err)
	}
	var ids []int64
	for _, m := range a["messages"].([]any) {
		ids = append(ids, int64(m.(map[string]any)["id"].(float64)))
	}
	return ids
}

func quoted(s string) string { return `"` + strings.ReplaceAll(s, `"`, `\"`) + `"` }

// A message can be found as soon as its sender has the answer: at once, after kill -9, without the files of the index,
// and after a rebuild.
func TestSearchSurvives(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	p := demo(t, dir)
	ann := demoAccount(t, p.serving(), "ann@example.org")
	send := func(text string) int64 {
		id, err := ann.send(text)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	want := func(words string, ids ...int64) {
		t.Helper()
		got := searchIDs(t, ann, words)
		if len(got) != len(ids) {
			t.Fatalf("%q finds %v, want %v", words, got, ids)
		}
		for i := range ids {
			if got[i] != ids[i] {
				t.Fatalf("%q finds %v, want %v", words, got, ids)
			}
		}
	}
	again := func() {
		p = startProgram(t, parleyCommand("serve", "--data", dir, "--listen", "127.0.0.1:0", "--demo"))
		ann.url = p.serving()
	}
	first := send("Zebras were grazing near the lighthouse")
	want("zebra graze", first)
	p.kill()
	again()
	second := send("another zebra")
	want("zebra", first, second)
	want(`"the lightho"`, first)
	p.kill()
	if err := os.RemoveAll(datadir.SearchDir(dir)); err != nil {
		t.Fatal(err)
	}
	again()
	want("zebra", first, second)
	p.stop()
	if out, code := runParley("search", "rebuild", dir); code != 0 || !strings.Contains(out, "realm 1:") {
		t.Fatalf("code %d, %s", code, out)
	}
	again()
	want("zebra", first, second)
	p.stop()
}
