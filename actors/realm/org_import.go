package realm

import (
	"fmt"
	"slices"

	"parley/actors/realm/ids"
)

// Import builds the rows of a new organization from the data of another server. The rows of messages are emitted while
// messages are added, so memory does not grow with their number: all other rows are in a Realm without messages.
//
// Use: NewImport, Put for each row that is no message, Index, then AddUpload and AddMessage in the order of messages,
// then Finish. An Import belongs to one goroutine; between two calls of AddMessage other goroutines may read the view.
type Import struct {
	realm  *Realm
	emit   func(table uint16, key, row any)
	number int64 // of block
	block  *messageBlock
	sent   map[ChannelID]uint32 // messages that were sent to each channel
	// spans has the value of sent at the last message that each subscription received. If it is one less than the value
	// at the next message, both belong to one span: the user received them without a gap.
	spans map[spanKey]uint32
	// marks are those that differ from a user's default: all messages are read. Until Finish, Read has the unread ones.
	marks map[UserID]MessageMarks
}

type spanKey struct {
	user    UserID
	channel ChannelID
}

// NewImport begins an organization as Founded does. emit gets the rows of messages.
func NewImport(id ID, f Founded, emit func(table uint16, key, row any)) *Import {
	x := &Import{realm: New(id), emit: emit, spans: map[spanKey]uint32{}, sent: map[ChannelID]uint32{},
		marks: map[UserID]MessageMarks{}, number: -1}
	f.apply(x.realm)
	x.realm.Org().LinksChecked = MaxMessageID
	return x
}

// Put adds a row, or replaces the one with the same id. It takes pointers to the rows of accounts, groups, channels and
// small tables.
func (x *Import) Put(row any) {
	r := x.realm
	o := r.Org()
	small := func(kind string, id int64) int64 {
		r.reserveID(kind, id)
		return id
	}
	switch v := row.(type) {
	case *User:
		r.users.set(v.ID, v)
		o.NextUser = max(o.NextUser, v.ID+1)
	case *Group:
		r.groups.set(v.ID, v)
		o.NextGroup = max(o.NextGroup, v.ID+1)
	case *Channel:
		r.channels.set(v.ID, v)
		o.NextChannel = max(o.NextChannel, v.ID+1)
	case *Upload:
		r.small.uploads.set(small("upload", v.ID), v)
	case *CustomEmoji:
		r.small.emoji.set(small("emoji", v.ID), v)
	case *Linkifier:
		r.small.linkifiers.set(small("linkifier", v.ID), v)
	case *Playground:
		r.small.playgrounds.set(small("playground", v.ID), v)
	case *Domain:
		r.small.domains.set(small("domain", v.ID), v)
	case *ProfileField:
		r.small.profileFields.set(small("field", v.ID), v)
	case *Snippet:
		r.small.snippets.set(small("snippet", v.ID), v)
	case *ScheduledMessage:
		r.small.scheduled.set(small("scheduled", v.ID), v)
	default:
		panic(fmt.Sprintf("BUG: Import.Put has no table for %T", row))
	}
}

// PutOf adds a row that belongs to a user.
func (x *Import) PutOf(u UserID, row any) {
	r := x.realm
	switch v := row.(type) {
	case *AlertWords:
		r.small.alertWords.set(u, v)
	case *MutedUsers:
		r.small.mutedUsers.set(u, v)
	case *UserStatus:
		r.small.statuses.set(u, v)
	case *BotDetails:
		r.small.bots.set(u, v)
	case *TopicPolicies:
		r.topicPolicies.set(u, v)
	case *Onboarding:
		r.small.onboarding.set(u, v)
	default:
		panic(fmt.Sprintf("BUG: Import.PutOf has no table for %T", row))
	}
}

// Org returns the organization's row, for changing.
func (x *Import) Org() *Organization { return x.realm.Org() }

// Subscribe adds a present or past subscription. received says that the user has received all messages of the channel.
func (x *Import) Subscribe(u UserID, s Subscription, received bool) {
	l := x.realm.subscriptions.find(u)
	if l == nil {
		l = &Subscriptions{}
		x.realm.subscriptions.set(u, l)
	}
	if received {
		s.Spans = []Span{{From: 1}}
	} else {
		s.Spans = nil
	}
	if s.Color == "" {
		s.Color = l.colorFor(x.realm.channels.must(s.Channel), 0)
	}
	have := l.ensure(s.Channel)
	*have = s
	l.Stale = true
}

