package delivery

import (
	"slices"

	"parley/actors/realm"
	"parley/actors/stream"
)

// Main is the actor of a realm, in whose mailbox Owned and Hosting run.
type Main interface {
	Realm() *realm.Realm
	// Durable returns the last fact that is on disk.
	Durable() realm.Seq
	// Run runs a command of the server itself.
	Run(decide func(*realm.Turn) (any, error))
	// Settled reports whether the realm can be used: it is not being loaded again.
	Settled() bool
	// Owns reports whether Main gives the realm its turns, and the realm is settled.
	Owns() bool
}

// Owned is the delivery of a realm on a node that stores it: the events that some queue may not have acknowledged,
// which are stored until all have, and on the owner the home of each queue. Its methods run in the mailbox of Main.
type Owned struct {
	all     *Sessions
	main    Main
	unacked unacked
	homes   homes
	usage   accountUsage
}

// NewOwned returns the delivery of a realm before Restore.
func NewOwned(all *Sessions, main Main) Owned { return Owned{all: all, main: main} }

// SetGrace lets no queue be evicted for EvictionGrace, because the acknowledgements of restored queues are unknown.
func (o *Owned) SetGrace() { o.unacked.graceUntil = o.all.env.elapsed() + EvictionGrace }

// Publish takes the events and the event queues of a committed batch. owner says that this node owns the realm: on
// other nodes BecomeOwner finds the homes of the queues.
func (o *Owned) Publish(c *stream.Committed, owner bool) {
	for i, f := range c.Facts {
		seq := c.Batch.After + realm.Seq(i) + 1
		switch f := f.(type) {
		case *realm.QueueOpened:
			if owner {
				o.queueOpened(&f.Queue, c, seq)
			} else {
				o.ignoreReportsBefore(f.Queue.User, seq)
			}
		case *realm.QueueClosed:
			if owner {
				o.queueClosed(f.ID, f.User)
			}
		}
	}
	for _, t := range c.Publications {
		if !t.Ephemeral {
			o.store(t)
		}
	}
}

// ignoreReportsBefore makes earlier reports of a session actor not count: they do not include its newest queue.
func (o *Owned) ignoreReportsBefore(u realm.UserID, opened realm.Seq) {
	k := ActorOf(u)
	o.unacked.newestQueue[k], o.unacked.acked[k] = opened, min(o.unacked.acked[k], opened)
}

// BecomeOwner makes this node, which has followed the realm, the home of every queue: the queues are opened again with
// their unacked events. idle is for how many seconds their clients have not polled. It returns how many queues and
// facts with events there are.
func (o *Owned) BecomeOwner(idle int64) (queues, facts int) {
	o.SetGrace()
	o.homes = homes{}
	var list []realm.Queue
	o.main.Realm().EachQueue(func(q *realm.Queue) {
		list = append(list, *q)
		o.homes.countLocal(q.User, 1) // until another node says that it hosts the queue
	})
	o.ackEmpty()
	publications := make([]realm.Publication, len(o.unacked.list))
	for i := range publications {
		publications[i] = o.unacked.list[i].Publication
		publications[i].Notices = slices.Clone(publications[i].Notices)
	}
	o.replace(list, publications, idle)
	if seq := o.unacked.evictedBefore; seq > 0 {
		o.all.SendAllInOrder(Evict{Before: seq})
	}
	return len(list), len(publications)
}

// Replace makes the session actors drop all event queues of this node and open the given ones, with their unacked
// events, after all events that were released before. Waiting polls are answered with no events. Earlier reports of
// acknowledgements are ignored, because they are about other queues.
func (o *Owned) Replace(queues []realm.Queue, publications []realm.Publication) {
	o.replace(queues, publications, 0)
}

func (o *Owned) replace(queues []realm.Queue, publications []realm.Publication, idle int64) {
	for k, m := range o.all.restored(queues, publications, &o.unacked.acked, o.main.Durable()) {
		m.Replace, m.Opening, m.Idle = true, o.all.nextOpening(k), idle
		o.all.SendInOrder(k, m)
	}
}

