package owner

import (
	"cmp"
	"errors"
	"fmt"

	"parley/actors/mailbox"
	"parley/actors/realm"
)

// maxCommitBytes is how many bytes of facts and texts one commit writes, and at least one turn: about two thousand
// messages. The facts of an organization that writes very much wait for several commits, between which others get
// their turn. A commit of that size takes some milliseconds, so its sync is little of it on most disks.
const maxCommitBytes = 1 << 20

// Append is the message with the facts of one turn for the journal. From gets Durable or Refused.
type Append struct {
	Batch realm.Batch
	From  mailbox.Address
	index int // in Journal.batches
}

// Answers of the journal.
type (
	// Durable says that everything up to Seq is on disk.
	Durable struct{ Seq realm.Seq }
	// Refused says that the journal did not store a batch of the owner with that epoch.
	Refused struct {
		Epoch uint64
		Err   error
	}
)

// size returns the bytes of the facts and texts.
func (m *Append) size() (n int) {
	for _, f := range m.Batch.Facts {
		n += len(f)
	}
	for _, t := range m.Batch.Texts {
		if t.Body != nil {
			n += len(t.Body.Text) + len(t.Body.HTML)
		}
	}
	return n
}

// next removes the oldest facts and returns them.
func (w *waitingFacts) next() *Append {
	m := w.list[w.head]
	w.list[w.head] = nil
	if w.head++; 2*w.head >= len(w.list) { // reuse the space at the front
		n := copy(w.list, w.list[w.head:])
		clear(w.list[n:])
		w.list, w.head = w.list[:n], 0
	}
	return m
}

// flush makes the journal actor commit facts that it has collected.
type flush struct{}

// Journal commits the facts of many turns, of many realms, in one synced batch. Facts that arrive during a commit
// go into the next one, up to maxCommitBytes; realms take turns. A refused batch ends the ownership of its realm; see
// Refused.
type Journal struct {
	Env      *Env
	Self     mailbox.Address // of the journal actor
	most     int             // bytes of one commit; 0: maxCommitBytes
	waiting  map[realm.ID]*waitingFacts
	turns    []*waitingFacts // of realms with facts that wait; the first one is next
	flushing bool            // flush is in the mailbox
	taken    []*Append       // by the running commit
	batches  []realm.Batch   // reused
	batchOf  map[realm.ID]int
}

// waitingFacts are the facts of one realm that wait for a commit, in their order.
type waitingFacts struct {
	list []*Append
	head int // index of the oldest
}

// Receive handles one message.
func (j *Journal) Receive(message any) {
	switch m := message.(type) {
	case *Append:
		j.add(m)
	case flush:
		j.flushing = false
		j.commit()
	}
	if len(j.turns) > 0 && !j.flushing {
		j.flushing = true
		j.Env.Runtime.Send(j.Self, flush{}) // arrives after everything that is in the mailbox now
	}
}

// add puts facts behind those of their realm.
func (j *Journal) add(m *Append) {
	if j.waiting == nil {
		j.waiting, j.batchOf = map[realm.ID]*waitingFacts{}, map[realm.ID]int{}
	}
	w := j.waiting[m.Batch.Realm]
	if w == nil {
		w = &waitingFacts{}
		j.waiting[m.Batch.Realm] = w
	}
	if w.list = append(w.list, m); len(w.list)-w.head == 1 {
		j.turns = append(j.turns, w)
	}
}

// take chooses the facts of the next commit: those of one turn of each realm after the other, until there are enough.
func (j *Journal) take() {
	for size := 0; len(j.turns) > 0 && size < cmp.Or(j.most, maxCommitBytes); {
		w := j.turns[0]
		j.turns = j.turns[1:]
		m := w.next()
		if w.head < len(w.list) {
			j.turns = append(j.turns, w)
		}
		size += m.size()
		j.taken = append(j.taken, m)
	}
	if len(j.turns) == 0 {
		j.turns = nil
	}
}

// commit writes the facts of one commit and reports to each realm up to which fact its journal is on disk.
func (j *Journal) commit() {
	j.take()
	clear(j.batchOf)
	j.batches = j.batches[:0]
	for _, w := range j.taken {
		if i, ok := j.batchOf[w.Batch.Realm]; ok && j.batches[i].Join(w.Batch) {
			w.index = i
			continue
		}
		w.index = len(j.batches)
		j.batchOf[w.Batch.Realm] = w.index
		j.batches = append(j.batches, w.Batch)
	}
	errs := j.Env.Disk.Append(j.batches)
	for _, err := range errs {
		if err != nil && !errors.Is(err, realm.ErrMoved) {
			j.Env.Fatal(fmt.Errorf("journal: %w", err))
			return
		}
	}
	sent := map[realm.ID]bool{}
	for i := len(j.taken) - 1; i >= 0; i-- { // one message a realm, with its newest number
		w := j.taken[i]
		if errs[w.index] == nil && !sent[w.Batch.Realm] {
			sent[w.Batch.Realm] = true
			j.Env.Runtime.Send(w.From, Durable{w.Batch.Last()})
		}
	}
	for i, w := range j.taken {
		if err := errs[w.index]; err != nil {
			j.Env.Runtime.Send(w.From, Refused{w.Batch.Epoch, err})
		}
		j.taken[i] = nil
	}
	j.taken = j.taken[:0]
	clear(j.batches)
}
