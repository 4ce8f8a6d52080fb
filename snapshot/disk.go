package snapshot

import (
	"context"
	"errors"
	"fmt"

	"parley/actors/presence"
	"parley/actors/realm"
	"parley/snapshot/codec"
)

// Disk is a Store of facts and rows instead of bytes.
type Disk struct {
	*Store
	Encoder
}

// Encoder encodes and decodes facts and rows.
type Encoder struct{}

// moved marks the errors of a single batch, after which another process may own the realm.
func moved(err error) error {
	if errors.Is(err, ErrDuplicate) || errors.Is(err, ErrTooLarge) {
		return fmt.Errorf("%w: %w", ErrMoved, err)
	}
	return err
}

// Load loads the rows into r and the presence table, and returns the unacknowledged events in order.
func (d Disk) Load(id realm.ID, r *realm.Realm, presences *presence.Table) (unacked []realm.Publication, err error) {
	load := func(row Row) error {
		return r.LoadRow(row.Table, codec.Decoder(row.Key), codec.Decoder(row.Value))
	}
	err = d.Store.RowsParallel(id, realm.BlocksTable, func(row Row) error {
		if row.Table == realm.PresenceTable {
			var p presence.Row
			err := codec.Decoder(row.Value)(&p)
			presences.Restore(p)
			return err
		}
		if row.Table == realm.UnackedEventsTable {
			t, err := codec.DecodeUnacked(row.Value)
			unacked = append(unacked, t)
			return err
		}
		return load(row)
	}, load)
	return unacked, err
}

// LoadReplica loads the rows of one moment into r and the presence table, without the unacknowledged events.
func (d Disk) LoadReplica(id realm.ID, r *realm.Realm, presences *presence.Table) (realm.Seq, error) {
	return LoadRows(func(fn func(realm.EncodedRow) error) (realm.Seq, error) { return d.EachRow(id, fn) }, r, presences)
}

// LoadRows loads encoded rows, which may come from another node, like Disk.LoadReplica.
func LoadRows(
	each func(fn func(realm.EncodedRow) error) (realm.Seq, error), r *realm.Realm, presences *presence.Table,
) (realm.Seq, error) {
	return each(func(row realm.EncodedRow) error {
		switch row.Table {
		case realm.UnackedEventsTable:
			return nil
		case realm.PresenceTable:
			var p presence.Row
			err := codec.Decoder(row.Value)(&p)
			presences.Restore(p)
			return err
		}
		return r.LoadRow(row.Table, codec.Decoder(row.Key), codec.Decoder(row.Value))
	})
}

// Decode decodes a fact of a batch.
func (Encoder) Decode(fact []byte) (realm.Fact, error) { return codec.DecodeFact(fact) }

// LoadPresence loads only the presence rows.
func (d Disk) LoadPresence(id realm.ID, presences *presence.Table) error {
	return d.Store.TableRows(id, realm.PresenceTable, func(row Row) error {
		var p presence.Row
		err := codec.Decoder(row.Value)(&p)
		presences.Restore(p)
		return err
	})
}

