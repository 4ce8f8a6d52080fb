package realm

import (
	"slices"
	"strconv"
	"strings"

	"parley/actors/realm/ids"
)

// Term is one condition of a narrow.
type Term struct {
	Operator     string // under its present name
	SentOperator string // the operator as it was sent
	Operand      Operand
	Negated      bool
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
	set      *ids.Set
	buildSet func() ids.Set
	test     func(MessageID, *message) bool
	negated  bool
}

// narrowQuery is a narrow on its way to a result.
type narrowQuery struct {
	View
	me             *User
	conditions     []condition
	includeHistory bool     // all messages of the named channels are candidates, not only the caller's rows
	rowsOnly       bool     // a term about the caller's rows: never more than these
	channelOnly    bool     // a term that only channel messages meet
	directOnly     bool     // a term that only direct messages meet
	namedChannel   *Channel // the one channel of the first channel term, so that a topic is looked for there alone
	hits           SearchHits
	unverified     []TextCondition
	within         *ids.Set // only of these, each of which the caller may read or not by itself
	access         readerAccess
}

// Narrow finds the messages of a narrow that the caller may read. hits answers the search terms; it is nil if there are
// none.
func (v View) Narrow(terms []Term, hits SearchHits) (NarrowResult, error) {
	return v.narrow(terms, hits, nil)
}

// NarrowAmong is which of some messages the caller may read and a narrow lets through.
func (v View) NarrowAmong(terms []Term, hits SearchHits, ids ids.Set) (NarrowResult, error) {
	return v.narrow(terms, hits, &ids)
}

// NarrowReceived is which of some messages the caller has a row of and a narrow lets through.
func (v View) NarrowReceived(terms []Term, hits SearchHits, ids ids.Set) (NarrowResult, error) {
	ids = v.rowsWithin(v.User, &ids)
	return v.narrow(terms, hits, &ids)
}

func (v View) narrow(terms []Term, hits SearchHits, within *ids.Set) (NarrowResult, error) {
	n := &narrowQuery{View: v, me: v.Me(), hits: hits, within: within}
	n.access = readerAccess{View: v, reader: n.me}
	if n.me == nil {
		if err := n.checkVisitorTerms(terms); err != nil {
			return NarrowResult{}, err
		}
	}
	terms, err := n.expandWith(terms)
	if err != nil {
		return NarrowResult{}, err
	}
	for i := range terms {
		if t := &terms[i]; t.Operator == "channel" && !t.Negated && n.namedChannel == nil {
			n.namedChannel = n.operandChannel(t.Operand)
		}
	}
	searched := false
	for i := range terms {
		t := &terms[i]
		if t.Operator == "search" {
			if hits == nil {
				return NarrowResult{}, badNarrow("unknown operator " + t.SentOperator)
			}
			if !searched {
				n.addSearch()
			}
			searched = true
			continue
		}
		if err := n.addTerm(t); err != nil {
			return NarrowResult{}, err
		}
		if n.channelOnly && n.directOnly {
			return NarrowResult{}, badCombination("No message can be both a channel message and direct message")
		}
	}
	return n.result(terms), nil
}

// checkVisitorTerms refuses what anonymous visitors may not ask: they have no rows, and only web-public channels are theirs.
func (n *narrowQuery) checkVisitorTerms(terms []Term) error {
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

// expandWith replaces a with term, and the terms that name a expandWith, by the expandWith the message is in now.
func (n *narrowQuery) expandWith(terms []Term) ([]Term, error) {
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
	id, ok := terms[with].Operand.messageID()
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
		dm := Term{Operator: "dm", SentOperator: "dm", Operand: Operand{IsList: true}}
		for _, u := range n.conversations.must(m.conversation).Members {
			dm.Operand.IDs = append(dm.Operand.IDs, int64(u))
		}
		return append(rest, dm), nil
	}
	return append(rest,
		Term{Operator: "channel", SentOperator: "channel", Operand: Operand{IsID: true, ID: int64(m.channel)}},
		Term{Operator: "topic", SentOperator: "topic", Operand: Operand{Text: n.topics.must(m.topic).Name}}), nil
}

