package wire

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"parley/actors/queue"
	"parley/actors/realm"
	"parley/actors/session"
	"parley/wire/form"
)

var eventEndpoints = []Endpoint{
	Custom("GET", "/events", getEvents).Returns("{events: [Event], queue_id: str}"),
	CommandFromForm("DELETE", "/events", dropQueue, emptyAnswer),
}

type getEventsForm struct {
	Queue     form.Opt[string] `form:"queue_id"`
	Last      form.Opt[int64]  `form:"last_event_id"`
	DontBlock bool             `form:"dont_block"`
}

// Check words a missing parameter as the protocol does here: without var_name.
func (f *getEventsForm) Check() *form.Error {
	if !f.Queue.Set && f.DontBlock {
		return nil // the request opens a new queue
	}
	if !f.Queue.Set {
		return form.Bad("Missing 'queue_id' argument")
	}
	if !f.Last.Set {
		return form.Bad("Missing 'last_event_id' argument")
	}
	return nil
}

func getEvents(c *Call, f getEventsForm) (Answer, error) {
	if !f.Queue.Set {
		return openQueue(c)
	}
	p := f.request(c)
	// Polls are compared by the identity of their Reply, so CancelPoll must pass the same one.
	server := c.Server
	w := &pollReply{ignored: ignoredByPolls(c)}
	w.Reply = c.Park(func() {
		p := p
		p.Reply = w
		server.CancelPoll(p)
	})
	p.Reply = w
	server.Poll(p)
	return nil, errParked
}

var openQueueForm = form.Of[queueForm]()

// openQueue opens a queue for a client that requests events without one. The client gets no initial state; old
// programs worked like this before registration existed. Such clients get avatar URLs unless they declare that they
// compute them.
func openQueue(c *Call) (Answer, error) {
	var f queueForm
	if err := openQueueForm.Decode(c.Params, &f); err != nil {
		return nil, err
	}
	c.ignored = ignoredByPolls(c)
	if !f.Gravatar.Set {
		f.Gravatar = form.Opt[bool]{Set: true}
	}
	q, err := f.queue(c)
	if err != nil {
		return nil, err
	}
	r, err := Execute(c, realm.Register{Queue: q, AllPublicGiven: f.AllPublic.Set,
		State: func(realm.View, *realm.Queue) (any, error) { return nil, nil }})
	if err != nil {
		return nil, err
	}
	return Answer{"queue_id": r.Queue.ID, "events": []any{}}, nil
}

// ignoredByPolls returns the parameters that have no meaning for polls. The parameters of a new queue are accepted on
// polls of existing queues too.
func ignoredByPolls(c *Call) []string {
	known := openQueueForm.Ignored(c.Params)
	return slices.DeleteFunc(c.ignored, func(name string) bool { return !slices.Contains(known, name) })
}

// pollReply gives each poll an identity and remembers the ignored parameters to report.
type pollReply struct {
	Reply
	ignored []string
}

// Answer adds the ignored parameters to an answer with events.
func (w *pollReply) Answer(status int, parts ...[]byte) bool {
	if status == 200 && len(w.ignored) > 0 {
		last := len(parts) - 1
		rest := append([]byte(`,"ignored_parameters_unsupported":`), encode(w.ignored)...)
		parts = append(slices.Clone(parts[:last]), bytes.TrimSuffix(parts[last], eventsEnd), rest, eventsEnd)
	}
	return w.Reply.Answer(status, parts...)
}

type dropQueueForm struct {
	Queue string `form:"queue_id,required"`
}

func dropQueue(f dropQueueForm) realm.CloseQueue {
	return realm.CloseQueue{ID: realm.QueueID(f.Queue)}
}

// Client is the capabilities of a client that change the format of events. Queues with equal Clients share encoded
// events.
type Client struct {
	Caps        realm.Caps
	Markdown    bool
	Gravatar    bool
	Slim        bool
	Subscribers form.IncludeSubscribers
	// ReactionUsers is set for a program that needs the key user in reaction events; see needsReactionUsers.
	ReactionUsers bool
}

// needsReactionUsers reports whether a program needs the key user in reaction events. Feature level 484 removed it, but
// the terminal client reads it without a check and ends with an error if it is absent.
func needsReactionUsers(clientName string) bool { return clientName == "ZulipTerminal" }

