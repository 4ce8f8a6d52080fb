package realm

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"parley/actors/realm/ids"
)

// A scoped key is an additional API key that is limited to some of the rights of its account. Its scope never changes:
// a client that needs another one gets another key. Endpoints and networks are checked with the credentials of a
// request. Channels and topics are checked by the functions that return messages and channels to a caller, and for
// each event of the queues that the key opened.

// The rights of a scoped key. Package wire says which right an endpoint needs.
const (
	RightRead   = "read"   // messages, channels, users and events
	RightSend   = "send"   // messages
	RightReact  = "react"  // reactions, votes and other answers to widgets
	RightEdit   = "edit"   // edit, move and delete messages as the account is allowed to
	RightUpload = "upload" // files
	RightRemind = "remind" // reminders
	RightMark   = "mark"   // read, starred and muted
	RightManage = "manage" // everything else except credentials
)

// KeyRights are all rights, in the order in which they are shown.
var KeyRights = []string{RightRead, RightSend, RightReact, RightEdit, RightUpload, RightRemind, RightMark, RightManage}

// Limits of a scope. They bound the memory of a key and of each event queue that it opens.
const (
	MaxScopePlaces    = 50 // channels and topics
	MaxScopeEndpoints = 50
	MaxScopeNetworks  = 20
	// maxScopeIPv6Bits is the longest prefix of an IPv6 network: the server knows clients by their /64.
	maxScopeIPv6Bits = 64
)

// KeyScope is the limit of a scoped key.
type KeyScope struct {
	Rights    []string   // some of KeyRights
	Places    []KeyPlace // nil: all channels and all direct messages
	Direct    bool       // with Places: direct messages, too
	Endpoints []string   // "GET /messages"; nil: all that the rights allow
	Networks  []string   // "10.1.0.0/16"; nil: all
}

// KeyPlace is a channel, or one topic of it.
type KeyPlace struct {
	Channel ChannelID
	Topic   *string // in its stored form; nil: all topics
}

// Has reports whether the key has a right. The scope may be nil: such a key has all rights.
func (s *KeyScope) Has(right string) bool { return s == nil || slices.Contains(s.Rights, right) }

// Limited reports whether the key is limited to some channels. The scope may be nil.
func (s *KeyScope) Limited() bool { return s != nil && s.Places != nil }

// HasTopic reports whether the key is allowed to use a topic of a channel, or with channel 0 direct messages. The scope
// may be nil.
func (s *KeyScope) HasTopic(channel ChannelID, topic string) bool {
	switch {
	case !s.Limited():
		return true
	case channel == 0:
		return s.Direct
	}
	return slices.ContainsFunc(s.Places, func(p KeyPlace) bool {
		return p.Channel == channel && (p.Topic == nil || fold(*p.Topic) == fold(topic))
	})
}

// HasChannel reports whether the key is allowed to use a channel or at least one topic of it. The scope may be nil.
func (s *KeyScope) HasChannel(channel ChannelID) bool {
	return !s.Limited() || slices.ContainsFunc(s.Places, func(p KeyPlace) bool { return p.Channel == channel })
}

// HasWholeChannel reports whether the key is allowed to use all topics of a channel. The scope may be nil.
func (s *KeyScope) HasWholeChannel(channel ChannelID) bool {
	return !s.Limited() || slices.ContainsFunc(s.Places, func(p KeyPlace) bool {
		return p.Channel == channel && p.Topic == nil
	})
}

// HasAddress reports whether the key is allowed to be used from an address. The address is that of Caller.Address: an
// IPv4 address or the /64 of an IPv6 address. An unknown address is allowed only without Networks.
func (s *KeyScope) HasAddress(address string) bool {
	if s == nil || s.Networks == nil {
		return true
	}
	host, _, _ := strings.Cut(address, "/")
	a, err := netip.ParseAddr(host)
	return err == nil && slices.ContainsFunc(s.Networks, func(n string) bool {
		p, err := netip.ParsePrefix(n)
		return err == nil && p.Contains(a.Unmap())
	})
}

// HasEndpoint reports whether the key is allowed to use an endpoint by its name. The rights are checked separately.
func (s *KeyScope) HasEndpoint(name string) bool {
	return s == nil || s.Endpoints == nil || slices.Contains(s.Endpoints, name)
}

