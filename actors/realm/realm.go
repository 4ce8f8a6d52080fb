// Package realm holds one organization as plain data: its rules, its state, and what it tells whom.
//
// A command gets one turn: it looks around, then refuses or records facts. A fact applies at once, in memory, and
// nothing else changes state; then it tells who hears which event. Recovery plays the same facts through the same
// apply and tell. The package starts no goroutine, holds no lock, reads no clock, rolls no dice and does no I/O:
// the time and random tokens of a turn are given to it.
package realm

// Realm is one organization. It belongs to one goroutine at a time.
type Realm struct {
	id  ID
	seq Seq // number of the last fact applied

	allTables []anyTable // every table a snapshot keeps, by number

	org           table[int, Organization] // one row, key 0
	users         table[UserID, User]
	groups        table[GroupID, Group]
	subscriptions table[UserID, Subscriptions]
	channels      table[ChannelID, Channel]
	blocks        table[int64, messageBlock]
	extras        table[MessageID, MessageExtra]
	marks         table[UserID, MessageMarks]
	topics        table[TopicID, Topic]
	conversations table[DirectConversationID, DirectConversation]
	clients       table[ClientID, ClientName]
	queues        table[QueueID, Queue]
	topicPolicies table[UserID, TopicPolicies]
	small         smallTables

	// Of the running snapshot: messages as they were, by the row that is not written yet; see keepMessage.
	snapshotMessages map[int64][]previousMessage

	// Derived from the rows, rebuilt by index after loading.
	index indexes

	cache jsonCache // what was shown of the rows, and what of them changed since
}

// New returns an empty organization: no user, no setting; its first fact is Founded.
func New(id ID) *Realm {
	r := &Realm{id: id, snapshotMessages: map[int64][]previousMessage{}}
	r.org.init(r, 1)
	r.users.init(r, 2)
	r.groups.init(r, 3)
	r.subscriptions.init(r, 4)
	r.channels.init(r, 5)
	r.blocks.init(r, BlocksTable)
	r.extras.init(r, 7)
	r.marks.init(r, 8)
	r.topics.init(r, 9)
	r.conversations.init(r, 10)
	r.clients.init(r, 11)
	r.queues.init(r, 12)
	r.topicPolicies.init(r, 13)
	r.small.init(r) // numberByType from 20
	user := numberingOf[UserID]()
	r.users.useNumbering(user)
	r.subscriptions.useNumbering(user)
	r.marks.useNumbering(user)
	r.topicPolicies.useNumbering(user)
	r.channels.useNumbering(numberingOf[ChannelID]())
	r.topics.useNumbering(numberingOf[TopicID]())
	r.blocks.useNumbering(numberingOf[int64]())
	further := numberingOf[MessageID]()
	further.paged = true // most messages have no further row
	r.extras.useNumbering(further)
	r.small.shownNotifications.useNumbering(user)
	r.blocks.originalRow, r.extras.copyRow = r.blockAtSnapshot, (*MessageExtra).snapshotCopy
	r.extras.shareRow = (*MessageExtra).shareWith
	r.index.init()
	r.countVersions()
	return r
}

// ID is the organization's number in this process and in its data directory.
func (r *Realm) ID() ID { return r.id }

// Seq is the number of the last fact applied.
func (r *Realm) Seq() Seq { return r.seq }

// Founded reports whether the organization's first fact has been applied.
func (r *Realm) Founded() bool { return r.org.find(0) != nil }

// Fact is something that has happened. apply must not fail and must not ask: whatever needed asking was settled while
// deciding and is carried by the fact. tell runs right after apply and resolves the audience as of that moment.
type Fact interface {
	apply(r *Realm)
	tell(r *Realm) []Notice
}

// Event is what a client may hear. It is self-contained: it is rendered later, when the realm has moved on.
type Event interface {
	// EventType is the protocol's name of the event, what event_types of a queue filters on.
	EventType() string
}

// Notice is an event and its audience as resolved when the fact was applied, narrowed to users that had a queue.
type Notice struct {
	To    []UserID // sortUnique; never written to after it was made, so it may be shared
	Event Event
	// PublicOnly marks a channel message offered to people who did not receive it: only queues that asked for all
	// public channels take it.
	PublicOnly bool
}

// Told is a notice with its place: the number of its fact (or, for an ephemeral one, of the last fact before it).
type Told struct {
	Seq       Seq
	Ephemeral bool
	Notices   []Notice
}

// Done is the answer of a command that has nothing to say.
type Done struct{}

// Command is what someone asks; A is the type of its answer.
type Command[A any] interface {
	Decide(t *Turn) (A, error)
}

// TurnEnv is what a turn may know of the world outside: the time and fresh random tokens.
type TurnEnv struct {
	Now   int64                   // Unix seconds
	Token func(length int) string // random characters of [A-Za-z0-9]
	UUID  func() string           // random version 4
	// Pushes: there is a service that notifies phones.
	PushEnabled bool
	// Bouncer: that service passes notifications on for us, and is to know the devices.
	PushBouncer bool
	// Mails: missed messages are told by mail.
	EmailEnabled bool
	// LinkToken is what the invitation link of that number ends in: it follows from the server's secret.
	InviteLinkToken func(id int64) string
	Hash            func(secret string) [32]byte       // one-way, for API keys and other bearer secrets
	APIKey          func(u UserID, epoch int64) string // an account's API key

	// Render and Describe turn the text of a message, or of a description, into HTML inside the turn. They look only
	// growTo the view. nil shows plain paragraphs.
	RenderMessage     func(text string, v View) (Body, ContentInfo)
	RenderDescription func(text string, v View) string
	// Links is the links a topic contains, as the organization's linkifiers stand.
	TopicLinks func(topic string, v View) []TopicLink
}