// Subdomain returns the subdomain of an organization without loading it; founded is false if there is none yet.
func (d Disk) Subdomain(id realm.ID) (name string, founded bool, err error) {
	err = d.Store.TableRows(id, realm.OrganizationTable, func(row Row) error {
		var o realm.Organization
		err := codec.Decoder(row.Value)(&o)
		name, founded = o.StringID, true
		return err
	})
	if err != nil || founded {
		return name, founded, err
	}
	err = d.Tail(id, 0, func(rec realm.Record) error {
		if first, is := rec.Fact.(*realm.Founded); is {
			name, founded = first.StringID, true
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return name, founded, err
}

// errEnough ends a loop over stored data before its end.
var errEnough = errors.New("enough")

func (d Disk) Tail(id realm.ID, after realm.Seq, fn func(realm.Record) error) error {
	return behind(d.Store.Tail(id, after, func(r Record) error {
		f, err := codec.DecodeFact(r.Fact)
		if err != nil {
			return err
		}
		return fn(realm.Record{Inputs: r.Inputs, Fact: f})
	}))
}

// behind marks the error of a Tail whose facts are only in the rows.
func behind(err error) error {
	if errors.Is(err, ErrSnapshotted) {
		return fmt.Errorf("%w: %w", realm.ErrBehind, err)
	}
	return err
}

func (Encoder) Encode(f realm.Fact) []byte { return codec.EncodeFact(f) }

func (Encoder) EncodeRow(table uint16, key, row any) realm.EncodedRow {
	e := realm.EncodedRow{Table: table, Key: codec.EncodeKey(key)}
	if row != nil {
		e.Value = codec.EncodeRow(row)
	}
	return e
}

func (Encoder) EncodeUnacked(t realm.Publication) realm.EncodedRow {
	return realm.EncodedRow{
		Table: realm.UnackedEventsTable,
		Key:   codec.UnackedKey(t.Seq),
		Value: codec.EncodeUnacked(t),
	}
}

// Append commits batches with one sync; see actors.Journal.
func (d Disk) Append(batches []realm.Batch) []error {
	errs := d.Store.Append(Entries(batches))
	d.feeds.commit(batches, errs)
	for i, err := range errs {
		if err != nil {
			errs[i] = moved(err)
		}
	}
	return errs
}

// WriteRows writes the changed rows of a snapshot; see Store.Snapshot.
func (d Disk) WriteRows(id realm.ID, epoch uint64, at realm.Seq, rows []realm.EncodedRow) error {
	return moved(d.Store.Snapshot(id, epoch, at, func(yield func(Row) error) error {
		for _, r := range rows {
			if err := yield(r); err != nil {
				return err
			}
		}
		return nil
	}))
}

// SavePresence writes rows of presence without a sync; see Store.SaveRowsUnsynced.
func (d Disk) SavePresence(id realm.ID, epoch uint64, rows []realm.EncodedRow) error {
	return d.Store.SaveRowsUnsynced(id, epoch, rows)
}

// Text returns one version of a message's text; false if there is none.
func (d Disk) Text(id realm.ID, ref realm.BodyRef) (realm.Body, bool, error) {
	data, ok, err := d.Store.Body(id, codec.TextKey(ref))
	if err != nil || !ok {
		return realm.Body{}, false, err
	}
	b, err := codec.DecodeText(data)
	return b, err == nil, err
}

// EraseDeleted removes deleted data from the files of the store: texts of messages in a range, and rows and facts
// of the organization. Facts up to number upto do not stay behind the rows either. It takes as long as rewriting
// these, and can be canceled.
func (d Disk) EraseDeleted(ctx context.Context, id realm.ID, upto realm.Seq, from, to realm.MessageID) error {
	first := codec.TextKey(realm.BodyRef{Message: from})
	end := codec.TextKey(realm.BodyRef{Message: to + 1})
	return d.Store.EraseDeleted(ctx, id, upto, first, end)
}

// EachText calls fn with every version of every text, in the order of messages; body decodes the text.
func (d Disk) EachText(id realm.ID, fn func(ref realm.BodyRef, body func() (realm.Body, error)) error) error {
	return d.Store.Bodies(id, nil, nil, func(key, value []byte) error {
		ref, err := codec.DecodeTextKey(key)
		if err != nil {
			return err
		}
		return fn(ref, func() (realm.Body, error) { return codec.DecodeText(value) })
	})
}

// NewestTexts calls fn with the newest version of the text of each message after a message, in their order, until fn
// returns false.
func (d Disk) NewestTexts(
	id realm.ID, after realm.MessageID, fn func(ref realm.BodyRef, body realm.Body) (more bool, err error),
) error {
	var ref realm.BodyRef
	var newest []byte
	last := func() error {
		if ref.Message == 0 {
			return nil
		}
		body, err := codec.DecodeText(newest)
		if err != nil {
			return err
		}
		more, err := fn(ref, body)
		if err == nil && !more {
			err = errEnough
		}
		return err
	}
	from := codec.TextKey(realm.BodyRef{Message: after + 1})
	err := d.Store.Bodies(id, from, nil, func(key, value []byte) error {
		next, err := codec.DecodeTextKey(key)
		if err != nil {
			return err
		}
		if next.Message != ref.Message {
			if err := last(); err != nil {
				return err
			}
		}
		ref, newest = next, append(newest[:0], value...)
		return nil
	})
	if err == nil {
		err = last()
	}
	if errors.Is(err, errEnough) {
		err = nil
	}
	return err
}
