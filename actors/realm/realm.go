package realm

import "fmt"

// Realm is one organization: its rows, the indexes derived from them and cached JSON. It has no lock: only one
// goroutine may use it at a time.
type Realm struct {
	id  ID
	seq Seq // number of the last fact applied

	allTables []anyTable // every table that a snapshot saves, by number

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

	// snapshotMessages holds, while a snapshot is being written, the earlier versions of changed messages in blocks
	// that are not written yet. See saveForSnapshot.
	snapshotMessages map[int64][]previousMessage

	// index is derived from the rows. rebuildIndexes fills it after the rows are loaded.
	index indexes

	archiveTime       int64 // seconds for which deleted messages can be restored; given, not stored
	retentionPaused   bool  // see PauseRetention; not stored
	retentionProgress retentionProgress
	purgeProgress     purgeProgress
	// stoppedJobs are the ids of jobs that stopped early; see JobStopped. Nothing depends on them after a restart.
	stoppedJobs []int64

	// cache holds JSON encoded from rows, with the version of the rows it was made from.
	cache jsonCache

	prior *priorState // saved by apply for notices of the same fact; nil between facts

	limits Limits // of the objects that users create; see SetLimits
	level  uint16 // see Level; 0: that of the program
}

// New returns an empty organization without users or settings. Its first fact must be Founded.
func New(id ID) *Realm {
	r := &Realm{id: id, snapshotMessages: map[int64][]previousMessage{},
		archiveTime: DefaultArchiveDays * secondsPerDay}
	r.org.init(r, OrganizationTable)
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
	r.small.init(r) // numbers from 20
	user := numberingOf[UserID]()
	r.users.useNumbering(user)
	r.subscriptions.useNumbering(user)
	r.marks.useNumbering(user)
	r.topicPolicies.useNumbering(user)
	r.channels.useNumbering(numberingOf[ChannelID]())
	r.topics.useNumbering(numberingOf[TopicID]())
	r.blocks.useNumbering(numberingOf[int64]())
	extra := numberingOf[MessageID]()
	extra.paged = true // most messages have no row in this table
	r.extras.useNumbering(extra)
	r.small.shownNotifications.useNumbering(user)
	r.blocks.originalRow, r.extras.copyRow = r.blockAtSnapshot, (*MessageExtra).snapshotCopy
	r.extras.shareRow = (*MessageExtra).shareWith
	r.index.init()
	r.SetLimits(Limits{})
	r.countVersions()
	return r
}

// ID returns the organization's number in this process and in its data directory.
func (r *Realm) ID() ID { return r.id }

// Seq returns the number of the last fact applied.
func (r *Realm) Seq() Seq { return r.seq }

// Founded reports whether the organization's first fact has been applied.
func (r *Realm) Founded() bool { return r.org.find(0) != nil }

// Fact is one change that happened. The journal stores the facts.
//
// apply changes the realm. It must not fail and must not ask for anything: clock readings, new ids and permissions are
// settled while deciding and are fields of the fact, or come with the batch. It does not change the fact, which other
// processes apply too. notices runs right after apply. It returns the events of the fact with their audiences at that
// moment.
type Fact interface {
	apply(r *Realm)
	notices(r *Realm) []Notice
}

// Event is the content of an event for clients. It is self-contained, because it is rendered later, when the realm may
// have changed again.
type Event interface {
	// EventType returns the protocol's name of the event. A queue's event_types filter on it.
	EventType() string
}

// Notice is an event and its audience: the users that had a queue when the fact was applied.
type Notice struct {
	To    []UserID // ascending; never changed after creation, so it may be shared
	Event Event
	// PublicOnly marks a channel message offered to users who did not receive it. Only queues registered for all public
	// channels accept it.
	PublicOnly bool
}

// Publication is the notices of one fact, as they are sent to the session actors. Seq is the number of the fact. An
// ephemeral event has no fact: its publication has the number of the fact before it.
type Publication struct {
	Seq       Seq
	Ephemeral bool
	Notices   []Notice
}

// Done is the empty answer of a command.
type Done struct{}

// Command is a request to change the realm; A is the type of its answer.
//
// Decide checks the request, then returns a refusal or records facts with Turn.Record. All refusals come before the
// first Record. A fact that may change which users a limited guest sees is recorded with Turn.recordWithVisibility
// instead. That step also records PeopleSeen facts for the guests, directly before and after it.
type Command[A any] interface {
	Decide(t *Turn) (A, error)
}

