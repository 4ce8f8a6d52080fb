package realm

import "slices"

// Queue is the row of one event queue: its registration. Its pending events are not part of it: they follow from
// facts.
type Queue struct {
	ID          QueueID
	User        UserID
	At          Seq // fact number of the registration; event ids are relative to it
	Created     int64
	EventTypes  []string // nil: all
	Narrow      [][2]string
	AllPublic   bool
	Markdown    bool   // message content as HTML, not as Markdown
	Gravatar    bool   // the client computes avatar addresses
	Slim        bool   // presence without email addresses
	Subscribers string // true, false or partial
	Caps        Caps
	Idle        int64 // seconds without contact after which the queue ends
	Client      string
	// Key is the id of the scoped key that opened the queue, and Scope its scope; 0 and nil: the queue was opened with
	// all rights of the account. Another scoped key cannot use the queue.
	Key   int64
	Scope *KeyScope
}

// Caps are the protocol features that a client supports.
type Caps uint32

const (
	CapNotificationSettingsNull Caps = 1 << iota
	CapBulkMessageDeletion
	CapAvatarURLOptional
	CapStreamTyping
	CapUserSettingsObject
	CapLinkifierURLTemplate
	CapUserListIncomplete
	CapDeactivatedGroups
	CapArchivedChannels
	CapEmptyTopicName
	CapSimplifiedPresence
	CapIndividualEmoji
	// CapShortUserList is an extension of the protocol: in a large organization the client gets a short list of users.
	CapShortUserList
)

// CapNames are the protocol's names, in the order of the bits.
var CapNames = []string{"notification_settings_null", "bulk_message_deletion", "user_avatar_url_field_optional",
	"stream_typing_notifications",
	"user_settings_object", "linkifier_url_template", "user_list_incomplete", "include_deactivated_groups",
	"archived_channels",
	"empty_topic_name", "simplified_presence_events", "individual_emoji_changes", "short_user_list"}

// Queue lifetimes in seconds. The numbers come from the protocol.
const (
	DefaultIdle = 600
	MaxIdle     = 604800
	MobileIdle  = 43200
)

// MaxQueues limits the queues of one user and the user's bots, so that a client that leaks queues does not fill the
// server.
const MaxQueues = 1000

// Register asks for an event queue. State builds the initial state in the same turn: each change is either in the
// state or an event of the queue.
type Register struct {
	Queue          Queue
	AllPublicGiven bool // otherwise a bot's own settings decide
	State          func(v View, q *Queue) (any, error)
}

// Registered answers Register.
type Registered struct {
	Queue *Queue
	State any
}

func (c Register) Decide(t *Turn) (Registered, error) {
	q := c.Queue
	me := t.Me()
	if me == nil {
		state, err := c.State(t.View, nil)
		return Registered{State: state}, err
	}
	if q.AllPublic && me.IsGuest() {
		return Registered{}, BadRequest("User not authorized for this query")
	}
	narrow, err := t.queueNarrow(q.Narrow)
	if err != nil {
		return Registered{}, err
	}
	q.Narrow = narrow
	if me.IsBot() { // values a bot does not give come from its settings
		d := t.BotOf(me.ID)
		if !c.AllPublicGiven {
			q.AllPublic = d.AllPublic && !me.IsGuest()
		}
		if ch := t.channels.find(d.Register); ch != nil && len(narrow) == 0 {
			q.Narrow = [][2]string{{"channel", ch.Name}}
		}
	}
	if t.queues.size() >= MaxQueues && t.sumCharged(me.ID, t.queueCount) >= MaxQueues {
		return Registered{}, Refuse(TooMany, "RATE_LIMIT_HIT", "Too many event queues").With("retry-after", 60.0)
	}
	q.ID, q.User, q.Created, q.At = QueueID(t.UUID()), me.ID, t.Now, t.seq+1
	q.Key, q.Scope = t.scopedKey, t.scope
	if q.Idle <= 0 {
		q.Idle = DefaultIdle
	}
	q.Idle = min(q.Idle, MaxIdle)
	state, err := c.State(t.View, &q)
	if err != nil {
		return Registered{}, err
	}
	t.Record(&QueueOpened{q})
	return Registered{&q, state}, nil
}

func (r *Realm) queueCount(u UserID) int { return r.index.queueCount[u] }

// queueNarrow returns a queue's narrow with user ids in place of addresses, because addresses change.
func (v View) queueNarrow(terms [][2]string) ([][2]string, error) {
	terms = slices.Clone(terms)
	for i, n := range terms {
		if n[0] == "mentions" {
			u := v.FindByShownEmail(n[1])
			if u == nil {
				return nil, badNarrow("unknown user " + n[1])
			}
			terms[i][1] = u.ID.String()
		}
	}
	return terms, nil
}

