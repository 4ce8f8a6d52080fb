package migration

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"parley/actors/realm"
	"parley/snapshot"
	"parley/wire"
	"parley/wire/imports"
)

// importer imports one organization. It implements imports.Sink for the source.
type importer struct {
	ctx       context.Context
	o         Options
	to        Target
	source    imports.Source
	subdomain string
	site      realm.Site
	work      string
	began     time.Time
	finished  bool

	id    realm.ID
	epoch uint64

	counts *counter
	report *Report

	// The records, except messages.
	org           *imports.Organization
	emoji         []imports.Emoji
	users         []imports.User
	groups        []imports.Group
	channels      []imports.Channel
	subscriptions []imports.Subscription
	personal      []imports.Record

	messages *sorter
	item     encoder
	arrival  uint64
	key      []byte

	// Lookup tables for the references between records, by the keys of the archive.
	build     *realm.Import
	userIDs   map[string]realm.UserID
	groupIDs  map[string]realm.GroupID
	channelID map[string]realm.ChannelID
	emojiIDs  map[string]int64
	emojiKeys map[string]string // key of an active custom emoji, by name
	addresses map[string]string // of stored files, by the address in the export
	renderer  *wire.Renderer
	newest    map[topicKey]realm.MessageID // newest added message of each topic

	rows       *os.File
	rowsOut    *bufio.Writer
	rowsErr    error
	log        *progressLog
	addText    func(realm.BodyRef, *realm.Body) error
	flushTexts func() error
	unflushed  int
	nextID     realm.MessageID
	pins       []string
	retention  map[realm.ChannelID]*Retention // of channels with messages; 0: of direct messages
	lastShown  time.Time
	writes     func() // called before each write, by tests
}

func (x *importer) close() {
	if x.messages != nil {
		x.messages.Close()
	}
	if x.log != nil {
		x.log.close()
	}
	if x.rows != nil {
		x.rows.Close()
	}
	for _, p := range x.pins {
		x.to.Files.Release(p, nil)
	}
}

// Put adds a record; see imports.Sink.
func (x *importer) Put(r imports.Record) error {
	if err := x.ctx.Err(); err != nil {
		return err
	}
	switch v := r.(type) {
	case *imports.Organization:
		if x.org != nil {
			return errors.New("the archive has two organizations")
		}
		x.org = copyOf(v)
	case *imports.Emoji:
		x.emoji = append(x.emoji, *v)
	case *imports.User:
		x.users = append(x.users, *v)
	case *imports.Group:
		x.groups = append(x.groups, *v)
	case *imports.Channel:
		x.channels = append(x.channels, *v)
	case *imports.Subscription:
		x.subscriptions = append(x.subscriptions, *v)
	case *imports.TopicPolicy:
		x.personal = append(x.personal, copyOf(v))
	case *imports.MutedUser:
		x.personal = append(x.personal, copyOf(v))
	case *imports.AlertWord:
		x.personal = append(x.personal, copyOf(v))
	case *imports.Status:
		x.personal = append(x.personal, copyOf(v))
	case *imports.Snippet:
		x.personal = append(x.personal, copyOf(v))
	case *imports.Scheduled:
		x.personal = append(x.personal, copyOf(v))
	case *imports.Onboarding:
		x.personal = append(x.personal, copyOf(v))
	case *imports.Message:
		return x.putMessage(v)
	default:
		return fmt.Errorf("BUG: record %T", r)
	}
	return nil
}

func copyOf[T any](v *T) *T {
	c := *v
	return &c
}

// putMessage adds a message to the sorter: by Order, then by arrival.
func (x *importer) putMessage(m *imports.Message) error {
	x.key = binary.BigEndian.AppendUint64(x.key[:0], uint64(m.Order)^1<<63)
	x.key = binary.BigEndian.AppendUint64(x.key, x.arrival)
	x.arrival++
	x.item.b = x.item.b[:0]
	x.item.message(m)
	return x.messages.Add(x.key, x.item.b)
}

// Drop counts records that are left out; see imports.Sink.
func (x *importer) Drop(kind, reason string, n int) {
	x.counts.add(x.counts.dropped, kind, reason, "", n)
}

