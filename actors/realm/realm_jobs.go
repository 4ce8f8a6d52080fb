package realm

import (
	"cmp"
	"slices"

	"parley/actors/realm/ids"
)

// What one request asks for may be too much for one turn: very many people join or leave channels, or somebody many channels,
// valueOr a long topic is deleted. It makes a sequence of turns, so that nobody else waits for all of it. The first turn checks
// everybody and everything, which takes as long as any other; what it refuses is refused as a whole. It creates the channels, and
// records what is to be done as work: a row like a message's, so once it is on disk the rest is certain to be done.
// Each later turn does a step, with facts and events of its own, and records how far it came with them. In between
// some have joined and some have not, as if they had been asked for by several requests.
//
// The server takes the steps one after the other, each behind whoever waits by then, and goes on with them when it was
// stopped in between; who asked is answered behind the last. So of such a request, whether it was answered or not, either
// all comes to be done or, where the first turn did not reach the disk, nothing is; a success says that all is done, or
// certain to be. What was allowed at first stays allowed; what was closed, moved or deleted meanwhile is left out.
//
// A message that very many may be to be told of outside makes such work, too. The messages of channels that were left
// (leaving.go) and of accounts that are deleted with all they wrote (purge.go) are worked off in the same way from rows of
// their own, but wait for the clock, as nobody waits for them.

// Job is the row of what remains of one request.
type Job struct {
	Kind   JobKind
	By     UserID // who asked
	AtOnce int    // subscriptions a turn makes or ends, or people it looks at
	// Rest is the users who are still to join or leave or to be told, or the messages still to be deleted.
	Rest     ids.Set
	Channels []ChannelID
	Colors   []string    // of new subscriptions as asked for, one for each channel
	Created  []ChannelID // of Channels, those the first turn created: everybody is in them before the first message
	Announce bool        // the new ones
	Topic    string      // of the messages to be deleted
	Message  MessageID   // that is told of
	Told     Seq         // number of its fact
	Groups   []GroupID   // it mentions
	// Next is how many of Channels, in the order in which they are taken, the users of the next step have joined or left. Who
	// is to be told that he was subscribed is told in a step of its own, behind all of them.
	Next     int
	Invited  []ids.Set         // for each of Channels, who is told that he was subscribed to it; nil: nobody
	Settings []SubscriptionSet // to be set; Rest is which of them, counted from 0
}

// JobKind is what is to be done; the numbers are kept for ever.
type JobKind uint8

const (
	JoinJob   JobKind = 1
	LeaveJob  JobKind = 2
	DeleteJob JobKind = 3
	// NotifyJob finds out who is to be told of a message by mail or on his devices. Nobody asked for it.
	NotifyJob   JobKind = 4
	PropertyJob JobKind = 5
)

// MaxSubscriptionsPerTurn is how many subscriptions one turn makes of a request that makes more: a thousand are about 1 ms, if there
// are not many channels.
const MaxSubscriptionsPerTurn = 1000

// maxChannelsPerTurn is how many channels are joined or left in one turn of a request that names more: each takes about 3 µs,
// however few join, and more where those who are in it are many.
const maxChannelsPerTurn = 150

// needsSeveralTurns reports whether a request for so many users and channels takes several turns; atOnce is how many subscriptions
// one of them may make, 0: all.
func needsSeveralTurns(users, channels, atOnce int) bool {
	return atOnce != 0 && (users*channels > atOnce || channels > maxChannelsPerTurn)
}

// How much work may wait in one organization: some kilobytes each.
const (
	MaxJobs       = 100 // requests
	MaxNotifyJobs = 100 // messages that very many may be to be told of
)

// countJobs counts what waits of a kind.
func (r *Realm) countJobs(kind JobKind) (n int) {
	for _, w := range r.small.jobs.all() {
		if w.Kind == kind {
			n++
		}
	}
	return n
}

