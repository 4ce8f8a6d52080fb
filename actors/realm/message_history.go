package realm

import (
	"math"
	"slices"
	"sort"

	"parley/actors/realm/ids"
)

// Anchor is the position in a narrow around which a page of messages is fetched.
type Anchor struct {
	Kind AnchorKind
	ID   int64 // of AnchorMessage
	Time int64 // of AnchorDate, Unix seconds
}

// AnchorKind says how the position is given: by id, by date, or by one of the protocol's words.
type AnchorKind uint8

const (
	AnchorMessage AnchorKind = iota
	AnchorNewest
	AnchorOldest
	AnchorFirstUnread
	AnchorDate
)

// NewestAnchor is the id that means "after the newest message" in the protocol.
const NewestAnchor = 10_000_000_000_000_000

// PageRange says how many messages before and after an anchor a page has.
type PageRange struct {
	Anchor        Anchor
	Before, After int
	Exclude       bool // leave out the anchor message itself
	// NameEnds makes an anchor before or after all messages name the oldest or the newest one, in a range of nothing
	// but the anchor.
	NameEnds bool
}

// Page is a range of consecutive messages of a narrow. Found says that it contains the anchor message. Oldest and
// Newest say that it reaches the first or the last message of the narrow.
type Page struct {
	IDs                   []MessageID // ascending
	Anchor                int64
	Found, Oldest, Newest bool
}

// BatchFilter decides for a batch of message ids which of them match. It is used where message texts must be
// compared. A nil filter accepts all ids. If it returns nil, the search ends with the matches so far.
type BatchFilter func([]MessageID) []bool

// ResolvedAnchor is an anchor after the lookups that need the realm: an id, or the first match in a set of
// candidates.
type ResolvedAnchor struct {
	id         int64
	candidates ids.Set
}

// ResolveAnchor does the part of finding an anchor that needs the realm. The result may be used after the view.
func (v View) ResolveAnchor(n *NarrowResult, a Anchor) ResolvedAnchor {
	switch a.Kind {
	case AnchorOldest:
		return ResolvedAnchor{}
	case AnchorMessage:
		return ResolvedAnchor{id: min(max(a.ID, 0), NewestAnchor)}
	case AnchorFirstUnread:
		if v.User != 0 {
			return v.firstUnreadAnchor(n)
		}
	case AnchorDate:
		return v.firstAnchorFrom(n, v.firstIDSince(a.Time))
	}
	return ResolvedAnchor{id: NewestAnchor}
}

// ID returns the anchor's id. match filters the candidates.
func (s ResolvedAnchor) ID(match BatchFilter) int64 {
	if first := firstMatchesAbove(s.candidates, 0, 1, match); len(first) > 0 {
		return int64(first[0])
	}
	return s.id
}

// firstUnreadAnchor resolves the caller's oldest unread message of a narrow. Messages in muted topics do not count.
// Messages in muted channels count only if the narrow has a channel term.
func (v View) firstUnreadAnchor(n *NarrowResult) ResolvedAnchor {
	unread := ids.Difference(n.ids, v.readSet(v.marks.find(v.User)))
	named := slices.ContainsFunc(n.terms, func(t Term) bool { return t.Operator == "channel" })
	muted := v.muteSettingsOf(v.User)
	if named {
		muted.channels = ids.Set{}
	}
	p := readerAccess{View: v, reader: v.Me()}
	wanted := func(id MessageID, m *message) bool {
		return p.hasReadableRow(id, m) && (m.channel == 0 ||
			!muted.isMuted(ChannelID(m.channel), v.Realm.topics.must(m.topic).Name))
	}
	if len(n.Unverified) == 0 {
		near := *n
		near.ids, near.view, near.tests = unread, v, append(slices.Clone(n.tests), wanted)
		match, gaveUp := near.limitedFilter()
		first := firstMatchesAbove(unread, 0, 1, match)
		switch {
		case len(first) > 0:
			return ResolvedAnchor{id: int64(first[0])}
		case !*gaveUp:
			return ResolvedAnchor{id: NewestAnchor}
		}
	}
	s := v.readableRows(v.Me(), ids.Intersection(n.wholeSet(), unread))
	s.Subtract(v.messagesWithPolicy(func(p int) bool { return p == TopicMuted }))
	if !named {
		s.Subtract(v.messagesInMutedChannels())
	}
	return ResolvedAnchor{id: NewestAnchor, candidates: s}
}