// Index builds the indexes of the rows. It is called before View.
func (x *Import) Index() {
	x.realm.SetSeq(1, RunSequentially)
}

// View returns a view of the rows for the server itself.
func (x *Import) View(now int64) View { return x.realm.ViewAs(Caller{System: true}, now) }

// AddUpload adds the row of a file. It returns the row with its id and its path, which ends in the file's cleaned name;
// random is the part of the path that cannot be guessed.
func (x *Import) AddUpload(u Upload, random string) Upload {
	u.ID = x.realm.nextID("upload")
	u.Name = cleanFileName(u.Name)
	u.Path = fmt.Sprintf("%d/%s/%s/%s", x.realm.ID(), random[:2], random[2:], urlFileName(u.Name))
	x.Put(&u)
	x.realm.index.addUpload(&u)
	return u
}

// Upload returns the row of a file by its path, or nil.
func (x *Import) Upload(path string) *Upload {
	return x.realm.small.uploads.find(x.realm.index.uploadByPath[path])
}

// ImportedMark is the flags of one user for a message, as Zulip's UserMessage row has them.
type ImportedMark struct {
	User                                                       UserID
	Read, Starred, Collapsed, Historical                       bool
	Mentioned, ChannelWildcard, TopicWildcard, Group, AlertBit bool
}

// ImportedMessage is a message to add.
type ImportedMessage struct {
	ID      MessageID
	Sender  UserID
	At      int64
	Client  string
	Channel ChannelID // 0: direct
	Topic   string
	People  []UserID // of a direct message, ascending, the sender included
	Content ContentInfo
	Extra   MessageExtra // without the lists of mentions and attachments
	Marks   []ImportedMark
	// OwnMarks says that Marks are complete. Otherwise every recipient has read the message.
	OwnMarks bool
	// SenderReceives says that the sender has received the message even without a subscription.
	SenderReceives bool
}

// AddMessage adds a message. Ids rise from one message to the next.
func (x *Import) AddMessage(in *ImportedMessage) {
	r, o := x.realm, x.realm.Org()
	if in.ID < o.NextMessage {
		panic(fmt.Sprintf("BUG: message %d comes after message %d", in.ID, o.NextMessage-1))
	}
	o.NextMessage = in.ID + 1
	e := &in.Extra
	e.Attachments = in.Content.Attachments
	x.mentions(in)
	m := message{sender: uint32(in.Sender), channel: uint32(in.Channel), time: uint32(in.At),
		bits: bitExists | in.Content.bits(), client: x.client(in.Client)}
	if in.Channel != 0 {
		m.topic = x.topic(in.Channel, in.Topic)
		if c := r.channels.must(in.Channel); in.At > c.LastActive {
			c.LastActive = in.At
		}
	} else {
		m.conversation = x.conversation(in.People)
	}
	if e.SentTo != 0 {
		m.bits |= bitSentElsewhere
	}
	for i := range e.Submessages {
		e.Submessages[i].ID = r.nextID("submessage")
		r.reserveID("submessage", e.Submessages[i].ID)
	}
	x.receive(in)
	if n := int64(in.ID) / blockSize; n != x.number {
		x.flush()
		x.number, x.block = n, &messageBlock{}
	}
	if !e.hasOnlyMoves() || e.Moved != 0 || e.SentTo != 0 || len(e.History) > 0 {
		m.bits |= bitExtra
		x.emit(r.extras.number, in.ID, e)
	}
	x.block.m[in.ID%blockSize] = m
}

// mentions sets the lists of mentioned users: from the marks if they are complete, otherwise from the text.
func (x *Import) mentions(in *ImportedMessage) {
	e := &in.Extra
	if !in.OwnMarks {
		e.Mentioned = sortUnique(slices.Clone(in.Content.Users))
		return
	}
	in.Content.ChannelWildcard, in.Content.TopicWildcard = false, false
	for i := range in.Marks {
		k := &in.Marks[i]
		in.Content.ChannelWildcard = in.Content.ChannelWildcard || k.ChannelWildcard
		for _, list := range []struct {
			is   bool
			list *[]UserID
		}{{k.Mentioned, &e.Mentioned}, {k.Group, &e.GroupMentioned}, {k.TopicWildcard, &e.TopicMentioned},
			{k.AlertBit, &e.Alerted}} {
			if list.is {
				*list.list = append(*list.list, k.User)
			}
		}
	}
	in.Content.TopicWildcard = len(e.TopicMentioned) > 0
	for _, l := range []*[]UserID{&e.Mentioned, &e.GroupMentioned, &e.TopicMentioned, &e.Alerted} {
		*l = sortUnique(*l)
	}
}

