package actors

import (
	"cmp"
	"reflect"
	"slices"

	"parley/actors/queue"
	"parley/actors/realm"
)

// Limits of kept events: what the facts since the queue farthest behind have told stays in memory, and is written with
// snapshots. Past a limit the queues farthest behind are given up, as many as it takes to come down to keptRest of it:
// their clients hear BAD_EVENT_QUEUE_ID and register anew; it is counted (GivenUp) and logged. What one sweep of the
// queues brings may come on top, since they report once a second.
const (
	// MaxKeptBytes is of one organization: about 25,000 messages to an organization that listens in every shard.
	MaxKeptBytes = 512 << 20
	// MaxKeptTotal is of all organizations. Past it each may keep an equal share, and more as long as it was less than
	// MaxKeptBytes before somebody else grew.
	MaxKeptTotal = 1 << 30
	// keptRest is the part of a limit that is left when queues have been given up, so that it does not happen all the time.
	keptRest = 0.75
	// keptGrace is for how many seconds after a start nobody is given up, unless twice the limit is kept: until its client
	// polls, nobody knows how far a queue had come, and the replay adds no more than was kept before, and calmBytes of
	// journal. A server that never lives so long would add that each time.
	keptGrace = 60
)

// kept is what a realm keeps for its queues.
type kept struct {
	list   []keptTold // oldest first
	bytes  int64
	rows   []realm.Seq // those that are on disk, oldest first
	acked  [Shards]realm.Seq
	opened [Shards]realm.Seq // newest registration of each shard
	ended  realm.Seq         // queues behind it have been given up
	going  int64             // bytes of what is kept for them alone, and goes when they have ended
	spared int64             // elapsed seconds until which nobody is
}

type keptTold struct {
	realm.Told
	bytes int64
}

// giveUp tells a shard to end the queues of a realm that have not acknowledged the facts before seq.
type giveUp struct {
	realm realm.ID
	seq   realm.Seq
}

func (k *kept) add(t realm.Told, m *Metrics) {
	e := keptTold{t, weigh(&t)}
	k.list = append(k.list, e)
	k.bytes += e.bytes
	m.Kept.Add(1)
	m.KeptBytes.Add(e.bytes)
}

func (k *kept) drop(n int, m *Metrics) {
	for i := range k.list[:n] {
		k.bytes -= k.list[i].bytes
		if k.list[i].Seq < k.ended {
			k.going -= k.list[i].bytes
		}
		m.KeptBytes.Add(-k.list[i].bytes)
	}
	clear(k.list[:n])
	k.list = k.list[n:]
	m.Kept.Add(int64(-n))
}

func (a *realmActor) keep(t realm.Told) {
	notices := t.Notices
	if slices.ContainsFunc(notices, unheard) {
		notices = slices.DeleteFunc(slices.Clone(notices), unheard)
	}
	if len(notices) > 0 {
		a.kept.add(realm.Told{Seq: t.Seq, Notices: notices}, &a.h.Metrics)
	}
}

// unheard notices are for the sessions, not for clients.
func unheard(n realm.Notice) bool { return n.Event.EventType() == "" }

// through drops kept notices that every queue has acknowledged. A report from before a queue of the shard was opened
// says nothing of that queue.
func (a *realmActor) through(m through) {
	k := &a.kept
	if m.heard < k.opened[m.shard] {
		return
	}
	k.acked[m.shard] = max(k.acked[m.shard], m.seq)
	if seq := min(m.seq, m.heard); m.sure && len(k.list) > 0 && k.list[0].Seq <= seq {
		a.system(func(t *realm.Turn) (any, error) {
			t.CaughtUp(&realm.QueuesCaughtUp{Shard: m.shard, Shards: Shards, Through: seq})
			return nil, nil
		})
	}
	low, n := k.low(), 0
	for n < len(k.list) && k.list[n].Seq <= low {
		n++
	}
	if n > 0 {
		k.drop(n, &a.h.Metrics)
	}
}

// low is the number up to which every queue has acknowledged everything, as far as is known.
func (k *kept) low() realm.Seq { return slices.Min(k.acked[:]) }

