package realm

import (
	"math"
	"slices"
	"sort"
)

// Anchor is the place in a narrow that a fetch is about.
type Anchor struct {
	Kind AnchorKind
	ID   int64 // of AnchorAt
	Time int64 // of AnchorDate, Unix seconds
}

// AnchorKind tells an id from the words.
type AnchorKind uint8

const (
	AnchorAt AnchorKind = iota
	AnchorNewest
	AnchorOldest
	AnchorFirstUnread
	AnchorDate
)

// NewestAnchor is the id that means "after the newest message" (protocol).
const NewestAnchor = 10_000_000_000_000_000

// Range is how much of a narrow is wanted around an anchor.
type Range struct {
	Anchor        Anchor
	Before, After int
	Exclude       bool // leave the anchor message itself out
}

// Page is a stretch of a narrow.
type Page struct {
	IDs                   []MessageID // ascending
	Anchor                int64
	Found, Oldest, Newest bool
}

// Match decides which messages really belong to a narrow whose phrases are in doubt. nil takes all. A match that returns
// nil ends the looking.
type Match func([]MessageID) []bool

// Spot is where an anchor is: at an id, or at the first match of a set.
type Spot struct {
	at    int64
	among Set
}

// Spot settles what of an anchor the realm alone knows. It is the caller's own and outlives the view.
func (v View) Spot(n *Narrowed, a Anchor) Spot {
	switch a.Kind {
	case AnchorOldest:
		return Spot{}
	case AnchorAt:
		return Spot{at: min(max(a.ID, 0), NewestAnchor)}
	case AnchorFirstUnread:
		if v.User != 0 {
			return v.firstUnread(n)
		}
	case AnchorDate:
		return v.firstSince(n, v.since(a.Time))
	}
	return Spot{at: NewestAnchor}
}

// In is the anchor's id.
func (s Spot) In(match Match) int64 {
	if first := s.among.forward(0, 1, match); len(first) > 0 {
		return int64(first[0])
	}
	return s.at
}

// firstUnread is the caller's oldest unread message of a narrow that counts here: not in muted topics, and not in muted
// channels unless the narrow is about a channel.
func (v View) firstUnread(n *Narrowed) Spot {
	ids := Without(n.ids, v.readOf(v.reading.find(v.User)))
	named := slices.ContainsFunc(n.terms, func(t Term) bool { return t.Operator == "channel" })
	muted := v.mutesOf(v.User)
	if named {
		muted.channels = Set{}
	}
	p := places{View: v, me: v.Me()}
	wanted := func(id MessageID, m *message) bool {
		return p.row(id, m) && (m.channel == 0 || !muted.covers(ChannelID(m.channel), v.Realm.topics.must(m.topic).Name))
	}
	if len(n.Doubts) == 0 {
		near := *n
		near.ids, near.view, near.tests = ids, v, append(slices.Clone(n.tests), wanted)
		match, gaveUp := near.walk()
		first := ids.forward(0, 1, match)
		switch {
		case len(first) > 0:
			return Spot{at: int64(first[0])}
		case !*gaveUp:
			return Spot{at: NewestAnchor}
		}
	}
	s := v.readableRows(v.Me(), Both(n.set(), ids))
	s.Subtract(v.topicsWith(func(p int) bool { return p == TopicMuted }))
	if !named {
		s.Subtract(v.inMutedChannels())
	}
	return Spot{at: NewestAnchor, among: s}
}

// firstSince is the first message of a narrow from an id on.
func (v View) firstSince(n *Narrowed, from int64) Spot {
	last, _ := n.ids.Max()
	if len(n.Doubts) == 0 && n.tests != nil {
		match, gaveUp := n.walk()
		if first := n.ids.forward(from-1, 1, match); len(first) > 0 {
			return Spot{at: int64(first[0])}
		} else if !*gaveUp {
			return Spot{at: NewestAnchor}
		}
	}
	return Spot{at: NewestAnchor, among: n.set().Between(from, last)}
}

// since is the first id that was sent at a time or later. Ids and times rise together.
func (v View) since(time int64) int64 {
	last := int(v.LastMessage())
	at := func(id int) int64 { // of the first message from id on that is still there
		for ; id <= last; id++ {
			if m := v.message(MessageID(id)); m != nil {
				return int64(m.time)
			}
		}
		return math.MaxInt64
	}
	return int64(1 + sort.Search(last, func(i int) bool { return at(i+1) >= time }))
}

// chunk is how many messages are looked at before a match is asked for more.
const chunk = 256

// Page cuts a stretch around an anchor out of the narrow. match is for narrows with doubts, which are frozen.
func (n *Narrowed) Page(anchor int64, r Range, match Match) Page {
	if n.tests != nil {
		near, gaveUp := n.walk()
		if p := n.cut(anchor, r, near); !*gaveUp {
			return p
		}
		n.set()
	}
	return n.cut(anchor, r, match)
}

func (n *Narrowed) cut(anchor int64, r Range, match Match) Page {
	p := Page{Anchor: anchor}
	p.IDs = n.ids.backward(anchor, r.Before, match)
	slices.Reverse(p.IDs)
	before := len(p.IDs)
	if !r.Exclude && n.ids.Has(anchor) {
		if here := n.ids.forward(anchor-1, 1, match); len(here) > 0 && int64(here[0]) == anchor {
			p.IDs, p.Found = append(p.IDs, here[0]), true
		}
	}
	after := n.ids.forward(anchor, r.After, match)
	p.IDs = append(p.IDs, after...)
	p.Oldest = anchor == 0 || before < r.Before
	p.Newest = anchor >= NewestAnchor || len(after) < r.After
	return p
}

