package realm

import (
	"cmp"
	"slices"
	"strings"

	"parley/actors/realm/ids"
)

// indexes is the data derived from rows. It is not stored: rebuildIndexes makes it from the rows after loading.
type indexes struct {
	clock             int64 // the realm's time, Unix seconds
	markdownConfigSeq Seq   // newest fact that may have changed how texts are rendered

	// Users.
	userByEmail         map[string]UserID   // by folded address
	usersByName         map[string][]UserID // by folded full name, ascending
	usersByAlertWord    map[string]*ids.Set // by folded alert word
	mutersOf            map[UserID]*ids.Set // users that muted each user
	bots                ids.Set             // accounts that are bots, without system bots
	emailsAllChannels   ids.Set             // users that want emails of all their channels
	presenceHidden      ids.Set             // users that do not share their presence
	autoReadsResolved   ids.Set             // users for whom notices of resolved topics are read at once
	autoReadsUnfollowed ids.Set             // the same, but only in topics they do not follow
	groupDisplayVersion int                 // counts changes of accounts that change how group settings are shown

	// Channels, topics and direct conversations.
	channelByName         map[string]ChannelID // by folded name
	channels              map[ChannelID]*channelIndex
	topicIDs              map[ChannelID]map[string]TopicID // by exact spelling
	topicSpellings        []topicSpelling                  // by TopicID; only appended to, elements never change
	topicsByName          map[string][]*topicIndex         // by folded name: the topics of all channels, in any order
	resolvedTopics        []TopicID                        // spellings marked as resolved
	topicPreferences      map[topicKey]*usersByTopicPolicy
	conversations         map[DirectConversationID]*conversationIndex
	conversationByMembers map[string]DirectConversationID // by conversationKey
	conversationsOf       map[UserID][]DirectConversationID
	mailTokens            map[mailKey]string
	activityCheckDay      int64 // day of the last search for inactive channels, in days since 1970
	reminderHour          int64 // hour of the last search for invitations to remind of, in hours since 1970

	// Messages.
	bySender                            map[UserID]*ids.Set
	directMessages                      map[UserID]*ids.Set // all direct messages of each user, sent and received
	mentioned                           map[UserID]*ids.Set
	bulkMentions                        bulkMentions // messages that mention very many users; they are not in mentioned
	alerted                             map[UserID]*ids.Set
	channelWildcards                    ids.Set // messages with a channel wildcard
	links, images, attachments, reacted ids.Set
	remindersOf                         map[MessageID]*ids.Set // reminders of each message

	// Uploads.
	uploadByPath     map[string]int64
	uploadsWithHash  map[string]int      // number of uploads with the same content
	messagesWithFile map[string]*ids.Set // by the path of the file
	uploadBytes      int64
	uploadBytesOf    map[UserID]int64 // by owner; 0 has no entry

	// Clients and their queues.
	clientIDs       map[string]ClientID
	usersWithQueues ids.Set
	queueCount      map[UserID]int
	allPublicQueues map[UserID]int // queues that also get channel messages the user did not receive
	queueAudiences  connectedUsers

	bulk *bulkIndexing // set only while rebuildIndexes runs
}

func (x *indexes) init() {
	*x = indexes{
		clock: x.clock, markdownConfigSeq: x.markdownConfigSeq,
		userByEmail: map[string]UserID{}, usersByName: map[string][]UserID{},
		usersByAlertWord: map[string]*ids.Set{}, mutersOf: map[UserID]*ids.Set{},
		channelByName: map[string]ChannelID{}, channels: map[ChannelID]*channelIndex{},
		topicIDs: map[ChannelID]map[string]TopicID{}, topicsByName: map[string][]*topicIndex{},
		topicPreferences:      map[topicKey]*usersByTopicPolicy{},
		conversations:         map[DirectConversationID]*conversationIndex{},
		conversationByMembers: map[string]DirectConversationID{},
		conversationsOf:       map[UserID][]DirectConversationID{}, mailTokens: map[mailKey]string{},
		uploadBytesOf: map[UserID]int64{},
		bySender:      map[UserID]*ids.Set{}, directMessages: map[UserID]*ids.Set{},
		mentioned: map[UserID]*ids.Set{}, bulkMentions: bulkMentions{}, alerted: map[UserID]*ids.Set{},
		remindersOf: map[MessageID]*ids.Set{}, uploadByPath: map[string]int64{}, uploadsWithHash: map[string]int{},
		messagesWithFile: map[string]*ids.Set{},
		clientIDs:        map[string]ClientID{}, queueCount: map[UserID]int{}, allPublicQueues: map[UserID]int{},
	}
}

