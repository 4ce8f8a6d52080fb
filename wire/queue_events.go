package wire

import (
	"reflect"
	"slices"

	"parley/actors/queue"
	"parley/actors/realm"
	"parley/actors/session"
	"parley/wire/shape"
)

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
	renderer := to.renderer
	if renderer == nil {
		return list()
	}
	key := subscriberListKey{c, partial}
	subscribers, ok := renderer.subscriberLists[key]
	if !ok {
		if renderer.subscriberLists == nil {
			renderer.subscriberLists = map[subscriberListKey][]realm.UserID{}
		}
		subscribers = list()
		renderer.subscriberLists[key] = subscribers
	}
	return subscribers
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
	// shapes is what clients get.
	shapes []*shape.Shape
}

// Event registers the renderer of an event type, and a T as what clients get. The renderer returns nil if this kind of
// client does not get the event.
func Event[E realm.Event, T any](render func(E, *Recipient) *T) EventKind {
	k := Events(func(e E, to *Recipient) []any {
		if x := render(e, to); x != nil {
			return []any{x}
		}
		return nil
	})
	return k.sends(shape.Of(reflect.TypeFor[T]()))
}

// EventOneOf is Event for types that kinds of clients get in different forms. sends declares them.
func EventOneOf[E realm.Event](render func(E, *Recipient) any) EventKind {
	return Events(func(e E, to *Recipient) []any {
		if x := render(e, to); x != nil {
			return []any{x}
		}
		return nil
	})
}

// sends declares shapes of the events of this kind.
func (k EventKind) sends(forms ...*shape.Shape) EventKind {
	k.shapes = append(slices.Clone(k.shapes), forms...)
	return k
}

// formOf returns the shape of a struct.
func formOf[T any]() *shape.Shape { return shape.Of(reflect.TypeFor[T]()) }

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
	k := EventOneOf(render)
	k.lazy = true
	return k
}

// eventWithFlags is an event that has the message flags of each user.
type eventWithFlags interface {
	FlagsFor(realm.UserID) realm.Flags
}

// Personal marks an event that is rendered for each user separately.
func (k EventKind) Personal() EventKind { k.personal = true; return k }

// eventKindList is every kind of event. Each file adds its own list here.
var eventKindList = slices.Concat(
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
	roomEvents,
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
)

var eventKinds = func() map[reflect.Type]EventKind {
	m := map[reflect.Type]EventKind{}
	for _, k := range eventKindList {
		if _, twice := m[k.goType]; twice {
			panic("BUG: two renderers for " + k.goType.String())
		}
		m[k.goType] = k
	}
	return m
}()

// HasRenderer reports whether an event type has a renderer. A test uses it to name missing renderers.
func HasRenderer(t reflect.Type) bool { _, ok := eventKinds[t]; return ok }

// NoticeRenderer turns one notice into encoded events, once for each kind of client. It belongs to one session actor.
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
	encodings       *EventEncodings
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
// event. encodings may be nil.
func NewNoticeRenderer(n *realm.Notice, ctx RenderContext, encodings *EventEncodings) *NoticeRenderer {
	r := &NoticeRenderer{notice: n, ctx: ctx, encodings: encodings}
	if m, ok := n.Event.(*realm.MessageArrived); ok {
		r.message = m
		return r
	}
	kind, ok := eventKinds[reflect.TypeOf(n.Event)]
	if !ok {
		panic("BUG: no renderer for " + reflect.TypeOf(n.Event).String())
	}
	r.eventKind = kind
	return r
}

// EventsFor returns the events of the notice for one queue of a user, encoded without the id. options are the queue's
// *QueueOptions.
func (r *NoticeRenderer) EventsFor(u realm.UserID, q *realm.Queue, queueOptions any) []*queue.Event {
	options := queueOptions.(*QueueOptions)
	if options != r.options {
		r.options, r.wanted = options, options.Wants(r.notice.Event.EventType())
		if _, old := r.notice.Event.(*realm.MutedTopicsEvent); old && options.eventTypes != nil &&
			options.Wants("user_topic") {
			r.wanted = false // user_topic replaces muted_topics for this client
		}
	}
	if !r.wanted {
		return nil
	}
	if !options.scope.AllowsEvent(r.notice.Event) {
		return r.eventsOfLeaving(u, q, options)
	}
	if r.message != nil {
		return r.messageEventsFor(u, q, options)
	}
	v := variant{client: options.Client}
	if r.eventKind.personal {
		v.user = u
	}
	if f, ok := r.notice.Event.(eventWithFlags); ok {
		v.flags = f.FlagsFor(u)
	}
	to := &Recipient{Client: v.client, RenderContext: r.ctx, User: u, Flags: v.flags, renderer: r}
	if event, render := r.notice.Event, r.eventKind.render; r.eventKind.lazy {
		to.renderer = nil // it has the audience, and the event can stay in queues for long
		return r.cached(v, func() []*queue.Event {
			return []*queue.Event{r.reencodableEvent(v, "", func() []byte {
				for _, x := range render(event, to) {
					return withoutClosingBrace(encode(x))
				}
				return nil
			})}
		})
	}
	return r.cached(v, func() []*queue.Event {
		var out []*queue.Event
		for _, x := range r.eventKind.render(r.notice.Event, to) {
			out = append(out, &queue.Event{JSON: withoutClosingBrace(encode(x))})
		}
		return out
	})
}

