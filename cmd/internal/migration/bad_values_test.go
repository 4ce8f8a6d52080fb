package migration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// badValues are the values that take the place of each value of an export. removed removes the value with its key.
var badValues = []any{nil, 7, "x", "", []any{}, []any{"x"}, map[string]any{}, map[string]any{"a": 1.0},
	json.Number("1e300"), -1, true, removed}

type marker string

const removed = marker("removed")

// root describes the place of a whole file or line.
const root = " (root)"

// badValueRuns is the number of changed exports of each sample that are imported. Each takes some 20 ms.
const badValueRuns = 60

// A value of another kind at any place of an export costs at most the row that it is in: the import succeeds, and
// everything else arrives.
func TestBadValueAtEachPlace(t *testing.T) {
	seed := uint64(1)
	if s, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64); err == nil {
		seed = s
	}
	t.Logf("SEED=%d", seed)
	for _, c := range []struct {
		format, sample string
		team           string
	}{
		{format: "slack", sample: "slack/synthetic.zip"}, {format: "slack", sample: "slack/test_slack_importer.zip"},
		{format: "slack", sample: "slack/test_unicode_slack_importer.zip"},
		{format: "mattermost", sample: "mattermost/export", team: "gryffindor"},
		{format: "mattermost", sample: "mattermost/direct_channel/export.json"},
		{format: "zulip", sample: "zulip"}, {format: "rocketchat", sample: ""},
		{format: "teams", sample: "teams"},
	} {
		t.Run(c.format+" "+filepath.Base(c.sample), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 2))
			e := loadExport(t, c.format, c.sample)
			whole := e.importInto(t, c.team)
			for range badValueRuns {
				changed, name := e.change(rng)
				r := changed.importInto(t, c.team)
				if r == nil {
					t.Fatalf("%s: the import failed", name)
				}
				checkLoss(t, name, whole, r)
			}
		})
	}
}

// checkLoss compares the import of an export with a bad value with the one of the sound export.
func checkLoss(t *testing.T, name string, whole, r *Report) {
	t.Helper()
	_, place, _ := strings.Cut(name, " 0.")
	table, _, _ := strings.Cut(place, " =")
	if strings.Contains(name, root) || strings.HasPrefix(table, "zerver_") && !strings.ContainsAny(table, ".[") {
		return // a whole file or table is the fault itself
	}
	lost := whole.Messages - r.Messages
	counted := droppedAs(r, "messages", "") - droppedAs(whole, "messages", "")
	unread := droppedAs(r, "rows", "") + droppedAs(r, "lines", "") + droppedAs(r, "files", "") +
		droppedAs(r, "documents", "") + droppedAs(r, "values", "")
	if lost > counted && unread == droppedAs(whole, "files", "") && !strings.Contains(name, string(removed)) {
		t.Errorf("%s: %d messages less, %d counted; dropped: %+v", name, lost, counted, r.Dropped)
	}
	// A message that is lost may have been the first one of replies or of a file of a day.
	if limit := max(3, whole.Messages/4); lost > limit {
		t.Errorf("%s: %d of %d messages less; dropped: %+v", name, lost, whole.Messages, r.Dropped)
	}
}

// testExport is an export whose values can be changed: its files of JSON, decoded, and other files.
type testExport struct {
	format string
	json   map[string][]any // the rows of lines, or one value
	lines  map[string]bool
	dump   map[string][]any // documents of Rocket.Chat
	other  map[string][]byte
}

