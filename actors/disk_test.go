package actors

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"

	"parley/actors/presence"
	"parley/actors/realm"
	"parley/snapshot/codec"
)

// diskContents is the part of a disk that a crash leaves: facts, rows and texts as bytes.
type diskContents struct {
	mu    sync.Mutex
	epoch uint64
	facts []storedFact // of realm 1, after the rows
	rows  realm.Seq
	table map[string]realm.EncodedRow
	texts map[realm.BodyRef][]byte
	// asleep is the encoded realm.Asleep; nil: none.
	asleep []byte
}

// storedFact is a fact, and the inputs with which it is applied.
type storedFact struct {
	data  []byte
	now   int64
	level uint16
}

func newDiskContents() *diskContents {
	return &diskContents{table: map[string]realm.EncodedRow{}, texts: map[realm.BodyRef][]byte{}}
}

// last returns the number of the last fact on disk.
func (p *diskContents) last() realm.Seq {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rows + realm.Seq(len(p.facts))
}

// putRows stores or deletes rows. p.mu is held.
func (p *diskContents) putRows(rows []realm.EncodedRow) {
	for _, r := range rows {
		k := fmt.Sprintf("%d %x", r.Table, r.Key)
		if r.Value == nil {
			delete(p.table, k)
		} else {
			p.table[k] = r
		}
	}
}

// slowDisk is a disk whose writes stay in progress until the test lets them finish. After a crash nothing more is
// written, but every write reports success: actors of the crashed process may still be running.
type slowDisk struct {
	*diskContents
	writes chan *pendingWrite // nil: writes finish at once
	mu     sync.Mutex
	dead   bool
	refuse int // how many of the next batches are refused; under diskContents.mu
	locked int // how often opening a realm fails; under diskContents.mu
}

// pendingWrite is one append or snapshot in progress.
type pendingWrite struct {
	what string
	do   func() error
	done chan error
}

func (d *slowDisk) perform(what string, do func() error) error {
	d.mu.Lock()
	dead, slow := d.dead, d.writes
	d.mu.Unlock()
	if dead {
		return nil
	}
	if slow == nil {
		return do()
	}
	w := &pendingWrite{what, do, make(chan error, 1)}
	slow <- w
	return <-w.done
}

// crash loses the writes in progress, except those that the test has let finish.
func (d *slowDisk) crash() {
	d.mu.Lock()
	d.dead = true
	d.mu.Unlock()
}

func (d *slowDisk) Realms() ([]realm.ID, error) {
	if d.last() == 0 {
		return nil, nil
	}
	return []realm.ID{1}, nil
}

func (d *slowDisk) Claim(realm.ID, uint64) (realm.Claimed, error) {
	last := d.last()
	d.diskContents.mu.Lock()
	defer d.diskContents.mu.Unlock()
	if d.locked > 0 {
		d.locked--
		return realm.Claimed{}, errors.New("the disk does not answer")
	}
	d.epoch++
	return realm.Claimed{Epoch: d.epoch, Last: last, Rows: d.rows}, nil
}