// firstAnchorFrom resolves the first message of a narrow whose id is at least from.
func (v View) firstAnchorFrom(n *NarrowResult, from int64) ResolvedAnchor {
	last, _ := n.ids.Max()
	if len(n.Unverified) == 0 && n.tests != nil {
		match, gaveUp := n.limitedFilter()
		if first := firstMatchesAbove(n.ids, from-1, 1, match); len(first) > 0 {
			return ResolvedAnchor{id: int64(first[0])}
		} else if !*gaveUp {
			return ResolvedAnchor{id: NewestAnchor}
		}
	}
	return ResolvedAnchor{id: NewestAnchor, candidates: n.wholeSet().Between(from, last)}
}

// firstIDSince returns the first id that was sent at a time (Unix seconds) or later. Later messages have larger ids.
func (v View) firstIDSince(time int64) int64 {
	last := int(v.LastMessageID())
	at := func(id int) int64 { // time of the first existing message with at least this id
		for ; id <= last; id++ {
			if m := v.message(MessageID(id)); m != nil {
				return int64(m.time)
			}
		}
		return math.MaxInt64
	}
	return int64(1 + sort.Search(last, func(i int) bool { return at(i+1) >= time }))
}

// filterBatchSize is how many ids a BatchFilter gets in one call.
const filterBatchSize = 256

// Page returns the messages of the narrow around an anchor. match is for narrows with Unverified conditions, which
// must be frozen.
func (n *NarrowResult) Page(anchor int64, r PageRange, match BatchFilter) Page {
	if n.tests != nil {
		near, gaveUp := n.limitedFilter()
		if p := n.pageAround(anchor, r, near); !*gaveUp {
			return p
		}
		n.wholeSet()
	}
	return n.pageAround(anchor, r, match)
}

// pageAround is Page for candidates that only match has still to filter.
func (n *NarrowResult) pageAround(anchor int64, r PageRange, match BatchFilter) Page {
	if r.NameEnds && r.Before+r.After == 0 && !r.Exclude {
		switch {
		case anchor >= NewestAnchor:
			r.Before = 1
		case anchor == 0:
			r.After = 1
		}
	}
	p := Page{Anchor: anchor}
	p.IDs = lastMatchesBelow(n.ids, anchor, r.Before, match)
	slices.Reverse(p.IDs)
	before := len(p.IDs)
	if !r.Exclude && n.ids.Has(anchor) {
		if here := firstMatchesAbove(n.ids, anchor-1, 1, match); len(here) > 0 && int64(here[0]) == anchor {
			p.IDs, p.Found = append(p.IDs, here[0]), true
		}
	}
	after := firstMatchesAbove(n.ids, anchor, r.After, match)
	p.IDs = append(p.IDs, after...)
	p.Oldest = anchor == 0 || before < r.Before
	p.Newest = anchor >= NewestAnchor || len(after) < r.After
	return p
}

// lastMatchesBelow returns the last n matching ids below an id, newest first.
func lastMatchesBelow(s ids.Set, below int64, n int, match BatchFilter) []MessageID {
	var out []MessageID
	for hi := s.Rank(below - 1); hi > 0 && len(out) < n; {
		size := n - len(out)
		if match != nil {
			size = filterBatchSize
		}
		lo := max(0, hi-size)
		part, more := filterSlice(s, lo, hi, match)
		slices.Reverse(part)
		out = append(out, part[:min(len(part), n-len(out))]...)
		if hi = lo; !more {
			break
		}
	}
	return out
}

// firstMatchesAbove returns the first n matching ids above an id, oldest first.
func firstMatchesAbove(s ids.Set, above int64, n int, match BatchFilter) []MessageID {
	var out []MessageID
	size := s.Len()
	for lo := s.Rank(above); lo < size && len(out) < n; {
		step := n - len(out)
		if match != nil {
			step = filterBatchSize
		}
		hi := min(size, lo+step)
		part, more := filterSlice(s, lo, hi, match)
		out = append(out, part[:min(len(part), n-len(out))]...)
		if lo = hi; !more {
			break
		}
	}
	return out
}

// filterSlice returns the matching ids among the elements lo to hi-1 of a set. more is false if the filter ended the
// search.
func filterSlice(s ids.Set, lo, hi int, match BatchFilter) (out []MessageID, more bool) {
	batch := s.Slice(lo, hi)
	if match == nil {
		return batch, true
	}
	verdicts := match(batch)
	out = make([]MessageID, 0, len(batch))
	for i, ok := range verdicts {
		if ok {
			out = append(out, batch[i])
		}
	}
	return out, verdicts != nil
}

