package realm

import "slices"

// What leaves the server (letters, calls of bots' services, notifications of phones) is an errand: a row that a fact of
// the same turn makes and that another fact removes when it is done or given up. So nothing that was promised is lost
// when the process ends; it is begun again by the next one. An errand may therefore be done twice, never not at all.

// ErrandKind is where an errand leads; the numbers are kept for ever.
type ErrandKind uint8

const (
	LetterErrand  ErrandKind = 1 // a mail
	ServiceErrand ErrandKind = 2 // a bot's service hears of a message
	PushErrand    ErrandKind = 3 // somebody's devices show a message
	UnpushErrand  ErrandKind = 4 // somebody's devices show messages no longer
	MissedErrand  ErrandKind = 5 // somebody hears by mail of a message, if he does not read it in time
	// RegisterErrand: the service that passes notifications on for us hears of somebody's devices.
	RegisterErrand ErrandKind = 6
	PreviewErrand  ErrandKind = 7 // a message is to show what the pages say that it links to
)

// Errand is the row of something that is to leave the server.
type Errand struct {
	ID      int64
	Kind    ErrandKind
	At      int64
	Letter  *Letter   // of a letter
	User    UserID    // the bot; or whose devices
	Message MessageID // that is told of
	Why     string    // a push's trigger, in the protocol's words
	Told    Seq       // number of the message's fact
	Group   GroupID   // by which he is mentioned; 0: by name
	Gone    []MessageID
	// Registration is what a service is to hear of somebody's devices.
	Registration *Registration
	Version      uint16 // of the text whose links are to be shown
}

// Letter is a mail the server sends.
type Letter struct {
	To, Subject string
	Paragraphs  []string // plain text; one that is an address of the web is a link
	Link        int64    // 0: none; else the paragraph LinkHere is replaced by the link the server's secret makes of it
	// Address: LinkHere is replaced by the link that confirms this change.
	Address *AddressChange
}

// LinkHere stands in a letter for a link that must not be kept.
const LinkHere = "{link}"

// Limits of what waits to leave an organization. Beyond them new errands are dropped and logged: what is behind so far
// will hardly be of use, and memory must not grow with somebody else's outage.
const (
	MaxLetters       = 10_000 // a few hundred bytes each
	MaxServiceCalls  = 1000
	maxCallsOfOneBot = 100
	MaxPushes        = 20_000 // about a hundred bytes each
	MaxMissed        = 20_000 // about a hundred bytes each
	MaxPreviews      = 1000
	// maxPreviewsOfOne is how many of one user's messages wait for pages: they are fetched one message after the other.
	maxPreviewsOfOne = 50
	// maxMissedOfOne is how many messages wait to be mailed to one user: who missed so many looks for himself.
	maxMissedOfOne = 50
	// maxShown is how many of one user's messages are remembered as shown on his devices, the newest: what is older he
	// has cleared away himself.
	maxShown = 1000
	// maxUnpushed is how many messages one notification takes back: Apple's are at most 4 kB (protocol).
	maxUnpushed = 200
)

// errandLimits is how many errands of a kind may wait, and how many of them one user's; 0: any number.
var errandLimits = map[ErrandKind]struct{ all, each int }{
	LetterErrand: {MaxLetters, 0}, ServiceErrand: {MaxServiceCalls, maxCallsOfOneBot}, PushErrand: {MaxPushes, 0}, UnpushErrand: {MaxPushes, 0},
	MissedErrand: {MaxMissed, 0}, RegisterErrand: {MaxRegistrations, maxRegistrationsOfUser},
	PreviewErrand: {MaxPreviews, maxPreviewsOfOne},
}

// errandsOf is errands of one kind, or with a user only his.
type errandsOf struct {
	kind ErrandKind
	user UserID
}

// errandCount is how many errands wait. It is derived.
type errandCount struct {
	number map[errandsOf]int
	// missed is the errands of messages that may have to be mailed to somebody, oldest first.
	missed map[UserID][]int64
}