// Caller says who asks. User 0 is nobody: an anonymous visitor, or the system itself if System is set.
type Caller struct {
	User      UserID
	Client    string // name of the client program, at most 30 characters
	System    bool   // timers, operators and the server itself
	Operation string // the name of what he asks, under which the time it takes is counted; "" is the function's
}

// View is the realm as one caller may see it. Rows it hands out belong to the realm: copy what leaves the view.
type View struct {
	*Realm
	Caller
	Now int64
}

// Turn is one command's moment.
type Turn struct {
	View
	env   TurnEnv
	facts []Fact
	told  []Told
}

// ViewAs returns the realm as the caller sees it.
func (r *Realm) ViewAs(c Caller, now int64) View { return View{Realm: r, Caller: c, Now: now} }

// RunTurn gives decide one turn. It returns the recorded facts in order (the first has number Seq()-len+1 afterwards) and
// who hears what. When err is not nil, nothing was recorded.
func RunTurn[A any](r *Realm, c Caller, m TurnEnv, decide func(*Turn) (A, error)) (answer A, facts []Fact, told []Told, err error) {
	t := &Turn{View: View{Realm: r, Caller: c, Now: m.Now}, env: m}
	defer func() {
		if p := recover(); p != nil {
			if len(t.facts) > 0 {
				panic(IncompleteTurn{p})
			}
			panic(p)
		}
	}()
	answer, err = decide(t)
	if err != nil && len(t.facts) > 0 {
		panic(IncompleteTurn{"BUG: a command refused after recording: " + err.Error()})
	}
	return answer, t.facts, t.told, err
}

// IncompleteTurn is the panic of a turn that had already recorded a fact: the state can no longer be trusted.
type IncompleteTurn struct{ Cause any }

// Record applies a fact, gives it the next number, and notes who hears of it.
func (t *Turn) Record(f Fact) {
	was := t.usersVisibleBefore(f)
	t.announceNewUsers(f, was)
	t.facts = append(t.facts, f)
	t.seq++
	f.apply(t.Realm)
	t.noteApplied(f)
	if n := f.tell(t.Realm); len(n) > 0 {
		t.told = append(t.told, Told{Seq: t.seq, Notices: n})
	}
	t.recordVisibilityChanges(f, was)
}

// Tell sends an event that no fact stands behind: presence and typing. A crash may lose it.
func (t *Turn) Tell(n Notice) {
	if len(n.To) > 0 {
		t.told = append(t.told, Told{Seq: t.seq, Ephemeral: true, Notices: []Notice{n}})
	}
}

// Token returns fresh random characters of [A-Za-z0-9].
func (t *Turn) Token(length int) string { return t.env.Token(length) }

// UUID returns a fresh random version 4 UUID.
func (t *Turn) UUID() string { return t.env.UUID() }

// Hash is the one-way form under which bearer secrets are kept.
func (t *Turn) Hash(secret string) [32]byte { return t.env.Hash(secret) }

// topicLinks is the links a topic contains, as the organization's linkifiers stand.
func (t *Turn) topicLinks(topic string) []TopicLink {
	if t.env.TopicLinks == nil || topic == "" {
		return nil
	}
	return t.env.TopicLinks(topic, t.View)
}

// Replay applies a fact read back from the journal and tells what it told then.
func (r *Realm) Replay(f Fact) Told {
	r.seq++
	f.apply(r)
	r.noteApplied(f)
	return Told{Seq: r.seq, Notices: f.tell(r)}
}

// SetSeq sets the number the loaded rows stand at and rebuilds what is derived from them. run is given parts of that which
// have nothing in common, and returns when they are done: RunSequentially, or a device's goroutines.
func (r *Realm) SetSeq(seq Seq, run func(parts ...func())) {
	r.seq = seq
	r.rebuildIndexes(run)
	r.index.markdownConfigSeq = seq
}

// RunSequentially does one part after the other.
func RunSequentially(parts ...func()) {
	for _, part := range parts {
		part()
	}
}

// Ticked is a fact without content: it makes room for more ephemeral event ids behind a number.
type Ticked struct{}

func (*Ticked) apply(*Realm)             {}
func (f *Ticked) tell(r *Realm) []Notice { return []Notice{{To: r.everyoneAudience(), Event: f}} }

// EventType is empty: only the number matters, to the sessions.
func (*Ticked) EventType() string { return "" }

// Tick makes room for more ephemeral ids: an empty fact every listening queue takes note of.
func (t *Turn) Tick() error {
	t.Record(&Ticked{})
	return nil
}

// ServerRestarted is the event restart: everybody who listens hears that the server began anew.
type ServerRestarted struct{ Generation int64 }

func (*ServerRestarted) EventType() string { return "restart" }

// AnnounceRestart tells it; no fact stands behind it.
func (t *Turn) AnnounceRestart() error {
	if t.Realm.Founded() {
		t.Tell(Notice{To: t.everyoneAudience(), Event: &ServerRestarted{t.Now}})
	}
	return nil
}

// Due is what the server itself must do at a time, or nil.
func (r *Realm) Due(now int64) func(*Turn) (any, error) { return r.small.nextDue(r, now) }
