package realm

import "slices"

// Queue is the row of one event queue: its registration. What it still holds is not here: that follows from facts.
type Queue struct {
	ID          QueueID
	User        UserID
	At          Seq // number of the registration; event ids count from it
	Created     int64
	EventTypes  []string // nil: all
	Narrow      [][2]string
	AllPublic   bool
	Markdown    bool   // content as HTML
	Gravatar    bool   // the client computes avatar addresses
	Slim        bool   // presence without addresses
	Subscribers string // true, false or partial
	Caps        Caps
	Idle        int64 // seconds without contact after which the queue ends
	Client      string
}

// Caps is what a client says it understands.
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
)

// CapNames are the protocol's names, in the order of the bits.
var CapNames = []string{"notification_settings_null", "bulk_message_deletion", "user_avatar_url_field_optional", "stream_typing_notifications",
	"user_settings_object", "linkifier_url_template", "user_list_incomplete", "include_deactivated_groups", "archived_channels",
	"empty_topic_name", "simplified_presence_events", "individual_emoji_changes"}

// Queue lifetimes in seconds; the numbers are the protocol's.
const (
	DefaultIdle = 600
	MaxIdle     = 604800
	MobileIdle  = 43200
)

// MaxQueues is how many queues one user may have at once: a client that leaks queues must not fill the server.
const MaxQueues = 1000

// Register asks for an event queue; State builds the initial state in the same turn, so that queue and state are one
// cut: no change is in both or in neither.
type Register struct {
	Queue          Queue
	AllPublicGiven bool // valueOr what a bot's settings say
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
	if me.IsBot() { // what a bot does not say, its settings do
		d := t.BotOf(me.ID)
		if !c.AllPublicGiven {
			q.AllPublic = d.AllPublic && !me.IsGuest()
		}
		if ch := t.channels.find(d.Register); ch != nil && len(narrow) == 0 {
			q.Narrow = [][2]string{{"channel", ch.Name}}
		}
	}
	if t.index.queueCount[me.ID] >= MaxQueues {
		return Registered{}, Refuse(TooMany, "RATE_LIMIT_HIT", "Too many event queues").With("retry-after", 60.0)
	}
	q.ID, q.User, q.Created, q.At = QueueID(t.UUID()), me.ID, t.Now, t.seq+1
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

// queueNarrow is a queue's narrow with its people by id: addresses change.
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

// QueueOpened says a client listens from here on.
type QueueOpened struct{ Queue Queue }

func (f *QueueOpened) apply(r *Realm) {
	q := f.Queue
	r.queues.put(q.ID, &q)
	r.index.openQueue(r, &q)
}

func (x *indexes) openQueue(r *Realm, q *Queue) {
	if x.queueCount[q.User]++; x.queueCount[q.User] == 1 {
		x.usersWithQueues.Add(int64(q.User))
		x.queueAudiences.valid = false
		r.dropSubscribersAudience(q.User)
	}
	if q.AllPublic {
		x.allPublicQueues[q.User]++
	}
}

func (r *Realm) dropSubscribersAudience(u UserID) {
	r.subscribedChannelSet(u).Each(func(c int64) bool { r.index.channels[ChannelID(c)].connectedSubscribersValid = false; return true })
}

func (f *QueueOpened) tell(r *Realm) []Notice {
	return []Notice{{To: []UserID{f.Queue.User}, Event: f}}
}

// EventType is empty: the event is for the session that will hold the queue, not for a client.
func (*QueueOpened) EventType() string { return "" }

// CloseQueue asks to end a queue: its owner, or the session when nobody came for it in time.
type CloseQueue struct {
	ID  QueueID
	Why string
}

func (c CloseQueue) Decide(t *Turn) (Done, error) {
	q := t.queues.find(c.ID)
	if q == nil || !t.System && q.User != t.User {
		return Done{}, ErrBadQueue(c.ID)
	}
	t.Record(&QueueClosed{c.ID, q.User})
	return Done{}, nil
}

// ErrBadQueue is the refusal that makes clients register anew: unknown queue, or not yours.
func ErrBadQueue(id QueueID) *Refusal {
	return Refuse(Invalid, "BAD_EVENT_QUEUE_ID", "Bad event queue ID: "+string(id)).With("queue_id", string(id))
}

// QueueClosed says a queue is gone.
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
		r.dropSubscribersAudience(q.User)
	}
	if q.AllPublic {
		if r.index.allPublicQueues[q.User]--; r.index.allPublicQueues[q.User] == 0 {
			delete(r.index.allPublicQueues, q.User)
		}
	}
	r.queues.remove(f.ID)
}

func (f *QueueClosed) tell(*Realm) []Notice { return []Notice{{To: []UserID{f.User}, Event: f}} }

func (*QueueClosed) EventType() string { return "" }

// QueuesCaughtUp says that what is told up to a number need not be kept any more for the queues of a session actor: their
// clients have all come since the server started. It changes nothing in the organization and nobody hears of it. A server
// that is killed over and over would otherwise keep everything for clients that do not all come within any of its lives.
type QueuesCaughtUp struct {
	Shard, Shards int // the actor's number, of how many; among another number of them it says nothing
	Through       Seq
}

func (*QueuesCaughtUp) apply(*Realm)         {}
func (*QueuesCaughtUp) tell(*Realm) []Notice { return nil }

// RecordCaughtUp records it.
func (t *Turn) RecordCaughtUp(f *QueuesCaughtUp) { t.Record(f) }

// FindQueue is a queue by id whoever owns it, or nil.
func (r *Realm) FindQueue(id QueueID) *Queue { return r.queues.find(id) }

// EachQueue calls fn with every queue.
func (r *Realm) EachQueue(fn func(*Queue)) {
	for _, id := range r.queues.keys() {
		fn(r.queues.find(id))
	}
}

// WantsEvent reports whether the queue takes events of a type.
func (q *Queue) WantsEvent(event string) bool {
	return q.EventTypes == nil || slices.Contains(q.EventTypes, event)
}