// backward is the last n matching ids below an id, newest first.
func (s Set) backward(below int64, n int, match Match) []MessageID {
	var out []MessageID
	for hi := s.Rank(below - 1); hi > 0 && len(out) < n; {
		size := n - len(out)
		if match != nil {
			size = chunk
		}
		lo := max(0, hi-size)
		part, more := s.matching(lo, hi, match)
		slices.Reverse(part)
		out = append(out, part[:min(len(part), n-len(out))]...)
		if hi = lo; !more {
			break
		}
	}
	return out
}

// forward is the first n matching ids above an id, oldest first.
func (s Set) forward(above int64, n int, match Match) []MessageID {
	var out []MessageID
	size := s.Len()
	for lo := s.Rank(above); lo < size && len(out) < n; {
		step := n - len(out)
		if match != nil {
			step = chunk
		}
		hi := min(size, lo+step)
		part, more := s.matching(lo, hi, match)
		out = append(out, part[:min(len(part), n-len(out))]...)
		if lo = hi; !more {
			break
		}
	}
	return out
}

// matching is the matching ids from the lo-th up to, not including, the hi-th; more is false when the looking is over.
func (s Set) matching(lo, hi int, match Match) (out []MessageID, more bool) {
	ids := s.slice(lo, hi)
	if match == nil {
		return ids, true
	}
	verdicts := match(ids)
	out = make([]MessageID, 0, len(ids))
	for i, ok := range verdicts {
		if ok {
			out = append(out, ids[i])
		}
	}
	return out, verdicts != nil
}

// Matching is every matching id of the narrow, ascending.
func (n *Narrowed) Matching(match Match) []MessageID {
	s := n.set()
	return s.forward(0, s.Len(), match)
}

// Refs is the current versions of messages' texts; 0 stands for a message that is gone.
func (r *Realm) Refs(ids []MessageID) []BodyRef {
	out := make([]BodyRef, len(ids))
	for i, id := range ids {
		if m := r.message(id); m != nil {
			out[i].Message = id
			if e := r.extra(id, m); e != nil {
				out[i].Version = e.Version
			}
		}
	}
	return out
}

// Seen is a message as one reader sees it.
type Seen struct {
	MessageInfo
	Flags   Flags
	Unknown bool // the reader may not know the sender
}

// What of a message's past is shown (protocol: message_edit_history_visibility_policy).
const (
	historyAll   = "all"
	historyMoves = "moves"
)

// See copies messages out of the realm, leaving out what the caller may not read (any more).
func (v View) See(ids []MessageID) []Seen {
	p := places{View: v, me: v.Me()}
	limited := p.me != nil && v.GuestsLimited()
	out := make([]Seen, 0, len(ids))
	for _, id := range ids {
		m := v.message(id)
		if m == nil || !p.readable(id, m) {
			continue
		}
		s := Seen{MessageInfo: v.Realm.messageInfo(id, m), Flags: v.FlagsOf(id)}
		s.Unknown = limited && !v.maySee(p.me, v.users.must(UserID(m.sender)))
		s.History = v.visibleHistory(s.History)
		out = append(out, s)
	}
	return out
}

// visibleHistory is what of a message's past the organization shows: everything, moves only, or nothing.
func (r *Realm) visibleHistory(list []Revision) []Revision {
	if len(list) == 0 {
		return nil
	}
	switch r.OrgText("message_edit_history_visibility_policy") {
	case historyAll:
		return list
	case historyMoves:
		var out []Revision
		for _, x := range list {
			if x.Content = false; x.TopicBefore != nil || x.ChannelBefore != 0 {
				out = append(out, x)
			}
		}
		return out
	}
	return nil
}

// SeeOne is one message, or the refusal that hides and unknown messages share. Visitors read web-public channels.
func (v View) SeeOne(id MessageID) (Seen, error) {
	if v.User == 0 && !v.System && !v.SpectatorsAllowed() {
		return Seen{}, errNotLoggedIn()
	}
	if s := v.See([]MessageID{id}); len(s) == 1 {
		return s[0], nil
	}
	return Seen{}, errMessage()
}

// Receipts is who has read a message and lets others know: never its sender, nor people who mute the caller or whom he
// mutes.
func (v View) Receipts(id MessageID) ([]UserID, error) {
	if v.Me() == nil {
		return nil, errNotLoggedIn()
	}
	if _, err := v.ReadableMessage(id); err != nil {
		return nil, err
	}
	if !v.OrgBool("enable_read_receipts") {
		return nil, Bad("Read receipts are disabled in this organization.")
	}
	m := v.message(id)
	out := []UserID{}
	for u, rd := range v.reading.all() {
		if !v.hasRead(rd, int64(id)) || u == UserID(m.sender) || !v.received(u, id, m) {
			continue
		}
		p := v.users.find(u)
		if p == nil || !p.Active || !p.Flag("send_read_receipts") || v.mutes(v.User, u) || v.mutes(u, v.User) {
			continue
		}
		out = append(out, u)
	}
	slices.Sort(out)
	return out, nil
}
