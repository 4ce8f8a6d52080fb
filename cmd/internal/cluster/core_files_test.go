package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"parley/wire/peer"
)

// testFile is a file of a core in memory.
type testFile struct {
	text   string
	broken bool // reading it fails in the middle
}

func (f testFile) Size() int64  { return int64(len(f.text)) }
func (f testFile) Close() error { return nil }
func (f testFile) Section(from, bytes int64) (io.ReadCloser, error) {
	r := io.Reader(strings.NewReader(f.text[from : from+bytes]))
	if f.broken {
		r = io.MultiReader(strings.NewReader(f.text[:bytes/2]), errReader{})
	}
	return io.NopCloser(r), nil
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, errors.New("the disk is broken") }

// otherCore is the Leader of another core of the cluster, as far as files need it.
func (c *testCore) otherCore(node string) *Leader {
	c.t.Helper()
	d := joinCore(c.t, c.Directory, node)
	d.Members = slices.Clone(c.Directory.ListMembers())
	d.publish()
	sources, err := newFileSources(d)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(sources.client.CloseIdleConnections)
	return &Leader{LeaderOptions: LeaderOptions{Directory: d, Log: slog.New(slog.DiscardHandler)}, sources: sources}
}

// A core gets a file from the core that has it, whole or not at all. It can tell a file that no core has from one whose
// core cannot be reached, and it does not ask that core again for a while.
func TestFetchFile(t *testing.T) {
	c := startTestCore(t, "")
	big := strings.Repeat("0123456789", 100_000)
	c.OpenFile = func(kind, name string) (StoredFile, error) {
		switch kind + " " + name {
		case "content big":
			return testFile{text: big}, nil
		case "picture broken.png":
			return testFile{big, true}, nil
		case "content empty":
			return testFile{}, nil
		}
		return nil, fmt.Errorf("open %s: %w", name, fs.ErrNotExist)
	}
	b := c.otherCore("b")
	fetch := func(from *Leader, kind, name string) (string, error) {
		var text bytes.Buffer
		err := from.FetchFile(t.Context(), kind, name, func(size int64, r io.Reader) error {
			n, err := io.Copy(&text, r)
			if err == nil && n != size {
				err = io.ErrUnexpectedEOF
			}
			return err
		})
		return text.String(), err
	}
	for range 3 { // on the same connection
		if text, err := fetch(b, "content", "big"); err != nil || text != big {
			t.Fatalf("%d bytes, %v", len(text), err)
		}
		if text, err := fetch(b, "content", "empty"); err != nil || text != "" {
			t.Fatalf("the empty file: %q, %v", text, err)
		}
		if _, err := fetch(b, "content", "none"); !errors.Is(err, ErrNoCoreHas) {
			t.Fatalf("a file that no core has: %v", err)
		}
	}
	var down *CoresDownError
	if _, err := fetch(b, "picture", "broken.png"); !errors.As(err, &down) || !slices.Equal(down.Cores, []string{"a"}) {
		t.Fatalf("a file whose transfer breaks off: %v", err)
	}
	full := errors.New("the disk is full")
	err := b.FetchFile(t.Context(), "content", "big", func(int64, io.Reader) error { return full })
	if !errors.Is(err, full) {
		t.Fatalf("a file for which there is no space: %v", err)
	}
	x := c.otherCore("x") // it knows the cores a and b; the latter does not run
	if text, err := fetch(x, "content", "big"); err != nil || text != big {
		t.Fatalf("%d bytes, %v", len(text), err)
	}
	for range 100 { // each attempt would take peer.DialTimeout where packets are dropped
		if _, err := fetch(x, "content", "none"); !errors.As(err, &down) || !slices.Equal(down.Cores, []string{"b"}) {
			t.Fatalf("a file that may be on a core that is down: %v", err)
		}
	}
	if !x.sources.isDown("b") || x.sources.isDown("a") {
		t.Error("the core that is down is not remembered, or another one is")
	}
}

// An edge, a core without a vote and a removed node get no file, also on a connection that was open before.
func TestFilesAreForCores(t *testing.T) {
	c := startTestCore(t, "")
	c.OpenFile = func(string, string) (StoredFile, error) { return testFile{text: "secret"}, nil }
	get := func(from *Leader) (text string, err error) {
		err = from.FetchFile(t.Context(), "content", "x", func(_ int64, r io.Reader) error {
			all, err := io.ReadAll(r)
			text = string(all)
			return err
		})
		return text, err
	}
	b := c.otherCore("b")
	if text, err := get(b); text != "secret" {
		t.Fatal(text, err)
	}
	edge, _ := joinEdge(t, c.Directory, "e")
	edge.Members = append(c.Directory.ListMembers(), Member{Node: "a", Role: peer.Core, Address: c.Addr()})
	edge.publish()
	sources, err := newFileSources(edge)
	if err != nil {
		t.Fatal(err)
	}
	e := &Leader{LeaderOptions: LeaderOptions{Directory: edge, Log: slog.New(slog.DiscardHandler)}, sources: sources}
	for name, from := range map[string]*Leader{"an edge": e, "a core without a vote": c.otherCore("starting-c")} {
		if text, err := get(from); err == nil || text != "" {
			t.Errorf("%s gets %q, %v", name, text, err)
		}
	}
	// Without CutOff, which ends the connections of a removed node.
	if err := c.Directory.Remove("b"); err != nil {
		t.Fatal(err)
	}
	if text, err := get(b); err == nil || text != "" {
		t.Errorf("a removed node gets %q, %v", text, err)
	}
}