// TurnEnv is everything a turn gets from outside the realm: the time, random tokens, settings of the server, and
// rendering.
type TurnEnv struct {
	Now   int64                   // Unix seconds
	Token func(length int) string // returns random characters of [A-Za-z0-9]
	UUID  func() string           // returns a random version 4 UUID
	// PushEnabled says that a push notification service is configured.
	PushEnabled bool
	// PushBouncer says that this service is a bouncer: another server that forwards notifications for this one. Devices
	// must be registered there.
	PushBouncer bool
	// ReadOnly says that nothing can be stored: a command that would record a fact is refused with ErrReadOnly.
	// OfSeveral says that the server is a core of several.
	ReadOnly, OfSeveral bool
	// Level is the rule level of the cluster; 0: that of the program. A command that would record a fact of a higher
	// level is refused.
	Level uint16
	// EmailEnabled says that the server sends emails about missed messages.
	EmailEnabled bool
	// InviteLinkToken returns the token at the end of an invitation link. It is derived from the link's id and the
	// server's secret.
	InviteLinkToken func(id int64) string
	Hash            func(secret string) [32]byte       // one-way hash for API keys and other bearer secrets
	APIKey          func(u UserID, epoch int64) string // an account's API key

	// RenderMessage and RenderDescription turn Markdown into HTML inside the turn. They read only the view. If they are
	// nil, the text is shown as plain paragraphs.
	RenderMessage     func(text string, v View) (Body, ContentInfo)
	RenderDescription func(text string, v View) string
	// NextRepeat returns the first time of a repeated message after a time, both in Unix seconds; false if its time
	// zone is not known. It may be nil: no zone is known.
	NextRepeat func(p Repeat, after int64) (at int64, known bool)
	// TopicLinks returns the links in a topic according to the organization's linkifiers.
	TopicLinks func(topic string, v View) []TopicLink
}

// Caller identifies who sent a request. User 0 is a logged-out visitor, or the server itself if System is set.
type Caller struct {
	User   UserID
	Client string // name of the client program, at most 30 characters
	System bool   // timers, operators and the server itself
	// Key is the hash of the API key that the request was sent with, or zero. A turn or view begins by checking that
	// the key is still valid; see CheckCredentials.
	Key [32]byte
	// Session is the hash of the secret of the browser session that the request was sent with, or zero. It is checked
	// like Key.
	Session [32]byte
	// Address is the network address of the client, for the audit log; "": not known.
	Address string
	// Operation is the name under which metrics count the time of the request. If it is empty, the name of the function
	// is used.
	Operation string
	// Request is the id of the request, if its sender can ask later whether it was carried out; at most MaxRequestID
	// bytes. It is written with the facts.
	Request string
	// Edge is the connection that the request came from, if another node passed it on: that node hosts an event queue
	// that the request opens.
	Edge string
}

// View is read access to the realm for one caller. Rows that it returns belong to the realm: copy everything that
// leaves the view.
type View struct {
	*Realm
	Caller
	Now int64
	// scope is the scope of the key that the request was sent with, and scopedKey the id of the key; nil and 0: the
	// caller has all rights of the account.
	scope     *KeyScope
	scopedKey int64
}

// IsVisitor reports whether the caller is not logged in.
func (v View) IsVisitor() bool { return v.User == 0 && !v.System }

// Turn is exclusive access to the realm for one command. It collects the facts and notices that the command records.
type Turn struct {
	View
	env          TurnEnv
	facts        []Fact
	publications []Publication
	entries      []AuditEntry // of the audit log, for the facts so far
}

// ViewAs returns a view of the realm for the caller.
func (r *Realm) ViewAs(c Caller, now int64) View { return r.newView(c, now) }

// RunTurn runs decide in a turn of its own. It returns the answer, the recorded facts in order (the first has number
// Seq()-len(facts)+1 afterwards), and their notices. If err is not nil, nothing was recorded. RunTurn panics with
// IncompleteTurn if decide panics after its first fact.
func RunTurn[A any](
	r *Realm, c Caller, env TurnEnv, decide func(*Turn) (A, error),
) (answer A, facts []Fact, publications []Publication, err error) {
	t := &Turn{View: r.newView(c, env.Now), env: env}
	r.level = env.Level
	defer func() {
		if p := recover(); p != nil {
			switch p.(type) {
			case readOnlyTurn:
				err = ErrReadOnly(env.OfSeveral)
				return
			case lowLevelTurn:
				err = errLowLevel()
				return
			}
			if len(t.facts) > 0 {
				panic(IncompleteTurn{p})
			}
			panic(p)
		}
	}()
	if err := r.CheckCredentials(c, env.Now); err != nil {
		return answer, nil, nil, err
	}
	answer, err = decide(t)
	if err != nil && len(t.facts) > 0 {
		panic(IncompleteTurn{"BUG: a command refused after recording: " + err.Error()})
	}
	if err == nil {
		t.recordEntries()
	}
	return answer, t.facts, t.publications, err
}

