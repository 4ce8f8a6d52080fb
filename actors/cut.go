package actors

import (
	"fmt"

	"parley/actors/realm"
)

// rowsAStep and bytesAStep are how much of a snapshot is encoded before callers get their turn: about a millisecond. Rows
// differ much in size: one may hold a thousand subscriptions, or what somebody has read of a million messages.
const (
	rowsAStep  = 200
	bytesAStep = 64 << 10
)

// encoded takes a row of the running snapshot.
func (a *realmActor) encoded(row realm.EncodedRow) {
	a.rows = append(a.rows, row)
	a.stepped++
	a.bytes += len(row.Value)
}

// snapshot begins to write the changed rows; turns go on between the slices.
func (a *realmActor) snapshot() {
	if a.cut != nil || a.rows != nil || a.r.Seq() == 0 || a.parting != here {
		return
	}
	if a.frozen && a.grown < a.h.frozenBytes.Load() {
		return
	}
	a.frozen = false
	a.rows = []realm.EncodedRow{}
	a.cut = a.r.BeginCut(func(table uint16, key, row any) {
		a.encoded(a.h.disk.EncodeRow(table, key, row))
	})
	a.grown, a.last, a.presence, a.whole = 0, a.h.now(), nil, false
	a.h.stage.send(a.handle.presence, savePresence{a.handle.pid})
	a.h.stage.send(a.handle.pid, step{})
}

func (a *realmActor) step() {
	if a.cut == nil {
		return
	}
	if !a.whole {
		a.stepped, a.bytes = 0, 0
		enough := func() bool { return a.stepped >= rowsAStep || a.bytes >= bytesAStep }
		if a.whole = a.cut.Step(enough) && a.stepKept(a.cut.At, enough); !a.whole {
			a.h.stage.send(a.handle.pid, step{})
			return
		}
	}
	if a.durable < a.cut.At || a.presence == nil {
		return // release, or the presence actor's rows, come back here
	}
	at, rows := a.cut.At, append(a.rows, a.presence...)
	a.cut = nil
	a.h.stage.work(func() {
		err := a.h.disk.Snapshot(a.r.ID(), a.epoch, at, rows)
		a.h.stage.send(a.handle.pid, written{at, err})
	})
}

func (a *realmActor) written(m written) {
	a.rows = nil
	if m.err != nil {
		a.h.fatal(fmt.Errorf("snapshot of realm %d at %d: %w", a.r.ID(), m.at, m.err))
		return
	}
	a.h.Metrics.Snapshots.Add(1)
	a.handle.saved.Store(a.h.now().Unix())
	a.stands = m.at
	if a.parting == leaves {
		a.parting = left
	}
	for _, done := range a.saving {
		done <- nil
	}
	a.saving = nil
	a.finishing()
}

// save writes a snapshot, unless one is under way or there is nothing to write.
func (a *realmActor) save(m save) {
	if a.grown > 0 {
		a.snapshot()
	}
	if a.cut == nil && a.rows == nil {
		m.done <- nil
		return
	}
	a.saving = append(a.saving, m.done)
}

func (a *realmActor) freeze(m freeze) {
	a.frozen = m.on
	if !m.on || a.cut == nil && a.rows == nil {
		m.done <- nil
		return
	}
	a.saving = append(a.saving, m.done)
}

// leave writes the presence that the last snapshot does not have, with the number the rows stand at anyway.
func (a *realmActor) leave(rows []realm.EncodedRow) {
	if len(rows) == 0 {
		a.parting = left
		a.finishing()
		return
	}
	a.rows = rows
	at := a.stands
	a.h.stage.work(func() {
		err := a.h.disk.Snapshot(a.r.ID(), a.epoch, at, rows)
		a.h.stage.send(a.handle.pid, written{at, err})
	})
}

// finish writes a last snapshot so that the next start has nothing to replay.
func (a *realmActor) finish(m finish) {
	a.finished = append(a.finished, m.done)
	a.finishing()
}

// finishing answers those who wait for the end once every fact is on disk and in the rows. A snapshot that was under way
// holds only what was before it, so another follows.
func (a *realmActor) finishing() {
	switch {
	case len(a.finished) == 0 || a.cut != nil || a.rows != nil || a.parting == leaves:
		return
	case a.frozen && a.durable < a.r.Seq():
		return // release comes back here
	case a.frozen && a.parting == here:
		a.parting = leaves
		a.h.stage.send(a.handle.presence, savePresence{a.handle.pid})
		return
	case a.parting == left: // the successor has the rows, and reads the rest in the journal
	case a.grown > 0:
		a.snapshot() // at the newest number; it waits for that to be on disk
		return
	}
	for _, done := range a.finished {
		done <- nil
	}
	a.finished = nil
}
