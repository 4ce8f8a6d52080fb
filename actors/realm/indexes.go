package realm

import (
	"cmp"
	"slices"
	"strings"
)

// indexes is everything derived from rows.
type indexes struct {
	clock                               int64
	dialect                             Seq // number of the newest fact that may have changed how texts are rendered
	email                               map[string]UserID
	named                               map[string][]UserID // by folded full name, ascending
	channelName                         map[string]ChannelID
	channel                             map[ChannelID]*channelIndex
	topic                               map[ChannelID]map[string]TopicID // exact spelling
	topics                              []spelling                       // by id; it only grows, and what is in it stays as it is
	called                              map[string][]*topicIndex         // by folded name, those of all channels in any order
	resolved                            []TopicID                        // spellings that are marked as resolved
	talk                                map[TalkID]*talkIndex
	talkOf                              map[string]TalkID
	talksOf                             map[UserID][]TalkID
	direct                              map[UserID]*Set // everybody's direct messages
	client                              map[string]ClientID
	sender                              map[UserID]*Set
	mentioned                           map[UserID]*Set
	crowds                              crowds // of messages that mention very many, who stand in none of mentioned for it
	alerted                             map[UserID]*Set
	wildcard                            Set // messages with a channel wildcard
	links, images, attachments, reacted Set
	listening                           Set              // users with a queue
	bots                                Set              // accounts that are bots, but the system's
	mailed                              Set              // users whose settings ask for mails of all their channels
	away                                Set              // users who do not show when they are here
	readsResolved                       Set              // users for whom notices of resolved topics count as read,
	readsUnfollowed                     Set              // and those for whom they do in topics they do not follow
	queuesOf                            map[UserID]int   // how many each
	uploadAt                            map[string]int64 // uploads by path
	uploadsOf                           map[string]int   // how many have a content, by its hash
	usedBy                              map[string]*Set  // messages by the path of a file they use
	uploadBytes                         int64
	alertedBy                           map[string]*Set // users by folded alert word
	mutersOf                            map[UserID]*Set // who muted each
	allPublic                           map[UserID]int  // queues that take messages beyond what was received
	policies                            map[topicKey]*topicPreferences
	mailToken                           map[mailKey]string
	roles                               listeners
	building                            *building // nil but while rows are indexed
	deactivations                       int       // changes of accounts that change how permission settings are shown
	quietDay                            int64     // when channels were looked over for silence, counted in days
}

func (x *indexes) init() {
	*x = indexes{clock: x.clock, dialect: x.dialect, email: map[string]UserID{}, named: map[string][]UserID{}, channelName: map[string]ChannelID{}, channel: map[ChannelID]*channelIndex{},
		topic: map[ChannelID]map[string]TopicID{}, called: map[string][]*topicIndex{}, talk: map[TalkID]*talkIndex{}, talkOf: map[string]TalkID{}, talksOf: map[UserID][]TalkID{}, direct: map[UserID]*Set{},
		client: map[string]ClientID{}, sender: map[UserID]*Set{}, mentioned: map[UserID]*Set{}, crowds: crowds{}, alerted: map[UserID]*Set{},
		queuesOf: map[UserID]int{}, allPublic: map[UserID]int{}, uploadAt: map[string]int64{}, uploadsOf: map[string]int{}, usedBy: map[string]*Set{}, alertedBy: map[string]*Set{}, mutersOf: map[UserID]*Set{},
		policies: map[topicKey]*topicPreferences{}, mailToken: map[mailKey]string{}}
}

func (x *indexes) addChannel(c *Channel) {
	x.channelName[fold(c.Name)] = c.ID
	x.channel[c.ID] = &channelIndex{topics: map[string]*topicIndex{}}
	x.topic[c.ID] = map[string]TopicID{}
}