// RestoreQueues opens queues at the start, with the events that they may not have acknowledged. idle is for how many
// seconds their clients have not polled.
func (o *Owned) RestoreQueues(queues []realm.Queue, publications []realm.Publication, idle int64) {
	for k, m := range o.all.restored(queues, publications, &o.unacked.acked, o.main.Durable()) {
		m.Idle = idle
		o.all.Send(k, m)
	}
}

// StepDown ends the ownership. With keep, the realm stays in memory, and the acknowledgements become those of the
// clients of all nodes: an owner counts the queues of other nodes separately, and a node that follows does not
// know where a queue is.
func (o *Owned) StepDown(keep bool) {
	for _, m := range o.homes.waiting {
		m.Answer(Adopted{}, realm.ErrNotOwner)
	}
	if keep {
		u := &o.unacked
		for k := range u.acked {
			u.acked[k] = min(u.acked[k], o.homes.lowest(k), o.main.Durable())
		}
		u.evictedBefore, u.evictingBytes = 0, 0 // the next owner evicts
	}
	o.homes = homes{}
}

// Reset drops all unacked events, because the realm is loaded again.
func (o *Owned) Reset() {
	o.unacked.drop(len(o.unacked.list), o.all.env.Metrics)
	o.unacked = unacked{}
	o.homes = homes{}
}

// ackEmpty records that session actors without queues have acknowledged everything.
func (o *Owned) ackEmpty() {
	u := &o.unacked
	var hasQueue [SessionActors]bool
	o.main.Realm().EachQueue(func(q *realm.Queue) {
		i := ActorOf(q.User)
		hasQueue[i], u.newestQueue[i] = true, max(u.newestQueue[i], q.At)
	})
	for i, has := range hasQueue {
		if !has {
			u.acked[i] = max(u.acked[i], o.main.Realm().Seq())
		}
	}
}

// CaughtUp takes the acknowledgements from the journal, on a node that follows, and drops the events that no
// queue needs.
func (o *Owned) CaughtUp(facts []realm.Fact) {
	found := false
	for _, f := range facts {
		if x, is := f.(*realm.QueuesCaughtUp); is && x.Actors == SessionActors && x.Actor >= 0 &&
			x.Actor < SessionActors {
			o.unacked.acked[x.Actor], found = max(o.unacked.acked[x.Actor], x.Through), true
		}
	}
	if found {
		o.DropJournaled()
	}
	o.limitFollowed()
}

// DropJournaled drops the events that the journal says are acknowledged.
func (o *Owned) DropJournaled() {
	o.ackEmpty()
	o.unacked.dropThrough(o.unacked.ackedThrough(), o.all.env.Metrics)
}

// limitFollowed drops the oldest events beyond twice the limit. The owner normally evicts the queues that need them
// earlier. If it has not, these queues are evicted when this node becomes the owner.
func (o *Owned) limitFollowed() {
	u := &o.unacked
	left, n := u.bytes, 0
	for limit := 2 * o.all.env.realmLimit(); left > limit && n < len(u.list)-1; n++ {
		left -= u.list[n].bytes
	}
	if n > 0 {
		u.evictedBefore = u.list[n].Seq
		u.drop(n, o.all.env.Metrics)
		u.evictingBytes = 0
	}
}

// JournalAcks records in the journal how far the queues have acknowledged, so that nodes that follow need not store
// older events. It records nothing if there was no new event since the last record.
func (o *Owned) JournalAcks() {
	u := &o.unacked
	if u.newest <= u.journaledNewest {
		return
	}
	var list []*realm.QueuesCaughtUp
	done := true
	for k := range u.acked {
		through := min(u.acked[k], o.homes.lowest(k), o.main.Durable())
		done = done && through >= u.newest
		if through > u.journaled[k] {
			u.journaled[k] = through
			list = append(list, &realm.QueuesCaughtUp{Actor: k, Actors: SessionActors, Through: through})
		}
	}
	if done {
		u.journaledNewest = u.newest
	}
	if len(list) == 0 {
		return
	}
	o.main.Run(func(t *realm.Turn) (any, error) {
		for _, f := range list {
			t.RecordCaughtUp(f)
		}
		return nil, nil
	})
}