func (n *errandCount) add(e *Errand, by int) {
	for _, of := range e.counted() {
		if n.number[of] += by; n.number[of] == 0 {
			delete(n.number, of)
		}
	}
	switch {
	case e.Kind == MissedErrand && by > 0:
		n.missed[e.User] = append(n.missed[e.User], e.ID)
	case e.Kind == MissedErrand:
		n.missed[e.User] = slices.DeleteFunc(n.missed[e.User], func(id int64) bool { return id == e.ID })
		if len(n.missed[e.User]) == 0 {
			delete(n.missed, e.User)
		}
	}
}

// counted is what an errand counts among.
func (e *Errand) counted() []errandsOf {
	if errandLimits[e.Kind].each == 0 {
		return []errandsOf{{kind: e.Kind}}
	}
	return []errandsOf{{kind: e.Kind}, {e.Kind, e.User}}
}

// room reports whether one more errand of a kind may wait, beside those that are still to be added.
func (n *errandCount) room(kind ErrandKind, u UserID, more map[errandsOf]int) bool {
	all, each, limit := errandsOf{kind: kind}, errandsOf{kind, u}, errandLimits[kind]
	return n.number[all]+more[all] < limit.all && (limit.each == 0 || n.number[each]+more[each] < limit.each)
}

// Errands is every errand that waits, oldest first.
func (v View) Errands() []Errand {
	out := make([]Errand, 0, v.nouns.errands.size())
	for _, id := range v.nouns.errands.keys() {
		out = append(out, *v.nouns.errands.find(id))
	}
	return out
}

// Errand is one that waits, or nil.
func (v View) Errand(id int64) *Errand { return v.nouns.errands.find(id) }

// Post has letters sent.
func (t *Turn) Post(letters ...Letter) {
	var list []Errand
	for _, l := range letters {
		list = append(list, Errand{Kind: LetterErrand, Letter: &l})
	}
	t.errand(list)
}

// errand records what is to leave the server, as far as there is room.
func (t *Turn) errand(list []Errand) {
	if len(list) == 0 {
		return
	}
	more := map[errandsOf]int{}
	f := &ErrandsAdded{}
	for _, e := range list {
		if !t.nouns.waiting.room(e.Kind, e.User, more) {
			f.Dropped++
			continue
		}
		for _, of := range e.counted() {
			more[of]++
		}
		e.ID, e.At = t.nextID("errand")+int64(len(f.List)), t.Now
		f.List = append(f.List, e)
	}
	t.Record(f)
}

// ErrandsAdded says something is to leave the server. No client hears of it.
type ErrandsAdded struct {
	List    []Errand
	Dropped int // how many more there was no room for
}

func (f *ErrandsAdded) apply(r *Realm) {
	for _, e := range f.List {
		r.usedID("errand", e.ID)
		r.nouns.errands.put(e.ID, &e)
		r.nouns.waiting.add(&e, 1)
	}
}

// tell is for the server alone; no session has a user 0.
func (f *ErrandsAdded) tell(*Realm) []Notice { return []Notice{{To: []UserID{0}, Event: f}} }
func (*ErrandsAdded) EventType() string      { return "" }
func (*ErrandsAdded) calm()                  {}

// SettleErrands is the server's: these are done, or given up. Of the pushes among them, Shown are on devices now.
type SettleErrands struct{ IDs, Shown []int64 }

func (c SettleErrands) Decide(t *Turn) (Done, error) {
	if !t.System {
		return Done{}, errPermission()
	}
	t.Settle(c.IDs, c.Shown...)
	return Done{}, nil
}

// Settle records that errands are done; one that is gone already is passed over.
func (t *Turn) Settle(ids []int64, shown ...int64) {
	f := &ErrandsGone{}
	for _, id := range ids {
		if e := t.nouns.errands.find(id); e != nil {
			f.IDs = append(f.IDs, id)
			if e.Kind == PushErrand && slices.Contains(shown, id) {
				f.Shown = append(f.Shown, id)
			}
		}
	}
	if len(f.IDs) > 0 {
		t.Record(f)
	}
}

