package migration

import (
	"encoding/binary"
	"errors"

	"parley/wire/imports"
)

// encoder writes a message to the sorter's bytes. decoder reads it in the same order.
type encoder struct{ b []byte }

func (e *encoder) int(n int64) { e.b = binary.AppendVarint(e.b, n) }
func (e *encoder) str(s string) {
	e.b = binary.AppendUvarint(e.b, uint64(len(s)))
	e.b = append(e.b, s...)
}
func (e *encoder) bool(b bool) {
	if b {
		e.b = append(e.b, 1)
	} else {
		e.b = append(e.b, 0)
	}
}
func (e *encoder) optional(s *string) {
	if e.bool(s != nil); s != nil {
		e.str(*s)
	}
}

func encodeList[T any](e *encoder, list []T, one func(*T)) {
	e.int(int64(len(list)))
	for i := range list {
		one(&list[i])
	}
}

// decoder reads the output of an encoder. After an error it returns zero values.
type decoder struct {
	b   []byte
	err error
}

var errItem = errors.New("sort: an item is damaged")

func (d *decoder) int() int64 {
	n, w := binary.Varint(d.b)
	if w <= 0 {
		d.err = errItem
		return 0
	}
	d.b = d.b[w:]
	return n
}

func (d *decoder) str() string {
	n, w := binary.Uvarint(d.b)
	if w <= 0 || n > uint64(len(d.b)-w) {
		d.err = errItem
		return ""
	}
	s := string(d.b[w : w+int(n)])
	d.b = d.b[w+int(n):]
	return s
}

func (d *decoder) bool() bool {
	if len(d.b) == 0 {
		d.err = errItem
		return false
	}
	x := d.b[0] != 0
	d.b = d.b[1:]
	return x
}

func (d *decoder) optional() *string {
	if !d.bool() {
		return nil
	}
	s := d.str()
	return &s
}

func decodeList[T any](d *decoder, one func(*T)) []T {
	n := d.int()
	if n <= 0 || d.err != nil || n > int64(len(d.b)) {
		if n != 0 {
			d.err = errItem
		}
		return nil
	}
	list := make([]T, n)
	for i := range list {
		one(&list[i])
	}
	return list
}

func (e *encoder) message(m *imports.Message) {
	for _, s := range []string{m.Key, m.Sender, m.Channel, m.Topic, m.Thread, m.Text, m.HTML, m.Client, m.SentTo,
		m.Place} {
		e.str(s)
	}
	for _, n := range []int64{m.Order, m.At, m.Edited, m.Moved} {
		e.int(n)
	}
	encodeList(e, m.People, func(s *string) { e.str(*s) })
	encodeList(e, m.History, func(r *imports.Revision) {
		e.str(r.User)
		e.int(r.At)
		e.bool(r.Content)
		e.str(r.Text)
		e.str(r.HTML)
		e.optional(r.TopicBefore)
		e.optional(r.TopicAfter)
		e.str(r.ChannelBefore)
		e.str(r.ChannelAfter)
	})
	encodeList(e, m.Reactions, func(r *imports.Reaction) {
		e.str(r.User)
		e.str(r.Name)
		e.str(r.Code)
		e.str(r.Type)
	})
	encodeList(e, m.Submessages, func(s *imports.Submessage) {
		e.str(s.Sender)
		e.str(s.Type)
		e.str(s.Content)
	})
	encodeList(e, m.Files, e.file)
	encodeList(e, m.Marks, func(k *imports.Mark) {
		e.str(k.User)
		e.int(int64(k.Flags))
	})
}

func (e *encoder) file(f *imports.File) {
	for _, s := range []string{f.Path, f.Address, f.Name, f.Type, f.Owner} {
		e.str(s)
	}
	e.int(f.Created)
	e.int(f.Size)
}

func (d *decoder) message() (m imports.Message) {
	for _, s := range []*string{
		&m.Key, &m.Sender, &m.Channel, &m.Topic, &m.Thread, &m.Text, &m.HTML, &m.Client, &m.SentTo,
		&m.Place,
	} {
		*s = d.str()
	}
	for _, n := range []*int64{&m.Order, &m.At, &m.Edited, &m.Moved} {
		*n = d.int()
	}
	m.People = decodeList(d, func(s *string) { *s = d.str() })
	m.History = decodeList(d, func(r *imports.Revision) {
		r.User, r.At, r.Content, r.Text, r.HTML = d.str(), d.int(), d.bool(), d.str(), d.str()
		r.TopicBefore, r.TopicAfter = d.optional(), d.optional()
		r.ChannelBefore, r.ChannelAfter = d.str(), d.str()
	})
	m.Reactions = decodeList(d, func(r *imports.Reaction) {
		*r = imports.Reaction{User: d.str(), Name: d.str(), Code: d.str(), Type: d.str()}
	})
	m.Submessages = decodeList(
		d,
		func(s *imports.Submessage) { s.Sender, s.Type, s.Content = d.str(), d.str(), d.str() },
	)
	m.Files = decodeList(d, func(f *imports.File) {
		for _, s := range []*string{&f.Path, &f.Address, &f.Name, &f.Type, &f.Owner} {
			*s = d.str()
		}
		f.Created, f.Size = d.int(), d.int()
	})
	m.Marks = decodeList(d, func(k *imports.Mark) { k.User, k.Flags = d.str(), int(d.int()) })
	return m
}
