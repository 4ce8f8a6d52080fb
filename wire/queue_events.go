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

// Check words the missing ones as the protocol does here: without var_name.
func (f *getEventsForm) Check() *form.Error {
	if !f.Queue.Set && f.DontBlock {
		return nil // a new queue
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
	// The request is compared, not its content: gone must name the poll it was made for.
	house := c.Server
	w := &pollReply{ignored: ignoredByPolls(c)}
	w.Reply = c.Park(func() {
		p := p
		p.Reply = w
		house.CancelPoll(p)
	})
	p.Reply = w
	house.Poll(p)
	return nil, errParked
}

var openQueueForm = form.Of[queueForm]()

// openQueue opens a queue for a client that asks for events without one, and tells it nothing of the state: programs did
// so before there were registrations. Such a program knows of no pictures it is to find by itself, unless it says so.
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
	r, err := Execute(c, realm.Register{Queue: q, AllPublicGiven: f.AllPublic.Set, State: func(realm.View, *realm.Queue) (any, error) { return nil, nil }})
	if err != nil {
		return nil, err
	}
	return Answer{"queue_id": r.Queue.ID, "events": []any{}}, nil
}

// ignoredByPolls is the parameters that mean nothing to a request for events, with a queue or without one: what describes
// a new queue may be said of an old one too.
func ignoredByPolls(c *Call) []string {
	known := openQueueForm.Ignored(c.Params)
	return slices.DeleteFunc(c.ignored, func(name string) bool { return !slices.Contains(known, name) })
}

// pollReply gives each poll an identity of its own, and remembers the parameters that are to be told of.
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

// Client is a kind of client: everything its owner understands that changes how an event reads. Queues of the same kind
// share encoded events.
type Client struct {
	Caps        realm.Caps
	Markdown    bool
	Gravatar    bool
	Slim        bool
	Subscribers form.IncludeSubscribers
}

// ClientOf is the kind of client behind a queue.
func ClientOf(q *realm.Queue) Client {
	c := Client{Caps: q.Caps, Markdown: q.Markdown, Gravatar: q.Gravatar, Slim: q.Slim}
	switch q.Subscribers {
	case "true":
		c.Subscribers = form.AllSubscribers
	case "partial":
		c.Subscribers = form.PartialSubscribers
	}
	return c
}

// QueueOptions is everything a registration says about which events its queue hears and how they read. Queues that are alike
// share one, so that what was found out for one of them is known for the next at once.
type QueueOptions struct {
	Client
	eventTypes []string
	narrow     [][2]string
	allPublic  bool
}

// QueueOptionsOf is the kind of a queue, shared with nobody.
func QueueOptionsOf(q *realm.Queue) *QueueOptions {
	return &QueueOptions{Client: ClientOf(q), eventTypes: q.EventTypes, narrow: q.Narrow, allPublic: q.AllPublic}
}

func (k *QueueOptions) matches(q *realm.Queue) bool {
	return k.Client == ClientOf(q) && k.allPublic == q.AllPublic && (k.eventTypes == nil) == (q.EventTypes == nil) && slices.Equal(k.eventTypes, q.EventTypes) && slices.Equal(k.narrow, q.Narrow)
}

// Wants reports whether queues of this kind take events of a type.
func (k *QueueOptions) Wants(event string) bool {
	return k.eventTypes == nil || slices.Contains(k.eventTypes, event)
}

// QueueOptionsCache makes queues that are alike share their kind. It belongs to one session shard.
type QueueOptionsCache struct {
	byName map[string]*QueueOptions
	last   *QueueOptions // the one asked for last: of thousands of queues that come back most are alike
}

// maxQueueOptions is how many kinds are remembered. Programs are few, but anybody may make up kinds; beyond it all are
// forgotten, and queues opened later share among themselves.
const maxQueueOptions = 512

// Of is the kind of a queue.
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

// Has reports a capability.
func (c Client) Has(cap realm.Caps) bool { return c.Caps&cap != 0 }

// asStored is who asks where a request cannot say what its client understands: topics are shown as they are kept.
var asStored = Client{Caps: realm.CapEmptyTopicName}

// Topic is a topic as this kind of client may read it.
func (c Client) Topic(topic string) string {
	if topic == "" && !c.Has(realm.CapEmptyTopicName) {
		return realm.EmptyTopicName
	}
	return topic
}

// Recipient is whom an event is rendered for.
type Recipient struct {
	Client
	RenderContext
	User realm.UserID // sectionFor the event's variant; only for kinds registered with personal
	// Flags are the reader's, where the event knows them.
	Flags    realm.Flags
	renderer *NoticeRenderer // sectionFor which it is a rendering; nil outside sectionFor sessions
}

// subscriberListKey is a list of a channel's subscribers.
type subscriberListKey struct {
	channel realm.ChannelID
	partial bool
}

// subscriberList is a long list of a channel's subscribers, made once for all whom one notice reaches.
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

// RenderContext is what rendering needs beside the event.
type RenderContext = session.RenderContext

// EventKind renders one Go type of event.
type EventKind struct {
	goType reflect.Type
	render func(realm.Event, *Recipient) []any
	// addPersonalSettings events read differently for each user.
	personal bool
	// lazy events are made when they are delivered, and may turn out to be nothing.
	lazy bool
}

