package snapshot

import (
	"fmt"
	"strconv"

	"github.com/cockroachdb/pebble/v2"

	"parley/actors/realm"
	"parley/snapshot/codec"
)

// A store can be one of several copies that apply the same replicated log. The log is synced by its own means before
// it is applied, so the store writes its entries without a sync, together with the index of the last one. After a crash
// the store continues at the index that it has. Rows, claims of other writers and the facts that are kept behind the
// rows stay local.
//
// All copies must come to the same result for an entry. So an entry of a log is checked only against state that all
// copies have: the epoch and the number of the realm. The request ids, which a copy forgets with its own snapshots, are
// checked by CheckEntries before an entry is put into the log.

// Chain is the hash of a journal record, which covers all the records before it.
type Chain = [chainLen]byte

// LogOp is one operation of a replicated log: an entry of a journal, a value of the cluster itself, a step of an
// import, the beginning of a leadership, or a claim.
type LogOp struct {
	Entry  *Entry // nil: the operation is one of the others
	Before Chain  // hash of the record before the entry at the writer; zero: unknown

	Meta  string // key of a value; see Store.Meta
	Value []byte

	Import *ImportOp // nil: the operation is one of the others

	Own bool // the leadership of the writer begins; see applyOwn

	Claim RealmID // the realm that is claimed
	Seen  uint64  // as for Claim
}

// LogEntry is the operations with one index of a replicated log.
type LogEntry struct {
	Index uint64
	Ops   []LogOp
}

// LogResult is the result of one operation. The error is an ErrMoved if the realm has another epoch or number.
type LogResult struct {
	Claimed Claimed
	Err     error
}

// DivergedError says that the journal of this copy has other facts than that of the writer of an entry.
type DivergedError struct {
	Realm RealmID
	Seq   Seq
	Index uint64
}

func (e *DivergedError) Error() string {
	return fmt.Sprintf("realm %d differs from the other nodes at number %d or before it (log index %d): "+
		"remove this node's data directory and join the cluster again", e.Realm, e.Seq, e.Index)
}

// Applied returns the index of the last log entry that the store contains, which may not be synced yet.
func (s *Store) Applied() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.applied
}

// SyncApplied syncs everything that was applied. The caller has applied every entry up to index, of which the last ones
// may have had no operations. The store then has at least that index.
func (s *Store) SyncApplied(index uint64) error {
	if err := s.acquireReader(); err != nil {
		return err
	}
	defer s.readers.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.db.NewBatch()
	setNumber(b, appliedKey, max(index, s.applied))
	if err := s.commit(b); err != nil {
		return err
	}
	s.applied = max(index, s.applied)
	return nil
}

// syncLog syncs everything that was written before.
func (s *Store) syncLog() error {
	// An empty batch: its sync includes everything that was written before it.
	_, err := s.callPebble(func() error { return s.db.LogData(nil, pebble.Sync) })
	if err != nil {
		s.fail(fmt.Errorf("sync: %w", err))
		return s.Err()
	}
	return nil
}

// Replicate durably makes the store a copy that has applied a log up to an index. From then on its journals change by
// ApplyLog only.
func (s *Store) Replicate(index uint64) error {
	if err := s.SyncApplied(index); err != nil {
		return err
	}
	s.mu.Lock()
	s.replicated = true
	s.mu.Unlock()
	return nil
}

// LevelKey is the key of the value with the rule level of the cluster, in decimal digits; see realm.Level.
const LevelKey = "level"

// Level returns the rule level of the facts that the store may have: that of the cluster whose copy it is, or that of
// the program.
func (s *Store) Level() (uint16, error) {
	if !s.Replicated() {
		return realm.Level, nil
	}
	value, err := s.Meta(LevelKey)
	if err != nil || value == nil {
		return realm.FirstLevel, err
	}
	return ParseLevel(value)
}

// ParseLevel returns the rule level in a value of LevelKey.
func ParseLevel(value []byte) (uint16, error) {
	level, err := strconv.ParseUint(string(value), 10, 16)
	if err != nil || level == 0 {
		return 0, fmt.Errorf("the rule level of the cluster is stored as %q, which is no level", value)
	}
	return uint16(level), nil
}