// keepLoaded keeps what was kept when the organization's last process ended, but for what is known to be acknowledged.
func (a *realmActor) keepLoaded(l *loaded) {
	k := &a.kept
	k.acked = l.caughtUp
	var listening [Shards]bool
	a.r.EachQueue(func(q *realm.Queue) {
		i := shardOf(q.User)
		listening[i], k.opened[i] = true, max(k.opened[i], q.At)
	})
	for i, some := range listening {
		if !some {
			k.acked[i] = a.r.Seq()
		}
	}
	low := k.low()
	for i, t := range l.told {
		if i < l.stored {
			k.rows = append(k.rows, t.Seq)
		}
		switch {
		case t.Seq <= low:
		case i < l.stored:
			k.add(t, &a.h.Metrics)
		default:
			a.keep(t)
		}
	}
}

// boundKept gives up the queues farthest behind when too much is kept for them.
func (a *realmActor) boundKept() {
	k := &a.kept
	limit := a.h.keptLimit()
	if k.bytes <= limit || len(k.list) == 0 || a.h.elapsed() < k.spared && k.bytes <= 2*limit {
		return
	}
	if k.bytes-k.going <= limit { // enough are on their way out; every turn asks until they are gone
		return
	}
	left, n := k.bytes, 0
	for n < len(k.list)-1 && float64(left) > float64(limit)*keptRest {
		left -= k.list[n].bytes
		n++
	}
	seq := k.list[n].Seq
	if seq <= k.ended {
		return
	}
	k.ended, k.going = seq, k.bytes-left
	a.h.log.Warn("too many events are kept for clients that do not fetch them: giving up the queues farthest behind",
		"realm", a.r.ID(), "bytes", k.bytes, "limit", limit, "facts", len(k.list), "behind", uint64(seq))
	for _, s := range a.h.shards {
		a.h.stage.send(s, giveUp{a.r.ID(), seq})
	}
}