func (x *Import) client(name string) ClientID {
	r := x.realm
	id, known := r.index.clientIDs[name]
	if !known {
		id = r.Org().NextClient
		r.Org().NextClient++
		r.clients.set(id, &ClientName{name})
		r.index.clientIDs[name] = id
	}
	return id
}

func (x *Import) topic(c ChannelID, name string) TopicID {
	id, made := x.realm.topicIDFor(c, name)
	if made {
		x.realm.Org().NextTopic = id + 1
		t := &Topic{Channel: c, Name: name}
		x.realm.topics.set(id, t)
		x.realm.index.topicIDs[c][name] = id
	}
	return id
}

func (x *Import) conversation(people []UserID) DirectConversationID {
	r := x.realm
	id := r.FindDirectConversation(people)
	if id == 0 {
		id = r.Org().NextTalk
		r.Org().NextTalk++
		t := &DirectConversation{Members: slices.Clone(people)}
		r.conversations.set(id, t)
		r.index.addConversation(id, t)
	}
	return id
}

// receive records the recipients of a message, and their flags.
func (x *Import) receive(in *ImportedMessage) {
	origin := in.Channel
	if in.Extra.SentTo != 0 {
		origin = in.Extra.SentTo
	}
	if origin != 0 {
		x.sent[origin]++
	}
	if !in.OwnMarks {
		if s := x.realm.SubscriptionOf(in.Sender, origin); in.SenderReceives && origin != 0 && (s == nil || !s.Active) {
			x.addRow(in.Sender, in.ID, true)
		}
		return
	}
	for i := range in.Marks {
		k := &in.Marks[i]
		if k.Starred || k.Collapsed || !k.Read {
			marks := x.marks[k.User]
			if !k.Read {
				marks.Read.Add(int64(in.ID)) // Finish inverts the set
			}
			if k.Starred {
				marks.Starred.Add(int64(in.ID))
			}
			if k.Collapsed {
				marks.Collapsed.Add(int64(in.ID))
			}
			x.marks[k.User] = marks
		}
		s := (*Subscription)(nil)
		if origin != 0 && !k.Historical {
			s = x.realm.SubscriptionOf(k.User, origin)
		}
		switch {
		case origin == 0 && in.Channel == 0:
		case s == nil:
			x.addRow(k.User, in.ID, !k.Historical)
		default:
			x.extend(k.User, s, in.ID)
		}
	}
}

// addRow gives a user a row of a message that the user did not receive by a subscription.
func (x *Import) addRow(u UserID, id MessageID, given bool) {
	marks := x.marks[u]
	marks.Rows.Add(int64(id))
	if given {
		marks.Given.Add(int64(id))
	}
	x.marks[u] = marks
}

// extend adds a message to the spans of a subscription. A span ends before a message of the channel that the user did
// not receive.
func (x *Import) extend(u UserID, s *Subscription, id MessageID) {
	key := spanKey{u, s.Channel}
	n := x.sent[s.Channel]
	if len(s.Spans) > 0 && x.spans[key]+1 == n {
		s.Spans[len(s.Spans)-1].To = id
	} else {
		s.Spans = append(s.Spans, Span{From: id, To: id})
	}
	x.spans[key] = n
}

func (x *Import) flush() {
	if x.block != nil {
		x.emit(BlocksTable, x.number, x.block)
	}
	x.block = nil
}

// Finish emits the rows of all tables, and returns the sequence number that they have.
func (x *Import) Finish() Seq {
	x.flush()
	r := x.realm
	next := r.Org().NextMessage
	for u, l := range r.subscriptions.all() {
		for i := range l.List {
			s := &l.List[i]
			if !s.Active {
				s.closeSpan(next - 1)
				continue
			}
			n := len(s.Spans)
			switch {
			case n > 0 && s.Spans[n-1].To == 0:
			case n > 0 && x.spans[spanKey{u, s.Channel}] == x.sent[s.Channel]:
				s.Spans[n-1].To = 0
			default:
				s.Spans = append(s.Spans, Span{From: next})
			}
		}
	}
	for _, u := range r.users.keys() {
		marks := x.marks[u]
		unread := marks.Read
		marks.Read = ids.Set{}
		if next > 1 {
			marks.Read.AddRange(1, int64(next)-1)
			marks.Read.Subtract(unread)
		}
		r.marks.set(u, &marks)
	}
	r.EachRow(x.emit)
	return r.seq
}
