package realm

import (
	"slices"
	"strconv"
	"strings"

	"parley/actors/realm/ids"
)

// Term is one condition of a narrow.
type Term struct {
	Operator     string // its current name; clients may send an old one
	SentOperator string // as the client sent it, for error texts
	Operand      Operand
	Negated      bool
}

// Operand is the value of a term: a text, or an id or a list of ids for operators that take them.
type Operand struct {
	Text   string // of ids: the form to show in error texts, if it was another one
	ID     int64
	IDs    []int64
	IsID   bool
	IsList bool
}

// String returns the operand as error texts show it.
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

// badNarrow refuses one term. badCombination refuses terms that exclude each other.
func badNarrow(desc string) *Refusal {
	return Refuse(Invalid, "BAD_NARROW", "Invalid narrow operator: "+desc).With("desc", desc)
}

func badCombination(desc string) *Refusal {
	return Refuse(Invalid, "BAD_NARROW", "Invalid narrow operator combination: "+desc).With("desc", desc)
}

func errNotLoggedIn() *Refusal {
	return Refuse(Unauthenticated, "UNAUTHORIZED", "Not logged in: API authentication or user session required")
}

// condition is one term: either a set that exists already, or buildSet for a set that has to be built. test decides
// about a single message.
type condition struct {
	set      *ids.Set
	buildSet func() ids.Set
	test     func(MessageID, *message) bool
	negated  bool
}

// narrowQuery collects the conditions of a narrow.
type narrowQuery struct {
	View
	me             *User
	conditions     []condition
	includeHistory bool     // candidates need no row: all readable messages of the named channels
	rowsOnly       bool     // a term is about the caller's rows, so only messages with a row match
	channelOnly    bool     // a term matches only channel messages
	directOnly     bool     // a term matches only direct messages
	namedChannel   *Channel // channel of the first channel term; topic terms look only there
	hits           SearchHits
	unverified     []TextCondition
	within         *ids.Set // nil, or the only candidates: each is still checked for access
	access         readerAccess
}

// Narrow finds the messages of a narrow that the caller may read. hits is the answer for the search terms, nil
// without any.
func (v View) Narrow(terms []Term, hits SearchHits) (NarrowResult, error) {
	return v.narrow(terms, hits, nil)
}

// NarrowAmong finds those of some messages that match a narrow and that the caller may read.
func (v View) NarrowAmong(terms []Term, hits SearchHits, among ids.Set) (NarrowResult, error) {
	return v.narrow(terms, hits, &among)
}

// NarrowReceived finds those of some messages that match a narrow and that the caller has a row of.
func (v View) NarrowReceived(terms []Term, hits SearchHits, among ids.Set) (NarrowResult, error) {
	among = v.rowsWithin(v.User, &among)
	return v.narrow(terms, hits, &among)
}

