package actors

import (
	"errors"
	"fmt"
	"slices"

	"parley/actors/realm"
)

// rowsPerStep and bytesPerStep are how much of a snapshot is encoded before other messages get their turn: about a
// millisecond of work. Rows differ in size: one may hold a thousand subscriptions, or the read state of a million
// messages.
const (
	rowsPerStep  = 200
	bytesPerStep = 64 << 10
)

// addSnapshotRow adds an encoded row to the snapshot in progress.
func (a *realmActor) addSnapshotRow(row realm.EncodedRow) {
	n := len(a.snapshotRows)
	if n == 0 || len(a.snapshotRows[n-1]) == rowsPerStep {
		a.snapshotRows, n = append(a.snapshotRows, make([]realm.EncodedRow, 0, rowsPerStep)), n+1
	}
	a.snapshotRows[n-1] = append(a.snapshotRows[n-1], row)
	a.stepRows++
	a.stepBytes += len(row.Value)
}

// beginSnapshot begins to write the changed rows. Turns continue between the steps. It does nothing if a snapshot is in
// progress, if the realm is frozen and its journal is not too large, or if nothing can be stored.
func (a *realmActor) beginSnapshot() {
	if a.reloading || a.srv.readOnly.Load() || a.realm.Seq() == 0 ||
		a.snapshotState != snapshotIdle && !a.frozenTooLong() {
		return
	}
	a.snapshotState, a.snapshotRows = snapshotWriting, nil
	a.iterator = a.realm.BeginSnapshot(func(table uint16, key, row any) {
		a.addSnapshotRow(a.srv.disk.EncodeRow(table, key, row))
	})
	a.journalBytes, a.lastSnapshot, a.presenceRows = 0, a.srv.now(), nil
	a.rowsEncoded, a.awaitsFacts, a.allEncoded = false, false, false
	a.srv.runtime.Send(a.handle.presence, savePresence{to: a.handle.pid})
	a.srv.runtime.Send(a.handle.pid, snapshotStep{})
}

// continueSnapshot encodes the next rows. When all rows are encoded and the snapshot's facts are on disk, their unacked
// events are known and follow. When the presence rows have arrived, too, it writes the snapshot in the background.
func (a *realmActor) continueSnapshot() {
	if a.iterator == nil {
		return
	}
	if !a.allEncoded {
		a.stepRows, a.stepBytes = 0, 0
		enough := func() bool { return a.stepRows >= rowsPerStep || a.stepBytes >= bytesPerStep }
		a.rowsEncoded = a.rowsEncoded || a.iterator.NextRows(enough)
		if a.awaitsFacts = a.rowsEncoded && a.durable < a.iterator.Seq; a.awaitsFacts {
			return // release calls this again
		}
		if a.allEncoded = a.rowsEncoded &&
			a.owned.EncodeRows(a.iterator.Seq, a.srv.disk.EncodeUnacked, a.addSnapshotRow, enough); !a.allEncoded {
			a.srv.runtime.Send(a.handle.pid, snapshotStep{})
			return
		}
	}
	if a.presenceRows == nil || a.savingPresence {
		return // the presence rows or handlePresenceSaved call this again
	}
	at, rows := a.iterator.Seq, append(a.snapshotRows, a.presenceRows)
	id, epoch := a.realm.ID(), a.epoch
	a.iterator = nil
	a.srv.runtime.RunInBackground(func() {
		err := a.srv.disk.WriteRows(id, epoch, at, slices.Concat(rows...))
		a.srv.runtime.Send(a.handle.pid, snapshotWritten{epoch, at, err})
	})
}

// handleSnapshotWritten ends a snapshot and answers the waiters.
func (a *realmActor) handleSnapshotWritten(m snapshotWritten) {
	a.snapshotRows = nil
	if errors.Is(m.err, realm.ErrMoved) && (a.reloading || m.epoch != a.epoch) {
		a.srv.log.Warn("rows were not written: the organization has another owner", "realm", a.realm.ID(), "err", m.err)
		m.err = nil
		m.at = a.rowsSeq
	}
	if m.err != nil {
		a.srv.fatal(fmt.Errorf("snapshot of realm %d at %d: %w", a.realm.ID(), m.at, m.err))
		return
	}
	a.srv.Metrics.Snapshots.Add(1)
	a.handle.lastSnapshot.Store(a.srv.now().Unix())
	a.rowsSeq = max(a.rowsSeq, m.at)
	switch a.snapshotState {
	case snapshotWriting:
		a.snapshotState = snapshotIdle
	case snapshotFreezing:
		a.snapshotState = snapshotFrozen
	case presenceWriting:
		a.snapshotState = presenceDone
	}
	for _, done := range a.snapshotWaiters {
		done <- nil
	}
	a.snapshotWaiters = nil
	a.continueClose()
}

// handleSaveRealm writes a snapshot, unless one is in progress or there is nothing to write. Acknowledgements record no
// fact, but the rows of events that every queue has acknowledged must go, too.
func (a *realmActor) handleSaveRealm(m saveRealm) {
	if a.standby {
		a.owned.DropJournaled()
	} else {
		a.owned.DropAcknowledged() // session actors without queues do not report
		a.journalAcks()
	}
	if a.journalBytes > 0 || a.owned.HasObsoleteRows() {
		a.beginSnapshot()
	}
	a.replyAfterSnapshot(m.done)
}