// messageID reads an id that may be sent as a messageID or as text.
func (o Operand) messageID() (int64, bool) {
	id := o.ID
	if !o.IsID {
		var err error
		if id, err = strconv.ParseInt(strings.TrimSpace(o.Text), 10, 64); err != nil {
			return 0, false
		}
	}
	return id, id >= 0 && id <= MaxMessageID
}

// addSet notes a condition whose set is there already.
func (n *narrowQuery) addSet(s ids.Set, negated bool) {
	n.conditions = append(n.conditions, condition{set: &s, test: func(id MessageID, _ *message) bool { return s.Has(int64(id)) }, negated: negated})
}

// addLazy notes a condition whose set would have to be put together.
func (n *narrowQuery) addLazy(whole func() ids.Set, test func(MessageID, *message) bool, negated bool) {
	n.conditions = append(n.conditions, condition{buildSet: whole, test: test, negated: negated})
}

// restrictKind notes that one kind of message alone can meet a term.
func (n *narrowQuery) restrictKind(direct, negated bool) {
	if !negated {
		n.directOnly, n.channelOnly = n.directOnly || direct, n.channelOnly || !direct
	}
}

func (n *narrowQuery) addTerm(t *Term) error {
	switch t.Operator {
	case "channel":
		return n.addChannelTerm(t)
	case "channels":
		return n.addChannelsTerm(t)
	case "topic":
		n.restrictKind(false, t.Negated)
		n.addTopicTerm(t)
	case "sender":
		u := n.operandUser(t.Operand)
		if u == nil {
			return badNarrow("unknown user " + t.Operand.String())
		}
		n.addSet(findSet(n.index.bySender, u.ID), t.Negated)
	case "mentions":
		u := n.operandUser(t.Operand)
		if u == nil {
			return badNarrow("unknown user " + t.Operand.String())
		}
		n.addMentionsTerm(u.ID, t.Negated)
	case "dm":
		n.restrictKind(true, t.Negated)
		return n.addDMTerm(t)
	case "dm-including", "group-pm-with":
		n.restrictKind(true, t.Negated)
		u := n.operandUser(t.Operand)
		if u == nil {
			return badNarrow("unknown user " + t.Operand.String())
		}
		n.addDMIncludingTerm(u.ID, t.Operator == "group-pm-with", t.Negated)
	case "is":
		return n.addIsTerm(t)
	case "in":
		switch t.Operand.Text {
		case "all":
		case "home":
			n.addMutedTerm(!t.Negated)
		default:
			return badNarrow("unknown 'in' operand " + t.Operand.String())
		}
	case "has":
		switch t.Operand.Text {
		case "attachment":
			n.addSet(n.index.attachments, t.Negated)
		case "image":
			n.addSet(n.index.images, t.Negated)
		case "link":
			n.addSet(n.index.links, t.Negated)
		case "reaction":
			n.addSet(n.index.reacted, t.Negated)
		default:
			return badNarrow("unknown 'has' operand " + t.Operand.String())
		}
	case "id":
		id, ok := t.Operand.messageID()
		if !ok {
			return badNarrow("Invalid message ID")
		}
		n.addSet(ids.SetOf(id), t.Negated)
	case "near":
	default:
		return badNarrow("unknown operator " + t.SentOperator)
	}
	return nil
}

func (n *narrowQuery) operandChannel(o Operand) *Channel {
	if o.IsID {
		return n.channels.find(ChannelID(o.ID))
	}
	return n.FindChannelByName(o.Text)
}

func (n *narrowQuery) addChannelTerm(t *Term) error {
	c := n.operandChannel(t.Operand)
	if c == nil || n.me == nil && !c.WebPublic {
		return badNarrow("unknown channel " + t.Operand.String())
	}
	n.restrictKind(false, t.Negated)
	n.addSet(n.index.channels[c.ID].ids, t.Negated)
	if !t.Negated {
		n.includeHistory = (c.History || c.WebPublic) && n.hasContentAccess(n.me, c) // of several, the last decides (protocol)
	}
	return nil
}

