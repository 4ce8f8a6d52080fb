package snapshot

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"

	"parley/actors/presence"
	"parley/actors/realm"
	"parley/snapshot/codec"
)

// Imported is an exported organization after reading and verifying it.
type Imported struct {
	Head ExportHead
	Recovered
	presenceRows []presence.Row
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
		// The rows may have the right digest and still not be consistent, if another program wrote them.
		if p := recover(); p != nil {
			err = fmt.Errorf("line %d: the rows are not a valid organization: %v", r.lines, p)
		}
	}()
	l, err := r.nextLine()
	if err != nil {
		return nil, err
	}
	if l.Organization == nil {
		return nil, errors.New("this is not an exported organization")
	}
	if l.Organization.Version != exportVersion {
		return nil, fmt.Errorf("the export is of version %d; this program reads version %d",
			l.Organization.Version, exportVersion)
	}
	if version, known := l.Organization.DataVersion, int(realm.NewestNumber()); version > known {
		return nil, fmt.Errorf("the export is from a newer parley (data version %d, this program has %d): import it "+
			"with that version", version, known)
	}
	x = &Imported{Head: *l.Organization, Recovered: Recovered{Realm: realm.New(id), Presence: presence.New()}}
	names := map[[2]string]string{}
	for {
		sum, lines := r.sum.Sum(nil), r.lines
		l, err := r.nextLine()
		if err == nil && l.End != nil {
			if l.End.Lines != lines || l.End.Sum != hex.EncodeToString(sum) {
				return nil, errors.New("the export is damaged: its hash does not match")
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
		return nil, fmt.Errorf("the rows differ from the exported ones: digest %x instead of %s",
			digest.Sum[:], x.Head.Digest)
	}
	slices.SortFunc(x.presenceRows, func(a, b presence.Row) int { return cmp.Compare(a.Update, b.Update) })
	x.Realm.EachRow(func(_ uint16, _, row any) {
		for _, f := range realm.RowFiles(row) {
			if n := names[[2]string{f.Kind, *f.Name}]; n != "" {
				*f.Name = n
			}
		}
	})
	x.Realm.SetSeq(x.Head.Seq, realm.RunSequentially)
	if !x.Realm.Founded() {
		return nil, errors.New("the export contains no organization")
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
		x.presenceRows = append(x.presenceRows, p)
		return err
	case l.Told != nil:
		t := realm.Publication{Seq: l.Told.Seq}
		for _, n := range l.Told.Notices {
			if len(n.To) == 0 { // by an earlier program: no queue gets it
				continue
			}
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
		if len(t.Notices) > 0 {
			x.Unacked = append(x.Unacked, t)
		}
		return nil
	case l.Text != nil:
		var b realm.Body
		if err := codec.FromJSON(l.Text.Body)(&b); err != nil || text == nil {
			return err
		}
		return text(realm.BodyRef{Message: l.Text.Message, Version: l.Text.Version}, &b)
	}
	return errors.New("unknown kind of line")
}

var errNotAnEvent = errors.New("not an event")

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
			return l, errors.New("the export is incomplete: its last line is missing")
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
		return l, fmt.Errorf("invalid line: %w", err)
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
			return 0, errors.New("its bytes do not have the announced size")
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
		err := errors.Join(s.Append([]Entry{{Realm: id, Epoch: epoch, Bodies: puts}})...)
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

// RowWriter is the part of Disk that stores the rows of an imported organization.
type RowWriter interface {
	EncodeRow(table uint16, key, row any) realm.EncodedRow
	EncodeUnacked(t realm.Publication) realm.EncodedRow
	ImportRows(id RealmID, epoch uint64, at Seq, rows func(yield func(Row) error) error) error
}

// Install writes the rows of an imported organization. It appears as a whole; its texts and files are written already.
func (x *Imported) Install(d RowWriter, id realm.ID, epoch uint64) error {
	return d.ImportRows(id, epoch, x.Head.Seq, func(yield func(Row) error) error {
		var err error
		put := func(e realm.EncodedRow) {
			if err == nil {
				err = yield(e)
			}
		}
		x.Realm.EachRow(func(table uint16, key, row any) { put(d.EncodeRow(table, key, row)) })
		for i, p := range x.presenceRows {
			p.Update = int64(i + 1) // an update id of the other server may be above those of this one's epochs
			put(d.EncodeRow(realm.PresenceTable, int64(p.User), &p))
		}
		for _, t := range x.Unacked {
			put(d.EncodeUnacked(t))
		}
		return err
	})
}