// index rebuilds everything derived, after rows were loaded.
func (r *Realm) index(run func(...func())) {
	r.by.init()
	for _, u := range r.users.all() {
		r.by.email[FoldEmail(u.Email)] = u.ID
		r.by.name(u.ID, u.Name)
		r.by.bot(u)
		r.by.settings(u)
	}
	for _, c := range r.chans.all() {
		r.by.addChannel(c)
	}
	for u, l := range r.subs.all() {
		l.indexColors()
		for _, s := range l.List {
			if s.Email != nil && *s.Email {
				r.by.channel[s.Channel].mailed.Add(int64(u))
			}
			r.by.channel[s.Channel].ever.Add(int64(u))
			if n := len(s.Spans); n > 0 && s.Spans[n-1].To == 0 {
				ix := r.by.channel[s.Channel]
				ix.open.Add(int64(u))
				ix.opened = append(ix.opened, opening{uint32(s.Spans[n-1].From), uint32(u)})
			}
			if s.Active {
				r.by.channel[s.Channel].subscribers.Add(int64(u))
				if r.users.must(u).Active {
					r.by.channel[s.Channel].active.Add(int64(u))
				}
			}
		}
	}
	for _, c := range r.by.channel {
		slices.SortFunc(c.opened, func(a, b opening) int { return cmp.Compare(a.from, b.from) })
	}
	for id, t := range r.topics.all() {
		r.by.addTopic(id, t)
	}
	for id, t := range r.talks.all() {
		r.by.addTalk(id, t)
	}
	for id, c := range r.clients.all() {
		r.by.client[c.Name] = id
	}
	for _, id := range r.queues.keys() {
		r.by.openQueue(r, r.queues.find(id))
	}
	for id, e := range r.extras.all() {
		if m := r.message(id); m != nil && e.SentTo != 0 {
			m.bits |= bitElsewhere
		}
	}
	r.by.building = &building{topics: make([]*topicIndex, len(r.by.topics)), partaken: make([]map[uint32]uint32, len(r.by.topics))}
	var passes []func()
	for _, pass := range []func(MessageID, *message){r.placeInChannel, r.placeInTopic, r.countPartaking, r.indexSent} {
		passes = append(passes, func() { r.eachMessage(pass) })
	}
	run(passes...)
	run(r.by.settleChannels, r.by.settleTopics, r.by.settlePartaking, r.by.settleSent)
	r.by.building = nil
	r.nouns.index(r)
}

// eachMessage calls fn with every message, in order.
func (r *Realm) eachMessage(fn func(MessageID, *message)) {
	for _, n := range r.blocks.keys() {
		b := r.blocks.must(n)
		for i := range b.m {
			if b.m[i].bits&bitLive != 0 {
				fn(MessageID(n*blockSize)+MessageID(i), &b.m[i])
			}
		}
	}
}

// building is what makes indexing all messages, in order, faster than each for itself: ids are put behind those of their
// sets, and a topic is looked up once.
type building struct {
	topics   []*topicIndex       // by id of a spelling; nil before its first message
	partaken []map[uint32]uint32 // who takes part, by id of a spelling; nil before its first message
	// What was sent by each user and to each channel, by id, apart from the sets that are built at the same time.
	senders, sent []Set
}

// at is a set of a list that grows as far as it is used.
func at(list *[]Set, id uint32) *Set {
	if n := int(id) + 1 - len(*list); n > 0 {
		*list = append(*list, make([]Set, n)...)
	}
	return &(*list)[id]
}

// sentBy is what somebody has sent.
func (x *indexes) sentBy(u UserID) *Set {
	if x.building != nil {
		return at(&x.building.senders, uint32(u))
	}
	return setOf(x.sender, u)
}

// sentTo is what was sent to a channel.
func (x *indexes) sentTo(c ChannelID) *Set {
	if x.building != nil {
		return at(&x.building.sent, uint32(c))
	}
	return &x.channel[c].sent
}

// put adds a message to a set of the indexes.
func (x *indexes) put(s *Set, id MessageID) {
	if x.building != nil {
		s.push(int64(id))
	} else {
		s.Add(int64(id))
	}
}

// settleChannels ends the building of what placeInChannel adds to.
func (x *indexes) settleChannels() {
	for _, c := range x.channel {
		c.ids.settle()
	}
	for _, t := range x.talk {
		t.ids.settle()
	}
	for _, s := range x.direct {
		s.settle()
	}
}

// settleTopics ends the building of what placeInTopic adds to.
func (x *indexes) settleTopics() {
	for _, c := range x.channel {
		for _, t := range c.topics {
			t.ids.settle()
		}
	}
}

// settlePartaking ends the building of what countPartaking adds to: the spellings of a topic are one.
func (x *indexes) settlePartaking() {
	for id, counts := range x.building.partaken {
		t := x.building.topics[id]
		switch {
		case counts == nil:
		case len(t.participants) == 0:
			t.participants = counts
		default:
			for u, n := range counts {
				t.participants[u] += n
			}
		}
	}
}

