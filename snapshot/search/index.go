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

// Doc is one text for the index. If Deleted is set, the message is removed from the index.
type Doc struct {
	Ref     realm.BodyRef
	Text    string
	Deleted bool
}

// The fields of a document. The version of a text is a term, so comparing the index with the disk reads only a few
// postings.
const (
	fieldID      = "_id"
	fieldText    = "t"
	fieldVersion = "v"
)

const (
	// persistDelay is how long texts stay in memory only, in milliseconds. Meanwhile small segments are merged. After a
	// crash the index lacks these texts; catchUp adds them.
	persistDelay = 500
	// closeTimeout is how long Close waits for the disk.
	closeTimeout = 30 * time.Second
	// segmentVersion is the version of the files of a new index. Older programs cannot read later versions: they would
	// build the whole index again.
	segmentVersion = 16
)

var (
	seqKey    = []byte("stands at")
	formatKey = []byte("format of the texts")
)

// textFormat is the present form of the texts in an index. Indexes without formatKey have format 1, which contains the
// hidden addresses of links and lacks the names of emoji; see upgrade.go.
const textFormat = 2

// Index is the full-text index of one organization. Any number of goroutines may search; only one writes.
type Index struct {
	dir      string
	index    bleve.Index
	analysis *bleve.AnalysisQueue
	lastSeq  []byte // of the last Write, encoded
	written  bool   // a Write was made since Open
	format   uint32 // of the texts of messages after rewritten; the others have textFormat
	// rewritten is the last message that was written again in textFormat, if format is older.
	rewritten realm.MessageID
	pause     func() // called repeatedly while texts are indexed; may sleep

	mu       sync.Mutex
	segments map[uint64]*segment // by the library's segment number
}

// errIndexInUse is returned if another process has the index open.
var errIndexInUse = errors.New("search index is in use by another process")

// Open opens the index in a directory, or makes an empty one. It deletes an index that cannot be read, because it can
// be made again from the texts. If another process has it open, Open returns errIndexInUse after some seconds.
func Open(dir string) (*Index, error) {
	x, err := open(dir)
	if err != nil &&
		strings.HasSuffix(err.Error(), "timeout") { // of the file lock; the library does not return its type
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
		"scorchPersisterOptions": map[string]any{"PersisterNapTimeMSec": persistDelay},
		"forceSegmentType":       "zap", "forceSegmentVersion": segmentVersion}
	if x.index, err = scorch.NewScorch(scorch.Name, config, x.analysis); err != nil {
		return nil, err
	}
	if err := x.index.Open(); err != nil {
		return nil, err
	}
	return x, x.readFormat()
}

// readFormat reads the format of the texts. An index without a number is empty.
func (x *Index) readFormat() error {
	r, err := x.index.Reader()
	if err != nil {
		return err
	}
	defer r.Close()
	seq, err := r.GetInternal(seqKey)
	if err != nil {
		return err
	}
	v, err := r.GetInternal(formatKey)
	switch {
	case err != nil:
		return err
	case len(seq) == 0:
		x.format = textFormat
	case len(v) == 8:
		x.format = binary.BigEndian.Uint32(v)
		x.rewritten = realm.MessageID(binary.BigEndian.Uint32(v[4:]))
	default:
		x.format = 1
	}
	return nil
}

// Close closes the index after everything written is on disk.
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
				err = errors.New("close search index: the disk was too slow; the newest texts will be indexed again")
			}
		}
	}
	err = errors.Join(err, x.index.Close())
	x.analysis.Close()
	return err
}

// Seq returns the sequence number up to which the index contains all texts.
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

// Write adds, replaces and removes texts and sets the sequence number, all in one step. Searches find them at once.
// They are on disk after persistDelay, or after Close.
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
		version := binary.BigEndian.AppendUint16(nil, d.Ref.Version)
		doc.AddField(document.NewTextFieldCustom(fieldVersion, nil, version, options, nil))
		b.Update(pausingDocument{doc, x.pause})
	}
	x.lastSeq, x.written = binary.BigEndian.AppendUint64(nil, uint64(at)), true
	b.SetInternal(seqKey, x.lastSeq)
	format := binary.BigEndian.AppendUint32(nil, x.format)
	b.SetInternal(formatKey, binary.BigEndian.AppendUint32(format, uint32(x.rewritten)))
	if err := x.index.Batch(b); err != nil {
		return fmt.Errorf("write search index: %w", err)
	}
	return nil
}

// pausingDocument calls pause whenever the library reads it. Without pauses a segment of thousands of documents is made
// in one go. With two processors, requests would then wait for up to a tenth of a second.
type pausingDocument struct {
	*document.Document
	pause func()
}

func (p pausingDocument) VisitFields(visitor bleve.FieldVisitor) {
	p.pause()
	p.Document.VisitFields(visitor)
}

// docID returns a message's id in the library's form: a string that sorts like the number.
func docID(id realm.MessageID) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(id)))
}

// analyzer splits a text into terms: its words in lower case, without stemming. A search finds the terms of a stem by
// their common prefix, so the same terms serve words and phrases.
type analyzer struct{}

func (analyzer) Analyze(text []byte) analysis.TokenStream {
	var out analysis.TokenStream
	seen := map[string]bool{} // positions and frequencies are not stored
	tokens(string(text), func(t string, _, _ bool) {
		if !seen[t] {
			seen[t] = true
			out = append(out, &analysis.Token{Term: []byte(t), Position: len(out) + 1, End: len(t)})
		}
	})
	return out
}