// ClientOf returns the capabilities stored with a queue.
func ClientOf(q *realm.Queue) Client {
	c := Client{Caps: q.Caps, Markdown: q.Markdown, Gravatar: q.Gravatar, Slim: q.Slim,
		ReactionUsers: needsReactionUsers(q.Client)}
	switch q.Subscribers {
	case "true":
		c.Subscribers = form.AllSubscribers
	case "partial":
		c.Subscribers = form.PartialSubscribers
	}
	return c
}

// QueueOptions is everything in a registration that decides which events the queue gets and in which format. Queues
// with equal options share one value, so that results computed for one queue are reused for the next.
type QueueOptions struct {
	Client
	eventTypes []string
	narrow     [][2]string
	allPublic  bool
}

// QueueOptionsOf returns the options of a queue in a new value.
func QueueOptionsOf(q *realm.Queue) *QueueOptions {
	return &QueueOptions{Client: ClientOf(q), eventTypes: q.EventTypes, narrow: q.Narrow, allPublic: q.AllPublic}
}

func (k *QueueOptions) matches(q *realm.Queue) bool {
	return k.Client == ClientOf(q) && k.allPublic == q.AllPublic && (k.eventTypes == nil) == (q.EventTypes == nil) &&
		slices.Equal(k.eventTypes, q.EventTypes) && slices.Equal(k.narrow, q.Narrow)
}

// Wants reports whether a queue with these options gets events of a type.
func (k *QueueOptions) Wants(event string) bool {
	return k.eventTypes == nil || slices.Contains(k.eventTypes, event)
}

// QueueOptionsCache returns one shared value for queues with equal options. It belongs to one session shard.
type QueueOptionsCache struct {
	byName map[string]*QueueOptions
	last   *QueueOptions // the last result: most consecutive queues have equal options
}

// maxQueueOptions bounds the cache. There are few client programs, but any client can invent options. When the cache
// is full it is emptied; queues opened later share among themselves.
const maxQueueOptions = 512

// Of returns the shared options of a queue.
func (k *QueueOptionsCache) Of(q *realm.Queue) *QueueOptions {
	if k.last == nil || !k.last.matches(q) {
		k.last = k.find(q)
	}
	return k.last
}

func (k *QueueOptionsCache) find(q *realm.Queue) *QueueOptions {
	name := fmt.Sprintf("%v %t %t %q %q", ClientOf(q), q.AllPublic, q.EventTypes == nil, q.EventTypes, q.Narrow)
	kind := k.byName[name]
	if kind == nil {
		if k.byName == nil || len(k.byName) >= maxQueueOptions {
			k.byName = map[string]*QueueOptions{}
		}
		kind = QueueOptionsOf(q)
		k.byName[name] = kind
	}
	return kind
}

// Has reports whether the client has a capability.
func (c Client) Has(cap realm.Caps) bool { return c.Caps&cap != 0 }

// asStored is the client for requests that cannot declare capabilities: topics are shown as they are stored.
var asStored = Client{Caps: realm.CapEmptyTopicName}

// Topic returns a topic in the form this client expects: clients without the capability get a display name for the
// empty topic.
func (c Client) Topic(topic string) string {
	if topic == "" && !c.Has(realm.CapEmptyTopicName) {
		return realm.EmptyTopicName
	}
	return topic
}

// Recipient is the client and user that an event is rendered for.
type Recipient struct {
	Client
	RenderContext
	User realm.UserID // only for event kinds marked with Personal
	// Flags are the recipient's message flags, if the event has them.
	Flags    realm.Flags
	renderer *NoticeRenderer // the notice being rendered; nil outside of sessions
}

// subscriberListKey identifies a list of subscribers within one notice.
type subscriberListKey struct {
	channel realm.ChannelID
	partial bool
}

// subscriberList returns a long list of subscribers. It is built once for all recipients of one notice.
func (to *Recipient) subscriberList(c realm.ChannelID, partial bool, list func() []realm.UserID) []realm.UserID {
	s := to.renderer
	if s == nil {
		return list()
	}
	k := subscriberListKey{c, partial}
	l, ok := s.subscriberLists[k]
	if !ok {
		if s.subscriberLists == nil {
			s.subscriberLists = map[subscriberListKey][]realm.UserID{}
		}
		l = list()
		s.subscriberLists[k] = l
	}
	return l
}

// RenderContext is the data besides the event that renderers need.
type RenderContext = session.RenderContext

// EventKind renders one Go type of event.
type EventKind struct {
	goType reflect.Type
	render func(realm.Event, *Recipient) []any
	// personal events are rendered for each user separately.
	personal bool
	// lazy events are rendered on delivery; the result can be nothing.
	lazy bool
}