// settleSent ends the building of what indexSent adds to.
func (x *indexes) settleSent() {
	for id, s := range x.building.sent {
		if c := x.channel[ChannelID(id)]; c != nil {
			s.settle()
			c.sent = s
		}
	}
	for id, s := range x.building.senders {
		if !s.Empty() {
			s.settle()
			x.sender[UserID(id)] = &s
		}
	}
	for _, m := range []map[UserID]*Set{x.mentioned, x.alerted} {
		for _, s := range m {
			s.settle()
		}
	}
	for _, s := range x.usedBy {
		s.settle()
	}
	for _, s := range []*Set{&x.wildcard, &x.links, &x.images, &x.attachments, &x.reacted} {
		s.settle()
	}
}

func (x *indexes) addTopic(id TopicID, t *Topic) {
	x.topic[t.Channel][t.Name] = id
	if n := int(id) + 1 - len(x.topics); n > 0 {
		x.topics = append(x.topics, make([]spelling, n)...)
	}
	x.topics[id] = spelling{t.Name, fold(t.Name)}
	if strings.HasPrefix(t.Name, resolvedPrefix) {
		x.resolved = append(x.resolved, id)
	}
}

func (x *indexes) addTalk(id TalkID, t *Talk) {
	x.talk[id] = &talkIndex{}
	x.talkOf[talkKey(t.Members)] = id
	for _, u := range t.Members {
		x.talksOf[u] = append(x.talksOf[u], id)
	}
}

func setOf[K comparable](m map[K]*Set, k K) *Set {
	s := m[k]
	if s == nil {
		s = &Set{}
		m[k] = s
	}
	return s
}

// setIn is the set of an index, if there is one.
func setIn[K comparable](m map[K]*Set, k K) Set {
	if s := m[k]; s != nil {
		return *s
	}
	return Set{}
}

func (r *Realm) topicIndexOf(m *message) *topicIndex {
	b := r.by.building
	if b != nil && b.topics[m.topic] != nil {
		return b.topics[m.topic]
	}
	name := r.by.topics[m.topic].folded
	t := r.by.channel[ChannelID(m.channel)].topics[name]
	if t == nil {
		t = r.by.openTopic(ChannelID(m.channel), name)
	}
	if b != nil {
		b.topics[m.topic] = t
	}
	return t
}

// openTopic makes the index of a topic that gets its first message.
func (x *indexes) openTopic(c ChannelID, folded string) *topicIndex {
	ix := x.channel[c]
	t := &topicIndex{channel: uint32(c), at: uint32(len(ix.list)), participants: map[uint32]uint32{}}
	ix.topics[folded], ix.list = t, append(ix.list, t)
	x.called[folded] = append(x.called[folded], t)
	return t
}

// closeTopic removes the index of a topic that has lost its last message.
func (x *indexes) closeTopic(c ChannelID, folded string) {
	ix := x.channel[c]
	t := ix.topics[folded]
	same := x.called[folded]
	last := len(same) - 1
	same[slices.Index(same, t)] = same[last]
	if x.called[folded] = slices.Delete(same, last, last+1); last == 0 {
		delete(x.called, folded)
	}
	last = len(ix.list) - 1
	moved := ix.list[last]
	ix.list[t.at], moved.at = moved, t.at
	ix.list = slices.Delete(ix.list, last, last+1)
	delete(ix.topics, folded)
}

// indexMessage puts a message into everything derived.
func (r *Realm) indexMessage(id MessageID, m *message) {
	r.placeMessage(id, m)
	r.indexSent(id, m)
}

// indexSent puts a message into what follows from how it was sent and from its content.
func (r *Realm) indexSent(id MessageID, m *message) {
	r.by.put(r.by.sentBy(UserID(m.sender)), id)
	if m.channel != 0 {
		r.by.put(r.by.sentTo(r.origin(id, m)), id)
	}
	r.indexContent(id, m)
}

// placeMessage puts a message into its conversation.
func (r *Realm) placeMessage(id MessageID, m *message) {
	r.placeInChannel(id, m)
	r.placeInTopic(id, m)
	r.countPartaking(id, m)
}

// placeInChannel puts a message among those of its channel, or of those who talk to each other.
func (r *Realm) placeInChannel(id MessageID, m *message) {
	if m.channel != 0 {
		r.by.put(&r.by.channel[ChannelID(m.channel)].ids, id)
		return
	}
	r.by.put(&r.by.talk[m.talk].ids, id)
	for _, u := range r.talks.must(m.talk).Members {
		r.by.put(setOf(r.by.direct, u), id)
	}
}

