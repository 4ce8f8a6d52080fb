package actors

import (
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"parley/actors/realm"
)

// appendFacts is the facts of one turn on their way to the disk.
type appendFacts struct {
	batch realm.Batch
	from  *actor.PID
	index int // in journalActor.batches
}

// flush makes the journal actor commit the facts that it has collected.
type flush struct{}

// journalActor commits the facts of many turns, of many realms, in one synced batch. Facts that arrive during a commit
// go into the next one. A refused batch ends the ownership of its realm; see endOwnership.
type journalActor struct {
	srv     *Server
	waiting []*appendFacts   // since the last commit
	batches []realm.Batch    // reused
	batchOf map[realm.ID]int // index of a realm's last batch in batches
}

func (j *journalActor) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *appendFacts:
		if j.waiting = append(j.waiting, m); len(j.waiting) == 1 {
			j.srv.runtime.send(c.Self(), flush{}) // arrives after everything that is in the mailbox now
		}
	case flush:
		j.commit()
	}
}

func (j *journalActor) commit() {
	if j.batchOf == nil {
		j.batchOf = map[realm.ID]int{}
	}
	clear(j.batchOf)
	j.batches = j.batches[:0]
	for _, w := range j.waiting {
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
	for i := len(j.waiting) - 1; i >= 0; i-- { // one message a realm, with its newest number
		w := j.waiting[i]
		if errs[w.index] == nil && !sent[w.batch.Realm] {
			sent[w.batch.Realm] = true
			j.srv.runtime.send(w.from, factsDurable{w.batch.Last()})
		}
	}
	for i, w := range j.waiting {
		if err := errs[w.index]; err != nil {
			j.srv.runtime.send(w.from, appendRefused{w.batch.Epoch, err})
		}
		j.waiting[i] = nil
	}
	j.waiting = j.waiting[:0]
	clear(j.batches)
}