// eventsOfLeaving returns the deletion of messages that move out of the scope of the key that opened a queue.
func (r *NoticeRenderer) eventsOfLeaving(u realm.UserID, q *realm.Queue, o *QueueOptions) []*queue.Event {
	gone := o.scope.Leaves(r.notice.Event)
	if gone == nil {
		return nil
	}
	n := &realm.Notice{To: r.notice.To, Event: gone}
	return NewNoticeRenderer(n, r.ctx, r.encodings).EventsFor(u, q, o)
}

// cached returns the events of a variant, rendering them on the first call. The last variant is compared first,
// because most notices look the same to all users.
func (r *NoticeRenderer) cached(v variant, render func() []*queue.Event) []*queue.Event {
	if r.hasLast && r.last == v {
		return r.lastEvents
	}
	out, ok := r.cache[v]
	if !ok {
		out = render()
		if r.hasLast {
			if r.cache == nil {
				r.cache = map[variant][]*queue.Event{r.last: r.lastEvents}
			}
			r.cache[v] = out
		}
	}
	r.hasLast, r.last, r.lastEvents = true, v, out
	return out
}

// withoutClosingBrace removes the last byte of an object, so that the id can be appended.
func withoutClosingBrace(object []byte) []byte { return object[:len(object)-1] }

// messageEventsFor returns the message event for one queue, or nothing if the queue's narrow excludes the message.
// The sender's own queue gets its local id.
func (r *NoticeRenderer) messageEventsFor(u realm.UserID, q *realm.Queue, options *QueueOptions) []*queue.Event {
	e := r.message
	if r.notice.PublicOnly && !options.allPublic {
		return nil
	}
	v := variant{client: options.Client}
	if !r.notice.PublicOnly {
		v.flags = e.FlagsFor(u)
	}
	if len(options.narrow) > 0 && !narrowMatches(e, v.flags, options.narrow, r.ctx.Site) {
		return nil
	}
	v.hideSender = len(e.Unknown) > 0 && slices.Contains(e.Unknown, u)
	if e.LocalID != "" && e.Queue == q.ID {
		return []*queue.Event{r.messageEvent(v, e.LocalID)}
	}
	return r.cached(v, func() []*queue.Event { return []*queue.Event{r.messageEvent(v, "")} })
}

// messageEvent returns the message event of a variant. It holds its bytes if the notice holds the message's text:
// such texts are small.
func (r *NoticeRenderer) messageEvent(v variant, local string) *queue.Event {
	e, ctx := r.message, r.ctx
	encode := func() []byte { return encodeMessageEvent(e, v, ctx, local) }
	if e.Message.Body == nil {
		return r.reencodableEvent(v, local, encode)
	}
	return &queue.Event{Make: func() ([]byte, bool) { return encode(), true }}
}

// reencodableEvent returns an event that holds its bytes only if they are few. Larger encodings are in a cache that all
// session actors share, and are made again after they have left it.
func (r *NoticeRenderer) reencodableEvent(v variant, local string, encode func() []byte) *queue.Event {
	key, encodings := eventEncoding{r.notice.Event, v, local}, r.encodings
	return &queue.Event{Make: func() ([]byte, bool) {
		json := encodings.find(key)
		if json == nil {
			json = encode()
			encodings.add(key, json)
		}
		return json, len(json) <= maxHeldEncoding
	}}
}

var serverEvents = []EventKind{
	Event(func(e *realm.ServerRestarted, _ *Recipient) *restartEvent {
		return &restartEvent{serverVersion: thisVersion, Generation: e.Generation}
	}),
	Event(func(_ *realm.WebAppChanged, to *Recipient) *reloadEvent {
		if !to.Web {
			return nil
		}
		return &reloadEvent{}
	}),
}

// serverVersion is what clients see of the version of the server.
type serverVersion struct {
	Version   string `json:"zulip_version"`
	MergeBase string `json:"zulip_merge_base"`
	Level     int    `json:"zulip_feature_level"`
}

var thisVersion = serverVersion{Version, Version, FeatureLevel}

type restartEvent struct {
	_ struct{} `const:"type=restart"`
	serverVersion
	Generation int64 `json:"server_generation"`
}

type reloadEvent struct {
	_         struct{} `const:"type=web_reload_client"`
	Immediate bool     `json:"immediate"` // always false
}