// String returns the scope as the audit log and the command line show it, without the names of topics: the erasure of
// an account's data could not remove them from the log.
func (s *KeyScope) String() string {
	if s == nil {
		return "whole account"
	}
	parts := []string{strings.Join(s.Rights, "+")}
	if s.Limited() {
		var places []string
		for _, p := range s.Places {
			place := "channel " + p.Channel.String()
			if p.Topic != nil {
				place = "a topic of " + place
			}
			places = append(places, place)
		}
		if s.Direct {
			places = append(places, "direct messages")
		}
		parts = append(parts, "in "+strings.Join(places, ", "))
	}
	if s.Endpoints != nil {
		parts = append(parts, "by "+strings.Join(s.Endpoints, ", "))
	}
	if s.Networks != nil {
		parts = append(parts, "from "+strings.Join(s.Networks, ", "))
	}
	return strings.Join(parts, " ")
}

// clone returns a copy that shares nothing with the scope, which may be nil.
func (s *KeyScope) clone() *KeyScope {
	if s == nil {
		return nil
	}
	out := *s
	out.Rights, out.Places = slices.Clone(s.Rights), slices.Clone(s.Places)
	out.Endpoints, out.Networks = slices.Clone(s.Endpoints), slices.Clone(s.Networks)
	return &out
}

// checkScope returns the scope in its stored form, or a refusal. The maker can give a key only channels that they can
// read. Rights and endpoints are known to package wire, which checks their names before.
func (t *Turn) checkScope(s *KeyScope) (*KeyScope, error) {
	if s == nil {
		return nil, nil
	}
	out := &KeyScope{Direct: s.Direct}
	unknown := func(right string) bool { return !slices.Contains(KeyRights, right) }
	for _, r := range KeyRights {
		if slices.Contains(s.Rights, r) {
			out.Rights = append(out.Rights, r)
		}
	}
	switch {
	case len(out.Rights) == 0 || slices.ContainsFunc(s.Rights, unknown):
		return nil, BadRequest("A limited API key needs at least one of these rights: %s.",
			strings.Join(KeyRights, ", "))
	case len(s.Places) > MaxScopePlaces || len(s.Endpoints) > MaxScopeEndpoints || len(s.Networks) > MaxScopeNetworks:
		return nil, BadRequest("An API key can be limited to at most %d channels and topics, %d endpoints "+
			"and %d networks.", MaxScopePlaces, MaxScopeEndpoints, MaxScopeNetworks)
	case s.Direct && s.Places == nil:
		return nil, BadRequest("An API key is limited to direct messages only together with a list of channels.")
	}
	if s.Places != nil {
		out.Places = []KeyPlace{}
		for _, r := range []string{RightMark, RightManage} {
			if out.Has(r) {
				return nil, BadRequest("An API key that is limited to channels cannot have the right '%s'.", r)
			}
		}
	}
	for _, p := range s.Places {
		c, err := t.ReadableChannel(p.Channel)
		if err != nil {
			return nil, err
		}
		place := KeyPlace{Channel: c.ID}
		if p.Topic != nil {
			topic, err := NormalizeTopic(*p.Topic)
			if err != nil {
				return nil, err
			}
			place.Topic = &topic
		}
		out.Places = append(out.Places, place)
	}
	out.Endpoints = slices.Compact(slices.Sorted(slices.Values(s.Endpoints)))
	for _, n := range s.Networks {
		p, err := netip.ParsePrefix(strings.TrimSpace(n))
		if err != nil || p.Addr().Is4In6() || p.Addr().Is6() && p.Bits() > maxScopeIPv6Bits {
			return nil, BadRequest("'%s' is not a network like 192.0.2.0/24, or like 2001:db8::/64 with at most "+
				"%d bits.", n, maxScopeIPv6Bits)
		}
		out.Networks = append(out.Networks, p.Masked().String())
	}
	return out, nil
}

// scopedKeyOf returns the scoped key that a request was sent with, or nil. It is not called for each message: views
// have its scope.
func (r *Realm) scopedKeyOf(c Caller) *KeyInfo {
	if c.System || c.Key == ([32]byte{}) {
		return nil
	}
	u := r.users.find(c.User)
	if u == nil {
		return nil
	}
	if k := findKey(u.KeyInfo, c.Key); k != nil && k.Scope != nil {
		return k
	}
	return nil
}

// newView returns a view with the scope of the caller's key.
func (r *Realm) newView(c Caller, now int64) View {
	v := View{Realm: r, Caller: c, Now: now}
	if k := r.scopedKeyOf(c); k != nil {
		v.scope, v.scopedKey = k.Scope, k.ID
	}
	return v
}

// KeyScope returns the scope of the key that the request was sent with; nil: the whole account.
func (v View) KeyScope() *KeyScope { return v.scope }

// messageInScope reports whether the caller's key is allowed to use the topic or conversation of a message.
func (v View) messageInScope(m *message) bool {
	switch {
	case !v.scope.Limited():
		return true
	case m.channel == 0:
		return v.scope.Direct
	}
	return v.scope.HasTopic(ChannelID(m.channel), v.topics.must(m.topic).Name)
}

