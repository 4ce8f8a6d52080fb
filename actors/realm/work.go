package realm

// What one request asks for may be too much for one turn: very many people join or leave channels, or a long topic is
// deleted. It makes a sequence of turns, so that nobody else waits for all of it. The first turn checks everybody and
// everything; what it refuses is refused as a whole. It creates the channels, does a first part, and records what remains
// as work: a row like a message's, so once it is on disk the rest is certain to be done. Each later turn does a step, with
// facts and events of its own, and records how far it came with them. In between some have joined and some have not, as if
// they had been asked for by several requests.
//
// Whoever asked takes the steps one after the other and is answered behind the last. Should he be gone, be it that the
// server stopped, its clock takes them. So of such a request, whether it was answered or not, either all comes to be done
// or, where the first turn did not reach the disk, nothing is; a success says that all is done, or certain to be. What was
// allowed at first stays allowed; what was closed, moved or deleted meanwhile is left out.
//
// The messages of channels that were left (leaving.go) and of accounts that are deleted with all they wrote (purge.go) are
// worked off by the clock in the same way, from rows of their own: nobody waits for those.

// Work is the row of what remains of one request.
type Work struct {
	Kind   WorkKind
	By     UserID // who asked
	AtOnce int    // subscriptions a turn makes or ends
	// Rest is the users who are still to join or leave, or the messages still to be deleted.
	Rest     Set
	Channels []ChannelID
	Colors   []string    // of new subscriptions as asked for, one for each channel
	Created  []ChannelID // of Channels, those the first turn created: everybody is in them before the first message
	Announce bool        // the new ones
	Topic    string      // of the messages to be deleted
}

// WorkKind is what is to be done; the numbers are kept for ever.
type WorkKind uint8

const (
	JoinWork   WorkKind = 1
	LeaveWork  WorkKind = 2
	DeleteWork WorkKind = 3
)

// MaxJoinedAtOnce is how many subscriptions one turn makes of a request that makes more: a thousand are about 1 ms.
const MaxJoinedAtOnce = 1000

// MaxWorks is how many requests' work may wait in one organization: some kilobytes each, and a second of turns at worst.
const MaxWorks = 100

// mayBegin refuses more work than may wait.
func (t *Turn) mayBegin() error {
	if t.nouns.works.size() >= MaxWorks {
		return Refuse(Busy, "BAD_REQUEST", "Too many large requests are being carried out; try again.")
	}
	return nil
}

// begin records work and does the first part. It returns the work's number, 0 if that was all.
func (t *Turn) begin(w Work) int64 {
	id := t.nextID("work")
	w.By = t.User
	t.Record(&WorkBegan{id, w})
	if t.stepWork(id) {
		return id
	}
	return 0
}

// GoOn asks for a step of work that the caller began.
type GoOn struct{ Work int64 }

// Decide answers whether something remains.
func (c GoOn) Decide(t *Turn) (bool, error) {
	w := t.nouns.works.find(c.Work)
	return w != nil && w.By == t.User && t.stepWork(c.Work), nil
}

// workDue does a step of the oldest work.
func workDue(r *Realm, _ int64) func(*Turn) (any, error) {
	if r.nouns.works.size() == 0 {
		return nil
	}
	return func(t *Turn) (any, error) {
		t.stepWork(t.nouns.works.keys()[0])
		return nil, nil
	}
}

// stepWork does a part of what remains, as the one who asked, and tells whether there is more.
func (t *Turn) stepWork(id int64) bool {
	defer func(c Caller) { t.Caller = c }(t.Caller)
	w := *t.nouns.works.must(id)
	t.Caller.User, t.Caller.System = w.By, false
	f := &WorkStepped{ID: id}
	if w.Kind == DeleteWork {
		f.Done = t.stepDelete(&w)
	} else {
		f.Done = SetOf(w.crowd()...)
	}
	switch w.Kind {
	case JoinWork:
		t.stepJoin(&w)
	case LeaveWork:
		t.stepLeave(&w)
	}
	t.Record(f)
	if t.nouns.works.find(id) != nil {
		return true
	}
	var created []*Channel
	for _, c := range w.Created {
		if ch := t.chans.must(c); !ch.Archived {
			created = append(created, ch)
		}
	}
	t.welcomeNew(created, w.Announce)
	return false
}

// crowd is the users of the next step.
func (w *Work) crowd() []UserID {
	n := min(w.Rest.Len(), max(1, w.AtOnce/len(w.Channels)))
	users := make([]UserID, 0, n)
	w.Rest.Each(func(u int64) bool {
		users = append(users, UserID(u))
		return len(users) < n
	})
	return users
}

func (t *Turn) stepJoin(w *Work) {
	j := &joining{}
	for _, id := range w.crowd() {
		if u := t.users.must(id); u.Active {
			j.users = append(j.users, u)
		}
	}
	for i, id := range w.Channels {
		if ch := t.chans.must(id); !ch.Archived {
			j.joins = append(j.joins, join{existing: ch, color: w.Colors[i]})
		}
	}
	t.join(j, nil)
}

func (t *Turn) stepLeave(w *Work) {
	var channels []*Channel
	for _, id := range w.Channels {
		channels = append(channels, t.chans.must(id))
	}
	t.leaveChannels(channels, w.crowd())
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

// WorkBegan says what a request asked for will be done. What of it is done in the same turn has facts of its own.
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