// Event registers the renderer of an event type. It returns one JSON object, or nil if this kind of client does not
// get the event.
func Event[E realm.Event](render func(E, *Recipient) any) EventKind {
	return Events(func(e E, to *Recipient) []any {
		if x := render(e, to); x != nil {
			return []any{x}
		}
		return nil
	})
}

// Events is Event for types that become several events for some clients. The number must depend only on the event and
// the client.
func Events[E realm.Event](render func(E, *Recipient) []any) EventKind {
	return EventKind{goType: reflect.TypeFor[E](), render: func(e realm.Event, to *Recipient) []any {
		return render(e.(E), to)
	}}
}

// LazyEvent is Event for events that are joined with message texts on delivery. A nil result means that the text was
// erased.
func LazyEvent[E realm.Event](render func(E, *Recipient) any) EventKind {
	k := Event(render)
	k.lazy = true
	return k
}

// eventWithFlags is an event that has the message flags of each user.
type eventWithFlags interface {
	FlagsFor(realm.UserID) realm.Flags
}

// Personal marks an event that is rendered for each user separately.
func (k EventKind) Personal() EventKind { k.personal = true; return k }

var eventKinds = func() map[reflect.Type]EventKind {
	m := map[reflect.Type]EventKind{}
	for _, k := range slices.Concat(
		alertWordEvents,
		botEvents,
		channelEvents,
		deactivationEvents,
		defaultChannelEvents,
		domainEvents,
		draftEvents,
		editEvents,
		emojiEvents,
		exportEvents,
		profileFieldEvents,
		flagEvents,
		folderEvents,
		groupEvents,
		inviteEvents,
		linkifierEvents,
		muteEvents,
		navigationEvents,
		onboardingEvents,
		pictureEvents,
		playgroundEvents,
		presenceEvents,
		pushEvents,
		reactionEvents,
		realmEvents,
		reminderEvents,
		scheduledEvents,
		serverEvents,
		settingEvents,
		snippetEvents,
		statusEvents,
		submessageEvents,
		subscriptionEvents,
		typingEvents,
		uploadEvents,
		userEvents,
		userTopicEvents,
	) {
		if _, twice := m[k.goType]; twice {
			panic("BUG: two renderers for " + k.goType.String())
		}
		m[k.goType] = k
	}
	return m
}()

// HasRenderer reports whether an event type has a renderer. A test uses it to name missing renderers.
func HasRenderer(t reflect.Type) bool { _, ok := eventKinds[t]; return ok }

// NoticeRenderer turns one notice into encoded events, once for each kind of client. It belongs to one session shard.
type NoticeRenderer struct {
	notice     *realm.Notice
	eventKind  EventKind
	ctx        RenderContext
	message    *realm.MessageArrived
	hasLast    bool // last and lastEvents are set
	last       variant
	lastEvents []*queue.Event
	// all variants; nil while there is only one, as for most notices
	cache           map[variant][]*queue.Event
	options         *QueueOptions                        // of the last queue
	wanted          bool                                 // the last queue gets this type of event
	subscriberLists map[subscriberListKey][]realm.UserID // see Recipient.subscriberList
}

// variant is everything about a recipient that changes the bytes of an event.
type variant struct {
	client     Client
	user       realm.UserID
	flags      realm.Flags
	hideSender bool
}

// NewNoticeRenderer prepares a notice for the queues of its audience. It panics if no renderer is registered for the
// event.
func NewNoticeRenderer(n *realm.Notice, ctx RenderContext) *NoticeRenderer {
	s := &NoticeRenderer{notice: n, ctx: ctx}
	if m, ok := n.Event.(*realm.MessageArrived); ok {
		s.message = m
		return s
	}
	k, ok := eventKinds[reflect.TypeOf(n.Event)]
	if !ok {
		panic("BUG: no renderer for " + reflect.TypeOf(n.Event).String())
	}
	s.eventKind = k
	return s
}