func loadExport(t *testing.T, format, name string) *testExport {
	t.Helper()
	e := &testExport{format: format, json: map[string][]any{}, lines: map[string]bool{}, dump: map[string][]any{},
		other: map[string][]byte{}}
	switch format {
	case "rocketchat":
		for collection, list := range rocketSample(t) {
			for _, d := range list {
				data, err := bson.Marshal(d)
				var m bson.M
				if err == nil {
					err = bson.Unmarshal(data, &m)
				}
				if err != nil {
					t.Fatal(err)
				}
				e.dump[collection] = append(e.dump[collection], m)
			}
		}
		return e
	case "zulip":
		dir := t.TempDir()
		writeZulip(t, dir, 200)
		e.load(t, os.DirFS(dir))
		return e
	case "teams":
		dir := t.TempDir()
		x := teamsSample()
		for n := range 12 { // no other channel then has more than a quarter of the messages
			x.chat(fmt.Sprintf("19:%d@thread.v2", n/3), teamsMessage(700+n, "u1", "<p>x</p>", nil), "u1", "u2")
		}
		x.write(t, dir)
		e.load(t, os.DirFS(dir))
		return e
	}
	file := sample(t, name)
	a, err := OpenArchive(file, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	e.load(t, a)
	return e
}

func (e *testExport) load(t *testing.T, archive fs.FS) {
	t.Helper()
	if err := fs.WalkDir(archive, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(archive, name)
		if err != nil {
			return err
		}
		if ext := filepath.Ext(name); ext != ".json" && ext != ".jsonl" {
			e.other[name] = data
			return nil
		}
		e.lines[name] = e.format == "mattermost"
		d2 := json.NewDecoder(bytes.NewReader(data))
		for d2.More() {
			var v any
			if err := d2.Decode(&v); err != nil {
				return err
			}
			e.json[name] = append(e.json[name], v)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// change returns a copy with one value replaced, and a description of the change.
func (e *testExport) change(rng *rand.Rand) (*testExport, string) {
	c := *e
	from, to := e.json, &c.json
	if e.format == "rocketchat" {
		from, to = e.dump, &c.dump
	}
	file := slices.Sorted(maps.Keys(from))[rng.IntN(len(from))]
	n := rng.IntN(len(from[file]))
	bad := badValues[rng.IntN(len(badValues))]
	var path []string
	depth := rng.IntN(6)
	if e.format == "rocketchat" || file == "realm.json" { // other documents and organizations cannot be read at all
		depth++
	}
	for ; depth > 0; depth-- {
		path = append(path, "")
	}
	row, at := replaceAt(rng, from[file][n], path, bad)
	*to = maps.Clone(from)
	list := slices.Clone(from[file])
	if row == removed {
		row = nil
	}
	list[n] = row
	(*to)[file] = list
	if at == "" {
		at = root
	}
	return &c, fmt.Sprintf("%s %d%s = %v", file, n, at, bad)
}

// replaceAt returns a copy of v in which a value, at most len(path) levels deep, is replaced. It never changes v.
func replaceAt(rng *rand.Rand, v any, path []string, bad any) (any, string) {
	if len(path) == 0 {
		return bad, ""
	}
	switch x := v.(type) {
	case bson.M:
		changed, at := replaceAt(rng, map[string]any(x), path, bad)
		if m, ok := changed.(map[string]any); ok {
			return bson.M(m), at
		}
		return changed, at
	case bson.A:
		return replaceAt(rng, []any(x), path, bad)
	case map[string]any:
		if len(x) == 0 {
			return bad, ""
		}
		name := slices.Sorted(maps.Keys(x))[rng.IntN(len(x))]
		inner, at := replaceAt(rng, x[name], path[1:], bad)
		m := maps.Clone(x)
		if m[name] = inner; inner == removed {
			delete(m, name)
		}
		return m, "." + name + at
	case []any:
		if len(x) == 0 {
			return bad, ""
		}
		i := rng.IntN(len(x))
		inner, at := replaceAt(rng, x[i], path[1:], bad)
		list := slices.Clone(x)
		if list[i] = inner; inner == removed {
			list = slices.Delete(list, i, i+1)
		}
		return list, fmt.Sprintf("[%d]%s", i, at)
	}
	return bad, ""
}

// importInto writes the export and imports it. It returns nil if the import fails.
func (e *testExport) importInto(t *testing.T, team string) *Report {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, data []byte) {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, data := range e.other {
		write(name, data)
	}
	for name, list := range e.json {
		var buf bytes.Buffer
		for _, v := range list {
			data, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			buf.Write(append(data, '\n'))
		}
		write(name, buf.Bytes())
	}
	for collection, list := range e.dump {
		var all []byte
		for _, d := range list {
			if m, ok := d.(bson.M); ok {
				data, err := bson.Marshal(plainNumbers(m))
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, data...)
			}
		}
		write("dump/"+collection+".bson", all)
	}
	o := (&place{dir: t.TempDir()}).options(e.format, dir)
	o.Threads, o.Team, o.DryRun = true, team, true
	reports, err := Run(context.Background(), o, Target{})
	if err != nil {
		t.Log(err)
		return nil
	}
	if len(reports) != 1 {
		t.Fatalf("%d organizations", len(reports))
	}
	return reports[0]
}

// plainNumbers returns a value without numbers that only JSON has.
func plainNumbers(v any) any {
	switch x := v.(type) {
	case json.Number:
		f, _ := x.Float64()
		return f
	case bson.M:
		m := bson.M{}
		for name := range x {
			m[name] = plainNumbers(x[name])
		}
		return m
	case map[string]any:
		return plainNumbers(bson.M(x))
	case []any:
		list := bson.A{}
		for _, y := range x {
			list = append(list, plainNumbers(y))
		}
		return list
	}
	return v
}