func (n *narrowQuery) addChannelsTerm(t *Term) error {
	var in func(*Channel) bool
	switch t.Operand.Text {
	case "public":
		in = func(c *Channel) bool { // excludeUsers a row, what is protected cannot be read
			return !c.Private && (n.rowsOnly || !n.includeHistory || c.History || c.WebPublic)
		}
	case "web-public":
		in = func(c *Channel) bool { return c.WebPublic && !c.Archived }
	case "archived":
		in = func(c *Channel) bool { return c.Archived }
	default:
		return badNarrow("unknown channels operand " + t.Operand.String())
	}
	n.restrictKind(false, t.Negated)
	if t.Operand.Text == "archived" && !t.Negated { // seldom many, and what public means later terms decide, too
		n.addSet(n.messagesInChannels(in), false)
	} else {
		n.addLazy(func() ids.Set { return n.messagesInChannels(in) }, func(_ MessageID, m *message) bool {
			return m.channel != 0 && in(n.channels.must(ChannelID(m.channel)))
		}, t.Negated)
	}
	if !t.Negated && t.Operand.Text == "public" && n.me != nil && !n.me.IsGuest() {
		n.includeHistory = true // to a guest it says nothing: a channel named beside it decides
	}
	return nil
}

// messagesInChannels is the messages of the channels for which in holds.
func (n *narrowQuery) messagesInChannels(in func(*Channel) bool) ids.Set {
	var sets []ids.Set
	for id, c := range n.channels.all() { // a union does not depend on the order
		if in(c) {
			sets = append(sets, n.index.channels[id].ids)
		}
	}
	return ids.Union(sets...)
}

// addTopicTerm is every topic of that name, whatever the channel.
func (n *narrowQuery) addTopicTerm(t *Term) {
	name := fold(strings.TrimSpace(t.Operand.Text))
	if name == EmptyTopicName {
		name = ""
	}
	if n.namedChannel != nil && !t.Negated {
		var ids ids.Set
		if topic := n.index.channels[n.namedChannel.ID].topics[name]; topic != nil {
			ids = topic.ids
		}
		n.addSet(ids, false)
		return
	}
	var found []*topicIndex
	for _, topic := range n.index.topicsByName[name] {
		if t.Negated || n.mayReadIn(ChannelID(topic.channel)) {
			found = append(found, topic)
		}
	}
	n.addTopics(found, func(folded string) bool { return folded == name }, t.Negated)
}

// mayReadIn is whether the caller may read any message of a channel: what he may not need not be looked at.
func (n *narrowQuery) mayReadIn(c ChannelID) bool {
	if !n.access.ready {
		n.access.load()
	}
	return n.System || n.access.channel(uint32(c)).canRead
}