// placeInTopic puts a message among those of its topic.
func (r *Realm) placeInTopic(id MessageID, m *message) {
	if m.channel != 0 {
		r.by.put(&r.topicIndexOf(m).ids, id)
	}
}

// countPartaking counts the sender of a message, and who reacted to it, among those who take part in its topic.
func (r *Realm) countPartaking(id MessageID, m *message) {
	if m.channel == 0 {
		return
	}
	counts := r.partakenIn(m)
	counts[m.sender]++
	if e := r.extra(id, m); e != nil {
		for _, x := range e.Reactions {
			counts[uint32(x.User)]++
		}
	}
}

func (r *Realm) partakenIn(m *message) map[uint32]uint32 {
	b := r.by.building
	if b == nil {
		return r.topicIndexOf(m).participants
	}
	if b.partaken[m.topic] == nil {
		b.partaken[m.topic] = map[uint32]uint32{}
	}
	return b.partaken[m.topic]
}

// unplaceMessage takes a message out of its conversation; an empty topic disappears.
func (r *Realm) unplaceMessage(id MessageID, m *message) {
	if m.channel == 0 {
		r.by.talk[m.talk].ids.Remove(int64(id))
		for _, u := range r.talks.must(m.talk).Members {
			setOf(r.by.direct, u).Remove(int64(id))
		}
		return
	}
	ix := r.by.channel[ChannelID(m.channel)]
	ix.ids.Remove(int64(id))
	t := r.topicIndexOf(m)
	t.ids.Remove(int64(id))
	t.leave(UserID(m.sender))
	if e := r.extra(id, m); e != nil {
		for _, x := range e.Reactions {
			t.leave(x.User)
		}
	}
	if t.ids.Empty() {
		r.by.closeTopic(ChannelID(m.channel), r.by.topics[m.topic].folded)
	}
}

func (t *topicIndex) leave(u UserID) {
	if n := t.participants[uint32(u)]; n > 1 {
		t.participants[uint32(u)] = n - 1
	} else {
		delete(t.participants, uint32(u))
	}
}

// indexContent puts a message into the sets that follow from its content.
func (r *Realm) indexContent(id MessageID, m *message) {
	if r.by.building != nil && m.bits&(bitLink|bitImage|bitAttachment|bitChannelWildcard|bitExtra) == 0 {
		return // and nothing to take out
	}
	for _, s := range []struct {
		bit uint16
		set *Set
	}{{bitLink, &r.by.links}, {bitImage, &r.by.images}, {bitAttachment, &r.by.attachments}, {bitChannelWildcard, &r.by.wildcard}} {
		if m.bits&s.bit != 0 {
			r.by.put(s.set, id)
		} else {
			s.set.Remove(int64(id))
		}
	}
	if e := r.extra(id, m); e != nil {
		for _, list := range []*[]UserID{&e.Mentioned, &e.GroupMentioned, &e.TopicMentioned} {
			*list = r.by.mention(*list, id)
		}
		for _, u := range e.Alerted {
			r.by.put(setOf(r.by.alerted, u), id)
		}
		for _, p := range e.Attachments {
			r.by.put(setOf(r.by.usedBy, p), id)
		}
		if len(e.Reactions) > 0 {
			r.by.put(&r.by.reacted, id)
		}
	}
}

// unindexMessage takes a message out of everything derived.
func (r *Realm) unindexMessage(id MessageID, m *message) {
	r.unplaceMessage(id, m)
	n := int64(id)
	setOf(r.by.sender, UserID(m.sender)).Remove(n)
	if m.channel != 0 {
		r.by.channel[r.origin(id, m)].sent.Remove(n)
	}
	r.unindexContent(id, m)
	r.by.reacted.Remove(n)
}

func (r *Realm) unindexContent(id MessageID, m *message) {
	n := int64(id)
	for _, s := range []*Set{&r.by.links, &r.by.images, &r.by.attachments, &r.by.wildcard} {
		s.Remove(n)
	}
	if e := r.extra(id, m); e != nil {
		for _, list := range [][]UserID{e.Mentioned, e.GroupMentioned, e.TopicMentioned} {
			r.by.unmention(list, id)
		}
		for _, u := range e.Alerted {
			setOf(r.by.alerted, u).Remove(n)
		}
		for _, p := range e.Attachments {
			setOf(r.by.usedBy, p).Remove(n)
		}
	}
}