// AllIDs returns every matching id of the narrow, ascending.
func (n *NarrowResult) AllIDs(match BatchFilter) []MessageID {
	s := n.wholeSet()
	return firstMatchesAbove(s, 0, s.Len(), match)
}

// BodyRefs returns the current versions of messages' texts. Deleted messages get the zero BodyRef.
func (r *Realm) BodyRefs(ids []MessageID) []BodyRef {
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

// EachText calls fn with the key of every text that a message or its edit history has, in the order of messages, until
// fn returns false. It serves checks of a stopped server.
func (r *Realm) EachText(fn func(BodyRef) bool) {
	for id := MessageID(1); id <= r.LastMessageID(); id++ {
		m := r.message(id)
		if m == nil {
			continue
		}
		ref := BodyRef{Message: id}
		if e := r.extra(id, m); e != nil {
			ref.Version = e.Version
			for _, x := range e.History {
				if x.Content && !fn(BodyRef{Message: id, Version: x.Version}) {
					return
				}
			}
		}
		if !fn(ref) {
			return
		}
	}
}

// VisibleMessage is a message as one reader sees it.
type VisibleMessage struct {
	MessageInfo
	Flags        Flags
	SenderHidden bool // the reader is not allowed to see the sender
}

// Values of message_edit_history_visibility_policy (protocol).
const (
	historyAll   = "all"
	historyMoves = "moves"
)

// VisibleMessages copies messages out of the realm. It leaves out messages that are deleted or that the caller may
// not read.
func (v View) VisibleMessages(ids []MessageID) []VisibleMessage {
	p := readerAccess{View: v, reader: v.Me()}
	limited := p.reader != nil && v.GuestsLimited()
	out := make([]VisibleMessage, 0, len(ids))
	for _, id := range ids {
		m := v.message(id)
		if m == nil || !p.canRead(id, m) {
			continue
		}
		s := VisibleMessage{MessageInfo: v.messageInfo(id, m), Flags: v.FlagsOf(id)}
		s.SenderHidden = limited && !v.maySeeUser(p.reader, v.users.must(UserID(m.sender)))
		s.History = v.visibleHistory(s.History)
		if v.IsVisitor() { // a visitor reads no direct messages
			s.Sender = v.UserInfo(s.Sender.ID)
		}
		out = append(out, s)
	}
	return out
}

// visibleHistory returns the part of a message's edit history that the organization shows: all of it, only moves, or
// nothing.
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

// VisibleMessage returns one message. Hidden and unknown messages get the same refusal. Logged-out visitors may read
// web-public channels if spectators are allowed.
func (v View) VisibleMessage(id MessageID) (VisibleMessage, error) {
	visitor := v.IsVisitor()
	if visitor && !v.SpectatorsAllowed() {
		return VisibleMessage{}, errNotLoggedIn()
	}
	if s := v.VisibleMessages([]MessageID{id}); len(s) == 1 {
		return s[0], nil
	}
	if visitor { // whether the message exists or not
		return VisibleMessage{}, errNotLoggedIn()
	}
	return VisibleMessage{}, errInvalidMessage()
}

// ReadReceipts returns the users that read a message and share this, ascending. It leaves out the sender, users that
// muted the caller, and users the caller muted.
func (v View) ReadReceipts(id MessageID) ([]UserID, error) {
	if v.Me() == nil {
		return nil, errNotLoggedIn()
	}
	if _, err := v.ReadableMessage(id); err != nil {
		return nil, err
	}
	if !v.OrgBool("enable_read_receipts") {
		return nil, BadRequest("Read receipts are disabled in this organization.")
	}
	m := v.message(id)
	out := []UserID{}
	for u, rd := range v.marks.all() {
		if !v.hasRead(rd, int64(id)) || u == UserID(m.sender) || !v.hasRow(u, id, m) {
			continue
		}
		p := v.users.find(u)
		if p == nil || !p.Active || !p.BoolSetting("send_read_receipts") ||
			v.hasMuted(v.User, u) || v.hasMuted(u, v.User) {
			continue
		}
		out = append(out, u)
	}
	slices.Sort(out)
	return out, nil
}