// addTopics is the messages of some topics: those whose folded name is wanted. Few messages are put together at once:
// walking past all the others would cost more.
func (n *narrowQuery) addTopics(topics []*topicIndex, wanted func(folded string) bool, negated bool) {
	size := 0
	for _, topic := range topics {
		size += topic.ids.Len()
	}
	whole := func() ids.Set {
		sets := make([]ids.Set, len(topics))
		for i, topic := range topics {
			sets[i] = topic.ids
		}
		return ids.Union(sets...)
	}
	if size <= maxTestedMessages {
		n.addSet(whole(), negated)
		return
	}
	known := map[TopicID]bool{}
	n.addLazy(whole, func(_ MessageID, m *message) bool {
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

// operandUser is the user an operand names, by id or by the address the API shows for him.
func (v View) operandUser(o Operand) *User {
	if o.IsID {
		return v.Find(UserID(o.ID))
	}
	return v.FindByShownEmail(o.Text)
}

func (n *narrowQuery) addDMTerm(t *Term) error {
	members := []UserID{n.me.ID}
	list := t.Operand.IDs
	if !t.Operand.IsList {
		for _, e := range strings.Split(t.Operand.Text, ",") {
			if e = strings.TrimSpace(e); e == "" {
				continue
			}
			u := n.operandUser(Operand{Text: e})
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
	var ids ids.Set
	slices.Sort(members)
	if talk := n.FindDirectConversation(slices.Compact(members)); len(list) > 0 && talk != 0 {
		ids = n.index.conversations[talk].ids
	}
	n.addSet(ids, t.Negated)
	return nil
}

// addDMIncludingTerm is the caller's direct messages in which a user takes part; groups leaves one-to-one conversations out.
func (n *narrowQuery) addDMIncludingTerm(u UserID, groups, negated bool) {
	idSet := findSet(n.index.directMessages, n.me.ID)
	if u != n.me.ID {
		idSet = ids.Intersection(idSet, findSet(n.index.directMessages, u))
	}
	if !groups {
		n.addSet(idSet, negated)
		return
	}
	group := func(id MessageID, m *message) bool {
		return m.channel == 0 && idSet.Has(int64(id)) && len(n.conversations.must(m.conversation).Members) > 2
	}
	n.addLazy(func() ids.Set { return n.filterByTests(idSet, []func(MessageID, *message) bool{group}) }, group, negated)
	if !negated {
		n.addSet(idSet, false)
	}
}

const resolvedPrefix = "✔ "

func (n *narrowQuery) addIsTerm(t *Term) error {
	what := t.Operand.Text
	if what == "resolved" {
		n.restrictKind(false, t.Negated)
		n.addTopics(n.resolvedTopics(t.Negated), func(name string) bool { return strings.HasPrefix(name, resolvedPrefix) }, t.Negated)
		return nil
	}
	n.rowsOnly = true
	rd := n.marks.find(n.me.ID)
	if rd == nil {
		rd = &MessageMarks{}
	}
	switch what {
	case "dm", "private":
		n.directOnly, n.channelOnly = n.directOnly || !t.Negated, n.channelOnly || t.Negated
		n.addDMIncludingTerm(n.me.ID, false, t.Negated)
	case "starred":
		n.addSet(rd.Starred, t.Negated)
	case "unread":
		n.addSet(n.readSet(rd), !t.Negated)
	case "alerted":
		n.addSet(findSet(n.index.alerted, n.me.ID), t.Negated)
	case "mentioned":
		n.addSet(ids.Union(n.index.messagesMentioning(n.me.ID), ids.Difference(n.index.channelWildcards, rd.Rows)), t.Negated)
	case "followed":
		n.restrictKind(false, t.Negated)
		n.addSet(n.messagesWithPolicy(func(p int) bool { return p == TopicFollowed }), t.Negated)
	case "muted":
		n.addMutedTerm(t.Negated)
	default:
		return badNarrow("unknown 'is' operand " + t.Operand.String())
	}
	return nil
}

// resolvedTopics is every topic that is marked as resolved and has messages; perhaps only of channels the caller may read.
func (n *narrowQuery) resolvedTopics(all bool) (found []*topicIndex) {
	for _, id := range n.index.resolvedTopics {
		t := n.Realm.topics.must(id)
		if ix := n.index.channels[t.Channel].topics[fold(t.Name)]; ix != nil && (all || n.mayReadIn(t.Channel)) {
			found = append(found, ix)
		}
	}
	return found
}

// addMutedTerm is what the caller does not want to see at home: muted topics, and muted channels except for topics unmuted
// valueOr followed in them.
func (n *narrowQuery) addMutedTerm(negated bool) {
	muted := n.muteSettingsOf(n.User)
	whole := func() ids.Set {
		s := n.messagesInMutedChannels()
		s.Union(n.messagesWithPolicy(func(p int) bool { return p == TopicMuted }))
		return s
	}
	if sources := len(muted.policies) + muted.channels.Len(); sources == 0 || sources <= fewConversations && !negated {
		n.addSet(whole(), negated)
		return
	}
	n.addLazy(whole, func(_ MessageID, m *message) bool {
		return m.channel != 0 && muted.isMuted(ChannelID(m.channel), n.Realm.topics.must(m.topic).Name)
	}, negated)
}

// addMentionsTerm is the messages that name a user: an index narrows it down, the message itself decides.
func (n *narrowQuery) addMentionsTerm(u UserID, negated bool) {
	names := func(id MessageID, m *message) bool {
		e := n.extra(id, m)
		return e != nil && slices.Contains(e.Mentioned, u)
	}
	n.addLazy(func() ids.Set {
		var named ids.Set
		n.index.messagesMentioning(u).Each(func(id int64) bool {
			if names(MessageID(id), n.message(MessageID(id))) {
				named.Add(id)
			}
			return true
		})
		return named
	}, names, negated)
	if !negated {
		n.addSet(n.index.messagesMentioning(u), false)
	}
}
