package actors

import (
	"fmt"
	"slices"

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
	n := len(a.rows)
	if n == 0 || len(a.rows[n-1]) == rowsAStep {
		a.rows, n = append(a.rows, make([]realm.EncodedRow, 0, rowsAStep)), n+1
	}
	a.rows[n-1] = append(a.rows[n-1], row)
	a.stepped++
	a.bytes += len(row.Value)
}

// snapshot begins to write the changed rows; turns go on between the slices.
func (a *realmActor) snapshot() {
	if a.r.Seq() == 0 || a.state != moving && (a.state != frozen || a.grown < a.h.frozenBytes.Load()) {
		return
	}
	a.state, a.rows = writing, nil
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
	at, rows := a.cut.At, append(a.rows, a.presence)
	a.cut = nil
	a.h.stage.work(func() {
		err := a.h.disk.Snapshot(a.r.ID(), a.epoch, at, slices.Concat(rows...))
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
	switch a.state {
	case writing:
		a.state = moving
	case freezing:
		a.state = frozen
	case leaving:
		a.state = left
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
	a.settled(m.done)
}

func (a *realmActor) freeze(m freeze) {
	switch {
	case m.on && a.state == moving:
		a.state = frozen
	case m.on && a.state == writing:
		a.state = freezing
	case !m.on && a.state == frozen:
		a.state = moving
	case !m.on && a.state == freezing:
		a.state = writing
	}
	a.settled(m.done)
	a.finishing() // what is thawed at its end gets its last snapshot
}

// settled answers when no snapshot is under way.
func (a *realmActor) settled(done chan error) {
	if a.state == writing || a.state == freezing {
		a.saving = append(a.saving, done)
	} else {
		done <- nil
	}
}

// leave writes the presence that the last snapshot does not have, with the number the rows stand at anyway.
func (a *realmActor) leave(rows []realm.EncodedRow) {
	if len(rows) == 0 {
		a.state = left
		a.finishing()
		return
	}
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
// holds only what was before it, so another follows. Frozen rows are left to the successor, who reads the rest in the journal.
func (a *realmActor) finishing() {
	if len(a.finished) == 0 {
		return
	}
	switch a.state {
	case writing, freezing, leaving:
		return // written comes back here
	case moving:
		if a.grown > 0 {
			a.snapshot() // at the newest number; it waits for that to be on disk
			return
		}
	case frozen, left:
		if a.durable < a.r.Seq() {
			return // release comes back here
		}
		if a.state == frozen {
			a.state = leaving
			a.h.stage.send(a.handle.presence, savePresence{a.handle.pid})
			return
		}
	}
	for _, done := range a.finished {
		done <- nil
	}
	a.finished = nil
}