// narrow finds the messages of a narrow, of all messages or only within some of them.
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
	if n.scope.Limited() {
		n.addSet(n.scopeMessages(), false)
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

// checkVisitorTerms refuses terms that logged-out visitors must not use. Visitors have no rows and must ask for
// web-public channels.
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

// expandWith replaces the term "with", and all terms that name a conversation, by terms for the conversation that
// the message of the term "with" is in now.
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
	if m == nil || !n.mayReadMessage(MessageID(id), m) {
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

// messageID returns the operand as a message id, sent as a number or as text.
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

// addSet adds a condition whose set exists.
func (n *narrowQuery) addSet(s ids.Set, negated bool) {
	test := func(id MessageID, _ *message) bool { return s.Has(int64(id)) }
	n.conditions = append(n.conditions, condition{set: &s, test: test, negated: negated})
}

// addLazy adds a condition whose set would have to be built.
func (n *narrowQuery) addLazy(buildSet func() ids.Set, test func(MessageID, *message) bool, negated bool) {
	n.conditions = append(n.conditions, condition{buildSet: buildSet, test: test, negated: negated})
}

// restrictKind records that only direct messages, or only channel messages, can match a term.
func (n *narrowQuery) restrictKind(direct, negated bool) {
	if !negated {
		n.directOnly, n.channelOnly = n.directOnly || direct, n.channelOnly || !direct
	}
}

// addTerm adds the condition of one term, except search terms.
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

// operandChannel returns the channel of an operand, by id or name. It returns nil if there is none that the reader may
// know of.
func (n *narrowQuery) operandChannel(o Operand) *Channel {
	c := n.FindChannelByName(o.Text)
	if o.IsID {
		c = n.channels.find(ChannelID(o.ID))
	}
	if c == nil || !n.hasMetadataAccess(n.me, c) || !n.scope.HasChannel(c.ID) {
		return nil
	}
	return c
}

// addChannelTerm adds the messages of one channel. The channel decides whether messages without a row are candidates.
func (n *narrowQuery) addChannelTerm(t *Term) error {
	c := n.operandChannel(t.Operand)
	if c == nil {
		return badNarrow("unknown channel " + t.Operand.String())
	}
	n.restrictKind(false, t.Negated)
	n.addSet(n.index.channels[c.ID].ids, t.Negated)
	if !t.Negated {
		// Of several channel terms the last one decides (protocol).
		n.includeHistory = (c.History || c.WebPublic) && n.hasContentAccess(n.me, c)
	}
	return nil
}

// addChannelsTerm adds the messages of a kind of channels: public, web-public or archived.
func (n *narrowQuery) addChannelsTerm(t *Term) error {
	var in func(*Channel) bool
	switch t.Operand.Text {
	case "public":
		in = func(c *Channel) bool { // protected messages cannot be read without a row
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
	// Archived messages are usually few, so the set is built at once. The public channels depend on later terms.
	if t.Operand.Text == "archived" && !t.Negated {
		n.addSet(n.messagesInChannels(in), false)
	} else {
		n.addLazy(func() ids.Set { return n.messagesInChannels(in) }, func(_ MessageID, m *message) bool {
			return m.channel != 0 && in(n.channels.must(ChannelID(m.channel)))
		}, t.Negated)
	}
	if !t.Negated && t.Operand.Text == "public" && n.me != nil && !n.me.IsGuest() {
		n.includeHistory = true // for guests this term changes nothing: a channel term beside it decides
	}
	return nil
}

// messagesInChannels returns the messages of the channels for which in returns true.
func (n *narrowQuery) messagesInChannels(in func(*Channel) bool) ids.Set {
	var sets []ids.Set
	for id, c := range n.channels.all() { // the order does not matter for a union
		if in(c) {
			sets = append(sets, n.index.channels[id].ids)
		}
	}
	return ids.Union(sets...)
}

// addTopicTerm adds the topics with a name, in all channels if no channel is named.
func (n *narrowQuery) addTopicTerm(t *Term) {
	name := fold(strings.TrimSpace(t.Operand.Text))
	if name == EmptyTopicName {
		name = ""
	}
	if n.namedChannel != nil && !t.Negated {
		var messages ids.Set
		if topic := n.index.channels[n.namedChannel.ID].topics[name]; topic != nil {
			messages = topic.ids
		}
		n.addSet(messages, false)
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

// mayReadIn reports whether the caller may read any message of a channel. Other channels need not be searched.
func (n *narrowQuery) mayReadIn(c ChannelID) bool {
	if !n.access.ready {
		n.access.load()
	}
	return n.System || n.access.channel(uint32(c)).canRead
}

// addTopics adds the messages of some topics; wanted tests a folded name. If they have few messages, the set is built
// at once, because testing all other messages would take longer.
func (n *narrowQuery) addTopics(topics []*topicIndex, wanted func(folded string) bool, negated bool) {
	size := 0
	for _, topic := range topics {
		size += topic.ids.Len()
	}
	buildSet := func() ids.Set {
		sets := make([]ids.Set, len(topics))
		for i, topic := range topics {
			sets[i] = topic.ids
		}
		return ids.Union(sets...)
	}
	if size <= maxTestedMessages {
		n.addSet(buildSet(), negated)
		return
	}
	known := map[TopicID]bool{}
	n.addLazy(buildSet, func(_ MessageID, m *message) bool {
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

// operandUser returns the user of an operand, by id or by the address that the API shows, or nil.
func (v View) operandUser(o Operand) *User {
	if o.IsID {
		return v.Find(UserID(o.ID))
	}
	return v.FindByShownEmail(o.Text)
}

// addDMTerm adds the direct conversation of exactly the caller and the users of the operand.
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
	var messages ids.Set
	slices.Sort(members)
	if c := n.FindDirectConversation(slices.Compact(members)); len(list) > 0 && c != 0 {
		messages = n.index.conversations[c].ids
	}
	n.addSet(messages, t.Negated)
	return nil
}

// addDMIncludingTerm adds the caller's direct messages with a user. With groups only conversations of more than two
// users match.
func (n *narrowQuery) addDMIncludingTerm(u UserID, groups, negated bool) {
	direct := findSet(n.index.directMessages, n.me.ID)
	if u != n.me.ID {
		direct = ids.Intersection(direct, findSet(n.index.directMessages, u))
	}
	if !groups {
		n.addSet(direct, negated)
		return
	}
	group := func(id MessageID, m *message) bool {
		return m.channel == 0 && direct.Has(int64(id)) && len(n.conversations.must(m.conversation).Members) > 2
	}
	groupMessages := func() ids.Set { return n.filterByTests(direct, []func(MessageID, *message) bool{group}) }
	n.addLazy(groupMessages, group, negated)
	if !negated {
		n.addSet(direct, false)
	}
}

// resolvedPrefix starts the name of a resolved topic (protocol).
const resolvedPrefix = "✔ "

// addIsTerm adds a term with the operator "is".
func (n *narrowQuery) addIsTerm(t *Term) error {
	operand := t.Operand.Text
	if operand == "resolved" {
		n.restrictKind(false, t.Negated)
		resolved := func(name string) bool { return strings.HasPrefix(name, resolvedPrefix) }
		n.addTopics(n.resolvedTopics(t.Negated), resolved, t.Negated)
		return nil
	}
	n.rowsOnly = true
	rd := n.marks.find(n.me.ID)
	if rd == nil {
		rd = &MessageMarks{}
	}
	switch operand {
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
		wildcards := ids.Difference(n.index.channelWildcards, rd.Rows)
		n.addSet(ids.Union(n.index.messagesMentioning(n.me.ID), wildcards), t.Negated)
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

// resolvedTopics returns the resolved topics that have messages: in all channels, or only in those the caller may
// read.
func (n *narrowQuery) resolvedTopics(all bool) (found []*topicIndex) {
	for _, id := range n.index.resolvedTopics {
		t := n.Realm.topics.must(id)
		if ix := n.index.channels[t.Channel].topics[fold(t.Name)]; ix != nil && (all || n.mayReadIn(t.Channel)) {
			found = append(found, ix)
		}
	}
	return found
}

// addMutedTerm adds the messages that the home view of the caller hides. These are muted topics, and muted channels
// without their unmuted and followed topics.
func (n *narrowQuery) addMutedTerm(negated bool) {
	muted := n.muteSettingsOf(n.User)
	buildSet := func() ids.Set {
		s := n.messagesInMutedChannels()
		s.Union(n.messagesWithPolicy(func(p int) bool { return p == TopicMuted }))
		return s
	}
	if sources := len(muted.policies) + muted.channels.Len(); sources == 0 || sources <= fewConversations && !negated {
		n.addSet(buildSet(), negated)
		return
	}
	n.addLazy(buildSet, func(_ MessageID, m *message) bool {
		return m.channel != 0 && muted.isMuted(ChannelID(m.channel), n.Realm.topics.must(m.topic).Name)
	}, negated)
}

// addMentionsTerm adds the messages that mention a user by name. The index gives candidates; the message decides.
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
