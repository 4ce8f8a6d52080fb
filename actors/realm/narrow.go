package realm

import (
	"slices"
	"strconv"
	"strings"
)

// Term is one condition of a narrow.
type Term struct {
	Operator string // under its present name
	Sent     string // the operator as it was sent
	Operand  Operand
	Negated  bool
}

// Operand is what a term compares with: a text, or an id or a list of ids where the operator takes them.
type Operand struct {
	Text   string
	ID     int64
	IDs    []int64
	IsID   bool
	IsList bool
}

// String is the operand as error messages show it.
func (o Operand) String() string {
	switch {
	case o.IsID:
		return strconv.FormatInt(o.ID, 10)
	case o.IsList:
		parts := make([]string, len(o.IDs))
		for i, id := range o.IDs {
			parts[i] = strconv.FormatInt(id, 10)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return o.Text
}

// Hits is what the search index proposes for the words and phrases a narrow searches for. A message matches when each is
// in its text or in the name of its topic.
type Hits []Hit

// Hit is the places of one word, or where one phrase may be.
type Hit struct {
	Messages Set
	Topics   []TopicID // whose name has it
	Any      bool      // the index cannot narrow this phrase down: every text may have it
	Phrase   string    // not "": which of Messages have it is for the texts to say
}

// Doubt is a phrase that the texts must be compared with, except in messages whose topic has it.
type Doubt struct {
	Phrase string
	Sure   Set
}

// TopicName is one spelling of a topic's name.
type TopicName struct {
	ID   TopicID
	Name string
}

// TopicsAfter is up to max topics made after one, in order.
func (r *Realm) TopicsAfter(after TopicID, max int) []TopicName {
	var out []TopicName
	for id := after + 1; id < r.Org().NextTopic && len(out) < max; id++ {
		if t := r.topics.find(id); t != nil {
			out = append(out, TopicName{id, t.Name})
		}
	}
	return out
}

// badNarrow refuses a term; badCombination refuses terms that do not go together.
func badNarrow(desc string) *Refusal {
	return Refuse(Invalid, "BAD_NARROW", "Invalid narrow operator: "+desc).With("desc", desc)
}

func badCombination(desc string) *Refusal {
	return Refuse(Invalid, "BAD_NARROW", "Invalid narrow operator combination: "+desc).With("desc", desc)
}

func errNotLoggedIn() *Refusal {
	return Refuse(Unauthenticated, "UNAUTHORIZED", "Not logged in: API authentication or user session required")
}

// Narrowed is the messages a narrow lets a caller see. The set may be the realm's own: Frozen copies it.
type Narrowed struct {
	IDs    Set
	Doubts []Doubt
	shared bool
	terms  []Term
}

// Frozen is the result for use after the view.
func (n Narrowed) Frozen() Narrowed {
	if n.shared {
		n.IDs, n.shared = n.IDs.Clone(), false
	}
	return n
}

// narrowing is a narrow on its way to a set: the conditions as sets that are to be intersected and subtracted.
type narrowing struct {
	View
	me       *User
	in       []Set
	out      []Set
	history  bool // all messages of the named channels are candidates, not only the caller's rows
	personal bool // a term about the caller's rows: never more than these
	channel  bool // a term that only channel messages meet
	direct   bool // a term that only direct messages meet
	hits     Hits
	mentions []mention
	doubts   []Doubt
	within   *Set // only of these, each of which the caller may read or not by itself
}

// mention is a condition that no index answers alone: who is named, not merely reached through a group.
type mention struct {
	user    UserID
	negated bool
}

// Narrow finds the messages of a narrow that the caller may read. hits answers the search terms; it is nil if there are
// none.
func (v View) Narrow(terms []Term, hits Hits) (Narrowed, error) { return v.narrow(terms, hits, nil) }

// Among is which of some messages the caller may read and a narrow lets through.
func (v View) Among(terms []Term, hits Hits, ids Set) (Narrowed, error) {
	return v.narrow(terms, hits, &ids)
}

// Received is which of some messages the caller has a row of and a narrow lets through.
func (v View) Received(terms []Term, hits Hits, ids Set) (Narrowed, error) {
	ids = v.rowsWithin(v.User, &ids)
	return v.narrow(terms, hits, &ids)
}

func (v View) narrow(terms []Term, hits Hits, within *Set) (Narrowed, error) {
	n := &narrowing{View: v, me: v.Me(), hits: hits, within: within}
	if n.me == nil {
		if err := n.visitorTerms(terms); err != nil {
			return Narrowed{}, err
		}
	}
	terms, err := n.conversation(terms)
	if err != nil {
		return Narrowed{}, err
	}
	searched := false
	for i := range terms {
		t := &terms[i]
		if t.Operator == "search" {
			if hits == nil {
				return Narrowed{}, badNarrow("unknown operator " + t.Sent)
			}
			if !searched {
				n.search()
			}
			searched = true
			continue
		}
		if err := n.term(t); err != nil {
			return Narrowed{}, err
		}
		if n.channel && n.direct {
			return Narrowed{}, badCombination("No message can be both a channel message and direct message")
		}
	}
	out := n.evaluate()
	out.terms, out.Doubts = terms, n.doubts
	return out, nil
}

// visitorTerms refuses what anonymous visitors may not ask: they have no rows, and only web-public channels are theirs.
func (n *narrowing) visitorTerms(terms []Term) error {
	if !n.SpectatorsAllowed() {
		return errNotLoggedIn()
	}
	public := false
	for _, t := range terms {
		switch t.Operator {
		case "channel", "topic", "sender", "has", "search", "near", "id", "with":
		case "channels":
			public = public || !t.Negated && t.Operand.Text == "web-public"
		case "is":
			if t.Operand.Text != "resolved" {
				return errNotLoggedIn()
			}
		default:
			return errNotLoggedIn()
		}
	}
	if !public {
		return errNotLoggedIn()
	}
	return nil
}

// conversation replaces a with term, and the terms that name a conversation, by the conversation the message is in now.
func (n *narrowing) conversation(terms []Term) ([]Term, error) {
	with := -1
	for i, t := range terms {
		if t.Operator == "with" {
			if with >= 0 {
				return nil, badCombination("Duplicate 'with' operators.")
			}
			with = i
		}
	}
	if with < 0 {
		return terms, nil
	}
	id, ok := terms[with].Operand.number()
	if !ok || terms[with].Negated {
		return nil, badNarrow("Invalid 'with' operator")
	}
	rest := slices.Delete(slices.Clone(terms), with, with+1)
	m := n.message(MessageID(id))
	if m == nil || !n.mayRead(n.me, MessageID(id), m) {
		var channel, topic, dm bool
		for _, t := range rest {
			channel = channel || t.Operator == "channel" && !t.Negated
			topic = topic || t.Operator == "topic" && !t.Negated
			dm = dm || t.Operator == "dm" && !t.Negated
		}
		if dm && !channel && !topic || channel && topic && !dm {
			return rest, nil
		}
		return nil, badNarrow("Invalid 'with' operator")
	}
	rest = slices.DeleteFunc(rest, func(t Term) bool {
		return !t.Negated && (t.Operator == "channel" || t.Operator == "topic" || t.Operator == "dm")
	})
	if m.channel == 0 {
		dm := Term{Operator: "dm", Sent: "dm", Operand: Operand{IsList: true}}
		for _, u := range n.talks.must(m.talk).Members {
			dm.Operand.IDs = append(dm.Operand.IDs, int64(u))
		}
		return append(rest, dm), nil
	}
	return append(rest,
		Term{Operator: "channel", Sent: "channel", Operand: Operand{IsID: true, ID: int64(m.channel)}},
		Term{Operator: "topic", Sent: "topic", Operand: Operand{Text: n.topics.must(m.topic).Name}}), nil
}

// number reads an id that may be sent as a number or as text.
func (o Operand) number() (int64, bool) {
	id := o.ID
	if !o.IsID {
		var err error
		if id, err = strconv.ParseInt(strings.TrimSpace(o.Text), 10, 64); err != nil {
			return 0, false
		}
	}
	return id, id >= 0 && id <= MaxMessageID
}

// add notes a condition.
func (n *narrowing) add(s Set, negated bool) {
	if negated {
		n.out = append(n.out, s)
	} else {
		n.in = append(n.in, s)
	}
}

// only notes that one kind of message alone can meet a term.
func (n *narrowing) only(direct, negated bool) {
	if !negated {
		n.direct, n.channel = n.direct || direct, n.channel || !direct
	}
}

func (n *narrowing) term(t *Term) error {
	switch t.Operator {
	case "channel":
		return n.channelTerm(t)
	case "channels":
		return n.channelsTerm(t)
	case "topic":
		n.only(false, t.Negated)
		n.add(n.topicNamed(t.Operand.Text), t.Negated)
	case "sender":
		u := n.person(t.Operand)
		if u == nil {
			return badNarrow("unknown user " + t.Operand.String())
		}
		n.add(n.sentBy(u.ID), t.Negated)
	case "mentions":
		u := n.person(t.Operand)
		if u == nil {
			return badNarrow("unknown user " + t.Operand.String())
		}
		n.mentions = append(n.mentions, mention{u.ID, t.Negated})
	case "dm":
		n.only(true, t.Negated)
		return n.dmTerm(t)
	case "dm-including", "group-pm-with":
		n.only(true, t.Negated)
		u := n.person(t.Operand)
		if u == nil {
			return badNarrow("unknown user " + t.Operand.String())
		}
		n.add(n.talksWith(u.ID, t.Operator == "group-pm-with"), t.Negated)
	case "is":
		return n.isTerm(t)
	case "in":
		switch t.Operand.Text {
		case "all":
		case "home":
			n.add(n.muted(), !t.Negated)
		default:
			return badNarrow("unknown 'in' operand " + t.Operand.String())
		}
	case "has":
		switch t.Operand.Text {
		case "attachment":
			n.add(n.by.attachments, t.Negated)
		case "image":
			n.add(n.by.images, t.Negated)
		case "link":
			n.add(n.by.links, t.Negated)
		case "reaction":
			n.add(n.by.reacted, t.Negated)
		default:
			return badNarrow("unknown 'has' operand " + t.Operand.String())
		}
	case "id":
		id, ok := t.Operand.number()
		if !ok {
			return badNarrow("Invalid message ID")
		}
		n.add(SetOf(id), t.Negated)
	case "near":
	default:
		return badNarrow("unknown operator " + t.Sent)
	}
	return nil
}

func (n *narrowing) channelTerm(t *Term) error {
	var c *Channel
	if t.Operand.IsID {
		c = n.chans.find(ChannelID(t.Operand.ID))
	} else {
		c = n.FindChannelByName(t.Operand.Text)
	}
	if c == nil || n.me == nil && !c.WebPublic {
		return badNarrow("unknown channel " + t.Operand.String())
	}
	n.only(false, t.Negated)
	n.add(n.by.channel[c.ID].ids, t.Negated)
	if !t.Negated {
		n.history = (c.History || c.WebPublic) && n.hasContent(n.me, c) // of several, the last decides (protocol)
	}
	return nil
}

func (n *narrowing) channelsTerm(t *Term) error {
	var in func(*Channel) bool
	switch t.Operand.Text {
	case "public":
		in = func(c *Channel) bool { return !c.Private }
	case "web-public":
		in = func(c *Channel) bool { return c.WebPublic && !c.Archived }
	case "archived":
		in = func(c *Channel) bool { return c.Archived }
	default:
		return badNarrow("unknown channels operand " + t.Operand.String())
	}
	n.only(false, t.Negated)
	n.add(n.inChannels(in), t.Negated)
	if !t.Negated && t.Operand.Text == "public" {
		n.history = n.me != nil && !n.me.IsGuest()
	}
	return nil
}

// inChannels is the messages of the channels for which in holds.
func (n *narrowing) inChannels(in func(*Channel) bool) Set {
	var sets []Set
	for id, c := range n.chans.rows { // a union does not depend on the order
		if in(c) {
			sets = append(sets, n.by.channel[id].ids)
		}
	}
	return Either(sets...)
}

// topicNamed is the messages of every topic of that name, whatever the channel.
func (n *narrowing) topicNamed(name string) Set {
	if name = fold(strings.TrimSpace(name)); name == EmptyTopicName {
		name = ""
	}
	var sets []Set
	for _, ix := range n.by.channel {
		if t := ix.topics[name]; t != nil {
			sets = append(sets, t.ids)
		}
	}
	return Either(sets...)
}

func (n *narrowing) sentBy(u UserID) Set {
	if s := n.by.sender[u]; s != nil {
		return *s
	}
	return Set{}
}

// person is the user an operand names, by id or by the address the API shows for him.
func (v View) person(o Operand) *User {
	if o.IsID {
		return v.Find(UserID(o.ID))
	}
	if u := v.FindByEmail(o.Text); u != nil && (v.Realm.Person(u.ID).EmailPublic || v.SeesEmail(v.Me(), u)) {
		return u
	}
	if id, ok := v.dummyAddress(strings.TrimSpace(o.Text)); ok {
		return v.Find(id)
	}
	return nil
}

func (n *narrowing) dmTerm(t *Term) error {
	members := []UserID{n.me.ID}
	list := t.Operand.IDs
	if !t.Operand.IsList {
		for _, e := range strings.Split(t.Operand.Text, ",") {
			if e = strings.TrimSpace(e); e == "" {
				continue
			}
			u := n.person(Operand{Text: e})
			if u == nil {
				return badNarrow("unknown user in " + t.Operand.String())
			}
			list = append(list, int64(u.ID))
		}
	}
	for _, id := range list {
		if n.Find(UserID(id)) == nil {
			return badNarrow("unknown user in " + t.Operand.String())
		}
		members = append(members, UserID(id))
	}
	var ids Set
	slices.Sort(members)
	if talk := n.FindTalk(slices.Compact(members)); len(list) > 0 && talk != 0 {
		ids = n.by.talk[talk].ids
	}
	n.add(ids, t.Negated)
	return nil
}

// talksWith is the caller's direct messages in which a user takes part; groups leaves one-to-one conversations out.
func (n *narrowing) talksWith(u UserID, groups bool) Set {
	var sets []Set
	for _, id := range n.by.talksOf[n.me.ID] {
		members := n.talks.must(id).Members
		if slices.Contains(members, u) && (!groups || len(members) > 2) {
			sets = append(sets, n.by.talk[id].ids)
		}
	}
	return Either(sets...)
}

const resolvedPrefix = "✔ "

func (n *narrowing) isTerm(t *Term) error {
	what := t.Operand.Text
	if what == "resolved" {
		n.only(false, t.Negated)
		var sets []Set
		for _, ix := range n.by.channel {
			for name, topic := range ix.topics {
				if strings.HasPrefix(name, resolvedPrefix) {
					sets = append(sets, topic.ids)
				}
			}
		}
		n.add(Either(sets...), t.Negated)
		return nil
	}
	n.personal = true
	rd := n.reading.find(n.me.ID)
	if rd == nil {
		rd = &Reading{}
	}
	switch what {
	case "dm", "private":
		n.direct, n.channel = n.direct || !t.Negated, n.channel || t.Negated
		n.add(n.talksWith(n.me.ID, false), t.Negated)
	case "starred":
		n.add(rd.Starred, t.Negated)
	case "unread":
		n.add(rd.Read, !t.Negated)
	case "alerted":
		n.add(n.marked(n.by.alerted), t.Negated)
	case "mentioned":
		n.add(Either(n.marked(n.by.mentioned), n.by.wildcard), t.Negated)
	case "followed":
		n.only(false, t.Negated)
		n.add(n.topicsWith(func(p int) bool { return p == TopicFollowed }), t.Negated)
	case "muted":
		n.add(n.muted(), t.Negated)
	default:
		return badNarrow("unknown 'is' operand " + t.Operand.String())
	}
	return nil
}

func (n *narrowing) marked(index map[UserID]*Set) Set {
	if s := index[n.me.ID]; s != nil {
		return *s
	}
	return Set{}
}

// A user's preferences for a topic; the numbers are the protocol's.
const (
	TopicMuted    = 1
	TopicUnmuted  = 2
	TopicFollowed = 3
)

// topicsWith is the messages of the caller's topics whose policy is wanted.
func (v View) topicsWith(wanted func(policy int) bool) Set {
	var sets []Set
	if l := v.prefs.find(v.User); l != nil {
		for _, p := range l.List {
			if ix := v.by.channel[p.Channel]; ix != nil && wanted(p.Policy) {
				if t := ix.topics[fold(p.Topic)]; t != nil {
					sets = append(sets, t.ids)
				}
			}
		}
	}
	return Either(sets...)
}

// muted is what the caller does not want to see at home: muted topics, and muted channels except for topics unmuted or
// followed in them.
func (v View) muted() Set {
	s := v.inMutedChannels()
	s.Union(v.topicsWith(func(p int) bool { return p == TopicMuted }))
	return s
}

func (v View) inMutedChannels() Set {
	var sets []Set
	if l := v.subs.find(v.User); l != nil {
		for _, s := range l.List {
			if s.Active && s.Muted {
				sets = append(sets, v.by.channel[s.Channel].ids)
			}
		}
	}
	s := Either(sets...)
	s.Subtract(v.topicsWith(func(p int) bool { return p == TopicUnmuted || p == TopicFollowed }))
	return s
}

// search adds the messages in which every word occurs, and every phrase may.
func (n *narrowing) search() {
	for _, h := range n.hits {
		var sets []Set
		for _, id := range h.Topics {
			if t := n.Realm.topics.find(id); t != nil {
				if ix := n.by.channel[t.Channel].topics[fold(t.Name)]; ix != nil {
					sets = append(sets, ix.ids)
				}
			}
		}
		if h.Phrase != "" {
			named := Either(sets...)
			n.doubts = append(n.doubts, Doubt{h.Phrase, named})
			sets = []Set{named}
		}
		if !h.Any {
			n.in = append(n.in, Either(append(sets, h.Messages)...))
		}
	}
}

// evaluate intersects everything. What is not history is cut down to the caller's rows.
func (n *narrowing) evaluate() Narrowed {
	slices.SortStableFunc(n.in, func(a, b Set) int { return a.Len() - b.Len() })
	var out Narrowed
	narrow := func(s Set) { out.IDs, out.shared = s, false }
	first := true
	if n.within != nil {
		out.IDs, first = n.readable(*n.within), false
	}
	for _, s := range n.in {
		if first {
			out.IDs, out.shared, first = s, true, false
		} else {
			narrow(Both(out.IDs, s))
		}
	}
	switch {
	case n.me == nil:
		public := n.inChannels(func(c *Channel) bool { return c.WebPublic && !c.Archived })
		narrow(Both(out.IDs, public))
	case first:
		narrow(n.readableRows(n.me, nil))
	case n.personal || !n.history && n.within == nil:
		narrow(n.readableRows(n.me, &out.IDs))
	}
	for _, s := range n.out {
		if !s.Empty() {
			narrow(Without(out.IDs, s))
		}
	}
	for _, m := range n.mentions {
		narrow(n.naming(out.IDs, m))
	}
	return out
}

// readable is what of a few messages the caller may read.
func (v View) readable(ids Set) Set {
	var out Set
	me, access := v.Me(), map[uint32]bool{}
	ids.Each(func(id int64) bool {
		if m := v.message(MessageID(id)); m != nil && v.mayReadCached(me, MessageID(id), m, access) {
			out.Add(id)
		}
		return true
	})
	return out
}

// naming filters by who is mentioned by name: an index narrows it down, the message itself decides.
func (n *narrowing) naming(ids Set, m mention) Set {
	var named Set
	if s := n.by.mentioned[m.user]; s != nil {
		Both(ids, *s).Each(func(id int64) bool {
			if e := n.extras.find(MessageID(id)); e != nil && slices.Contains(e.Mentioned, m.user) {
				named.Add(id)
			}
			return true
		})
	}
	if m.negated {
		return Without(ids, named)
	}
	return named
}

// readableRows is what of a set (nil: everything) a user has a row of and may still read: whoever lost access to a
// channel keeps the rows but does not see them.
func (r *Realm) readableRows(u *User, within *Set) Set {
	rows := r.rowsWithin(u.ID, within)
	for id, c := range r.chans.rows { // the result does not depend on the order
		if ids := r.by.channel[id].ids; !ids.Empty() && !r.hasContent(u, c) {
			rows.Subtract(ids)
		}
	}
	return rows
}