// EventsFor returns the events of the notice for one queue of a user, encoded without the id. options are the queue's
// *QueueOptions.
func (s *NoticeRenderer) EventsFor(u realm.UserID, q *realm.Queue, options any) []*queue.Event {
	k := options.(*QueueOptions)
	if k != s.options {
		s.options, s.wanted = k, k.Wants(s.notice.Event.EventType())
		if _, old := s.notice.Event.(*realm.MutedTopicsTold); old && k.eventTypes != nil && k.Wants("user_topic") {
			s.wanted = false // user_topic replaces muted_topics for this client
		}
	}
	if !s.wanted {
		return nil
	}
	if s.message != nil {
		return s.messageEventsFor(u, q, k)
	}
	v := variant{client: k.Client}
	if s.eventKind.personal {
		v.user = u
	}
	if f, ok := s.notice.Event.(eventWithFlags); ok {
		v.flags = f.FlagsFor(u)
	}
	to := &Recipient{Client: v.client, RenderContext: s.ctx, User: u, Flags: v.flags, renderer: s}
	if s.eventKind.lazy {
		return s.cached(v, func() []*queue.Event {
			return []*queue.Event{{Make: func() []byte {
				for _, x := range s.eventKind.render(s.notice.Event, to) {
					return withoutClosingBrace(encode(x))
				}
				return nil
			}}}
		})
	}
	return s.cached(v, func() []*queue.Event {
		var out []*queue.Event
		for _, x := range s.eventKind.render(s.notice.Event, to) {
			out = append(out, &queue.Event{JSON: withoutClosingBrace(encode(x))})
		}
		return out
	})
}

// cached returns the events of a variant, rendering them on the first call. The last variant is compared first,
// because most notices look the same to all users.
func (s *NoticeRenderer) cached(v variant, render func() []*queue.Event) []*queue.Event {
	if s.hasLast && s.last == v {
		return s.lastEvents
	}
	out, ok := s.cache[v]
	if !ok {
		out = render()
		if s.hasLast {
			if s.cache == nil {
				s.cache = map[variant][]*queue.Event{s.last: s.lastEvents}
			}
			s.cache[v] = out
		}
	}
	s.hasLast, s.last, s.lastEvents = true, v, out
	return out
}

// withoutClosingBrace removes the last byte of an object, so that the id can be appended.
func withoutClosingBrace(object []byte) []byte { return object[:len(object)-1] }

// messageEventsFor returns the message event for one queue, or nothing if the queue's narrow excludes the message.
// The sender's own queue gets its local id.
func (s *NoticeRenderer) messageEventsFor(u realm.UserID, q *realm.Queue, k *QueueOptions) []*queue.Event {
	e := s.message
	if s.notice.PublicOnly && !k.allPublic {
		return nil
	}
	v := variant{client: k.Client}
	if !s.notice.PublicOnly {
		v.flags = e.FlagsFor(u)
	}
	if len(k.narrow) > 0 && !narrowMatches(e, v.flags, k.narrow, s.ctx.Site) {
		return nil
	}
	v.hideSender = len(e.Unknown) > 0 && slices.Contains(e.Unknown, u)
	if e.LocalID != "" && e.Queue == q.ID {
		return []*queue.Event{{Make: func() []byte { return encodeMessageEvent(e, v, s.ctx, e.LocalID) }}}
	}
	return s.cached(v, func() []*queue.Event {
		return []*queue.Event{{Make: func() []byte { return encodeMessageEvent(e, v, s.ctx, "") }}}
	})
}

// narrowMatches reports whether a queue's narrow includes a message. Unknown operands match every message.
func narrowMatches(e *realm.MessageArrived, flags realm.Flags, narrow [][2]string, site Site) bool {
	m := &e.Message
	for _, t := range narrow {
		ok := true
		switch t[0] {
		case "channel", "stream":
			ok = m.Channel != 0 && strings.EqualFold(m.ChannelName, t[1])
		case "topic":
			ok = m.Channel != 0 && (strings.EqualFold(m.Topic, t[1]) || m.Topic == "" &&
				strings.EqualFold(realm.EmptyTopicName, t[1]))
		case "sender":
			ok = strings.EqualFold(apiEmail(m.Sender, site), t[1])
		case "mentions":
			ok = slices.ContainsFunc(e.Mentioned, func(u realm.UserID) bool { return u.String() == t[1] })
		case "is":
			switch t[1] {
			case "dm", "private":
				ok = m.Channel == 0
			case "starred":
				ok = flags&realm.FlagStarred != 0
			case "unread":
				ok = flags&realm.FlagRead == 0
			case "mentioned", "alerted":
				ok = flags&realm.FlagMentioned != 0
			case "resolved":
				ok = m.Channel != 0 && strings.HasPrefix(m.Topic, "✔ ")
			}
		}
		if !ok {
			return false
		}
	}
	return true
}

var serverEvents = []EventKind{
	Event(func(e *realm.ServerRestarted, to *Recipient) any {
		return obj{"type": "restart", "zulip_version": Version, "zulip_merge_base": Version,
			"zulip_feature_level": FeatureLevel, "server_generation": e.Generation}
	}),
}