// checkJobLimit refuses more work than may wait.
func (t *Turn) checkJobLimit() error {
	if t.small.jobs.size()-t.countJobs(NotifyJob) >= MaxJobs {
		return Refuse(Busy, "BAD_REQUEST", "Too many large requests are being carried out; try again.")
	}
	return nil
}

// startJob records work and returns its number.
func (t *Turn) startJob(w Job) int64 {
	id := t.nextID("work")
	w.By = t.User
	t.Record(&JobStarted{id, w})
	return id
}

// JobRemains reports whether something of work is not done yet.
func (r *Realm) JobRemains(work int64) bool { return r.small.jobs.find(work) != nil }

// HasJobs reports whether there is work that should not wait for the clock.
func (r *Realm) HasJobs() bool { return r.small.jobs.size() > 0 }

func jobsDue(r *Realm, _ int64) func(*Turn) (any, error) {
	return oldestJobStep(&r.small.jobs, (*Turn).stepJob)
}

// oldestJobStep does a step of the oldest of some jobs; nil if there is none.
func oldestJobStep[J any](jobs *table[int64, J], step func(*Turn, int64)) func(*Turn) (any, error) {
	if jobs.size() == 0 {
		return nil
	}
	return func(t *Turn) (any, error) {
		first, _ := jobs.firstKey()
		step(t, first)
		return nil, nil
	}
}

// stepJob does a part of what remains, as the one who asked.
func (t *Turn) stepJob(id int64) {
	defer func(c Caller) { t.Caller = c }(t.Caller)
	w := *t.small.jobs.must(id)
	t.Caller.User, t.Caller.System = w.By, w.By == 0
	var done ids.Set
	next := 0
	switch w.Kind {
	case JoinJob:
		done, next = t.stepJoin(&w)
	case LeaveJob:
		done, next = t.stepLeave(&w)
	case NotifyJob:
		done = t.stepNotify(&w)
	case DeleteJob:
		done = t.stepDelete(&w)
	case PropertyJob:
		done = t.stepSet(&w)
	}
	t.Record(&JobAdvanced{id, done, next})
	if t.JobRemains(id) {
		return
	}
	var created []*Channel
	for _, c := range w.Created {
		if ch := t.channels.must(c); !ch.Archived {
			created = append(created, ch)
		}
	}
	t.postCreationNotices(created, w.Announce)
}

// nextUsers is the users of the next step.
func (w *Job) nextUsers() []UserID {
	n := min(w.Rest.Len(), max(1, w.AtOnce/max(1, len(w.Channels))))
	users := make([]UserID, 0, n)
	w.Rest.Each(func(u int64) bool {
		users = append(users, UserID(u))
		return len(users) < n
	})
	return users
}

// nextChannels is which of the channels, whose places are given in the order in which they are taken, the next step takes, and how
// many of them its users have behind them then.
func (w *Job) nextChannels(places []int) (now []int, next int) {
	next = min(len(places), w.Next+maxChannelsPerTurn)
	return places[w.Next:next], next
}

// channelOrder is the channelOrder of all channels in the order in which they were asked for.
func (w *Job) channelOrder() []int {
	out := make([]int, len(w.Channels))
	for i := range out {
		out[i] = i
	}
	return out
}

func (t *Turn) stepJoin(w *Job) (done ids.Set, next int) {
	users := w.nextUsers()
	j := &subscribePlan{}
	for _, id := range users {
		if u := t.users.must(id); u.Active {
			j.users = append(j.users, u)
		}
	}
	if w.Next > 0 && w.Next == len(w.Channels) {
		t.notifySubscribed(w.invitedChannels(t, users), j.users)
		return ids.SetOf(users...), 0
	}
	places := w.channelOrder()
	slices.SortFunc(places, func(a, b int) int { return cmp.Compare(w.Channels[a], w.Channels[b]) }) // as join takes them
	places, next = w.nextChannels(places)
	for _, i := range places {
		if ch := t.channels.must(w.Channels[i]); !ch.Archived {
			j.joins = append(j.joins, channelJoin{existing: ch, color: w.Colors[i]})
		}
	}
	t.recordJoins(j)
	if next < len(w.Channels) || w.Invited != nil {
		return ids.Set{}, next
	}
	return ids.SetOf(users...), 0
}

