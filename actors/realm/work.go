package realm

// What one request asks for may be too much for one turn: very many people join or leave channels, or a long topic is
// deleted. It makes a sequence of turns, so that nobody else waits for all of it. The first turn checks everybody and
// everything, which takes as long as any other; what it refuses is refused as a whole. It creates the channels, and
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

// Work is the row of what remains of one request.
type Work struct {
	Kind   WorkKind
	By     UserID // who asked
	AtOnce int    // subscriptions a turn makes or ends, or people it looks at
	// Rest is the users who are still to join or leave or to be told, or the messages still to be deleted.
	Rest     Set
	Channels []ChannelID
	Colors   []string    // of new subscriptions as asked for, one for each channel
	Created  []ChannelID // of Channels, those the first turn created: everybody is in them before the first message
	Announce bool        // the new ones
	Topic    string      // of the messages to be deleted
	Message  MessageID   // that is told of
	Told     Seq         // number of its fact
	Groups   []GroupID   // it mentions
}

// WorkKind is what is to be done; the numbers are kept for ever.
type WorkKind uint8

const (
	JoinWork   WorkKind = 1
	LeaveWork  WorkKind = 2
	DeleteWork WorkKind = 3
	// TellWork finds out who is to be told of a message by mail or on his devices. Nobody asked for it.
	TellWork WorkKind = 4
)

// MaxJoinedAtOnce is how many subscriptions one turn makes of a request that makes more: a thousand are about 1 ms.
const MaxJoinedAtOnce = 1000

// How much work may wait in one organization: some kilobytes each.
const (
	MaxWorks     = 100 // requests
	MaxTellWorks = 100 // messages that very many may be to be told of
)

// worksOf counts what waits of a kind.
func (r *Realm) worksOf(kind WorkKind) (n int) {
	for _, w := range r.nouns.works.all() {
		if w.Kind == kind {
			n++
		}
	}
	return n
}

// mayBegin refuses more work than may wait.
func (t *Turn) mayBegin() error {
	if t.nouns.works.size()-t.worksOf(TellWork) >= MaxWorks {
		return Refuse(Busy, "BAD_REQUEST", "Too many large requests are being carried out; try again.")
	}
	return nil
}

// begin records work and returns its number.
func (t *Turn) begin(w Work) int64 {
	id := t.nextID("work")
	w.By = t.User
	t.Record(&WorkBegan{id, w})
	return id
}

// Remains reports whether something of work is not done yet.
func (r *Realm) Remains(work int64) bool { return r.nouns.works.find(work) != nil }

// Working reports whether there is work that should not wait for the clock.
func (r *Realm) Working() bool { return r.nouns.works.size() > 0 }

func workDue(r *Realm, _ int64) func(*Turn) (any, error) {
	return stepOfOldest(&r.nouns.works, (*Turn).stepWork)
}

// stepOfOldest does a step of the oldest of some jobs; nil if there is none.
func stepOfOldest[J any](jobs *table[int64, J], step func(*Turn, int64)) func(*Turn) (any, error) {
	if jobs.size() == 0 {
		return nil
	}
	return func(t *Turn) (any, error) {
		first, _ := jobs.first()
		step(t, first)
		return nil, nil
	}
}

// stepWork does a part of what remains, as the one who asked.
func (t *Turn) stepWork(id int64) {
	defer func(c Caller) { t.Caller = c }(t.Caller)
	w := *t.nouns.works.must(id)
	t.Caller.User, t.Caller.System = w.By, w.By == 0
	var done Set
	switch w.Kind {
	case JoinWork:
		done = t.stepJoin(&w)
	case LeaveWork:
		done = t.stepLeave(&w)
	case TellWork:
		done = t.stepTell(&w)
	case DeleteWork:
		done = t.stepDelete(&w)
	}
	t.Record(&WorkStepped{id, done})
	if t.Remains(id) {
		return
	}
	var created []*Channel
	for _, c := range w.Created {
		if ch := t.chans.must(c); !ch.Archived {
			created = append(created, ch)
		}
	}
	t.welcomeNew(created, w.Announce)
}

// crowd is the users of the next step.
func (w *Work) crowd() []UserID {
	n := min(w.Rest.Len(), max(1, w.AtOnce/max(1, len(w.Channels))))
	users := make([]UserID, 0, n)
	w.Rest.Each(func(u int64) bool {
		users = append(users, UserID(u))
		return len(users) < n
	})
	return users
}

func (t *Turn) stepJoin(w *Work) Set {
	users := w.crowd()
	j := &joining{}
	for _, id := range users {
		if u := t.users.must(id); u.Active {
			j.users = append(j.users, u)
		}
	}
	for i, id := range w.Channels {
		if ch := t.chans.must(id); !ch.Archived {
			j.joins = append(j.joins, join{existing: ch, color: w.Colors[i]})
		}
	}
	t.join(j)
	return SetOf(users...)
}

func (t *Turn) stepLeave(w *Work) Set {
	users := w.crowd()
	var channels []*Channel
	for _, id := range w.Channels {
		channels = append(channels, t.chans.must(id))
	}
	t.leaveChannels(channels, users)
	return SetOf(users...)
}

// stepDelete deletes the newest messages that are left, but for those that have been moved away, and returns all of the
// work that needs no more looking at.
func (t *Turn) stepDelete(w *Work) Set {
	ix := t.by.channel[w.Channels[0]].topics[fold(w.Topic)]
	if ix == nil {
		return w.Rest.Clone()
	}
	ids := IDs[MessageID](Both(w.Rest, ix.ids))
	ids = ids[max(0, len(ids)-deletedAtOnce):]
	if len(ids) == 0 {
		return w.Rest.Clone()
	}
	done := w.Rest.Between(int64(ids[0]), MaxMessageID)
	t.deleteMessages(ids, w.By)
	return done
}

// WorkBegan says what a request asked for will be done. Each part that is done has facts of its own.
type WorkBegan struct {
	ID   int64
	Work Work
}

func (f *WorkBegan) apply(r *Realm) {
	w := f.Work
	w.Rest = w.Rest.Clone()
	r.usedID("work", f.ID)
	r.nouns.works.put(f.ID, &w)
}

func (*WorkBegan) tell(*Realm) []Notice { return nil }
func (*WorkBegan) calm()                {}

// WorkStepped says for whom work is done, or of which messages.
type WorkStepped struct {
	ID   int64
	Done Set
}

func (f *WorkStepped) apply(r *Realm) {
	w := r.nouns.works.change(f.ID)
	if w.Rest.Subtract(f.Done); w.Rest.Empty() {
		r.nouns.works.remove(f.ID)
	}
}

func (*WorkStepped) tell(*Realm) []Notice { return nil }
func (*WorkStepped) calm()                {}

// Crowd is who joins one channel, where there are too many to name each of them inside a turn.
type Crowd struct {
	Name           string
	Joins, Already Set
}

// Name names everybody of the crowds in the answer.
func (a *Joined) Name() {
	for _, x := range a.Crowds {
		for _, part := range []struct {
			users Set
			named map[UserID][]string
		}{{x.Joins, a.Subscribed}, {x.Already, a.Already}} {
			part.users.Each(func(u int64) bool {
				part.named[UserID(u)] = append(part.named[UserID(u)], x.Name)
				return true
			})
		}
	}
}