// addChannel adds a channel without members and messages.
func (x *indexes) addChannel(c *Channel) {
	x.channelByName[fold(c.Name)] = c.ID
	x.channels[c.ID] = &channelIndex{topics: map[string]*topicIndex{}}
	x.topicIDs[c.ID] = map[string]TopicID{}
}

// rebuildIndexes rebuilds all data derived from rows, after rows were loaded. run gets independent parts and returns
// when all are done.
func (r *Realm) rebuildIndexes(run func(...func())) {
	r.index.init()
	for _, u := range r.users.all() {
		r.index.userByEmail[FoldEmail(u.Email)] = u.ID
		r.index.addUserName(u.ID, u.Name)
		r.index.indexBot(u)
		r.index.indexUserSettings(u)
	}
	for _, c := range r.channels.all() {
		r.index.addChannel(c)
	}
	for u, l := range r.subscriptions.all() {
		l.rebuildUsedColors()
		for _, s := range l.List {
			if s.Email != nil && *s.Email {
				r.index.channels[s.Channel].wantsEmail.Add(int64(u))
			}
			r.index.channels[s.Channel].everSubscribed.Add(int64(u))
			if n := len(s.Spans); n > 0 && s.Spans[n-1].To == 0 {
				ix := r.index.channels[s.Channel]
				ix.receiving.Add(int64(u))
				ix.openings = append(ix.openings, openSpan{uint32(s.Spans[n-1].From), uint32(u)})
			}
			if s.Active {
				r.index.channels[s.Channel].subscribers.Add(int64(u))
				if r.users.must(u).Active {
					r.index.channels[s.Channel].active.Add(int64(u))
				}
			}
		}
	}
	for _, c := range r.index.channels {
		slices.SortFunc(c.openings, func(a, b openSpan) int { return cmp.Compare(a.from, b.from) })
	}
	for id, t := range r.topics.all() {
		r.index.addTopic(id, t)
	}
	for id, t := range r.conversations.all() {
		r.index.addConversation(id, t)
	}
	for id, c := range r.clients.all() {
		r.index.clientIDs[c.Name] = id
	}
	for _, id := range r.queues.keys() {
		r.index.openQueue(r, r.queues.find(id))
	}
	for id, e := range r.extras.all() {
		if m := r.message(id); m != nil && e.SentTo != 0 {
			m.bits |= bitSentElsewhere
		}
	}
	spellings := len(r.index.topicSpellings)
	r.index.bulk = &bulkIndexing{
		topics:       make([]*topicIndex, spellings),
		participants: make([]map[uint32]uint32, spellings),
	}
	var passes []func()
	for _, pass := range []func(MessageID, *message){
		r.indexInChannel, r.indexInTopic, r.countParticipation, r.indexSenderAndContent,
	} {
		passes = append(passes, func() { r.eachMessage(pass) })
	}
	run(passes...)
	run(r.index.finishChannels, r.index.finishTopics, r.index.finishParticipants, r.index.finishSent)
	r.index.bulk = nil
	r.small.rebuildIndexes(r)
}

// eachMessage calls fn with every message, by ascending id.
func (r *Realm) eachMessage(fn func(MessageID, *message)) {
	for _, n := range r.blocks.keys() {
		b := r.blocks.must(n)
		for i := range b.m {
			if b.m[i].bits&bitExists != 0 {
				fn(MessageID(n*blockSize)+MessageID(i), &b.m[i])
			}
		}
	}
}