// LeaveLog durably makes a copy the store of a single node: the log of the cluster, if it still exists, continues
// without it. The values of the cluster are deleted.
func (s *Store) LeaveLog() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.replicated {
		return nil
	}
	b := s.db.NewBatch()
	b.Delete(appliedKey, nil)
	values := spaceKey(processRealm, spaceMeta)
	b.DeleteRange(values, append(spaceKey(processRealm, spaceMeta), 0xFF), nil)
	if err := s.commit(b); err != nil {
		return err
	}
	s.applied, s.replicated = 0, false
	return nil
}

// Replicated reports whether the store is a copy; see Replicate.
func (s *Store) Replicated() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.replicated
}

// LastHash returns the hash of the last record of a realm, and its number.
func (s *Store) LastHash(realm RealmID) (Chain, Seq) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.realms[realm]; st != nil {
		return st.lastHash, st.last
	}
	return Chain{}, 0
}

// CheckEntries returns an error for each entry that must not be put into a log: its request is in the journal already,
// or it exceeds a limit.
func (s *Store) CheckEntries(entries []Entry) []error {
	errs := make([]error, len(entries))
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.pending)
	for i := range entries {
		if errs[i] = s.usable(); errs[i] == nil {
			errs[i] = s.checkEntry(&entries[i])
		}
	}
	clear(s.pending)
	return errs
}

// checkEntry checks one entry, and remembers its requests for the following ones. s.mu is held.
func (s *Store) checkEntry(e *Entry) error {
	if _, err := sizeOf(e); err != nil {
		return err
	}
	for _, r := range e.Requests {
		last, found, err := s.request(e.Realm, r.ID)
		if err != nil {
			return err
		}
		if found {
			return &DuplicateError{r.ID, last}
		}
		s.pending[string(requestKey(e.Realm, r.ID))] = e.After + Seq(len(e.Facts))
	}
	return nil
}

// ApplyLog writes log entries without a sync, each at most once: entries up to Applied are skipped. It returns a result
// for each operation. An error means that this copy must stop: it failed, is damaged, or is a DivergedError.
func (s *Store) ApplyLog(list []LogEntry) ([][]LogResult, error) {
	imports := s.lockImports(list)
	defer s.finishImports(imports)
	results := make([][]LogResult, len(list))
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return nil, err
	}
	clear(s.pending)
	b := s.db.NewBatch()
	for i := range list {
		results[i] = make([]LogResult, len(list[i].Ops))
		if list[i].Index <= s.applied {
			continue
		}
		for k := range list[i].Ops {
			r, err := s.applyOp(b, list[i].Index, &list[i].Ops[k])
			if err != nil {
				s.fail(err) // the state in memory is ahead of the store
				return nil, err
			}
			results[i][k] = r
		}
		s.applied = list[i].Index
		if b.Len() > MaxBatch/2 {
			if err := s.applyUnsynced(b); err != nil {
				return nil, err
			}
			b = s.db.NewBatch()
		}
	}
	return results, s.applyUnsynced(b)
}

// applyUnsynced numbers a batch, adds the index, and writes it without a sync. s.mu is held.
func (s *Store) applyUnsynced(b *pebble.Batch) error {
	setNumber(b, appliedKey, s.applied)
	s.commits++
	setNumber(b, commitsKey, s.commits)
	size := int64(b.Len())
	if err := s.applyInOrder(queuedBatch{batch: b}); err != nil {
		return err
	}
	s.writtenBytes.Add(uint64(size))
	s.unsyncedRows.Store(true)
	b.Close()
	s.bytesSinceManifest += size
	s.writeDurabilityManifestLater()
	return nil
}

// applyOp adds one operation to a batch. s.mu is held.
func (s *Store) applyOp(b *pebble.Batch, index uint64, op *LogOp) (LogResult, error) {
	if op.Import != nil {
		return s.applyImport(b, op.Import)
	}
	if op.Own {
		return s.applyOwn(b)
	}
	if op.Entry == nil && op.Meta != "" {
		setValue(b, metaKey(op.Meta), op.Value)
		return LogResult{}, nil
	}
	if op.Entry == nil {
		return s.applyClaim(b, op)
	}
	e := op.Entry
	st := s.realms[e.Realm]
	switch {
	case st == nil || st.epoch == 0:
		return LogResult{Err: fmt.Errorf("%w: realm %d is not claimed", ErrMoved, e.Realm)}, nil
	case st.damage != nil:
		return LogResult{}, st.damage
	}
	if err := s.checkEpoch(st, e.Epoch); err != nil {
		return LogResult{Err: err}, nil
	}
	switch {
	case e.After != st.last:
		return LogResult{Err: fmt.Errorf("%w: realm %d is at number %d, not %d", ErrMoved, e.Realm, st.last,
			e.After)}, nil
	case op.Before != Chain{} && op.Before != Chain(st.lastHash):
		return LogResult{}, &DivergedError{e.Realm, st.last, index}
	}
	s.addToBatch(b, st, e)
	return LogResult{}, nil
}

