// Package owner has what only a node that stores an organization does: turns, the journal and the rows. It knows no
// client, no session and no other node.
//
//	commands, views ──► Turns ── facts ──► Journal (one actor for all realms) ── one synced batch ──► Disk
//	                    ▲   │                 │
//	                    │   └──► Replica      └── Refused ──► the actor of the realm ends the ownership
//	                    └──── Durable ────────┘
//	rows that have changed ──► Rows ── snapshot ──► Disk
//
// Turns sends nothing that a crash could undo: what depends on facts leaves when they are on disk.
package owner

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"parley/actors/mailbox"
	"parley/actors/realm"
)

// Writer stores the facts and rows of realms.
type Writer interface {
	// Append stores batches with one sync, and returns an error for each. A realm.ErrMoved says that this batch was not
	// stored and ends the ownership of its realm. After any other error nothing that is written later can be trusted.
	Append([]realm.Batch) []error
	// WriteRows writes changed rows on this node, records their sequence number, and deletes the facts that no follower
	// needs, in one batch.
	WriteRows(id realm.ID, epoch uint64, at realm.Seq, rows []realm.EncodedRow) error
}

// Disk is a Writer of this node's disk, which also encodes facts and rows.
type Disk interface {
	Writer
	Encode(f realm.Fact) []byte
	// FindRequest returns the last fact of a request whose id is in the journal. The journal remembers an id at least
	// as long as it has the fact.
	FindRequest(id realm.ID, request string) (realm.Seq, bool, error)
	// EncodeRow encodes one row of a snapshot. A nil row means that the row is to be deleted.
	EncodeRow(table uint16, key, row any) realm.EncodedRow
	// EncodeUnacked encodes the unacked events of one fact as a row.
	EncodeUnacked(t realm.Publication) realm.EncodedRow
	// SavePresence writes rows of presence without a sync. The last of them may be lost in a crash.
	SavePresence(id realm.ID, epoch uint64, rows []realm.EncodedRow) error
}

// Env has the parts that the owners of all realms of a process share.
type Env struct {
	Runtime  mailbox.Runtime
	Disk     Disk
	Log      *slog.Logger
	Now      func() time.Time // the wall clock; it may jump
	Elapsed  func() int64     // seconds since the process began; never jumps
	Fatal    func(error)      // ends the process
	ReadOnly func() bool      // nothing can be stored
	Journal  mailbox.Address  // of the Journal
	Refused  func(error)      // counts a refusal
	// Confirm calls done with nil when this node is known to have owned its realms after the call, or else with an
	// error. It does not block. nil: no other node can own them.
	Confirm func(done func(error))
	*Counters
	// MaxFrozenBytes is the constant of that name; tests lower it while actors read it.
	MaxFrozenBytes atomic.Int64
}

// Counters are those of the owners of all realms.
type Counters struct {
	Turns, Snapshots atomic.Int64
	// RequestsRepeated counts the commands that were not run again because their request had been carried out.
	RequestsRepeated atomic.Int64
	// OwnershipsLost counts how often the journal refused a batch and the organization was loaded again.
	OwnershipsLost atomic.Int64
}

const (
	// SnapshotBytes is the journal size, in bytes, at which the changed rows are written. That is about 45,000
	// messages, which are replayed in an eighth of a second after a crash.
	SnapshotBytes = 4 << 20
	// SnapshotAge is how old a snapshot gets before the next one, if there are new facts.
	SnapshotAge = 5 * time.Minute
	// SnapshotDelay is for how many seconds after a realm was opened no snapshot begins: the clients that reconnect
	// need the processors. A journal of SnapshotDelayBytes ends the delay. Replayed facts count, so a server that is
	// killed every few seconds writes snapshots too.
	SnapshotDelay      = 5
	SnapshotDelayBytes = 4 * SnapshotBytes
	// ReplayedBytes is how much a replayed fact adds to the journal's size, in bytes: about as much as a usual message.
	// If replayed facts did not count, a server that is killed often would never write a snapshot.
	ReplayedBytes = 200
	// MaxFrozenBytes is how large the journal of a realm may get while a successor process reads the rows. That is
	// enough for the messages of that time, and little enough to be replayed quickly. Beyond it the rows are written,
	// and the successor reads them again.
	MaxFrozenBytes = 8 * SnapshotBytes
	// PresenceInterval is the age, in seconds, at which changed presence is stored between snapshots, without a sync.
	// It is checked every 5 s and on disk a second later, so a crash loses the presence of 31 s. Clients show a user
	// whose last contact is 140 s old as idle, so no user seems to have left.
	PresenceInterval = 25
	// MaxPresenceRows is how many rows of presence are stored at once: half a megabyte. If more have changed, the next
	// ones follow 5 s later. An organization with more than 60,000 users online may lose older presence.
	MaxPresenceRows = 10_000
	// rowsPerStep and bytesPerStep are how much of a snapshot is encoded before other messages get their turn: about a
	// millisecond of work. Rows differ in size: one may hold a thousand subscriptions, or the read state of a million
	// messages.
	rowsPerStep  = 200
	bytesPerStep = 64 << 10
)