// ErrandsGone says errands are done with.
type ErrandsGone struct {
	IDs   []int64
	Shown []int64 // of them, the messages that are on their users' devices now
}

func (f *ErrandsGone) apply(r *Realm) {
	for _, id := range f.Shown {
		e := r.nouns.errands.must(id)
		s := r.nouns.shown.open(e.User)
		if s.Messages.Add(int64(e.Message)); s.Messages.Len() > maxShown {
			oldest, _ := s.Messages.Min()
			s.Messages.Remove(oldest)
		}
		r.nouns.reread[e.User] = struct{}{} // he may have read it meanwhile
	}
	for _, id := range f.IDs {
		r.nouns.waiting.add(r.nouns.errands.must(id), -1)
		r.nouns.errands.remove(id)
	}
}

func (*ErrandsGone) tell(*Realm) []Notice { return nil }
func (*ErrandsGone) calm()                {}

// toldAtOnce is how many people one turn looks at who may be to be told of a message: 250 are about 1 ms.
const toldAtOnce = 250

// depart records what a message that was just sent sets off outside. Where very many may be to be told, that is work of
// the turns that follow. There is no more of it than would be dropped anyway once it is done.
func (t *Turn) depart(f *MessageSent) {
	calls := slices.Concat(t.calls(f), t.previews(f.ID, 0, t.users.must(f.Sender), f.Content))
	who := Either(t.mayPush(f), t.mayMiss(f))
	if who.Len() <= toldAtOnce {
		t.errand(slices.Concat(calls, t.tellings(f, t.seq, IDs[UserID](who))))
		return
	}
	t.errand(calls)
	if t.worksOf(TellWork) < MaxTellWorks {
		t.Record(&WorkBegan{t.nextID("work"), Work{Kind: TellWork, AtOnce: toldAtOnce, Rest: who, Message: f.ID, Told: t.seq, Groups: f.Content.Groups}})
	} else {
		t.Record(&ErrandsAdded{Dropped: who.Len()})
	}
}

// tellings is the errands that tell people of a message whose fact has that number.
func (t *Turn) tellings(f *MessageSent, told Seq, users []UserID) (out []Errand) {
	mailed := t.mails(f)
	for _, id := range users {
		u := t.users.must(id)
		if t.moment.Pushes && t.Reachable(id) {
			if why := t.trigger(u, f, phones); why != "" {
				e := Errand{Kind: PushErrand, User: id, Message: f.ID, Why: why, Told: told}
				if why == pushMention {
					e.Group = t.mentionedGroup(u, f)
				}
				out = append(out, e)
			}
		}
		if mailed && len(t.nouns.waiting.missed[id]) < maxMissedOfOne { // else the mail that waits says enough
			if why := t.trigger(u, f, mails); why != "" {
				out = append(out, Errand{Kind: MissedErrand, User: id, Message: f.ID, Why: why, Told: told})
			}
		}
	}
	return out
}

// stepTell records the errands of some of those whom a message is to be told; who has read it since is told no more.
func (t *Turn) stepTell(w *Work) Set {
	users := w.crowd()
	m := t.message(w.Message)
	if m == nil {
		return w.Rest.Clone()
	}
	e := t.extraOf(w.Message)
	f := &MessageSent{ID: w.Message, Sender: UserID(m.sender), Channel: ChannelID(m.channel), Mentioned: e.Mentioned, GroupMentioned: e.GroupMentioned, TopicMentioned: e.TopicMentioned,
		Content: Content{ChannelWildcard: m.bits&bitChannelWildcard != 0, Groups: w.Groups}}
	if f.Channel != 0 {
		f.TopicName = t.topics.must(m.topic).Name
	}
	for _, u := range users {
		if t.hasRead(t.reading.find(u), int64(f.ID)) {
			f.ReadBy = append(f.ReadBy, u)
		}
	}
	t.errand(t.tellings(f, w.Told, users))
	return SetOf(users...)
}
