package realm

import (
	"slices"
	"strings"
)

// PropertyChange asks to change one of the caller's personal settings of a channel.
type PropertyChange struct {
	Channel  ChannelID
	Property string
	Bool     *bool // the value, if the client sent a boolean
	Text     *string
}

// boolProperties are the personal settings of a channel that are booleans. in_home_view is the opposite of is_muted.
var boolProperties = []string{
	"is_muted", "in_home_view", "desktop_notifications", "audible_notifications", "push_notifications",
	"email_notifications", "wildcard_mentions_notify", "pin_to_top",
}

// SetSubscriptionProperties asks to change the caller's personal settings of channels.
type SetSubscriptionProperties struct {
	Changes    []PropertyChange
	MaxPerTurn int // changes per turn, 0: no limit
}

// Limits of changes of personal settings of channels.
const (
	MaxPropertiesPerRequest = 4000 // in one request
	MaxPropertiesPerTurn    = 1000 // in one turn of a request with more changes: about 1 ms
)

// Decide answers the id of the job that makes the changes, 0: they are made.
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
	job := Job{Kind: PropertyJob, AtOnce: c.MaxPerTurn, Settings: changes}
	job.Rest.AddRange(0, int64(len(changes)-1))
	return t.startJob(job), nil
}

// recordProperties records changes of a user's settings, in order, with maxPropertiesPerFact of them per fact.
func (t *Turn) recordProperties(u UserID, changes []SubscriptionSet) {
	for part := range slices.Chunk(changes, maxPropertiesPerFact) {
		if len(part) == 1 {
			t.Record(&part[0])
		} else {
			t.Record(&SubscriptionsSet{u, part})
		}
	}
}

// maxPropertiesPerFact is how many settings one fact changes. Some of them cause two events, and one fact may send a
// queue at most 128 events.
const maxPropertiesPerFact = 60

// check returns a refusal or the change. It checks the property and its value before the channel.
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

// NormalizeColor reads a color, # and three or six hexadecimal digits, and returns it in the form that all clients
// accept: six digits, lower case.
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

// SubscriptionSet says that a user changed a personal setting of a channel. It is also the event subscription/update.
type SubscriptionSet struct {
	User     UserID
	Channel  ChannelID
	Property string // color, is_muted, pin_to_top or one of the notification settings
	Value    bool
	Color    string
	Archived bool // set by notices: the channel is archived, so only queues with archived_channels know it
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

func (f *SubscriptionSet) notices(r *Realm) []Notice {
	e := *f
	e.Archived = r.channels.must(f.Channel).Archived
	return []Notice{{To: r.usersAudience(f.User), Event: &e}}
}

// boolPointer returns a pointer to a copy of v, so that the row does not keep the fact in memory.
func boolPointer(v bool) *bool { return &v }

// SubscriptionsSet says that a user changed several personal settings of channels. It is also their events
// subscription/update.
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

func (f *SubscriptionsSet) notices(r *Realm) []Notice {
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