// Main is the actor of a realm, in whose mailbox Rows run.
type Main interface {
	Address() mailbox.Address
	Realm() *realm.Realm
	// Durable returns the last fact that is on disk.
	Durable() realm.Seq
	// Epoch returns the epoch of the node's last claim of the realm.
	Epoch() uint64
	// Settled reports whether the realm can be used: it is not being loaded again.
	Settled() bool
	// BeforeSave drops the events that no snapshot needs to have.
	BeforeSave()
	// SendPresence asks for the presence that has changed, at most limit rows (0: all). The answer is a PresenceRows.
	SendPresence(limit int, early bool)
}

// Extra are the rows of a realm that are no part of its state: the unacked events; see delivery.Owned.
type Extra interface {
	EncodeRows(at realm.Seq, encode func(realm.Publication) realm.EncodedRow, add func(realm.EncodedRow),
		enough func() bool) bool
	HasObsoleteRows() bool
}

// Rows writes the rows of a realm to disk. Its methods run in the mailbox of Main.
type Rows struct {
	env     *Env
	main    Main
	extra   Extra
	written *atomic.Int64 // when rows were last written, Unix seconds

	state  rowsState
	stored realm.Seq // sequence number of the rows on disk

	// The snapshot in progress, if any.
	iterator *realm.SnapshotIterator
	// rows, with rowsPerStep in each part. Growing one list of all rows would copy it, which takes tens of
	// milliseconds.
	rows         [][]realm.EncodedRow
	stepRows     int // rows and bytes that this step has encoded
	stepBytes    int
	rowsEncoded  bool               // every changed row is encoded, without the extra rows
	awaitsFacts  bool               // the unacked events of some of its facts are not known yet
	allEncoded   bool               // every row is encoded
	presenceRows []realm.EncodedRow // nil until they have arrived

	journalBytes int64 // bytes of the journal since the last snapshot
	notBefore    int64 // elapsed seconds; see SnapshotDelay
	last         time.Time
	closeWaiters []func()     // called when the realm is closed
	waiters      []chan error // answered when the snapshot is written

	savingPresence bool  // presence is being stored between snapshots; see savePresence
	presenceDueAt  int64 // elapsed seconds
}

// NewRows returns the rows of a realm. written gets the time of each snapshot, in Unix seconds.
func NewRows(env *Env, main Main, extra Extra, written *atomic.Int64) Rows {
	return Rows{env: env, main: main, extra: extra, written: written, last: env.Now()}
}

// rowsState is the state of writing a realm's rows to disk.
type rowsState int

const (
	idle            rowsState = iota // a snapshot may begin
	writing                          // one is in progress
	freezing                         // one is in progress; the realm is frozen after it
	frozen                           // the rows must not change
	presenceWriting                  // a frozen realm is closing: presence, which no journal has, is being written
	presenceDone                     // that is written
)

// Messages about rows.
type (
	// PresenceRows is the answer to Main.SendPresence.
	PresenceRows struct {
		Rows  []realm.EncodedRow
		Early bool // they are not for a snapshot
	}
	// Save asks for a snapshot. Done gets nil when it is written, or at once if there is nothing to write.
	Save struct{ Done chan error }
	// SetFrozen stops or allows snapshots. Done gets nil when none is in progress.
	SetFrozen struct {
		On   bool
		Done chan error
	}
	snapshotStep    struct{} // encodes the next part of the running snapshot
	snapshotWritten struct { // a snapshot, or the last presence rows, are on disk
		epoch uint64 // of the owner that wrote it
		at    realm.Seq
		err   error
	}
	presenceSaved struct { // presence was stored between snapshots
		count int
		err   error
	}
)