// keptLimit is how many bytes of events one organization may keep now.
func (h *House) keptLimit() int64 {
	if h.Metrics.KeptBytes.Load() <= h.keptTotal.Load() {
		return h.keptBytes.Load()
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	return min(h.keptBytes.Load(), h.keptTotal.Load()/max(1, int64(len(h.realms))))
}

// giveUp ends a realm's queues that are behind.
func (s *shard) giveUp(m giveUp) {
	r := s.realms[m.realm]
	if r == nil {
		return
	}
	r.sessions.EachQueue(func(q *queue.Queue) {
		if !q.Ending && q.Through(r.seq)+1 < m.seq {
			s.h.Metrics.GivenUp.Add(1)
			s.h.Metrics.GivenUpBytes.Add(1)
			s.expire(r, q)
		}
	})
}

// heldBytes is what one queue's reference to an event takes.
const heldBytes = 16

// weigh estimates the memory of what a fact tells: the event, its encoding once for each shard that some of the audience
// belong to, and a reference for everybody. It is an upper bound where clients are alike and have one queue each; texts
// also count when the text cache has them anyway.
func weigh(t *realm.Told) int64 {
	sum := int64(96)
	for i := range t.Notices {
		n := &t.Notices[i]
		e := int64(256) + weighEvent(n.Event)
		sum += e*int64(1+min(len(n.To), Shards)) + heldBytes*int64(len(n.To))
	}
	return sum
}

// weighEvent is about how many bytes an event takes. This happens inside the turn, so the commonest events, and those that
// may name ten thousand users, are estimated from a few of their fields; only the others are walked through.
func weighEvent(e realm.Event) int64 {
	switch e := e.(type) {
	case *realm.MessageArrived:
		return weighMessage(e)
	case *realm.ReadBehind:
		return int64(readBytes * e.Messages.Len())
	case *realm.SubscriptionAdded:
		return weighAdded(e)
	case *realm.SubscriptionsAdded:
		sum := int64(24)
		for i := range e.Each {
			sum += weighAdded(&e.Each[i])
		}
		return sum
	case *realm.SubscriptionsSet:
		return int64(setBytes * len(e.Each))
	}
	return weighValue(reflect.ValueOf(e), 0)
}

func weighMessage(m *realm.MessageArrived) int64 {
	i := &m.Message
	sum := 600 + len(i.ChannelName) + len(i.Topic) + 100*len(i.People) + 8*(len(m.Mentioned)+len(m.GroupMentioned)+len(m.TopicMentioned)+len(m.Alerted)+len(m.ReadBy)+len(m.Unknown))
	if i.Body != nil {
		sum += len(i.Body.Text) + len(i.Body.HTML)
	}
	return int64(sum)
}

// readBytes is what a message takes in an event that says it is read: its number.
const readBytes = 8

// addedBytes is what one of those who join takes in the event subscription/add: his own settings of the channel, with a
// colour such as #76ce90 and five pointers to notification settings, what he inherits, and his number.
const addedBytes = 192

// setBytes is what a change of one's own setting of a channel takes, with its name and a colour.
const setBytes = 128

// channelBytes is about what a channel takes in it, but for its texts: a thousand of them are joined at once.
const channelBytes = 1500

func weighAdded(e *realm.SubscriptionAdded) int64 {
	return channelBytes + int64(len(e.Info.Name)+len(e.Info.Description)+len(e.Info.DescriptionHTML)) + 8*int64(len(e.Members)+len(e.Here)+e.Roster.Len()+e.Present.Len()) + addedBytes*int64(len(e.Users))
}

// maxWeighed is how deep events are looked into.
const maxWeighed = 8

func weighValue(v reflect.Value, depth int) int64 {
	if depth == maxWeighed {
		return 0
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return 8
		}
		return 8 + weighValue(v.Elem(), depth+1)
	case reflect.String:
		return 16 + int64(v.Len())
	case reflect.Slice, reflect.Array:
		if flat(v.Type().Elem()) {
			return 24 + int64(v.Len())*int64(v.Type().Elem().Size())
		}
		sum := int64(24)
		if v.Type() == reflect.TypeFor[[]string]() && v.CanInterface() { // ten thousand of them, one by one through reflection, are felt
			for _, x := range v.Interface().([]string) {
				sum += 16 + int64(len(x))
			}
			return sum
		}
		for i := range v.Len() {
			sum += weighValue(v.Index(i), depth+1)
		}
		return sum
	case reflect.Map:
		sum := int64(48)
		for it := v.MapRange(); it.Next(); {
			sum += weighValue(it.Key(), depth+1) + weighValue(it.Value(), depth+1)
		}
		return sum
	case reflect.Struct:
		var sum int64
		for i := range v.NumField() {
			sum += weighValue(v.Field(i), depth+1)
		}
		return sum
	}
	return int64(v.Type().Size())
}

// flat reports whether values of a type lead to no memory but their own.
func flat(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Slice, reflect.Pointer, reflect.Interface, reflect.Map:
		return false
	case reflect.Array:
		return flat(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if !flat(t.Field(i).Type) {
				return false
			}
		}
	}
	return true
}

// stepKept writes what a snapshot at a number must add to the kept notices on disk and remove from them, until it is
// enough for once, and reports whether that was all. Notices are kept in the order of their facts and dropped from the
// oldest on, so what is on disk is behind, at both ends.
func (a *realmActor) stepKept(at realm.Seq, enough func() bool) bool {
	k := &a.kept
	for ; len(k.rows) > 0 && (len(k.list) == 0 || k.rows[0] < k.list[0].Seq); k.rows = k.rows[1:] {
		if enough() {
			return false
		}
		row := a.h.disk.EncodeKept(realm.Told{Seq: k.rows[0]})
		row.Value = nil
		a.encoded(row)
	}
	next := realm.Seq(0)
	if n := len(k.rows); n > 0 {
		next = k.rows[n-1] + 1
	}
	i, _ := slices.BinarySearchFunc(k.list, next, func(t keptTold, seq realm.Seq) int { return cmp.Compare(t.Seq, seq) })
	for ; i < len(k.list) && k.list[i].Seq <= at; i++ {
		if enough() {
			return false
		}
		a.encoded(a.h.disk.EncodeKept(k.list[i].Told))
		k.rows = append(k.rows, k.list[i].Seq)
	}
	return true
}
