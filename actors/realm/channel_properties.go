package realm

import (
	"slices"
	"strings"
)

// PropertyChange asks to change one of the caller's own settings of a channel.
type PropertyChange struct {
	Channel  ChannelID
	Property string
	Bool     *bool // what the client sent, if it was a boolean
	Text     *string
}

// boolProperties are the personal settings of a channel that are booleans, but for in_home_view, which is is_muted
// upside down.
var boolProperties = []string{"is_muted", "in_home_view", "desktop_notifications", "audible_notifications", "push_notifications", "email_notifications", "wildcard_mentions_notify", "pin_to_top"}

// SetSubscriptionProperties asks to change the caller's own settings of channels.
type SetSubscriptionProperties struct {
	Changes    []PropertyChange
	MaxPerTurn int // how many one turn may make, 0: all
}

// How many of his settings of channels somebody changes.
const (
	MaxPropertiesPerRequest = 4000 // with one request
	MaxPropertiesPerTurn    = 1000 // in one turn of a request that changes more: about 1 ms
)

// Decide answers which work remains; 0: none.
func (c SetSubscriptionProperties) Decide(t *Turn) (int64, error) {
	if t.Me() == nil {
		return 0, errNotMember()
	}
	if len(c.Changes) > MaxPropertiesPerRequest {
		return 0, BadRequest("Too many subscription properties in one request (limit: %d)", MaxPropertiesPerRequest)
	}
	changes := make([]SubscriptionSet, 0, len(c.Changes))
	for _, p := range c.Changes {
		f, err := p.check(t)
		if err != nil {
			return 0, err
		}
		changes = append(changes, f)
	}
	if c.MaxPerTurn == 0 || len(changes) <= c.MaxPerTurn {
		t.recordProperties(t.User, changes)
		return 0, nil
	}
	if err := t.checkJobLimit(); err != nil {
		return 0, err
	}
	w := Job{Kind: PropertyJob, AtOnce: c.MaxPerTurn, Settings: changes}
	w.Rest.AddRange(0, int64(len(changes)-1))
	return t.startJob(w), nil
}

// recordProperties records settings of a user's.
func (t *Turn) recordProperties(u UserID, changes []SubscriptionSet) {
	for part := range slices.Chunk(changes, maxPropertiesPerFact) {
		if len(part) == 1 {
			t.Record(&part[0])
		} else {
			t.Record(&SubscriptionsSet{u, part})
		}
	}
}

// maxPropertiesPerFact is how many settings one fact changes: some are told in two events, and a fact tells nobody more than 128.
const maxPropertiesPerFact = 60

func (c PropertyChange) check(t *Turn) (f SubscriptionSet, err error) {
	f = SubscriptionSet{User: t.User, Channel: c.Channel, Property: c.Property}
	switch {
	case c.Property == "color":
		if c.Text == nil {
			return f, BadRequest("color is not a string")
		}
		color, ok := NormalizeColor(*c.Text)
		if !ok {
			return f, BadRequest("color is not a valid hex color code")
		}
		f.Color = color
	case slices.Contains(boolProperties, c.Property):
		if c.Bool == nil {
			return f, BadRequest("%s is not a boolean", c.Property)
		}
		f.Value = *c.Bool
		if c.Property == "in_home_view" {
			f.Property, f.Value = "is_muted", !*c.Bool
		}
	default:
		return f, BadRequest("Unknown subscription property: %s", c.Property)
	}
	ch, err := t.VisibleChannel(c.Channel)
	if err != nil {
		return f, err
	}
	if !t.Realm.Subscribed(t.User, ch.ID) {
		return f, BadRequest("Not subscribed to channel ID %d", ch.ID)
	}
	return f, nil
}

// NormalizeColor reads a colour, # and three or six hexadecimal digits, into the one form that every client reads: six, lower-case.
func NormalizeColor(s string) (color string, ok bool) {
	hex, ok := strings.CutPrefix(strings.ToLower(s), "#")
	if !ok || len(hex) != 3 && len(hex) != 6 || strings.Trim(hex, "0123456789abcdef") != "" {
		return "", false
	}
	if len(hex) == 3 {
		hex = string([]byte{hex[0], hex[0], hex[1], hex[1], hex[2], hex[2]})
	}
	return "#" + hex, true
}

// SubscriptionSet says a user set one of his own settings of a channel. It is the event subscription/update too.
type SubscriptionSet struct {
	User     UserID
	Channel  ChannelID
	Property string // color, is_muted, pin_to_top or one of the notification settings
	Value    bool
	Color    string
	Archived bool // the channel is: only queues with archived_channels know of it; filled in when told
}

func (*SubscriptionSet) EventType() string { return "subscription" }

func (f *SubscriptionSet) apply(r *Realm) {
	f.applyTo(r, r.subscriptions.change(f.User))
}

func (f *SubscriptionSet) applyTo(r *Realm, l *Subscriptions) {
	s := l.find(f.Channel)
	switch f.Property {
	case "color":
		l.setColor(s, f.Color)
	case "is_muted":
		s.Muted = f.Value
	case "pin_to_top":
		s.Pinned = f.Value
	case "desktop_notifications":
		s.Desktop = boolPointer(f.Value)
	case "audible_notifications":
		s.Audible = boolPointer(f.Value)
	case "push_notifications":
		s.Push = boolPointer(f.Value)
	case "email_notifications":
		s.Email = boolPointer(f.Value)
		if ix := r.index.channels[f.Channel]; f.Value {
			ix.wantsEmail.Add(int64(f.User))
		} else {
			ix.wantsEmail.Remove(int64(f.User))
		}
	case "wildcard_mentions_notify":
		s.Wildcard = boolPointer(f.Value)
	}
}

func (f *SubscriptionSet) tell(r *Realm) []Notice {
	e := *f
	e.Archived = r.channels.must(f.Channel).Archived
	return []Notice{{To: r.usersAudience(f.User), Event: &e}}
}

// boolPointer is a value of the row's own: it must not hold on to the fact.
func boolPointer(v bool) *bool { return &v }

// SubscriptionsSet says a user set several of his own settings of channels. It is their events subscription/update too.
type SubscriptionsSet struct {
	User UserID
	Each []SubscriptionSet
}

func (*SubscriptionsSet) EventType() string { return "subscription" }

func (f *SubscriptionsSet) apply(r *Realm) {
	l := r.subscriptions.change(f.User)
	for i := range f.Each {
		f.Each[i].applyTo(r, l)
	}
}

func (f *SubscriptionsSet) tell(r *Realm) []Notice {
	to := r.usersAudience(f.User)
	if len(to) == 0 {
		return nil
	}
	e := &SubscriptionsSet{f.User, slices.Clone(f.Each)}
	for i := range e.Each {
		e.Each[i].Archived = r.channels.must(e.Each[i].Channel).Archived
	}
	return []Notice{{To: to, Event: e}}
}