// RowsMessage is a message to Main about rows.
type RowsMessage interface{ HandleRows(*Rows) }

func (snapshotStep) HandleRows(r *Rows)      { r.next() }
func (m snapshotWritten) HandleRows(r *Rows) { r.handleWritten(m) }
func (m presenceSaved) HandleRows(r *Rows)   { r.handlePresenceSaved(m) }

// HandleRows takes the rows of presence for the snapshot in progress, or writes them.
func (m PresenceRows) HandleRows(r *Rows) {
	switch {
	case m.Early:
		r.writeEarlyPresence(m.Rows)
	case r.state == presenceWriting:
		r.writeLastPresence(m.Rows)
	default:
		r.presenceRows = append([]realm.EncodedRow{}, m.Rows...)
		if r.allEncoded {
			r.next()
		}
	}
}

// Opened records that the rows on disk have the facts up to stored, and the realm those up to last. delay lets no
// snapshot begin for SnapshotDelay.
func (r *Rows) Opened(stored, last realm.Seq, delay bool) {
	r.stored, r.journalBytes = stored, int64(last-stored)*ReplayedBytes
	if delay {
		r.notBefore = r.env.Elapsed() + SnapshotDelay
	}
}

// Journaled counts the facts of a batch, which are in the journal and not in the rows.
func (r *Rows) Journaled(facts [][]byte) {
	for _, data := range facts {
		r.journalBytes += int64(len(data))
	}
}

// Continue continues the work that has waited for facts to be on disk, and begins a snapshot if the journal is long.
func (r *Rows) Continue() {
	if r.iterator != nil && r.awaitsFacts && r.main.Durable() >= r.iterator.Seq {
		r.next()
	}
	r.BeginIfLong()
	r.ContinueClose()
}

// BeginIfLong begins a snapshot if the journal is long.
func (r *Rows) BeginIfLong() {
	delayed := r.journalBytes < SnapshotDelayBytes && r.env.Elapsed() < r.notBefore
	if r.frozenTooLong() || r.journalBytes >= SnapshotBytes && !delayed {
		r.begin()
	}
}

// Tick begins a snapshot if the last one is old, and stores presence.
func (r *Rows) Tick() {
	if r.journalBytes > 0 && r.env.Now().Sub(r.last) > SnapshotAge {
		r.begin()
	}
	if r.env.Elapsed() >= r.presenceDueAt {
		r.savePresence()
	}
}

// frozenTooLong reports whether the journal of a frozen realm is so long that its rows must be written in spite of
// that.
func (r *Rows) frozenTooLong() bool {
	return r.state == frozen && r.journalBytes >= r.env.MaxFrozenBytes.Load()
}

// IsClosing reports whether a caller waits for the end of the realm.
func (r *Rows) IsClosing() bool { return len(r.closeWaiters) > 0 }

// Cancel cancels a snapshot that is not being written to disk yet, because the realm is loaded again. Its waiters get
// the error.
func (r *Rows) Cancel(err error) {
	if r.iterator == nil {
		return
	}
	r.iterator, r.rows = nil, nil
	if r.state == freezing {
		r.state = frozen
	} else {
		r.state = idle
	}
	for _, done := range r.waiters {
		done <- err
	}
	r.waiters = nil
}

// add adds an encoded row to the snapshot in progress.
func (r *Rows) add(row realm.EncodedRow) {
	n := len(r.rows)
	if n == 0 || len(r.rows[n-1]) == rowsPerStep {
		r.rows, n = append(r.rows, make([]realm.EncodedRow, 0, rowsPerStep)), n+1
	}
	r.rows[n-1] = append(r.rows[n-1], row)
	r.stepRows++
	r.stepBytes += len(row.Value)
}

// begin begins to write the changed rows. Turns continue between the steps. It does nothing if a snapshot is in
// progress, if the realm is frozen and its journal is not too large, or if nothing can be stored.
func (r *Rows) begin() {
	if !r.main.Settled() || r.env.ReadOnly() || r.main.Realm().Seq() == 0 ||
		r.state != idle && !r.frozenTooLong() {
		return
	}
	r.state, r.rows = writing, nil
	r.iterator = r.main.Realm().BeginSnapshot(func(table uint16, key, row any) {
		r.add(r.env.Disk.EncodeRow(table, key, row))
	})
	r.journalBytes, r.last, r.presenceRows = 0, r.env.Now(), nil
	r.rowsEncoded, r.awaitsFacts, r.allEncoded = false, false, false
	r.main.SendPresence(0, false)
	r.env.Runtime.Send(r.main.Address(), snapshotStep{})
}