// DropAt counts a value, row or file that is left out; see imports.Sink.
func (x *importer) DropAt(kind, reason, place string) {
	x.counts.add(x.counts.dropped, kind, reason, place, 1)
}

func (x *importer) changed(kind, reason string) { x.counts.add(x.counts.changed, kind, reason, "", 1) }

func (x *importer) changedAt(kind, reason, place string) {
	x.counts.add(x.counts.changed, kind, reason, place, 1)
}

// Size reports how much of the archive is read; see imports.Sink.
func (x *importer) Size(read, total int64) { x.progress("reading", read, total) }

// progressInterval is how often the progress is shown.
const progressInterval = time.Second

func (x *importer) progress(step string, done, total int64) {
	now := x.o.Now()
	if x.o.Progress == nil || now.Sub(x.lastShown) < progressInterval {
		return
	}
	x.lastShown = now
	p := Progress{Organization: x.subdomain, Step: step, Done: done, Total: total}
	if done > 0 && total > done {
		p.Left = int64(now.Sub(x.began).Seconds() * float64(total-done) / float64(done))
	}
	x.o.Progress(p)
}

// emitRow writes a row to the file of rows.
func (x *importer) emitRow(table uint16, key, row any) {
	if x.rowsErr != nil || x.o.DryRun {
		return
	}
	e := x.to.Disk.EncodeRow(table, key, row)
	var head []byte
	head = binary.AppendUvarint(head, uint64(e.Table))
	head = binary.AppendUvarint(head, uint64(len(e.Key)))
	head = binary.AppendUvarint(head, uint64(len(e.Value)))
	x.rowsOut.Write(head)
	x.rowsOut.Write(e.Key)
	_, x.rowsErr = x.rowsOut.Write(e.Value)
}

// commit creates the organization: it writes all rows in one atomic step.
func (x *importer) commit() error {
	at := x.build.Finish()
	if err := errors.Join(x.rowsErr, x.rowsOut.Flush()); err != nil {
		return fmt.Errorf("write rows: %w", err)
	}
	if err := WriteReports(filepath.Join(x.work, reportFile), []*Report{x.report}); err != nil {
		return err
	}
	x.beforeWrite()
	x.progress("storing", 0, 0)
	return x.to.Disk.ImportRows(x.id, x.epoch, at, x.eachRow)
}

// eachRow passes the rows of the file to yield.
func (x *importer) eachRow(yield func(snapshot.Row) error) error {
	if _, err := x.rows.Seek(0, io.SeekStart); err != nil {
		return err
	}
	r := bufio.NewReaderSize(x.rows, 256<<10)
	for n := 0; ; n++ {
		table, err := binary.ReadUvarint(r)
		if errors.Is(err, io.EOF) {
			return nil
		}
		keyLength, err1 := binary.ReadUvarint(r)
		length, err2 := binary.ReadUvarint(r)
		if err := errors.Join(err, err1, err2); err != nil {
			return fmt.Errorf("read rows: %w", err)
		}
		data := make([]byte, keyLength+length)
		if _, err := io.ReadFull(r, data); err != nil {
			return fmt.Errorf("read rows: %w", err)
		}
		if n%1000 == 0 {
			x.beforeWrite()
		}
		row := snapshot.Row{Table: uint16(table), Key: data[:keyLength], Value: data[keyLength:]}
		if err := yield(row); err != nil {
			return err
		}
	}
}

func (x *importer) beforeWrite() {
	if x.writes != nil {
		x.writes()
	}
}

func (x *importer) finishReport() {
	r := x.report
	r.Users, r.Groups, r.Channels = len(x.users), len(x.groups), len(x.channels)
	r.Dropped, r.Changed = countList(x.counts.dropped), countList(x.counts.changed)
	r.Rendering = countList(x.counts.rendering)
	for _, c := range slices.Sorted(maps.Keys(x.retention)) {
		r.Retention = append(r.Retention, *x.retention[c])
	}
	r.Seconds = x.o.Now().Sub(x.began).Seconds()
}