// QueueOpened says that a client opened an event queue.
type QueueOpened struct{ Queue Queue }

func (f *QueueOpened) apply(r *Realm) {
	q := f.Queue
	r.queues.put(q.ID, &q)
	r.index.openQueue(r, &q)
}

// openQueue adds a queue to the indexes.
func (x *indexes) openQueue(r *Realm, q *Queue) {
	if x.queueCount[q.User]++; x.queueCount[q.User] == 1 {
		x.usersWithQueues.Add(int64(q.User))
		x.queueAudiences.valid = false
		r.dropSubscriberCaches(q.User)
	}
	if q.AllPublic {
		x.allPublicQueues[q.User]++
	}
}

// dropSubscriberCaches drops the cached subscribersAudience of all channels of a user.
func (r *Realm) dropSubscriberCaches(u UserID) {
	r.subscribedChannelSet(u).Each(func(c int64) bool {
		r.index.channels[ChannelID(c)].connectedSubscribersValid = false
		return true
	})
}

func (f *QueueOpened) notices(r *Realm) []Notice {
	return []Notice{{To: []UserID{f.Queue.User}, Event: f}}
}

// EventType is empty because the event is for the session actor that keeps the queue, not for clients.
func (*QueueOpened) EventType() string { return "" }

// CloseQueue asks to end a queue. Its user may ask for it, or the session actor when the client did not return in
// time.
type CloseQueue struct {
	ID  QueueID
	Why string
}

func (c CloseQueue) Decide(t *Turn) (Done, error) {
	q := t.queues.find(c.ID)
	if q == nil || !t.System && (q.User != t.User || t.scopedKey != 0 && t.scopedKey != q.Key) {
		return Done{}, ErrBadQueue(c.ID)
	}
	t.Record(&QueueClosed{c.ID, q.User})
	return Done{}, nil
}

// ErrBadQueue refuses an unknown queue, or one of another user. Clients register again when they get it.
func ErrBadQueue(id QueueID) *Refusal {
	return Refuse(Invalid, "BAD_EVENT_QUEUE_ID", "Bad event queue ID: "+string(id)).With("queue_id", string(id))
}

// QueueClosed says that a queue was closed.
type QueueClosed struct {
	ID   QueueID
	User UserID
}

func (f *QueueClosed) apply(r *Realm) {
	q := r.queues.must(f.ID)
	if r.index.queueCount[q.User]--; r.index.queueCount[q.User] == 0 {
		delete(r.index.queueCount, q.User)
		r.index.usersWithQueues.Remove(int64(q.User))
		r.index.queueAudiences.valid = false
		r.dropSubscriberCaches(q.User)
	}
	if q.AllPublic {
		if r.index.allPublicQueues[q.User]--; r.index.allPublicQueues[q.User] == 0 {
			delete(r.index.allPublicQueues, q.User)
		}
	}
	r.queues.remove(f.ID)
}

func (f *QueueClosed) notices(*Realm) []Notice { return []Notice{{To: []UserID{f.User}, Event: f}} }

func (*QueueClosed) EventType() string { return "" }

// QueuesCaughtUp says that one session actor's queues have fetched all events up to a fact number: each of their
// clients has polled since the server started. The server need not store events up to there for them. It changes no
// state and sends no event. Without it, a server that is killed repeatedly would store all events, because not all
// clients poll in each of its short runs.
type QueuesCaughtUp struct {
	Actor, Actors int // index of the session actor and their number; with another number of them the fact is ignored
	Through       Seq
}

func (*QueuesCaughtUp) apply(*Realm)            {}
func (*QueuesCaughtUp) notices(*Realm) []Notice { return nil }

// RecordCaughtUp records the fact.
func (t *Turn) RecordCaughtUp(f *QueuesCaughtUp) { t.Record(f) }

// FindQueue returns a queue by id, for any owner, or nil.
func (r *Realm) FindQueue(id QueueID) *Queue { return r.queues.find(id) }

// EachQueue calls fn with every queue.
func (r *Realm) EachQueue(fn func(*Queue)) {
	for _, id := range r.queues.keys() {
		fn(r.queues.find(id))
	}
}

// WantsEvent reports whether the queue gets events of a type.
func (q *Queue) WantsEvent(event string) bool {
	return (q.EventTypes == nil || slices.Contains(q.EventTypes, event)) && q.Scope.AllowsEvents(event)
}
