package snapshot

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"

	"parley/actors/presence"
	"parley/actors/realm"
	"parley/snapshot/codec"
)

// An exported organization is a file of lines. Each line is a JSON object with one member:
//
//	{"organization": {…}}                first: version, subdomain, name, number, last fact, count and digest of the rows
//	{"file": {kind, name, size}}         followed by {"bytes": base64} lines of at most exportChunk bytes each
//	{"row": {table, key, value}}         each row of each table, with named fields
//	{"presence": {…}}                    when each user was active last
//	{"told": {seq, notices}}             unacknowledged events, so that the queues of absent clients remain valid
//	{"text": {message, version, body}}   each version of each message's text
//	{"end": {lines, sha256}}             last: the number of lines before it, and the hash of all their bytes
//
// Values are encoded by codec.JSON. All tables are exported, and all files that their rows name, so a new table needs no
// change here. Files come before rows: an import names files by new hashes, and puts these into the rows.
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

// Recovered is an organization loaded from rows and journal, as at a start.
type Recovered struct {
	Realm   *realm.Realm
	Book    *presence.Table
	Unacked []realm.Told // events that some queue may not have acknowledged, oldest first
}

// Recover loads an organization as a start does, without claiming it.
func Recover(d Disk, id realm.ID) (x Recovered, err error) {
	rows, _, err := d.Bounds(id)
	if err != nil {
		return x, err
	}
	x.Realm, x.Book = realm.New(id), presence.New()
	if x.Unacked, err = d.Load(id, x.Realm, x.Book); err != nil {
		return x, fmt.Errorf("load realm %d: %w", id, err)
	}
	x.Realm.SetSeq(rows, realm.RunSequentially)
	err = d.Tail(id, rows, func(_ realm.Seq, f realm.Fact) error {
		if t := clientEvents(x.Realm.Replay(f)); len(t.Notices) > 0 {
			x.Unacked = append(x.Unacked, t)
		}
		return nil
	})
	if err != nil {
		return x, fmt.Errorf("replay realm %d: %w", id, err)
	}
	return x, nil
}

