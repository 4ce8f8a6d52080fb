package snapshot

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"

	"parley/actors/realm"
	"parley/snapshot/codec"
)

// An exported organization is a file of lines. Each line is a JSON object with one member:
//
//	{"organization": {…}}                first: version, names, number, last fact, count and digest of the rows
//	{"file": {kind, name, size}}         followed by {"bytes": base64} lines of at most exportChunk bytes each
//	{"row": {table, key, value}}         each row of each table, with named fields
//	{"presence": {…}}                    when each user was active last
//	{"told": {seq, notices}}             unacknowledged events, so that queues of absent clients stay valid
//	{"text": {message, version, body}}   each version of each message's text
//	{"end": {lines, sha256}}             last: the number of lines before it, and the hash of all their bytes
//
// Values are encoded by codec.JSON. All tables are exported, and all files that their rows name, so a new table needs
// no change here. Files come before rows: an import names files by new hashes, and puts these into the rows.
const exportVersion = 1

const (
	exportChunk   = 512 << 10 // bytes of a file in one line
	maxExportLine = 64 << 20  // bytes of a line: more than the largest row (MaxFact) in base64
	importBatch   = 4 << 20   // bytes of texts in one commit
)

// ExportHead is the first line of an exported organization.
type ExportHead struct {
	Version   int      `json:"version"`
	Subdomain string   `json:"subdomain"`
	Name      string   `json:"name"`
	Realm     realm.ID `json:"realm"`
	Seq       Seq      `json:"seq"`
	Rows      int      `json:"rows"`
	Digest    string   `json:"digest"` // StateDigest, in hexadecimal
	// DataVersion is the number of the newest kind of fact that the program knew; 0 in exports by the first programs.
	DataVersion int `json:"data_version,omitempty"`
}

type exportFile struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	Size int64  `json:"size"`
}

type exportRow struct {
	Table uint16          `json:"table"`
	Key   json.RawMessage `json:"key"`
	Value json.RawMessage `json:"value"`
}

type exportUnacked struct {
	Seq     Seq            `json:"seq"`
	Notices []exportNotice `json:"notices"`
}

type exportNotice struct {
	To         []realm.UserID  `json:"to"`
	PublicOnly bool            `json:"public_only,omitempty"`
	Event      uint16          `json:"event"`
	Fields     json.RawMessage `json:"fields"`
}

type exportText struct {
	Message realm.MessageID `json:"message"`
	Version uint16          `json:"version"`
	Body    json.RawMessage `json:"body"`
}

type exportEnd struct {
	Lines int    `json:"lines"`
	Sum   string `json:"sha256"`
}

// exportLine is any line; exactly one member is set.
type exportLine struct {
	Organization *ExportHead     `json:"organization,omitempty"`
	File         *exportFile     `json:"file,omitempty"`
	Bytes        []byte          `json:"bytes,omitempty"`
	Row          *exportRow      `json:"row,omitempty"`
	Presence     json.RawMessage `json:"presence,omitempty"`
	Told         *exportUnacked  `json:"told,omitempty"`
	Text         *exportText     `json:"text,omitempty"`
	End          *exportEnd      `json:"end,omitempty"`
}

// exportWriter writes, counts and hashes lines. After an error it writes nothing.
type exportWriter struct {
	w     *bufio.Writer
	sum   hash.Hash
	lines int
	err   error
}

func (w *exportWriter) writeLine(l exportLine) {
	if w.err != nil {
		return
	}
	data, err := json.Marshal(l)
	if err != nil {
		w.err = err
		return
	}
	data = append(data, '\n')
	w.sum.Write(data)
	w.lines++
	_, w.err = w.w.Write(data)
}

func (w *exportWriter) jsonValue(v any) json.RawMessage {
	data, err := codec.JSON(v)
	if err != nil && w.err == nil {
		w.err = err
	}
	return data
}