// invitedChannels is which channels some of the users are told of.
func (w *Job) invitedChannels(t *Turn, users []UserID) map[UserID][]*Channel {
	out := map[UserID][]*Channel{}
	for i, id := range w.Channels {
		for _, u := range users {
			if ch := t.channels.must(id); w.Invited[i].Has(int64(u)) && !ch.Archived {
				out[u] = append(out[u], ch)
			}
		}
	}
	return out
}

func (t *Turn) stepLeave(w *Job) (done ids.Set, next int) {
	users := w.nextUsers()
	places, next := w.nextChannels(w.channelOrder())
	var channels []*Channel
	for _, i := range places {
		channels = append(channels, t.channels.must(w.Channels[i]))
	}
	t.leaveChannels(channels, users)
	if next < len(w.Channels) {
		return ids.Set{}, next
	}
	return ids.SetOf(users...), 0
}

// stepSet makes the next of the settings, but for those of channels that have been left since.
func (t *Turn) stepSet(w *Job) (done ids.Set) {
	var changes []SubscriptionSet
	w.Rest.Each(func(i int64) bool {
		if x := w.Settings[i]; t.Realm.Subscribed(x.User, x.Channel) {
			changes = append(changes, x)
		}
		done.Add(i)
		return done.Len() < w.AtOnce
	})
	t.recordProperties(w.By, changes)
	return done
}

// stepDelete deletes the newest messages that are left, but for those that have been moved away, and returns all of the
// work that needs no more looking at.
func (t *Turn) stepDelete(w *Job) ids.Set {
	ix := t.index.channels[w.Channels[0]].topics[fold(w.Topic)]
	if ix == nil {
		return w.Rest.Clone()
	}
	ids := ids.IDs[MessageID](ids.Intersection(w.Rest, ix.ids))
	ids = ids[max(0, len(ids)-maxDeletedPerTurn):]
	if len(ids) == 0 {
		return w.Rest.Clone()
	}
	done := w.Rest.Between(int64(ids[0]), MaxMessageID)
	t.deleteMessages(ids, w.By)
	return done
}

// JobStarted says what a request asked for will be done. Each part that is done has facts of its own.
type JobStarted struct {
	ID   int64
	Work Job
}

func (f *JobStarted) apply(r *Realm) {
	w := f.Work
	w.Rest = w.Rest.Clone()
	r.reserveID("work", f.ID)
	r.small.jobs.put(f.ID, &w)
}

func (*JobStarted) tell(*Realm) []Notice { return nil }
func (*JobStarted) keepsMarkdownConfig() {}

// JobAdvanced says for whom work is done, or of which messages.
type JobAdvanced struct {
	ID   int64
	Done ids.Set
	Next int // see Job
}

func (f *JobAdvanced) apply(r *Realm) {
	w := r.small.jobs.change(f.ID)
	w.Next = f.Next
	if w.Rest.Subtract(f.Done); w.Rest.Empty() {
		r.small.jobs.remove(f.ID)
	}
}

func (*JobAdvanced) tell(*Realm) []Notice { return nil }
func (*JobAdvanced) keepsMarkdownConfig() {}

// ChannelJoiners is who joins one channel, where there are too many to name each of them inside a turn.
type ChannelJoiners struct {
	Name           string
	Joins, Already ids.Set
}

// AddJoiners names everybody of the crowds in the answer.
func (a *SubscribeResult) AddJoiners() {
	for _, x := range a.Joiners {
		for _, part := range []struct {
			users ids.Set
			named map[UserID][]string
		}{{x.Joins, a.Subscribed}, {x.Already, a.Already}} {
			part.users.Each(func(u int64) bool {
				part.named[UserID(u)] = append(part.named[UserID(u)], x.Name)
				return true
			})
		}
	}
}