// clientEvents returns the notices of a fact that clients receive.
func clientEvents(t realm.Told) realm.Told {
	out := realm.Told{Seq: t.Seq}
	for _, n := range t.Notices {
		if n.Event.EventType() != "" {
			out.Notices = append(out.Notices, n)
		}
	}
	return out
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

// Export writes an organization. open calls each with the files that a name in a row stands for, under their own names;
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
	w.writeLine(
		exportLine{
			Organization: &ExportHead{
				exportVersion,
				org.StringID,
				org.Name,
				id,
				Seq(digest.Seq),
				digest.Rows,
				hex.EncodeToString(digest.Sum[:]),
			},
		},
	)
	written := map[[2]string]bool{}
	x.Realm.EachRow(func(_ uint16, _, row any) {
		for _, f := range realm.RowFiles(row) {
			if k := [2]string{f.Kind, *f.Name}; w.err == nil && !written[k] {
				written[k] = true
				if err := open(f.Kind, *f.Name, func(name string, size int64, content io.Reader) error {
					return w.writeFile(f.Kind, name, size, content)
				}); err != nil && w.err == nil {
					w.err = fmt.Errorf("%s %s: %w", f.Kind, *f.Name, err)
				}
			}
		}
	})
	x.Realm.EachRow(func(table uint16, key, row any) {
		w.writeLine(exportLine{Row: &exportRow{table, w.jsonValue(key), w.jsonValue(row)}})
	})
	for _, p := range x.Book.ChangedSince(0, 0) {
		w.writeLine(exportLine{Presence: w.jsonValue(&p)})
	}
	for _, t := range x.Unacked {
		told := &exportUnacked{Seq: Seq(t.Seq)}
		for _, n := range t.Notices {
			told.Notices = append(
				told.Notices,
				exportNotice{n.To, n.PublicOnly, realm.NumberOf(n.Event), w.jsonValue(n.Event)},
			)
		}
		w.writeLine(exportLine{Told: told})
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

func (w *exportWriter) writeFile(kind, name string, size int64, content io.Reader) error {
	w.writeLine(exportLine{File: &exportFile{kind, name, size}})
	piece := make([]byte, exportChunk)
	for left := size; left > 0 && w.err == nil; {
		n, err := io.ReadFull(content, piece[:min(left, exportChunk)])
		if err != nil {
			return err
		}
		w.writeLine(exportLine{Bytes: piece[:n]})
		left -= int64(n)
	}
	return w.err
}

// Imported is an exported organization after reading and verifying it.
type Imported struct {
	Head ExportHead
	Recovered
	presence []presence.Row
}

// ReadExport reads and verifies an exported organization: every line is valid, the last line has the hash of all lines,
// and the rows have the digest in the first line. The organization gets the number id. file stores each file and
// returns its name for the rows; text, if not nil, is called with each text.
func ReadExport(
	from io.Reader,
	id realm.ID,
	file func(kind, name string, content io.Reader) (string, error),
	text func(realm.BodyRef, *realm.Body) error,
) (x *Imported, err error) {
	r := &exportReader{r: bufio.NewReaderSize(from, 64<<10), sum: sha256.New()}
	defer func() {
		if p := recover(); p != nil { // the rows have the right digest but are not consistent; another program wrote them
			err = fmt.Errorf("line %d: the rows are no organization: %v", r.lines, p)
		}
	}()
	l, err := r.nextLine()
	if err != nil {
		return nil, err
	}
	if l.Organization == nil {
		return nil, errors.New("this is no exported organization")
	}
	if l.Organization.Version != exportVersion {
		return nil, fmt.Errorf("the export is of version %d; this program reads version %d",
			l.Organization.Version, exportVersion)
	}
	x = &Imported{Head: *l.Organization, Recovered: Recovered{Realm: realm.New(id), Book: presence.New()}}
	names := map[[2]string]string{}
	for {
		sum, lines := r.sum.Sum(nil), r.lines
		l, err := r.nextLine()
		if err == nil && l.End != nil {
			if l.End.Lines != lines || l.End.Sum != hex.EncodeToString(sum) {
				return nil, errors.New("the export is damaged: its hash is another")
			}
			break
		}
		if err == nil && l.File != nil {
			err = r.readFile(l.File, names, file)
		} else if err == nil {
			err = x.addLine(l, text)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", r.lines, err)
		}
	}
	digest := StateDigest(x.Realm)
	if digest.Rows != x.Head.Rows || hex.EncodeToString(digest.Sum[:]) != x.Head.Digest {
		return nil, fmt.Errorf("the rows are not what was exported: digest %x, should be %s",
			digest.Sum[:], x.Head.Digest)
	}
	x.Realm.EachRow(func(_ uint16, _, row any) {
		for _, f := range realm.RowFiles(row) {
			if n := names[[2]string{f.Kind, *f.Name}]; n != "" {
				*f.Name = n
			}
		}
	})
	x.Realm.SetSeq(realm.Seq(x.Head.Seq), realm.RunSequentially)
	if !x.Realm.Founded() {
		return nil, errors.New("the export holds no organization")
	}
	return x, nil
}

func (x *Imported) addLine(l exportLine, text func(realm.BodyRef, *realm.Body) error) error {
	switch {
	case l.Row != nil:
		return x.Realm.LoadRow(l.Row.Table, codec.FromJSON(l.Row.Key), codec.FromJSON(l.Row.Value))
	case l.Presence != nil:
		var p presence.Row
		err := codec.FromJSON(l.Presence)(&p)
		x.presence = append(x.presence, p)
		return err
	case l.Told != nil:
		t := realm.Told{Seq: realm.Seq(l.Told.Seq)}
		for _, n := range l.Told.Notices {
			e, err := realm.NewByNumber(n.Event)
			if err == nil {
				err = codec.FromJSON(n.Fields)(e)
			}
			event, ok := e.(realm.Event)
			if err != nil || !ok {
				return fmt.Errorf("event %d: %w", n.Event, errors.Join(err, errNotAnEvent))
			}
			t.Notices = append(t.Notices, realm.Notice{To: n.To, PublicOnly: n.PublicOnly, Event: event})
		}
		x.Unacked = append(x.Unacked, t)
		return nil
	case l.Text != nil:
		var b realm.Body
		if err := codec.FromJSON(l.Text.Body)(&b); err != nil || text == nil {
			return err
		}
		return text(realm.BodyRef{Message: l.Text.Message, Version: l.Text.Version}, &b)
	}
	return errors.New("nothing an export has")
}

var errNotAnEvent = errors.New("it cannot be told")

type exportReader struct {
	r     *bufio.Reader
	sum   hash.Hash
	lines int
}

func (r *exportReader) nextLine() (l exportLine, err error) {
	var data []byte
	for {
		part, err := r.r.ReadSlice('\n')
		data = append(data, part...)
		if err == nil {
			break
		}
		if err == io.EOF {
			return l, errors.New("the export has no end; it is cut off")
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return l, err
		}
		if len(data) > maxExportLine {
			return l, fmt.Errorf("a line of more than %d bytes", maxExportLine)
		}
	}
	r.sum.Write(data)
	r.lines++
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		return l, fmt.Errorf("no line of an export: %w", err)
	}
	return l, nil
}

// readFile passes the content of a file as one stream to take, and records its new name.
func (r *exportReader) readFile(
	f *exportFile,
	names map[[2]string]string,
	take func(kind, name string, content io.Reader) (string, error),
) error {
	content := &exportContent{r: r, left: f.Size}
	name, err := take(f.Kind, f.Name, content)
	if err == nil {
		_, err = io.Copy(io.Discard, content)
	}
	if err != nil {
		return fmt.Errorf("file %s: %w", f.Name, err)
	}
	names[[2]string{f.Kind, f.Name}] = name
	return nil
}

type exportContent struct {
	r    *exportReader
	left int64
	have []byte
}

func (c *exportContent) Read(p []byte) (int, error) {
	if len(c.have) == 0 {
		if c.left == 0 {
			return 0, io.EOF
		}
		l, err := c.r.nextLine()
		if err != nil {
			return 0, err
		}
		if len(l.Bytes) == 0 || int64(len(l.Bytes)) > c.left {
			return 0, errors.New("its bytes do not add up")
		}
		c.have = l.Bytes
		c.left -= int64(len(l.Bytes))
	}
	n := copy(p, c.have)
	c.have = c.have[n:]
	return n, nil
}

// TextWriter returns a function that writes texts to a claimed realm, importBatch bytes in a commit, and a function
// that writes the rest.
func (s *Store) TextWriter(id realm.ID, epoch uint64) (add func(realm.BodyRef, *realm.Body) error, flush func() error) {
	var puts []Put
	size := 0
	flush = func() error {
		if len(puts) == 0 {
			return nil
		}
		err := errors.Join(s.Append([]Entry{{Realm: uint32(id), Epoch: epoch, Bodies: puts}})...)
		puts, size = nil, 0
		return err
	}
	add = func(ref realm.BodyRef, b *realm.Body) error {
		p := Put{Key: codec.TextKey(ref), Value: codec.EncodeText(b)}
		puts = append(puts, p)
		if size += len(p.Key) + len(p.Value); size < importBatch {
			return nil
		}
		return flush()
	}
	return add, flush
}

// Install writes the rows of an imported organization. It appears as a whole; its texts and files are written already.
func (x *Imported) Install(d Disk, id realm.ID, epoch uint64) error {
	return d.Store.ImportRows(uint32(id), epoch, x.Head.Seq, func(yield func(Row) error) error {
		var err error
		put := func(e realm.EncodedRow) {
			if err == nil {
				err = yield(Row{Table: e.Table, Key: e.Key, Value: e.Value})
			}
		}
		x.Realm.EachRow(func(table uint16, key, row any) { put(d.EncodeRow(table, key, row)) })
		for _, p := range x.presence {
			put(d.EncodeRow(realm.PresenceTable, int64(p.User), &p))
		}
		for _, t := range x.Unacked {
			put(d.EncodeUnacked(t))
		}
		return err
	})
}
