package realm

import (
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
	IDs                     []MessageID // ascending
	Anchor                  int64
	Found, Oldest, Newest   bool
	before, after, atAnchor int
}

// Match decides which messages really belong to a narrow whose phrases are in doubt. nil takes all.
type Match func([]MessageID) []bool

func (m Match) one(id MessageID) bool { return m == nil || m([]MessageID{id})[0] }

// Spot is where an anchor is: at an id, or at the first match of a set.
type Spot struct {
	at    int64
	among Set
}

// Spot settles what of an anchor the realm alone knows. It is the caller's own and outlives the view.
func (v View) Spot(n Narrowed, a Anchor) Spot {
	switch a.Kind {
	case AnchorOldest:
		return Spot{}
	case AnchorAt:
		return Spot{at: min(max(a.ID, 0), NewestAnchor)}
	case AnchorFirstUnread:
		if v.User != 0 {
			return Spot{at: NewestAnchor, among: v.UnreadIn(n)}
		}
	case AnchorDate:
		return Spot{at: NewestAnchor, among: v.since(n.IDs, a.Time)}
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

// UnreadIn is the caller's unread messages of a narrow that count for first_unread: not in muted topics, and not in muted
// channels unless the narrow is about a channel.
func (v View) UnreadIn(n Narrowed) Set {
	s := v.rowsWithin(v.User, &n.IDs)
	if rd := v.reading.find(v.User); rd != nil {
		s.Subtract(rd.Read)
	}
	s.Subtract(v.topicsWith(func(p int) bool { return p == TopicMuted }))
	if !slices.ContainsFunc(n.terms, func(t Term) bool { return t.Operator == "channel" }) {
		s.Subtract(v.inMutedChannels())
	}
	return s
}

// since is the messages of a set from a time on. Ids and times rise together.
func (v View) since(s Set, time int64) Set {
	i := sort.Search(s.Len(), func(i int) bool {
		m := v.message(MessageID(s.At(i)))
		return m != nil && int64(m.time) >= time
	})
	if i == s.Len() {
		return Set{}
	}
	last, _ := s.Max()
	return s.Between(s.At(i), last)
}

// chunk is how many messages are looked at before a match is asked for more.
const chunk = 256

// Page cuts a stretch around an anchor out of the narrow.
func (n Narrowed) Page(anchor int64, r Range, match Match) Page {
	p := Page{Anchor: anchor}
	before := n.IDs.backward(anchor, r.Before, match)
	slices.Reverse(before)
	p.IDs = before
	if !r.Exclude && n.IDs.Has(anchor) && match.one(MessageID(anchor)) {
		p.IDs, p.Found, p.atAnchor = append(p.IDs, MessageID(anchor)), true, 1
	}
	after := n.IDs.forward(anchor, r.After, match)
	p.IDs = append(p.IDs, after...)
	p.before, p.after = len(before), len(after)
	p.Oldest = anchor == 0 || len(before) < r.Before
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
		part := s.matching(lo, hi, match)
		slices.Reverse(part)
		out = append(out, part[:min(len(part), n-len(out))]...)
		hi = lo
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
		part := s.matching(lo, hi, match)
		out = append(out, part[:min(len(part), n-len(out))]...)
		lo = hi
	}
	return out
}

func (s Set) matching(lo, hi int, match Match) []MessageID {
	ids := s.slice(lo, hi)
	if match == nil {
		return ids
	}
	out := ids[:0]
	for i, ok := range match(slices.Clone(ids)) {
		if ok {
			out = append(out, ids[i])
		}
	}
	return out
}

// Matching is every matching id of the narrow, ascending.
func (n Narrowed) Matching(match Match) []MessageID { return n.IDs.forward(0, n.IDs.Len(), match) }

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

// slice is the ids from the lo-th up to, not including, the hi-th.
func (s Set) slice(lo, hi int) []MessageID {
	if lo >= hi {
		return nil
	}
	out := make([]MessageID, 0, hi-lo)
	it := s.b.Iterator()
	it.AdvanceIfNeeded(uint32(s.At(lo)))
	for len(out) < hi-lo {
		out = append(out, MessageID(it.Next()))
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
	me := v.Me()
	limited := me != nil && v.guestsLimited()
	access := map[uint32]bool{} // by channel, so that each is decided once
	out := make([]Seen, 0, len(ids))
	for _, id := range ids {
		m := v.message(id)
		if m == nil || !v.mayReadCached(me, id, m, access) {
			continue
		}
		s := Seen{MessageInfo: v.Realm.messageInfo(id, m), Flags: v.FlagsOf(id)}
		s.Unknown = limited && !v.maySee(me, v.users.must(UserID(m.sender)))
		s.History = v.visibleHistory(s.History)
		out = append(out, s)
	}
	return out
}

// mayReadCached is mayRead for many messages of few channels.
func (v View) mayReadCached(u *User, id MessageID, m *message, access map[uint32]bool) bool {
	if v.System {
		return true
	}
	if m.channel == 0 {
		return u != nil && v.inTalk(u.ID, m.talk)
	}
	c := v.chans.must(ChannelID(m.channel))
	ok, known := access[m.channel]
	if !known {
		ok = v.hasContent(u, c)
		access[m.channel] = ok
	}
	return ok && (c.History || c.WebPublic || u != nil && v.received(u.ID, id, m))
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
	if !v.OrgBool("enable_read_receipts") {
		return nil, Bad("Read receipts are disabled in this organization.")
	}
	if _, err := v.ReadableMessage(id); err != nil {
		return nil, err
	}
	m := v.message(id)
	out := []UserID{}
	for u, rd := range v.reading.rows {
		if !rd.Read.Has(int64(id)) || u == UserID(m.sender) || !v.received(u, id, m) {
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
