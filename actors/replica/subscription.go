package replica

import (
	"context"

	"parley/actors/mailbox"
	"parley/actors/realm"
)

// Source is the stream of the owners of realms: the journal of this node, or a link to the owner.
type Source interface {
	// Follow calls fn with every batch after a fact, in order and without a gap. It calls done once at the end; the
	// error is a realm.ErrBehind if the rows must be loaded again. After stop fn may be called once more.
	Follow(id realm.ID, after realm.Seq, fn func(realm.Batch) error, done func(error)) (stop func())
	// Decode decodes a fact of a batch.
	Decode(fact []byte) (realm.Fact, error)
}

// Messages of a subscription to the actor of the realm.
type (
	// Next is the next batch, with its facts and their texts.
	Next struct {
		subscription uint64
		slots        chan struct{}
		batch        realm.Batch
		facts        []realm.Fact
	}
	// Ended says that the subscription has ended.
	Ended struct {
		subscription uint64
		Err          error
	}
	// Retry asks to subscribe again, if that has not happened since.
	Retry struct{ subscription uint64 }
)

// maxQueuedBatches is how many batches may wait in the mailbox of an actor. When it is full, the source waits.
const maxQueuedBatches = 64

// subscription is the present subscription of an actor to its source.
type subscription struct {
	number uint64 // messages of earlier ones are ignored
	stop   func() // nil: there is none
}

// Decode returns the facts of a batch, with their texts.
func Decode(from Source, b *realm.Batch) ([]realm.Fact, error) {
	facts := make([]realm.Fact, len(b.Facts))
	for i, data := range b.Facts {
		var err error
		if facts[i], err = from.Decode(data); err != nil {
			return nil, err
		}
	}
	b.FillTexts(facts)
	return facts, nil
}

// begin subscribes an actor to the batches after the state of a realm. A goroutine of the source decodes them.
func (s *subscription) begin(env *Env, to mailbox.Address, source Source, r *realm.Realm) {
	s.number++
	number := s.number
	slots := make(chan struct{}, maxQueuedBatches) // one element for each batch in the mailbox
	stopped := make(chan struct{})
	end := source.Follow(r.ID(), r.Seq(), func(b realm.Batch) error {
		facts, err := Decode(source, &b)
		if err != nil {
			return err
		}
		select {
		case slots <- struct{}{}:
		case <-stopped:
			return context.Canceled
		}
		env.Runtime.Send(to, &Next{number, slots, b, facts})
		return nil
	}, func(err error) { env.Runtime.Send(to, Ended{number, err}) })
	s.stop = func() {
		close(stopped)
		end()
	}
}

// end ends the subscription. Batches that are already in the mailbox are ignored.
func (s *subscription) end() {
	s.number++
	if s.stop != nil {
		s.stop()
		s.stop = nil
	}
}