// next encodes the next rows. When all rows are encoded and the snapshot's facts are on disk, their unacked events are
// known and follow. When the presence rows have arrived, too, it writes the snapshot in the background.
func (r *Rows) next() {
	if r.iterator == nil {
		return
	}
	if !r.allEncoded {
		r.stepRows, r.stepBytes = 0, 0
		enough := func() bool { return r.stepRows >= rowsPerStep || r.stepBytes >= bytesPerStep }
		r.rowsEncoded = r.rowsEncoded || r.iterator.NextRows(enough)
		if r.awaitsFacts = r.rowsEncoded && r.main.Durable() < r.iterator.Seq; r.awaitsFacts {
			return // Continue calls this again
		}
		if r.allEncoded = r.rowsEncoded &&
			r.extra.EncodeRows(r.iterator.Seq, r.env.Disk.EncodeUnacked, r.add, enough); !r.allEncoded {
			r.env.Runtime.Send(r.main.Address(), snapshotStep{})
			return
		}
	}
	if r.presenceRows == nil || r.savingPresence {
		return // the presence rows or handlePresenceSaved call this again
	}
	at, rows := r.iterator.Seq, append(r.rows, r.presenceRows)
	id, epoch := r.main.Realm().ID(), r.main.Epoch()
	r.iterator = nil
	r.env.Runtime.RunInBackground(func() {
		err := r.env.Disk.WriteRows(id, epoch, at, slices.Concat(rows...))
		r.env.Runtime.Send(r.main.Address(), snapshotWritten{epoch, at, err})
	})
}

// handleWritten ends a snapshot and answers the waiters.
func (r *Rows) handleWritten(m snapshotWritten) {
	r.rows = nil
	if errors.Is(m.err, realm.ErrMoved) && (!r.main.Settled() || m.epoch != r.main.Epoch()) {
		r.env.Log.Warn("rows were not written: the organization has another owner", "realm", r.main.Realm().ID(),
			"err", m.err)
		m.err = nil
		m.at = r.stored
	}
	if m.err != nil {
		r.env.Fatal(fmt.Errorf("snapshot of realm %d at %d: %w", r.main.Realm().ID(), m.at, m.err))
		return
	}
	r.env.Snapshots.Add(1)
	r.written.Store(r.env.Now().Unix())
	r.stored = max(r.stored, m.at)
	switch r.state {
	case writing:
		r.state = idle
	case freezing:
		r.state = frozen
	case presenceWriting:
		r.state = presenceDone
	}
	for _, done := range r.waiters {
		done <- nil
	}
	r.waiters = nil
	r.ContinueClose()
}

// HandleRows writes a snapshot, unless one is in progress or there is nothing to write. Acknowledgements record no
// fact, but the rows of events that every queue has acknowledged must go, too.
func (m Save) HandleRows(r *Rows) {
	r.main.BeforeSave()
	if r.journalBytes > 0 || r.extra.HasObsoleteRows() {
		r.begin()
	}
	r.replyAfterSnapshot(m.Done)
}

// HandleRows freezes the rows, or ends that.
func (m SetFrozen) HandleRows(r *Rows) {
	switch {
	case m.On && r.state == idle:
		r.state = frozen
	case m.On && r.state == writing:
		r.state = freezing
	case !m.On && r.state == frozen:
		r.state = idle
	case !m.On && r.state == freezing:
		r.state = writing
	}
	r.replyAfterSnapshot(m.Done)
	r.ContinueClose() // a closing realm that is not frozen any more gets its last snapshot
}

// replyAfterSnapshot answers when no snapshot is in progress.
func (r *Rows) replyAfterSnapshot(done chan error) {
	if r.state == writing || r.state == freezing {
		r.waiters = append(r.waiters, done)
	} else {
		done <- nil
	}
}

