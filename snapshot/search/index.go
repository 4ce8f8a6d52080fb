// Package search finds the messages whose texts have given words. It keeps one full-text index for each organization,
// in a directory of its own below the data directory, with bleve's scorch as the library underneath.
//
// An index is written behind the journal and remembers the number of the fact it stands at, in the same batch as the
// texts: after a crash it is behind, never wrong about where. It proposes candidates only. Whether a reader may know of
// a message is for the realm to say, and a quoted phrase is decided by the text itself.
package search

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/document"
	"github.com/blevesearch/bleve/v2/index/scorch"
	bleve "github.com/blevesearch/bleve_index_api"

	"parley/actors/realm"
)

// Doc is one text as the index knows it; Gone takes it out.
type Doc struct {
	Ref     realm.BodyRef
	Text    string
	Deleted bool
}

// The fields of a document. Which version of a text is indexed is a term, too: comparing with the disk is a look at a
// few postings.
const (
	fieldID      = "_id"
	fieldText    = "t"
	fieldVersion = "v"
)

const (
	// persistDelay is how long texts stay in memory, in milliseconds, so that many small segments become one before they are
	// written. A crash leaves the index behind by as much.
	persistDelay = 500
	// closeTimeout is how long the disk may take with the last of them.
	closeTimeout = 30 * time.Second
)

var seqKey = []byte("stands at")

// Index is the full-text index of one organization. Any number of goroutines may search; one writes.
type Index struct {
	dir      string
	index    bleve.Index
	analysis *bleve.AnalysisQueue
	lastSeq  []byte // as written last
	written  bool   // since it was opened
	pause    func() // is called now and then while texts are written; it may take its time

	mu       sync.Mutex
	segments map[uint64]*segment // what searching needs of each, by the segment's own id
}

// errIndexInUse says that another process has the index open.
var errIndexInUse = errors.New("the search index is in use by another process")

// Open opens the index in a directory; it makes an empty one where there is none. An index that cannot be read is
// damaged: it is thrown away, as everything in it can be had again from the texts. Not one that is in use: errIndexInUse, after
// some seconds.
func Open(dir string) (*Index, error) {
	x, err := open(dir)
	if err != nil &&
		strings.HasSuffix(err.Error(), "timeout") { // of the lock; it has no type that gets through to here
		return nil, errIndexInUse
	}
	if err != nil {
		if err = os.RemoveAll(dir); err == nil {
			x, err = open(dir)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open search index: %w", err)
	}
	return x, nil
}

func open(dir string) (*Index, error) {
	x := &Index{dir: dir, analysis: bleve.NewAnalysisQueue(1), segments: map[uint64]*segment{}, pause: func() {}}
	var err error
	config := map[string]any{"path": dir, "bolt_timeout": "5s", "numSnapshotsToKeep": 1, "unsafe_batch": true,
		"scorchPersisterOptions": map[string]any{"PersisterNapTimeMSec": persistDelay}}
	if x.index, err = scorch.NewScorch(scorch.Name, config, x.analysis); err != nil {
		return nil, err
	}
	if err := x.index.Open(); err != nil {
		return nil, err
	}
	return x, nil
}

// Close ends the index when what was written is on disk.
func (x *Index) Close() error {
	var err error
	if x.written {
		b := bleve.NewBatch()
		b.SetInternal(seqKey, x.lastSeq)
		done := make(chan error, 1)
		b.SetPersistedCallback(func(err error) { done <- err })
		if err = x.index.Batch(b); err == nil {
			select {
			case err = <-done:
			case <-time.After(closeTimeout):
				err = errors.New("search index: the disk is too slow; it will be behind")
			}
		}
	}
	err = errors.Join(err, x.index.Close())
	x.analysis.Close()
	return err
}

// Seq is the number of the fact the index stands at.
func (x *Index) Seq() (realm.Seq, error) {
	r, err := x.index.Reader()
	if err != nil {
		return 0, err
	}
	defer r.Close()
	v, err := r.GetInternal(seqKey)
	if err != nil || len(v) != 8 {
		return 0, err
	}
	return realm.Seq(binary.BigEndian.Uint64(v)), nil
}

// Write puts texts in, replaces them and takes them out, and moves to a number, all in one step. They can be found at
// once; the disk has them some gather later, or when the index is closed.
func (x *Index) Write(at realm.Seq, docs []Doc) error {
	b := bleve.NewBatch()
	for i := range docs {
		d := &docs[i]
		if d.Deleted {
			b.Delete(docID(d.Ref.Message))
			continue
		}
		doc := document.NewDocument(docID(d.Ref.Message))
		options := bleve.IndexField | bleve.SkipFreqNorm
		doc.AddField(document.NewTextFieldCustom(fieldText, nil, []byte(d.Text), options, analyzer{}))
		doc.AddField(
			document.NewTextFieldCustom(
				fieldVersion,
				nil,
				binary.BigEndian.AppendUint16(nil, d.Ref.Version),
				options,
				nil,
			),
		)
		b.Update(pausingDocument{doc, x.pause})
	}
	x.lastSeq, x.written = binary.BigEndian.AppendUint64(nil, uint64(at)), true
	b.SetInternal(seqKey, x.lastSeq)
	if err := x.index.Batch(b); err != nil {
		return fmt.Errorf("write search index: %w", err)
	}
	return nil
}

// pausingDocument is a document that lets others have their turn whenever it is looked at: a segment of thousands is made in one
// go otherwise, and on two processors whoever sends meanwhile would wait for a tenth of a second.
type pausingDocument struct {
	*document.Document
	pause func()
}

func (p pausingDocument) VisitFields(visitor bleve.FieldVisitor) {
	p.pause()
	p.Document.VisitFields(visitor)
}

// docID is a message's id as the library wants it: text that sorts like the number.
func docID(id realm.MessageID) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(id)))
}

// analyzer makes terms of a text: its words in lower case. They are not stemmed: stems are found at the time of the
// search among the terms that begin alike, so that one set of terms serves words and phrases.
type analyzer struct{}

func (analyzer) Analyze(text []byte) analysis.TokenStream {
	var out analysis.TokenStream
	seen := map[string]bool{} // where and how often a word stands is not kept
	tokens(string(text), func(t string, _, _ bool) {
		if !seen[t] {
			seen[t] = true
			out = append(out, &analysis.Token{Term: []byte(t), Position: len(out) + 1, End: len(t)})
		}
	})
	return out
}