// bulkIndexing makes indexing all messages faster than one by one. The messages come in ascending order, so ids are
// appended to their sets, and each topic is looked up once.
type bulkIndexing struct {
	topics       []*topicIndex       // by TopicID; nil before its first message
	participants []map[uint32]uint32 // counts of messages and reactions, by TopicID; nil before its first message
	// Messages by sender and by the channel they were sent to, indexed by id. They are separate from the other sets
	// because the passes run concurrently.
	bySender, byChannel []ids.Set
}

// growTo returns the element of a list with this index. It extends the list if needed.
func growTo(list *[]ids.Set, id uint32) *ids.Set {
	if n := int(id) + 1 - len(*list); n > 0 {
		*list = append(*list, make([]ids.Set, n)...)
	}
	return &(*list)[id]
}

// senderSet returns the set of messages a user sent, to add to.
func (x *indexes) senderSet(u UserID) *ids.Set {
	if x.bulk != nil {
		return growTo(&x.bulk.bySender, uint32(u))
	}
	return openSet(x.bySender, u)
}

// channelSentSet returns the set of messages that were sent to a channel, to add to.
func (x *indexes) channelSentSet(c ChannelID) *ids.Set {
	if x.bulk != nil {
		return growTo(&x.bulk.byChannel, uint32(c))
	}
	return &x.channels[c].sent
}

// addMessage adds a message to a set of the indexes.
func (x *indexes) addMessage(s *ids.Set, id MessageID) {
	if x.bulk != nil {
		s.AppendSorted(int64(id))
	} else {
		s.Add(int64(id))
	}
}

// finishChannels ends the bulk building of the sets that indexInChannel adds to.
func (x *indexes) finishChannels() {
	for _, c := range x.channels {
		c.ids.FinishAppending()
	}
	for _, t := range x.conversations {
		t.ids.FinishAppending()
	}
	for _, s := range x.directMessages {
		s.FinishAppending()
	}
}

// finishTopics ends the bulk building of the sets that indexInTopic adds to.
func (x *indexes) finishTopics() {
	for _, c := range x.channels {
		for _, t := range c.topics {
			t.ids.FinishAppending()
		}
	}
}