// Export writes an organization. open calls each with the files that a name in a row refers to, under their own names;
// there may be none. The memory this takes is that of the loaded organization; files and texts are streamed.
func Export(
	d Disk,
	id realm.ID,
	open func(kind, name string, each func(file string, size int64, content io.Reader) error) error,
	to io.Writer,
) (Digest, error) {
	x, err := Recover(d, id)
	if err != nil {
		return Digest{}, err
	}
	if !x.Realm.Founded() {
		return Digest{}, fmt.Errorf("realm %d has not been founded", id)
	}
	digest := StateDigest(x.Realm)
	w := &exportWriter{w: bufio.NewWriter(to), sum: sha256.New()}
	org := x.Realm.Org()
	w.writeLine(exportLine{Organization: &ExportHead{
		Version:   exportVersion,
		Subdomain: org.StringID,
		Name:      org.Name,
		Realm:     id,
		Seq:       digest.Seq,
		Rows:      digest.Rows,
		Digest:    hex.EncodeToString(digest.Sum[:]),

		DataVersion: int(realm.NewestNumber()),
	}})
	w.writeFiles(x.Realm, open)
	x.Realm.EachRow(func(table uint16, key, row any) {
		w.writeLine(exportLine{Row: &exportRow{table, w.jsonValue(key), w.jsonValue(row)}})
	})
	for _, p := range x.Presence.ChangedSince(0, 0) {
		w.writeLine(exportLine{Presence: w.jsonValue(&p)})
	}
	for _, t := range x.Unacked {
		w.writeUnacked(t)
	}
	err = d.EachText(id, func(ref realm.BodyRef, body func() (realm.Body, error)) error {
		b, err := body()
		if err == nil {
			w.writeLine(exportLine{Text: &exportText{ref.Message, ref.Version, w.jsonValue(&b)}})
			err = w.err
		}
		return err
	})
	if w.err == nil {
		w.err = err
	}
	w.writeLine(exportLine{End: &exportEnd{w.lines, hex.EncodeToString(w.sum.Sum(nil))}})
	if w.err == nil {
		w.err = w.w.Flush()
	}
	return digest, w.err
}

// writeFiles writes the files that rows name, each once.
func (w *exportWriter) writeFiles(
	r *realm.Realm, open func(kind, name string, each func(file string, size int64, content io.Reader) error) error,
) {
	written := map[[2]string]bool{}
	r.EachRow(func(_ uint16, _, row any) {
		for _, f := range realm.RowFiles(row) {
			k := [2]string{f.Kind, *f.Name}
			if w.err != nil || written[k] {
				continue
			}
			written[k] = true
			err := open(f.Kind, *f.Name, func(name string, size int64, content io.Reader) error {
				return w.writeFile(f.Kind, name, size, content)
			})
			if err != nil && w.err == nil {
				w.err = fmt.Errorf("%s %s: %w", f.Kind, *f.Name, err)
			}
		}
	})
}

// writeUnacked writes the notices of one fact.
func (w *exportWriter) writeUnacked(t realm.Publication) {
	line := &exportUnacked{Seq: t.Seq}
	for _, n := range t.Notices {
		event := exportNotice{n.To, n.PublicOnly, realm.NumberOf(n.Event), w.jsonValue(n.Event)}
		line.Notices = append(line.Notices, event)
	}
	w.writeLine(exportLine{Told: line})
}

func (w *exportWriter) writeFile(kind, name string, size int64, content io.Reader) error {
	w.writeLine(exportLine{File: &exportFile{kind, name, size}})
	chunk := make([]byte, exportChunk)
	for remaining := size; remaining > 0 && w.err == nil; {
		n, err := io.ReadFull(content, chunk[:min(remaining, exportChunk)])
		if err != nil {
			return err
		}
		w.writeLine(exportLine{Bytes: chunk[:n]})
		remaining -= int64(n)
	}
	return w.err
}