// savePresence stores presence that changed since the last snapshot, so that a crash does not make every user seem to
// be offline. The rows' sequence number stays the same. A snapshot in progress would overwrite these rows with older
// ones, so savePresence does nothing until the snapshot is written; and a snapshot that begins in the meantime is not
// written before these rows.
func (r *Rows) savePresence() {
	if !r.main.Settled() || r.savingPresence || len(r.closeWaiters) > 0 || r.env.ReadOnly() ||
		r.state != idle && r.state != frozen {
		return
	}
	r.savingPresence, r.presenceDueAt = true, r.env.Elapsed()+PresenceInterval
	r.main.SendPresence(MaxPresenceRows, true)
}

// writeEarlyPresence writes rows of presence in the background, because a sync of the journal may be in progress.
func (r *Rows) writeEarlyPresence(rows []realm.EncodedRow) {
	if len(rows) == 0 {
		r.handlePresenceSaved(presenceSaved{})
		return
	}
	id, epoch := r.main.Realm().ID(), r.main.Epoch()
	r.env.Runtime.RunInBackground(func() {
		err := r.env.Disk.SavePresence(id, epoch, rows)
		r.env.Runtime.Send(r.main.Address(), presenceSaved{len(rows), err})
	})
}

// handlePresenceSaved continues the work that waited for rows of presence. An error is only logged: if the disk has
// failed, the next append ends the process.
func (r *Rows) handlePresenceSaved(m presenceSaved) {
	r.savingPresence = false
	if m.err != nil {
		r.env.Log.Warn("storing presence failed", "realm", r.main.Realm().ID(), "err", m.err)
	}
	if m.count == MaxPresenceRows { // there may be more
		r.presenceDueAt = 0
	}
	if r.iterator != nil && r.allEncoded {
		r.next()
	}
	r.ContinueClose()
}

// writeLastPresence writes presence rows of a frozen realm that is closing. The rows' sequence number stays the same.
func (r *Rows) writeLastPresence(rows []realm.EncodedRow) {
	if len(rows) == 0 {
		r.state = presenceDone
		r.ContinueClose()
		return
	}
	id, epoch, at := r.main.Realm().ID(), r.main.Epoch(), r.stored
	r.env.Runtime.RunInBackground(func() {
		err := r.env.Disk.WriteRows(id, epoch, at, rows)
		r.env.Runtime.Send(r.main.Address(), snapshotWritten{epoch, at, err})
	})
}

// BeginClose writes a last snapshot, so that the next start has nothing to replay. done gets nil afterwards.
func (r *Rows) BeginClose(done chan error) {
	r.closeWaiters = append(r.closeWaiters, func() { done <- nil })
	r.ContinueClose()
}

// SaveAndClose writes a last snapshot before the realm leaves memory, also if only rows of events are to be removed.
// done is called afterwards, in the mailbox of Main.
func (r *Rows) SaveAndClose(done func()) {
	if r.extra.HasObsoleteRows() {
		r.begin()
	}
	r.closeWaiters = append(r.closeWaiters, done)
	r.ContinueClose()
}

// ContinueClose answers the waiters of Close once every fact is on disk and in the rows. A snapshot that was in
// progress holds only the facts before it, so another one follows. The rows of a frozen realm stay: the successor reads
// the rest in the journal.
func (r *Rows) ContinueClose() {
	if len(r.closeWaiters) == 0 || r.savingPresence { // handlePresenceSaved calls this again
		return
	}
	if !r.main.Settled() { // every fact that was stored is in the journal
		r.replyClosed()
		return
	}
	switch r.state {
	case writing, freezing, presenceWriting:
		return // handleWritten calls this again
	case idle:
		if r.journalBytes > 0 && !r.env.ReadOnly() {
			r.begin() // of the newest fact; it waits until that is on disk
			return
		}
		if r.main.Durable() < r.main.Realm().Seq() {
			return // Continue calls this again
		}
	case frozen, presenceDone:
		if r.main.Durable() < r.main.Realm().Seq() {
			return // Continue calls this again
		}
		if r.state == frozen && !r.env.ReadOnly() {
			r.state = presenceWriting
			r.main.SendPresence(0, false)
			return
		}
	}
	r.replyClosed()
}

// replyClosed answers the waiters of Close.
func (r *Rows) replyClosed() {
	list := r.closeWaiters
	r.closeWaiters = nil
	for _, done := range list {
		done()
	}
}