// mayReadMessage reports whether the caller may read a message: the account and the key of the request.
func (v View) mayReadMessage(id MessageID, m *message) bool {
	return v.System || v.mayRead(v.Me(), id, m) && v.messageInScope(m)
}

// scopeMessages returns the messages in the places of the caller's key, whether or not the account can read them.
func (v View) scopeMessages() ids.Set {
	var sets []ids.Set
	for _, p := range v.scope.Places {
		ix := v.index.channels[p.Channel]
		if ix == nil {
			continue
		}
		if p.Topic == nil {
			sets = append(sets, ix.ids)
		} else if topic := ix.topics[fold(*p.Topic)]; topic != nil {
			sets = append(sets, topic.ids)
		}
	}
	if v.scope.Direct {
		sets = append(sets, findSet(v.index.directMessages, v.User))
	}
	return ids.Union(sets...)
}

// errOutOfScope refuses to send to a place that the caller's key is not limited to.
func errOutOfScope() *Refusal { return ErrKeyScope("This API key is not allowed to send there.") }

// ErrKeyScope returns the refusal of a request that is outside the scope of its key.
func ErrKeyScope(msg string) *Refusal { return Refuse(Forbidden, "API_KEY_SCOPE", msg) }

// checkSendInScope refuses to send to places outside the scope of the caller's key. Channel 0 is direct messages.
func (v View) checkSendInScope(channel ChannelID, topic string) error {
	if !v.scope.HasTopic(channel, topic) {
		return errOutOfScope()
	}
	return nil
}

// scopedEventTypes are the types of events of queues that a key with Places opened. Other events do not say which
// topic they are about.
var scopedEventTypes = []string{"delete_message", "message", "realm_emoji", "realm_user", "update_message"}

// credentialTypes are the types of events, and of parts of the initial state, that contain API keys. No scoped key gets
// them.
var credentialTypes = []string{"realm_bot"}

// AllowsEvents reports whether the key gets a type of events, or of parts of the initial state. The scope may be nil.
func (s *KeyScope) AllowsEvents(kind string) bool {
	switch {
	case s == nil:
		return true
	case s.Limited():
		return slices.Contains(scopedEventTypes, kind)
	}
	return !slices.Contains(credentialTypes, kind)
}

// AllowsEvent reports whether a queue of the key gets an event. The scope may be nil. A move is only shown if both
// topics are in the scope; wire replaces it by a deletion if the messages leave the scope.
func (s *KeyScope) AllowsEvent(e Event) bool {
	if s == nil || e.EventType() == "" || e.EventType() == "restart" {
		return true
	}
	if !s.AllowsEvents(e.EventType()) {
		return false
	}
	if !s.Limited() {
		return true
	}
	switch e := e.(type) {
	case *MessageArrived:
		return s.HasTopic(e.Message.Channel, e.Message.Topic)
	case *MessagesVanished:
		return s.HasTopic(e.Channel, e.Topic)
	case *MessageUpdate:
		return s.HasTopic(e.Channel, e.OrigTopic) && (!e.Moved || s.HasTopic(e.channelAfter(), e.Topic))
	}
	return true
}

// Leaves returns the deletion that replaces a move out of the scope, or nil. The scope may be nil.
func (s *KeyScope) Leaves(e Event) *MessagesVanished {
	u, ok := e.(*MessageUpdate)
	if !ok || !s.Limited() || !u.Moved || !s.HasTopic(u.Channel, u.OrigTopic) ||
		s.HasTopic(u.channelAfter(), u.Topic) {
		return nil
	}
	return &MessagesVanished{IDs: u.IDs, Channel: u.Channel, Topic: u.OrigTopic}
}

// endQueuesOf closes the event queues that scoped keys of a user opened.
func (t *Turn) endQueuesOf(u UserID, keys []int64) {
	var end []QueueID
	if t.index.queueCount[u] == 0 {
		return
	}
	for id, q := range t.queues.all() {
		if q.User == u && q.Key != 0 && slices.Contains(keys, q.Key) {
			end = append(end, id)
		}
	}
	slices.SortFunc(end, func(a, b QueueID) int { return cmp.Compare(a, b) })
	for _, id := range end {
		t.Record(&QueueClosed{id, u})
	}
}

// ScopedKeyAdded says that an account has a further additional API key, with a scope. The account's expired keys are
// forgotten.
type ScopedKeyAdded struct {
	User UserID
	Key  KeyInfo
}

func (f *ScopedKeyAdded) apply(r *Realm)            { (&KeyAdded{User: f.User, Key: f.Key}).apply(r) }
func (f *ScopedKeyAdded) notices(r *Realm) []Notice { return nil }