// finishParticipants merges the counts of all spellings of a topic.
func (x *indexes) finishParticipants() {
	for id, counts := range x.bulk.participants {
		t := x.bulk.topics[id]
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

// finishSent ends the bulk building of the sets that indexSenderAndContent adds to.
func (x *indexes) finishSent() {
	for id, s := range x.bulk.byChannel {
		if c := x.channels[ChannelID(id)]; c != nil {
			s.FinishAppending()
			c.sent = s
		}
	}
	for id, s := range x.bulk.bySender {
		if !s.Empty() {
			s.FinishAppending()
			x.bySender[UserID(id)] = &s
		}
	}
	for _, m := range []map[UserID]*ids.Set{x.mentioned, x.alerted} {
		for _, s := range m {
			s.FinishAppending()
		}
	}
	for _, s := range x.messagesWithFile {
		s.FinishAppending()
	}
	for _, s := range []*ids.Set{&x.channelWildcards, &x.links, &x.images, &x.attachments, &x.reacted} {
		s.FinishAppending()
	}
}

// addTopic adds a spelling of a topic.
func (x *indexes) addTopic(id TopicID, t *Topic) {
	x.topicIDs[t.Channel][t.Name] = id
	if n := int(id) + 1 - len(x.topicSpellings); n > 0 {
		x.topicSpellings = append(x.topicSpellings, make([]topicSpelling, n)...)
	}
	x.topicSpellings[id] = topicSpelling{t.Name, fold(t.Name)}
	if strings.HasPrefix(t.Name, resolvedPrefix) {
		x.resolvedTopics = append(x.resolvedTopics, id)
	}
}

// addConversation adds a direct conversation without messages.
func (x *indexes) addConversation(id DirectConversationID, t *DirectConversation) {
	x.conversations[id] = &conversationIndex{}
	x.conversationByMembers[conversationKey(t.Members)] = id
	for _, u := range t.Members {
		x.conversationsOf[u] = append(x.conversationsOf[u], id)
	}
}

// openSet returns the set of a key. It adds an empty set if there is none.
func openSet[K comparable](m map[K]*ids.Set, k K) *ids.Set {
	s := m[k]
	if s == nil {
		s = &ids.Set{}
		m[k] = s
	}
	return s
}

// findSet returns the set of a key, or an empty set.
func findSet[K comparable](m map[K]*ids.Set, k K) ids.Set {
	if s := m[k]; s != nil {
		return *s
	}
	return ids.Set{}
}

// topicIndexOf returns the index of a message's topic. It adds one for the first message.
func (r *Realm) topicIndexOf(m *message) *topicIndex {
	b := r.index.bulk
	if b != nil && b.topics[m.topic] != nil {
		return b.topics[m.topic]
	}
	name := r.index.topicSpellings[m.topic].folded
	t := r.index.channels[ChannelID(m.channel)].topics[name]
	if t == nil {
		t = r.index.openTopic(ChannelID(m.channel), name)
	}
	if b != nil {
		b.topics[m.topic] = t
	}
	return t
}

// openTopic adds the index of a topic that gets its first message.
func (x *indexes) openTopic(c ChannelID, folded string) *topicIndex {
	ix := x.channels[c]
	t := &topicIndex{channel: uint32(c), position: uint32(len(ix.topicList)), participants: map[uint32]uint32{}}
	ix.topics[folded], ix.topicList = t, append(ix.topicList, t)
	x.topicsByName[folded] = append(x.topicsByName[folded], t)
	return t
}

// closeTopic removes the index of a topic that lost its last message.
func (x *indexes) closeTopic(c ChannelID, folded string) {
	ix := x.channels[c]
	t := ix.topics[folded]
	same := x.topicsByName[folded]
	last := len(same) - 1
	same[slices.Index(same, t)] = same[last]
	if x.topicsByName[folded] = slices.Delete(same, last, last+1); last == 0 {
		delete(x.topicsByName, folded)
	}
	last = len(ix.topicList) - 1
	moved := ix.topicList[last]
	ix.topicList[t.position], moved.position = moved, t.position
	ix.topicList = slices.Delete(ix.topicList, last, last+1)
	delete(ix.topics, folded)
}

// indexMessage adds a message to all indexes.
func (r *Realm) indexMessage(id MessageID, m *message) {
	r.indexConversation(id, m)
	r.indexSenderAndContent(id, m)
}

// indexSenderAndContent adds a message to the indexes of its sender, its original channel and its content.
func (r *Realm) indexSenderAndContent(id MessageID, m *message) {
	r.index.addMessage(r.index.senderSet(UserID(m.sender)), id)
	if m.channel != 0 {
		r.index.addMessage(r.index.channelSentSet(r.origin(id, m)), id)
	}
	r.indexContent(id, m)
}

// indexConversation adds a message to the indexes of its channel and topic, or of its direct conversation.
func (r *Realm) indexConversation(id MessageID, m *message) {
	r.indexInChannel(id, m)
	r.indexInTopic(id, m)
	r.countParticipation(id, m)
}

// indexInChannel adds a message to its channel, or to its direct conversation.
func (r *Realm) indexInChannel(id MessageID, m *message) {
	if m.channel != 0 {
		r.index.addMessage(&r.index.channels[ChannelID(m.channel)].ids, id)
		return
	}
	r.index.addMessage(&r.index.conversations[m.conversation].ids, id)
	for _, u := range r.conversations.must(m.conversation).Members {
		r.index.addMessage(openSet(r.index.directMessages, u), id)
	}
}

// indexInTopic adds a message to its topic.
func (r *Realm) indexInTopic(id MessageID, m *message) {
	if m.channel != 0 {
		r.index.addMessage(&r.topicIndexOf(m).ids, id)
	}
}

// countParticipation counts the sender of a message, and users that reacted to it, as participants of its topic.
func (r *Realm) countParticipation(id MessageID, m *message) {
	if m.channel == 0 {
		return
	}
	counts := r.participantCounts(m)
	counts[m.sender]++
	if e := r.extra(id, m); e != nil {
		for _, x := range e.Reactions {
			counts[uint32(x.User)]++
		}
	}
}

// participantCounts returns the counts to add a message to: those of its topic, or during bulk indexing those of its
// spelling.
func (r *Realm) participantCounts(m *message) map[uint32]uint32 {
	b := r.index.bulk
	if b == nil {
		return r.topicIndexOf(m).participants
	}
	if b.participants[m.topic] == nil {
		b.participants[m.topic] = map[uint32]uint32{}
	}
	return b.participants[m.topic]
}

// unindexConversation removes a message from the indexes of its conversation. A topic without messages is removed.
func (r *Realm) unindexConversation(id MessageID, m *message) {
	if m.channel == 0 {
		r.index.conversations[m.conversation].ids.Remove(int64(id))
		for _, u := range r.conversations.must(m.conversation).Members {
			openSet(r.index.directMessages, u).Remove(int64(id))
		}
		return
	}
	ix := r.index.channels[ChannelID(m.channel)]
	ix.ids.Remove(int64(id))
	ix.trafficDay = 0
	t := r.topicIndexOf(m)
	t.ids.Remove(int64(id))
	t.removeParticipation(UserID(m.sender))
	if e := r.extra(id, m); e != nil {
		for _, x := range e.Reactions {
			t.removeParticipation(x.User)
		}
	}
	if t.ids.Empty() {
		r.index.closeTopic(ChannelID(m.channel), r.index.topicSpellings[m.topic].folded)
	}
}

// removeParticipation undoes one count of countParticipation.
func (t *topicIndex) removeParticipation(u UserID) {
	if n := t.participants[uint32(u)]; n > 1 {
		t.participants[uint32(u)] = n - 1
	} else {
		delete(t.participants, uint32(u))
	}
}

// indexContent adds a message to the indexes that follow from its content, or removes it from them after an edit.
func (r *Realm) indexContent(id MessageID, m *message) {
	if r.index.bulk != nil && m.bits&(bitLink|bitImage|bitAttachment|bitChannelWildcard|bitExtra) == 0 {
		return // there is nothing to remove either
	}
	for _, s := range []struct {
		bit uint16
		set *ids.Set
	}{
		{bitLink, &r.index.links}, {bitImage, &r.index.images},
		{bitAttachment, &r.index.attachments}, {bitChannelWildcard, &r.index.channelWildcards},
	} {
		if m.bits&s.bit != 0 {
			r.index.addMessage(s.set, id)
		} else {
			s.set.Remove(int64(id))
		}
	}
	if e := r.extra(id, m); e != nil {
		for _, list := range []*[]UserID{&e.Mentioned, &e.GroupMentioned, &e.TopicMentioned} {
			*list = r.index.indexMentions(*list, id)
		}
		for _, u := range e.Alerted {
			r.index.addMessage(openSet(r.index.alerted, u), id)
		}
		for _, p := range e.Attachments {
			r.index.addMessage(openSet(r.index.messagesWithFile, p), id)
		}
		if len(e.Reactions) > 0 {
			r.index.addMessage(&r.index.reacted, id)
		}
	}
}

// unindexMessage removes a message from all indexes.
func (r *Realm) unindexMessage(id MessageID, m *message) {
	r.unindexConversation(id, m)
	n := int64(id)
	openSet(r.index.bySender, UserID(m.sender)).Remove(n)
	if m.channel != 0 {
		r.index.channels[r.origin(id, m)].sent.Remove(n)
	}
	r.unindexContent(id, m)
	r.index.reacted.Remove(n)
}

// unindexContent removes a message from the indexes that follow from its content.
func (r *Realm) unindexContent(id MessageID, m *message) {
	n := int64(id)
	for _, s := range []*ids.Set{&r.index.links, &r.index.images, &r.index.attachments, &r.index.channelWildcards} {
		s.Remove(n)
	}
	if e := r.extra(id, m); e != nil {
		for _, list := range [][]UserID{e.Mentioned, e.GroupMentioned, e.TopicMentioned} {
			r.index.unindexMentions(list, id)
		}
		for _, u := range e.Alerted {
			openSet(r.index.alerted, u).Remove(n)
		}
		for _, p := range e.Attachments {
			openSet(r.index.messagesWithFile, p).Remove(n)
		}
	}
}