// applyClaim adds a claim to a batch. s.mu is held.
func (s *Store) applyClaim(b *pebble.Batch, op *LogOp) (LogResult, error) {
	if op.Claim == processRealm {
		return LogResult{Err: fmt.Errorf("claim realm: %d is not a valid realm id", op.Claim)}, nil
	}
	st := s.realms[op.Claim]
	if st == nil {
		st = &realmState{id: op.Claim, firstKept: 1}
		s.realms[op.Claim] = st
	}
	if st.damage != nil {
		return LogResult{}, st.damage
	}
	if err := s.checkSeen(st, op.Seen); err != nil {
		return LogResult{Err: err}, nil
	}
	st.epoch = s.nextEpoch(st)
	setNumber(b, headKey(op.Claim, headEpoch), st.epoch)
	return LogResult{Claimed: Claimed{Epoch: st.epoch, Last: st.last, Rows: st.snapshot.seq}}, nil
}

// Epoch returns the epoch of a realm; 0 if it was never claimed.
func (s *Store) Epoch(realm RealmID) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.realms[realm]; st != nil {
		return s.epochOf(st)
	}
	return 0
}

// Entries returns batches as the journal stores them.
func Entries(batches []realm.Batch) []Entry {
	entries := make([]Entry, len(batches))
	for i, b := range batches {
		e := Entry{
			Realm: b.Realm, Epoch: b.Epoch, After: b.After, Now: b.Now, Level: b.Level, Facts: b.Facts,
			Requests: b.Requests,
		}
		for _, t := range b.Texts {
			p := Put{Key: codec.TextKey(t.Ref)}
			if t.Body != nil {
				p.Value = codec.EncodeText(t.Body)
			}
			e.Bodies = append(e.Bodies, p)
		}
		entries[i] = e
	}
	return entries
}

// batch returns an entry as a batch.
func (e *Entry) batch() (realm.Batch, error) {
	b := realm.Batch{
		Realm: e.Realm, Epoch: e.Epoch, After: e.After, Now: e.Now, Level: e.Level, Facts: e.Facts,
		Requests: e.Requests,
	}
	for _, p := range e.Bodies {
		ref, err := codec.DecodeTextKey(p.Key)
		if err != nil {
			return b, err
		}
		t := realm.TextWrite{Ref: ref}
		if p.Value != nil {
			body, err := codec.DecodeText(p.Value)
			if err != nil {
				return b, err
			}
			t.Body = &body
		}
		b.Texts = append(b.Texts, t)
	}
	return b, nil
}

// Published passes the accepted entries of a log to the followers of their realms; see Disk.Follow.
func (d Disk) Published(list []LogEntry, results [][]LogResult) error {
	var batches []realm.Batch
	for i := range list {
		for k, op := range list[i].Ops {
			if op.Entry == nil || results[i][k].Err != nil || !d.feeds.has(op.Entry.Realm) {
				continue
			}
			b, err := op.Entry.batch()
			if err != nil {
				return err
			}
			batches = append(batches, b)
		}
	}
	d.feeds.commit(batches, make([]error, len(batches)))
	return nil
}

// Moved marks the errors after which another process may own the realm, and those of a single batch, for package
// actors.
func Moved(err error) error { return moved(err) }

// appliedKey has the index of the last log entry.
var appliedKey = headKey(processRealm, headApplied)

// loadApplied reads the index of the last log entry, and the epoch of the newest leadership.
func (s *Store) loadApplied() (err error) {
	if s.applied, s.replicated, err = s.number(appliedKey); err == nil {
		s.owned, _, err = s.number(ownedKey)
	}
	return err
}
