package actors

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

// appendFacts is the message with the facts of one turn for the journal.
type appendFacts struct {
	batch realm.Batch
	from  mailbox.Address
	index int // in journalActor.batches
}

// size returns the bytes of the facts and texts.
func (m *appendFacts) size() (n int) {
	for _, f := range m.batch.Facts {
		n += len(f)
	}
	for _, t := range m.batch.Texts {
		if t.Body != nil {
			n += len(t.Body.Text) + len(t.Body.HTML)
		}
	}
	return n
}

// next removes the oldest facts and returns them.
func (w *waitingFacts) next() *appendFacts {
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

// journalActor commits the facts of many turns, of many realms, in one synced batch. Facts that arrive during a commit
// go into the next one, up to maxCommitBytes; realms take turns. A refused batch ends the ownership of its realm; see
// endOwnership.
type journalActor struct {
	srv      *Server
	most     int // bytes of one commit; 0: maxCommitBytes
	waiting  map[realm.ID]*waitingFacts
	turns    []*waitingFacts // of realms with facts that wait; the first one is next
	flushing bool            // flush is in the mailbox
	taken    []*appendFacts  // by the running commit
	batches  []realm.Batch   // reused
	batchOf  map[realm.ID]int
}

// waitingFacts are the facts of one realm that wait for a commit, in their order.
type waitingFacts struct {
	list []*appendFacts
	head int // index of the oldest
}

func (j *journalActor) Receive(message any) {
	switch m := message.(type) {
	case *appendFacts:
		j.add(m)
	case flush:
		j.flushing = false
		j.commit()
	}
	if len(j.turns) > 0 && !j.flushing {
		j.flushing = true
		j.srv.runtime.Send(j.srv.journal, flush{}) // arrives after everything that is in the mailbox now
	}
}

// add puts facts behind those of their realm.
func (j *journalActor) add(m *appendFacts) {
	if j.waiting == nil {
		j.waiting, j.batchOf = map[realm.ID]*waitingFacts{}, map[realm.ID]int{}
	}
	w := j.waiting[m.batch.Realm]
	if w == nil {
		w = &waitingFacts{}
		j.waiting[m.batch.Realm] = w
	}
	if w.list = append(w.list, m); len(w.list)-w.head == 1 {
		j.turns = append(j.turns, w)
	}
}

// take chooses the facts of the next commit: those of one turn of each realm after the other, until there are enough.
func (j *journalActor) take() {
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
func (j *journalActor) commit() {
	j.take()
	clear(j.batchOf)
	j.batches = j.batches[:0]
	for _, w := range j.taken {
		if i, ok := j.batchOf[w.batch.Realm]; ok && j.batches[i].Join(w.batch) {
			w.index = i
			continue
		}
		w.index = len(j.batches)
		j.batchOf[w.batch.Realm] = w.index
		j.batches = append(j.batches, w.batch)
	}
	errs := j.srv.disk.Append(j.batches)
	for _, err := range errs {
		if err != nil && !errors.Is(err, realm.ErrMoved) {
			j.srv.fatal(fmt.Errorf("journal: %w", err))
			return
		}
	}
	sent := map[realm.ID]bool{}
	for i := len(j.taken) - 1; i >= 0; i-- { // one message a realm, with its newest number
		w := j.taken[i]
		if errs[w.index] == nil && !sent[w.batch.Realm] {
			sent[w.batch.Realm] = true
			j.srv.runtime.Send(w.from, factsDurable{w.batch.Last()})
		}
	}
	for i, w := range j.taken {
		if err := errs[w.index]; err != nil {
			j.srv.runtime.Send(w.from, appendRefused{w.batch.Epoch, err})
		}
		j.taken[i] = nil
	}
	j.taken = j.taken[:0]
	clear(j.batches)
}
