package wire

import (
	"fmt"
	"reflect"
	"slices"

	"parley/actors/realm"
	"parley/wire/form"
)

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
	// Web is set for clients that are pages of this server, in a browser or in the desktop app.
	Web bool
}

// needsReactionUsers reports whether a program needs the key user in reaction events. Feature level 484 removed it, but
// the terminal client reads it without a check and ends with an error if it is absent.
func needsReactionUsers(clientName string) bool { return clientName == "ZulipTerminal" }

// isWebClient reports whether a program is a page of this server: one of the names of WebClientName.
func isWebClient(clientName string) bool {
	return clientName == "website" || clientName == "ZulipElectron"
}

// ClientOf returns the capabilities stored with a queue.
func ClientOf(q *realm.Queue) Client {
	c := Client{Caps: q.Caps, Markdown: q.Markdown, Gravatar: q.Gravatar, Slim: q.Slim,
		ReactionUsers: needsReactionUsers(q.Client), Web: isWebClient(q.Client)}
	switch q.Subscribers {
	case "true":
		c.Subscribers = form.AllSubscribers
	case "partial":
		c.Subscribers = form.PartialSubscribers
	}
	return c
}

// Has reports whether the client has a capability.
func (c Client) Has(cap realm.Caps) bool { return c.Caps&cap != 0 }

// Topic returns a topic in the form this client expects: clients without the capability get a display name for the
// empty topic.
func (c Client) Topic(topic string) string {
	if topic == "" && !c.Has(realm.CapEmptyTopicName) {
		return realm.EmptyTopicName
	}
	return topic
}

// asStored is the client for requests that cannot declare capabilities: topics are shown as they are stored.
var asStored = Client{Caps: realm.CapEmptyTopicName}

// QueueOptions is everything in a registration that decides which events the queue gets and in which format. Queues
// with equal options share one value, so that results computed for one queue are reused for the next.
type QueueOptions struct {
	Client
	eventTypes []string
	narrow     [][2]string
	allPublic  bool
	scope      *realm.KeyScope // of the key that opened the queue
}

// QueueOptionsOf returns the options of a queue in a new value.
func QueueOptionsOf(q *realm.Queue) *QueueOptions {
	return &QueueOptions{Client: ClientOf(q), eventTypes: q.EventTypes, narrow: q.Narrow, allPublic: q.AllPublic,
		scope: q.Scope}
}

func (o *QueueOptions) matches(q *realm.Queue) bool {
	return o.Client == ClientOf(q) && o.allPublic == q.AllPublic && (o.eventTypes == nil) == (q.EventTypes == nil) &&
		slices.Equal(o.eventTypes, q.EventTypes) && slices.Equal(o.narrow, q.Narrow) &&
		reflect.DeepEqual(o.scope, q.Scope)
}

// Wants reports whether a queue with these options gets events of a type.
func (o *QueueOptions) Wants(event string) bool {
	return (o.eventTypes == nil || slices.Contains(o.eventTypes, event)) && o.scope.AllowsEvents(event)
}

// QueueOptionsCache returns one shared value for queues with equal options. It belongs to one session actor.
type QueueOptionsCache struct {
	byName map[string]*QueueOptions
	last   *QueueOptions // the last result: most consecutive queues have equal options
}

// MaxQueueOptions bounds the cache. There are few client programs, but any client can invent options. When the cache
// is full it is emptied; queues opened later share among themselves.
const MaxQueueOptions = 512

// Of returns the shared options of a queue.
func (c *QueueOptionsCache) Of(q *realm.Queue) *QueueOptions {
	if c.last == nil || !c.last.matches(q) {
		c.last = c.find(q)
	}
	return c.last
}

func (c *QueueOptionsCache) find(q *realm.Queue) *QueueOptions {
	name := fmt.Sprintf("%v %t %t %q %q", ClientOf(q), q.AllPublic, q.EventTypes == nil, q.EventTypes, q.Narrow)
	if q.Scope != nil {
		name += " " + scopeName(q.Scope)
	}
	options := c.byName[name]
	if options == nil {
		if c.byName == nil || len(c.byName) >= MaxQueueOptions {
			c.byName = map[string]*QueueOptions{}
		}
		options = QueueOptionsOf(q)
		c.byName[name] = options
	}
	return options
}

// scopeName returns a text that different scopes do not share. KeyScope.String leaves out the topics.
func scopeName(s *realm.KeyScope) string {
	name := fmt.Sprintf("%q %t %t %q %q", s.Rights, s.Places == nil, s.Direct, s.Endpoints, s.Networks)
	for _, p := range s.Places {
		name += fmt.Sprintf(" %d", p.Channel)
		if p.Topic != nil {
			name += fmt.Sprintf(" %q", *p.Topic)
		}
	}
	return name
}