// IncompleteTurn is the panic of a turn that had already recorded a fact. The state of the realm can no longer be
// trusted.
type IncompleteTurn struct{ Cause any }

// readOnlyTurn is the panic that ends a turn at its first fact while nothing can be stored. Nothing has changed by
// then.
type readOnlyTurn struct{}

// Record applies a fact, gives it the next number, and collects its notices. It panics on a fact that needs
// recordWithVisibility.
func (t *Turn) Record(f Fact) {
	if t.mayChangeUserVisibility(f) && t.GuestsLimited() {
		panic(fmt.Sprintf("BUG: %T may change which users guests see: record it with recordWithVisibility", f))
	}
	t.record(f)
}

// record is Record without the check.
func (t *Turn) record(f Fact) {
	if t.env.ReadOnly {
		panic(readOnlyTurn{})
	}
	if l := levelOf(f); l > t.Level() {
		if len(t.facts) > 0 {
			panic(fmt.Sprintf("BUG: %T needs the rule level %d and is not the first fact of its turn: check the level "+
				"before", f, l))
		}
		panic(lowLevelTurn{})
	}
	t.audit(f)
	t.facts = append(t.facts, f)
	if n := t.applyNext(f); len(n) > 0 {
		t.publications = append(t.publications, Publication{Seq: t.seq, Notices: n})
	}
}

// SendEphemeral sends an event without a fact, for example presence and typing. A crash may lose it.
func (t *Turn) SendEphemeral(n Notice) {
	if len(n.To) > 0 {
		t.publications = append(t.publications, Publication{Seq: t.seq, Ephemeral: true, Notices: []Notice{n}})
	}
}

// Token returns random characters of [A-Za-z0-9].
func (t *Turn) Token(length int) string { return t.env.Token(length) }

// UUID returns a random version 4 UUID.
func (t *Turn) UUID() string { return t.env.UUID() }

// Hash returns the one-way hash under which a bearer secret is stored.
func (t *Turn) Hash(secret string) [32]byte { return t.env.Hash(secret) }

// topicLinks returns the links in a topic according to the organization's linkifiers.
func (t *Turn) topicLinks(topic string) []TopicLink {
	if t.env.TopicLinks == nil || topic == "" {
		return nil
	}
	return t.env.TopicLinks(topic, t.View)
}

// SetSeq records the sequence number of the loaded snapshot and rebuilds the indexes. run gets parts of that work that
// are independent of each other, and returns when all are done: RunSequentially, or a function that uses goroutines.
func (r *Realm) SetSeq(seq Seq, run func(parts ...func())) {
	r.seq = seq
	r.rebuildIndexes(run)
	r.index.markdownConfigSeq = seq
}

// RunSequentially runs the parts one after the other.
func RunSequentially(parts ...func()) {
	for _, part := range parts {
		part()
	}
}

// Ticked is a fact without content. Ephemeral events are numbered behind the last fact; after a new fact there are
// further ids for them.
type Ticked struct{}

func (*Ticked) apply(*Realm)                {}
func (f *Ticked) notices(r *Realm) []Notice { return []Notice{{To: r.everyoneAudience(), Event: f}} }

// EventType returns "": sessions need only the number.
func (*Ticked) EventType() string { return "" }

// Tick records an empty fact that reaches every queue, after which there are further ids for ephemeral events.
func (t *Turn) Tick() error {
	t.Record(&Ticked{})
	return nil
}

// ServerRestarted is the event restart: the server has been restarted.
type ServerRestarted struct{ Generation int64 }

func (*ServerRestarted) EventType() string { return "restart" }

// AnnounceRestart sends ServerRestarted to every connected user, without a fact.
func (t *Turn) AnnounceRestart() error {
	if t.Realm.Founded() {
		t.SendEphemeral(Notice{To: t.everyoneAudience(), Event: &ServerRestarted{t.Now}})
	}
	return nil
}

// Due returns the next turn that the server must run on its own at this time, or nil.
func (r *Realm) Due(now int64) func(*Turn) (any, error) { return r.small.nextDue(r, now) }