func (d *slowDisk) Load(_ realm.ID, r *realm.Realm, table *presence.Table) (kept []realm.Publication, err error) {
	for _, row := range d.table {
		switch row.Table {
		case realm.PresenceTable:
			var p presence.Row
			err = codec.Decoder(row.Value)(&p)
			table.Restore(p)
		case realm.UnackedEventsTable:
			var t realm.Publication
			t, err = codec.DecodeUnacked(row.Value)
			kept = append(kept, t)
		default:
			err = r.LoadRow(row.Table, codec.Decoder(row.Key), codec.Decoder(row.Value))
		}
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(kept, func(a, b realm.Publication) int { return cmp.Compare(a.Seq, b.Seq) })
	return kept, nil
}

func (d *slowDisk) LoadPresence(_ realm.ID, table *presence.Table) error {
	for _, row := range d.table {
		if row.Table == realm.PresenceTable {
			var p presence.Row
			if err := codec.Decoder(row.Value)(&p); err != nil {
				return err
			}
			table.Restore(p)
		}
	}
	return nil
}

func (d *slowDisk) Bounds(realm.ID) (rows, last realm.Seq, err error) {
	last = d.last()
	d.diskContents.mu.Lock()
	defer d.diskContents.mu.Unlock()
	return d.rows, last, nil
}

func (d *slowDisk) Tail(_ realm.ID, after realm.Seq, fn func(realm.Record) error) error {
	if after < d.rows {
		return fmt.Errorf("facts after %d are in the rows", after)
	}
	for i, x := range d.facts[after-d.rows:] {
		f, err := codec.DecodeFact(x.data)
		if err != nil {
			return err
		}
		inputs := realm.Inputs{Seq: after + realm.Seq(i) + 1, Now: x.now, Level: x.level}
		if err := fn(realm.Record{Inputs: inputs, Fact: f}); err != nil {
			return err
		}
	}
	return nil
}

func (d *slowDisk) FindRequest(realm.ID, string) (realm.Seq, bool, error) { return 0, false, nil }

func (d *slowDisk) Encode(f realm.Fact) []byte { return codec.EncodeFact(f) }

func (d *slowDisk) EncodeRow(table uint16, key, row any) realm.EncodedRow {
	e := realm.EncodedRow{Table: table, Key: codec.EncodeKey(key)}
	if row != nil {
		e.Value = codec.EncodeRow(row)
	}
	return e
}

func (d *slowDisk) EncodeUnacked(t realm.Publication) realm.EncodedRow {
	return realm.EncodedRow{
		Table: realm.UnackedEventsTable,
		Key:   codec.UnackedKey(t.Seq),
		Value: codec.EncodeUnacked(t),
	}
}

// Append stores each batch that fits, and refuses the others.
func (d *slowDisk) Append(batches []realm.Batch) []error {
	batches, errs := slices.Clone(batches), make([]error, len(batches))
	err := d.perform("append", func() error {
		p := d.diskContents
		p.mu.Lock()
		defer p.mu.Unlock()
		for i, b := range batches {
			last := p.rows + realm.Seq(len(p.facts))
			if d.refuse > 0 || b.Epoch != p.epoch || b.After != last {
				d.refuse = max(0, d.refuse-1)
				errs[i] = fmt.Errorf(
					"%w: append after %d in epoch %d, the journal is at %d in epoch %d",
					realm.ErrMoved,
					b.After,
					b.Epoch,
					last,
					p.epoch,
				)
				continue
			}
			for _, data := range b.Facts {
				p.facts = append(p.facts, storedFact{data, b.Now, b.Level})
			}
			for _, t := range b.Texts {
				if t.Body == nil {
					delete(p.texts, t.Ref)
				} else {
					p.texts[t.Ref] = codec.EncodeText(t.Body)
				}
			}
		}
		return nil
	})
	for i := range errs {
		errs[i] = cmp.Or(errs[i], err)
	}
	return errs
}

func (d *slowDisk) WriteRows(_ realm.ID, epoch uint64, at realm.Seq, rows []realm.EncodedRow) error {
	return d.perform("snapshot", func() error {
		p := d.diskContents
		p.mu.Lock()
		defer p.mu.Unlock()
		if last := p.rows + realm.Seq(len(p.facts)); epoch != p.epoch || at > last || at < p.rows {
			return fmt.Errorf("%w: snapshot at %d, the journal is at %d to %d", realm.ErrMoved, at, p.rows, last)
		}
		p.putRows(rows)
		p.facts, p.rows = slices.Clone(p.facts[at-p.rows:]), at
		return nil
	})
}

func (d *slowDisk) SavePresence(_ realm.ID, _ uint64, rows []realm.EncodedRow) error {
	return d.perform("presence", func() error {
		d.diskContents.mu.Lock()
		defer d.diskContents.mu.Unlock()
		d.putRows(rows)
		return nil
	})
}

func (d *slowDisk) Text(_ realm.ID, ref realm.BodyRef) (realm.Body, bool, error) {
	d.diskContents.mu.Lock()
	defer d.diskContents.mu.Unlock()
	data, ok := d.texts[ref]
	if !ok {
		return realm.Body{}, false, nil
	}
	b, err := codec.DecodeText(data)
	return b, err == nil, err
}