// Event registers how an event reads: one JSON object, or nil if this kind of client does not hear of it.
func Event[E realm.Event](render func(E, *Recipient) any) EventKind {
	return Events(func(e E, to *Recipient) []any {
		if x := render(e, to); x != nil {
			return []any{x}
		}
		return nil
	})
}

// Events is Event for what some clients hear as several events; how many may depend only on event and client.
func Events[E realm.Event](render func(E, *Recipient) []any) EventKind {
	return EventKind{goType: reflect.TypeFor[E](), render: func(e realm.Event, to *Recipient) []any { return render(e.(E), to) }}
}

// LazyEvent is Event for what is joined with message texts when it is delivered; nil then means that the text was erased.
func LazyEvent[E realm.Event](render func(E, *Recipient) any) EventKind {
	k := Event(render)
	k.lazy = true
	return k
}

// eventWithFlags is an event that knows its readers' flags.
type eventWithFlags interface {
	FlagsFor(realm.UserID) realm.Flags
}

// Personal marks an event that reads differently for each user.
func (k EventKind) Personal() EventKind { k.personal = true; return k }

var eventKinds = func() map[reflect.Type]EventKind {
	m := map[reflect.Type]EventKind{}
	for _, k := range slices.Concat(
		alertWordEvents,

		botEvents,

		callEvents,

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

		historyEvents,

		inviteEvents,

		linkifierEvents,

		messageEvents,

		muteEvents,

		navigationEvents,

		onboardingEvents,

		pictureEvents,

		playgroundEvents,

		presenceEvents,

		profileEvents,

		pushEvents,

		reactionEvents,

		realmEvents,

		reminderEvents,

		scheduledEvents,

		searchEvents,

		serverEvents,

		settingEvents,

		snippetEvents,

		statusEvents,

		storageEvents,

		submessageEvents,

		subscriptionEvents,

		typingEvents,

		uploadEvents,

		userEvents,

		userTopicEvents,
	) {
		if _, twice := m[k.goType]; twice {
			panic("BUG: two renderings of " + k.goType.String())
		}
		m[k.goType] = k
	}
	return m
}()

// HasRenderer reports whether an event's type has a rendering, for the test that names what was forgotten.
func HasRenderer(t reflect.Type) bool { _, ok := eventKinds[t]; return ok }

// NoticeRenderer is a notice being turned into events, once for each kind of client. It belongs to one session shard.
type NoticeRenderer struct {
	notice          *realm.Notice
	eventKind       EventKind
	ctx             RenderContext
	message         *realm.MessageArrived
	hasLast         bool // something has been rendered: last
	last            variant
	lastEvents      []*queue.Event
	cache           map[variant][]*queue.Event           // nil while that is all: most notices read alike for everybody
	options         *QueueOptions                        // the last queue's
	wanted          bool                                 // by it
	subscriberLists map[subscriberListKey][]realm.UserID // see Recipient.roster
}

type variant struct {
	client     Client
	user       realm.UserID
	flags      realm.Flags
	hideSender bool
}

// NewNoticeRenderer prepares a notice for the queues of its audience.
func NewNoticeRenderer(n *realm.Notice, ctx RenderContext) *NoticeRenderer {
	s := &NoticeRenderer{notice: n, ctx: ctx}
	if m, ok := n.Event.(*realm.MessageArrived); ok {
		s.message = m
		return s
	}
	k, ok := eventKinds[reflect.TypeOf(n.Event)]
	if !ok {
		panic("BUG: nothing renders " + reflect.TypeOf(n.Event).String())
	}
	s.eventKind = k
	return s
}

// EventsFor returns the events that the notice means for one queue of a user, encoded up to their ids. The options are
// the queue's *QueueOptions.
func (s *NoticeRenderer) EventsFor(u realm.UserID, q *realm.Queue, options any) []*queue.Event {
	k := options.(*QueueOptions)
	if k != s.options {
		s.options, s.wanted = k, k.Wants(s.notice.Event.EventType())
		if _, old := s.notice.Event.(*realm.MutedTopicsTold); old && k.eventTypes != nil && k.Wants("user_topic") {
			s.wanted = false // it listens to what took its place
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

// withoutClosingBrace takes the closing brace off, so that the id can follow.
func withoutClosingBrace(object []byte) []byte { return object[:len(object)-1] }

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

// narrowMatches decides whether a queue's narrow lets a message through. Unknown operands match everything.
func narrowMatches(e *realm.MessageArrived, flags realm.Flags, narrow [][2]string, site Site) bool {
	m := &e.Message
	for _, t := range narrow {
		ok := true
		switch t[0] {
		case "channel", "stream":
			ok = m.Channel != 0 && strings.EqualFold(m.ChannelName, t[1])
		case "topic":
			ok = m.Channel != 0 && (strings.EqualFold(m.Topic, t[1]) || m.Topic == "" && strings.EqualFold(realm.EmptyTopicName, t[1]))
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
		return obj{"type": "restart", "zulip_version": Version, "zulip_merge_base": Version, "zulip_feature_level": FeatureLevel, "server_generation": e.Generation}
	}),
}
