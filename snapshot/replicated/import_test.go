package replicated

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"parley/actors/realm"
	"parley/snapshot"
)

// importedRows returns the rows of an organization as encoded chunks, and as one text.
func importedRows(t *testing.T, count int) (chunks [][]byte, want string) {
	t.Helper()
	err := snapshot.ChunkRows(100, func(yield func(snapshot.Row) error) error {
		for i := range count {
			row := snapshot.Row{Table: 3, Key: fmt.Appendf(nil, "%04d", i), Value: fmt.Appendf(nil, "row %d", i)}
			want += fmt.Sprintf("%s=%s ", row.Key, row.Value)
			if err := yield(row); err != nil {
				return err
			}
		}
		return nil
	}, func(chunk []byte) error {
		chunks = append(chunks, append([]byte{}, chunk...))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return chunks, want
}

func rowsOf(t *testing.T, n *Node) (text string) {
	t.Helper()
	if err := n.Disk().Rows(1, func(r snapshot.Row) error {
		text += fmt.Sprintf("%s=%s ", r.Key, r.Value)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return text
}

// The rows of an import appear on every node at its last step: also on a node that lost its power in between, on one
// that was away, and on one that gets a backup. Steps can be repeated, in any order. Nothing appears without the last
// step, or if a chunk is missing, another importer has claimed the realm, or the term has changed.
func TestImport(t *testing.T) {
	c := newCluster(t, func(o *Options) { o.LogBytes, o.SegmentBytes = 1<<10, 16<<10 }, "a", "b", "c")
	chunks, want := importedRows(t, 100)
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, realm.ErrMoved) {
			t.Errorf("%s: %v", what, err)
		}
	}
	w := c.claim()
	n := w.journal.Node
	op := func(kind snapshot.ImportKind) *snapshot.ImportOp {
		return &snapshot.ImportOp{Kind: kind, Realm: 1, Epoch: w.epoch, At: 7, Chunks: uint32(len(chunks))}
	}
	stage := func(from, to int) {
		t.Helper()
		for i := from; i < to; i++ {
			x := op(snapshot.ImportRows)
			x.Chunk, x.Rows = uint32(i), chunks[i]
			c.must(n.Import(x))
		}
	}
	stage(0, 3)
	for name, x := range c.nodes {
		if x != n { // it loses the bytes that are not synced, and applies them again
			c.kill(name)
			c.start(name)
			c.caughtUp(name)
			break
		}
	}
	refused("chunks are missing", n.Import(op(snapshot.ImportFinish)))
	gap := op(snapshot.ImportRows)
	gap.Chunk, gap.Rows = 5, chunks[5]
	refused("a gap", n.Import(gap))
	var away string
	for name, x := range c.nodes {
		if x != n {
			away = name
		}
	}
	c.kill(away)
	stage(1, len(chunks))
	stage(0, 2)
	extra := op(snapshot.ImportRows) // of an earlier run with more rows
	extra.Chunk, extra.Rows = uint32(len(chunks)), chunks[0]
	c.must(n.Import(extra))
	if got := rowsOf(t, n); got != "" {
		t.Errorf("rows are visible before the last step: %s", got)
	}
	c.must(n.Truncate())
	late := op(snapshot.ImportFinish)
	late.Term = n.Term() + 1
	refused("another term", n.Import(late))
	old := op(snapshot.ImportFinish)
	old.Epoch--
	refused("another importer", n.Import(old))
	last := op(snapshot.ImportFinish)
	last.Term = n.Term()
	c.must(n.Import(last))
	refused("the last step again", n.Import(last))
	refused("a late chunk", n.Import(extra))
	for range 200 { // so that the node that was away gets a backup
		c.must(n.SetMeta("x", make([]byte, 1000)))
	}
	c.must(n.Truncate())
	c.start(away)
	for name, x := range c.nodes {
		c.caughtUp(name)
		c.wait("the rows at "+name, func() bool {
			_, at, err := x.Disk().Bounds(1)
			return err == nil && at == 7
		})
		if got := rowsOf(t, c.nodes[name]); got != want {
			t.Errorf("%s has the rows %s", name, got)
		}
		c.kill(name)
		c.start(name)
		c.caughtUp(name)
		if got := rowsOf(t, c.nodes[name]); got != want {
			t.Errorf("after a power loss %s has the rows %s", name, got)
		}
	}
	w = c.claim() // the owner goes on after the rows
	w.mustAdd(t, 3, 10)
	if w.last != 10 {
		t.Errorf("the facts end at %d", w.last)
	}
}

// The texts and rows of a dropped import are deleted, and rows that cannot be decoded are not put into the log.
func TestImportIsCleared(t *testing.T) {
	c := newCluster(t, nil, "a")
	w := c.claim()
	n := w.journal.Node
	chunks, _ := importedRows(t, 3)
	op := snapshot.ImportOp{Kind: snapshot.ImportRows, Realm: 1, Epoch: w.epoch, Rows: chunks[0]}
	c.must(n.Import(&op))
	ref := realm.BodyRef{Message: 1}
	c.must(w.journal.Append([]realm.Batch{{Realm: 1, Epoch: w.epoch,
		Texts: []realm.TextWrite{{Ref: ref, Body: &realm.Body{Text: "hi"}}}}})[0])
	bad := op
	bad.Rows = chunks[0][:len(chunks[0])-1]
	if err := n.Import(&bad); err == nil || !strings.Contains(err.Error(), "cannot be decoded") {
		t.Errorf("a damaged chunk: %v", err)
	}
	c.must(n.Import(&snapshot.ImportOp{Kind: snapshot.ImportClear, Realm: 1, Epoch: w.epoch}))
	if _, found, err := n.Disk().Text(1, ref); found || err != nil {
		t.Errorf("the text is still there: %v", err)
	}
	op.Kind, op.At, op.Chunks = snapshot.ImportFinish, 1, 1
	if err := n.Import(&op); !errors.Is(err, realm.ErrMoved) {
		t.Errorf("the chunk is still there: %v", err)
	}
}