// handleSetFrozen freezes the rows, or ends that.
func (a *realmActor) handleSetFrozen(m setFrozen) {
	switch {
	case m.on && a.snapshotState == snapshotIdle:
		a.snapshotState = snapshotFrozen
	case m.on && a.snapshotState == snapshotWriting:
		a.snapshotState = snapshotFreezing
	case !m.on && a.snapshotState == snapshotFrozen:
		a.snapshotState = snapshotIdle
	case !m.on && a.snapshotState == snapshotFreezing:
		a.snapshotState = snapshotWriting
	}
	a.replyAfterSnapshot(m.done)
	a.continueClose() // a closing realm that is not frozen any more gets its last snapshot
}

// replyAfterSnapshot answers when no snapshot is in progress.
func (a *realmActor) replyAfterSnapshot(done chan error) {
	if a.snapshotState == snapshotWriting || a.snapshotState == snapshotFreezing {
		a.snapshotWaiters = append(a.snapshotWaiters, done)
	} else {
		done <- nil
	}
}

// savePresence stores presence that changed since the last snapshot, so that a crash does not make every user seem to
// be offline. The rows' sequence number stays the same. A snapshot in progress would overwrite these rows with older
// ones, so savePresence does nothing until the snapshot is written; and a snapshot that begins in the meantime is not
// written before these rows.
func (a *realmActor) savePresence() {
	if a.reloading || a.savingPresence || len(a.closeWaiters) > 0 || a.srv.readOnly.Load() ||
		a.snapshotState != snapshotIdle && a.snapshotState != snapshotFrozen {
		return
	}
	a.savingPresence, a.presenceDueAt = true, a.srv.elapsed()+presenceInterval
	a.srv.runtime.Send(a.handle.presence, savePresence{to: a.handle.pid, limit: MaxPresenceRows, early: true})
}

// handleEarlyPresence writes rows of presence in the background, because a sync of the journal may be in progress.
func (a *realmActor) handleEarlyPresence(rows []realm.EncodedRow) {
	if len(rows) == 0 {
		a.handlePresenceSaved(presenceSaved{})
		return
	}
	id, epoch := a.realm.ID(), a.epoch
	a.srv.runtime.RunInBackground(func() {
		err := a.srv.disk.SavePresence(id, epoch, rows)
		a.srv.runtime.Send(a.handle.pid, presenceSaved{len(rows), err})
	})
}

// handlePresenceSaved continues the work that waited for rows of presence. An error is only logged: if the disk has
// failed, the next append ends the process.
func (a *realmActor) handlePresenceSaved(m presenceSaved) {
	a.savingPresence = false
	if m.err != nil {
		a.srv.log.Warn("storing presence failed", "realm", a.realm.ID(), "err", m.err)
	}
	if m.count == MaxPresenceRows { // there may be more
		a.presenceDueAt = 0
	}
	if a.iterator != nil && a.allEncoded {
		a.continueSnapshot()
	}
	a.continueClose()
}

// writeLastPresence writes presence rows of a frozen realm that is closing. The rows' sequence number stays the same.
func (a *realmActor) writeLastPresence(rows []realm.EncodedRow) {
	if len(rows) == 0 {
		a.snapshotState = presenceDone
		a.continueClose()
		return
	}
	id, epoch, at := a.realm.ID(), a.epoch, a.rowsSeq
	a.srv.runtime.RunInBackground(func() {
		err := a.srv.disk.WriteRows(id, epoch, at, rows)
		a.srv.runtime.Send(a.handle.pid, snapshotWritten{epoch, at, err})
	})
}

// beginClose writes a last snapshot, so that the next start has nothing to replay.
func (a *realmActor) beginClose(m closeRealm) {
	a.closeWaiters = append(a.closeWaiters, m.done)
	a.stopFollowing()
	a.continueClose()
}

// continueClose answers the waiters of Close once every fact is on disk and in the rows. A snapshot that was in
// progress holds only the facts before it, so another one follows. The rows of a frozen realm stay: the successor reads
// the rest in the journal.
func (a *realmActor) continueClose() {
	if len(a.closeWaiters) == 0 || a.savingPresence { // handlePresenceSaved calls this again
		return
	}
	if a.reloading { // every fact that was stored is in the journal
		a.replyClosed()
		return
	}
	switch a.snapshotState {
	case snapshotWriting, snapshotFreezing, presenceWriting:
		return // handleSnapshotWritten calls this again
	case snapshotIdle:
		if a.journalBytes > 0 && !a.srv.readOnly.Load() {
			a.beginSnapshot() // of the newest fact; it waits until that is on disk
			return
		}
		if a.durable < a.realm.Seq() {
			return // release calls this again
		}
	case snapshotFrozen, presenceDone:
		if a.durable < a.realm.Seq() {
			return // release calls this again
		}
		if a.snapshotState == snapshotFrozen && !a.srv.readOnly.Load() {
			a.snapshotState = presenceWriting
			a.srv.runtime.Send(a.handle.presence, savePresence{to: a.handle.pid})
			return
		}
	}
	a.replyClosed()
}

// replyClosed answers the waiters of Close.
func (a *realmActor) replyClosed() {
	for _, done := range a.closeWaiters {
		done <- nil
	}
	a.closeWaiters = nil
}
