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
	Text   string // of IDs: how they are shown, where they were written otherwise
	ID     int64
	IDs    []int64
	IsID   bool
	IsList bool
}

// String is the operand as error messages show it.
func (o Operand) String() string {
	switch {
	case o.Text != "":
		return o.Text
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

// condition is one term: as a set that is there already, or as one that would have to be put together; test tells it of
// one message.
type condition struct {
	set     *Set
	whole   func() Set
	test    func(MessageID, *message) bool
	negated bool
}

// narrowing is a narrow on its way to a result.
type narrowing struct {
	View
	me       *User
	terms    []condition
	history  bool     // all messages of the named channels are candidates, not only the caller's rows
	personal bool     // a term about the caller's rows: never more than these
	channel  bool     // a term that only channel messages meet
	direct   bool     // a term that only direct messages meet
	named    *Channel // the one channel of the first channel term, so that a topic is looked for there alone
	hits     Hits
	doubts   []Doubt
	within   *Set // only of these, each of which the caller may read or not by itself
	places   places
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
	n.places = places{View: v, me: n.me}
	if n.me == nil {
		if err := n.visitorTerms(terms); err != nil {
			return Narrowed{}, err
		}
	}
	terms, err := n.conversation(terms)
	if err != nil {
		return Narrowed{}, err
	}
	for i := range terms {
		if t := &terms[i]; t.Operator == "channel" && !t.Negated && n.named == nil {
			n.named = n.channelOf(t.Operand)
		}
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
	return n.result(terms), nil
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

// add notes a condition whose set is there already.
func (n *narrowing) add(s Set, negated bool) {
	n.terms = append(n.terms, condition{set: &s, test: func(id MessageID, _ *message) bool { return s.Has(int64(id)) }, negated: negated})
}

// gather notes a condition whose set would have to be put together.
func (n *narrowing) gather(whole func() Set, test func(MessageID, *message) bool, negated bool) {
	n.terms = append(n.terms, condition{whole: whole, test: test, negated: negated})
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
		n.topicTerm(t)
	case "sender":
		u := n.person(t.Operand)
		if u == nil {
			return badNarrow("unknown user " + t.Operand.String())
		}
		n.add(setIn(n.by.sender, u.ID), t.Negated)
	case "mentions":
		u := n.person(t.Operand)
		if u == nil {
			return badNarrow("unknown user " + t.Operand.String())
		}
		n.mentionsTerm(u.ID, t.Negated)
	case "dm":
		n.only(true, t.Negated)
		return n.dmTerm(t)
	case "dm-including", "group-pm-with":
		n.only(true, t.Negated)
		u := n.person(t.Operand)
		if u == nil {
			return badNarrow("unknown user " + t.Operand.String())
		}
		n.talksTerm(u.ID, t.Operator == "group-pm-with", t.Negated)
	case "is":
		return n.isTerm(t)
	case "in":
		switch t.Operand.Text {
		case "all":
		case "home":
			n.mutedTerm(!t.Negated)
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

func (n *narrowing) channelOf(o Operand) *Channel {
	if o.IsID {
		return n.chans.find(ChannelID(o.ID))
	}
	return n.FindChannelByName(o.Text)
}

func (n *narrowing) channelTerm(t *Term) error {
	c := n.channelOf(t.Operand)
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
		in = func(c *Channel) bool { // without a row, what is protected cannot be read
			return !c.Private && (n.personal || !n.history || c.History || c.WebPublic)
		}
	case "web-public":
		in = func(c *Channel) bool { return c.WebPublic && !c.Archived }
	case "archived":
		in = func(c *Channel) bool { return c.Archived }
	default:
		return badNarrow("unknown channels operand " + t.Operand.String())
	}
	n.only(false, t.Negated)
	if t.Operand.Text == "archived" && !t.Negated { // seldom many, and what public means later terms decide, too
		n.add(n.inChannels(in), false)
	} else {
		n.gather(func() Set { return n.inChannels(in) }, func(_ MessageID, m *message) bool {
			return m.channel != 0 && in(n.chans.must(ChannelID(m.channel)))
		}, t.Negated)
	}
	if !t.Negated && t.Operand.Text == "public" && n.me != nil && !n.me.IsGuest() {
		n.history = true // to a guest it says nothing: a channel named beside it decides
	}
	return nil
}

// inChannels is the messages of the channels for which in holds.
func (n *narrowing) inChannels(in func(*Channel) bool) Set {
	var sets []Set
	for id, c := range n.chans.all() { // a union does not depend on the order
		if in(c) {
			sets = append(sets, n.by.channel[id].ids)
		}
	}
	return Either(sets...)
}

// topicTerm is every topic of that name, whatever the channel.
func (n *narrowing) topicTerm(t *Term) {
	name := fold(strings.TrimSpace(t.Operand.Text))
	if name == EmptyTopicName {
		name = ""
	}
	if n.named != nil && !t.Negated {
		var ids Set
		if topic := n.by.channel[n.named.ID].topics[name]; topic != nil {
			ids = topic.ids
		}
		n.add(ids, false)
		return
	}
	var found []*topicIndex
	for _, topic := range n.by.called[name] {
		if t.Negated || n.open(ChannelID(topic.channel)) {
			found = append(found, topic)
		}
	}
	n.inTopics(found, func(folded string) bool { return folded == name }, t.Negated)
}

// open is whether the caller may read any message of a channel: what he may not need not be looked at.
func (n *narrowing) open(c ChannelID) bool {
	if !n.places.ready {
		n.places.prepare()
	}
	return n.System || n.places.at(uint32(c)).content
}

// inTopics is the messages of some topics: those whose folded name is wanted. Few messages are put together at once:
// walking past all the others would cost more.
func (n *narrowing) inTopics(topics []*topicIndex, wanted func(folded string) bool, negated bool) {
	size := 0
	for _, topic := range topics {
		size += topic.ids.Len()
	}
	whole := func() Set {
		sets := make([]Set, len(topics))
		for i, topic := range topics {
			sets[i] = topic.ids
		}
		return Either(sets...)
	}
	if size <= walkable {
		n.add(whole(), negated)
		return
	}
	known := map[TopicID]bool{}
	n.gather(whole, func(_ MessageID, m *message) bool {
		if m.channel == 0 {
			return false
		}
		is, ok := known[m.topic]
		if !ok {
			is = wanted(fold(n.Realm.topics.must(m.topic).Name))
			known[m.topic] = is
		}
		return is
	}, negated)
}

// person is the user an operand names, by id or by the address the API shows for him.
func (v View) person(o Operand) *User {
	if o.IsID {
		return v.Find(UserID(o.ID))
	}
	return v.FindAddress(o.Text)
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

// talksTerm is the caller's direct messages in which a user takes part; groups leaves one-to-one conversations out.
func (n *narrowing) talksTerm(u UserID, groups, negated bool) {
	ids := setIn(n.by.direct, n.me.ID)
	if u != n.me.ID {
		ids = Both(ids, setIn(n.by.direct, u))
	}
	if !groups {
		n.add(ids, negated)
		return
	}
	group := func(id MessageID, m *message) bool {
		return m.channel == 0 && ids.Has(int64(id)) && len(n.talks.must(m.talk).Members) > 2
	}
	n.gather(func() Set { return n.passing(ids, []func(MessageID, *message) bool{group}) }, group, negated)
	if !negated {
		n.add(ids, false)
	}
}

const resolvedPrefix = "✔ "

func (n *narrowing) isTerm(t *Term) error {
	what := t.Operand.Text
	if what == "resolved" {
		n.only(false, t.Negated)
		n.inTopics(n.resolvedTopics(t.Negated), func(name string) bool { return strings.HasPrefix(name, resolvedPrefix) }, t.Negated)
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
		n.talksTerm(n.me.ID, false, t.Negated)
	case "starred":
		n.add(rd.Starred, t.Negated)
	case "unread":
		n.add(n.readOf(rd), !t.Negated)
	case "alerted":
		n.add(setIn(n.by.alerted, n.me.ID), t.Negated)
	case "mentioned":
		n.add(Either(n.by.mentioning(n.me.ID), Without(n.by.wildcard, rd.Rows)), t.Negated)
	case "followed":
		n.only(false, t.Negated)
		n.add(n.topicsWith(func(p int) bool { return p == TopicFollowed }), t.Negated)
	case "muted":
		n.mutedTerm(t.Negated)
	default:
		return badNarrow("unknown 'is' operand " + t.Operand.String())
	}
	return nil
}

// resolvedTopics is every topic that is marked as resolved and has messages; perhaps only of channels the caller may read.
func (n *narrowing) resolvedTopics(all bool) (found []*topicIndex) {
	for _, id := range n.by.resolved {
		t := n.Realm.topics.must(id)
		if ix := n.by.channel[t.Channel].topics[fold(t.Name)]; ix != nil && (all || n.open(t.Channel)) {
			found = append(found, ix)
		}
	}
	return found
}

// mutedTerm is what the caller does not want to see at home: muted topics, and muted channels except for topics unmuted
// or followed in them.
func (n *narrowing) mutedTerm(negated bool) {
	muted := n.mutesOf(n.User)
	whole := func() Set {
		s := n.inMutedChannels()
		s.Union(n.topicsWith(func(p int) bool { return p == TopicMuted }))
		return s
	}
	if sources := len(muted.policy) + muted.channels.Len(); sources == 0 || sources <= fewSources && !negated {
		n.add(whole(), negated)
		return
	}
	n.gather(whole, func(_ MessageID, m *message) bool {
		return m.channel != 0 && muted.covers(ChannelID(m.channel), n.Realm.topics.must(m.topic).Name)
	}, negated)
}

// mentionsTerm is the messages that name a user: an index narrows it down, the message itself decides.
func (n *narrowing) mentionsTerm(u UserID, negated bool) {
	names := func(id MessageID, m *message) bool {
		e := n.extra(id, m)
		return e != nil && slices.Contains(e.Mentioned, u)
	}
	n.gather(func() Set {
		var named Set
		n.by.mentioning(u).Each(func(id int64) bool {
			if names(MessageID(id), n.message(MessageID(id))) {
				named.Add(id)
			}
			return true
		})
		return named
	}, names, negated)
	if !negated {
		n.add(n.by.mentioning(u), false)
	}
}
