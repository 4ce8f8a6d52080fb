package realm

import (
	"cmp"
	"math"
	"slices"
)

// maxScheduled is how many messages one user may have waiting: each keeps its text in memory.
const maxScheduled = 1000

// maxLate is how long after its time a scheduled message is still sent, in seconds: later ones fail (protocol).
const maxLate = 600

// sentAtOnce is how many waiting messages one turn sends: each may take half a millisecond where it goes to 10,000 people.
const sentAtOnce = 5

// Scheduled is the row of a message that is to be sent later. It was rendered when it was written.
type Scheduled struct {
	ID           int64
	User         UserID
	Channel      ChannelID // 0: direct
	Topic        string
	People       []UserID // the participants, the user included
	Body         Body
	Content      Content
	Widget       string
	WidgetData   string
	At           int64
	ReadBySender bool
	Client       string
	Failed       bool
}

func (s *Scheduled) owner() UserID { return s.User }

// ScheduledOf is a user's waiting messages by the time they are due.
func (r *Realm) ScheduledOf(u UserID) []Scheduled {
	list := r.nouns.scheduled.list(u)
	slices.SortStableFunc(list, func(a, b Scheduled) int { return cmp.Compare(a.At, b.At) })
	return list
}

// Others is who else takes part in a direct message; oneself in a note to oneself.
func (s *Scheduled) Others() []UserID {
	if len(s.People) == 1 {
		return s.People
	}
	return without(s.People, s.User)
}

// ScheduledForChannel reports where one of the caller's waiting messages will go.
func (v View) ScheduledForChannel(id int64) (bool, error) {
	s, err := v.mayChange(id)
	if err != nil {
		return false, err
	}
	return s.Channel != 0, nil
}

// command is the sending a row stands for.
func (s *Scheduled) command() SendMessage {
	c := SendMessage{ToChannel: s.Channel != 0, Channel: s.Channel, Topic: s.Topic, Body: s.Body, Content: s.Content, ReadBySender: s.ReadBySender, Widget: s.Widget, WidgetData: s.WidgetData}
	for _, u := range s.People {
		c.People = append(c.People, Principal{ID: u})
	}
	return c
}

func errNoScheduled() *Refusal { return Missing("Scheduled message does not exist") }

// Delivered is the row of a user's scheduled messages that were sent, for those who would still change one. A run of ids
// takes a few bytes.
type Delivered struct{ IDs Set }

// mayChange is one of the caller's waiting messages; whoever is too late is told so.
func (v View) mayChange(id int64) (*Scheduled, error) {
	s := v.nouns.scheduled.mine(v.User, id)
	if s != nil {
		return s, nil
	}
	if d := v.nouns.delivered.find(v.User); d != nil && id > 0 && id <= math.MaxUint32 && d.IDs.Has(id) {
		return nil, Bad("Scheduled message was already sent")
	}
	return nil, errNoScheduled()
}

// ScheduleMessage asks to send a message later.
type ScheduleMessage struct {
	Message SendMessage
	At      int64
	ReadSet bool // whether ReadBySender was asked for, or follows from the client
}

func (c ScheduleMessage) Decide(t *Turn) (int64, error) {
	me := t.Me()
	if me == nil {
		return 0, errMember()
	}
	s, err := t.schedule(me, c)
	if err != nil {
		return 0, err
	}
	if t.nouns.scheduled.count(me.ID) >= maxScheduled {
		return 0, Bad("Too many scheduled messages (limit: %d)", maxScheduled)
	}
	s.ID = t.nextID("scheduled")
	t.Record(&MessageScheduled{s})
	return s.ID, nil
}

// schedule validates a message as if it were sent now.
func (t *Turn) schedule(me *User, c ScheduleMessage) (Scheduled, error) {
	f, err := c.Message.plan(t, me)
	if err != nil {
		return Scheduled{}, err
	}
	if c.At <= t.Now {
		return Scheduled{}, errPast()
	}
	s := Scheduled{User: me.ID, Channel: f.Channel, Topic: f.TopicName, People: f.People, Body: c.Message.Body, Content: c.Message.Content,
		Widget: c.Message.Widget, WidgetData: c.Message.WidgetData, At: c.At, ReadBySender: c.Message.ReadBySender, Client: t.Caller.Client}
	if toSelf := s.Channel == 0 && len(s.People) == 1; toSelf && !c.ReadSet {
		s.ReadBySender = false
	}
	return s, nil
}

func errPast() *Refusal { return Bad("Scheduled delivery time must be in the future.") }

// MessageScheduled says a message waits to be sent.
type MessageScheduled struct{ Message Scheduled }

func (*MessageScheduled) calm()             {}
func (*MessageScheduled) EventType() string { return "scheduled_messages" }

func (f *MessageScheduled) apply(r *Realm) {
	s := f.Message
	r.usedID("scheduled", s.ID)
	r.nouns.scheduled.put(s.ID, &s)
}

func (f *MessageScheduled) tell(r *Realm) []Notice {
	return []Notice{{To: r.only(f.Message.User), Event: f}}
}

// ChangeScheduled asks to change a waiting message; what is nil stays.
type ChangeScheduled struct {
	ID          int64
	ToChannel   *bool // the type
	Channel     *ChannelID
	ChannelSaid string      // as of SendMessage
	People      []Principal // used when GivenTo and the message is direct
	GivenTo     bool
	Topic       *string
	Body        *Body
	Content     Content
	Widget      string
	Data        string
	At          *int64
}

func (c ChangeScheduled) Decide(t *Turn) (Done, error) {
	me := t.Me()
	if me == nil {
		return Done{}, errMember()
	}
	if c.ToChannel == nil && !c.GivenTo && c.Topic == nil && c.Body == nil && c.At == nil {
		return Done{}, errNothingToChange()
	}
	if c.ToChannel != nil && !c.GivenTo {
		return Done{}, Bad("Recipient required when updating type of scheduled message.")
	}
	if c.ToChannel != nil && *c.ToChannel && c.Topic == nil {
		return Done{}, Bad("Topic required when updating scheduled message type to channel.")
	}
	old, err := t.mayChange(c.ID)
	if err != nil {
		return Done{}, err
	}
	m := old.command()
	if c.ToChannel != nil {
		m.ToChannel = *c.ToChannel
	}
	if c.GivenTo {
		m.People, m.Channel, m.ChannelSaid = c.People, 0, c.ChannelSaid
		if c.Channel != nil {
			m.Channel = *c.Channel
		}
	}
	if c.Topic != nil {
		m.Topic = *c.Topic
	}
	if c.Body != nil {
		m.Body, m.Content, m.Widget, m.WidgetData = *c.Body, c.Content, c.Widget, c.Data
	}
	at := old.At
	if c.At != nil {
		at = *c.At
	}
	s, err := t.schedule(me, ScheduleMessage{Message: m, At: at, ReadSet: true})
	if err != nil {
		return Done{}, err
	}
	s.ID, s.Client = old.ID, old.Client
	t.Record(&ScheduledChanged{s})
	return Done{}, nil
}

// ScheduledChanged says a waiting message is another one now, or could not be sent.
type ScheduledChanged struct{ Message Scheduled }

func (*ScheduledChanged) calm()             {}
func (*ScheduledChanged) EventType() string { return "scheduled_messages" }

func (f *ScheduledChanged) apply(r *Realm) { s := f.Message; r.nouns.scheduled.put(s.ID, &s) }

func (f *ScheduledChanged) tell(r *Realm) []Notice {
	return []Notice{{To: r.only(f.Message.User), Event: f}}
}

// Unschedule asks to forget a waiting message.
type Unschedule struct{ ID int64 }

func (c Unschedule) Decide(t *Turn) (Done, error) {
	if t.nouns.scheduled.mine(t.User, c.ID) == nil {
		return Done{}, errNoScheduled()
	}
	t.Record(&ScheduledGone{User: t.User, ID: c.ID})
	return Done{}, nil
}

// ScheduledGone says a message no longer waits: it was sent, or given up.
type ScheduledGone struct {
	User UserID
	ID   int64
	Sent bool
}

func (*ScheduledGone) calm()             {}
func (*ScheduledGone) EventType() string { return "scheduled_messages" }

func (f *ScheduledGone) apply(r *Realm) {
	r.nouns.scheduled.remove(f.ID)
	if f.Sent {
		r.nouns.delivered.open(f.User).IDs.Add(f.ID)
	}
}

func (f *ScheduledGone) tell(r *Realm) []Notice { return []Notice{{To: r.only(f.User), Event: f}} }

// scheduledDue is the turn that sends what is due, or nil.
func scheduledDue(r *Realm, now int64) func(*Turn) (any, error) {
	due := r.dueScheduled(now)
	if len(due) == 0 {
		return nil
	}
	return func(t *Turn) (any, error) {
		for _, id := range due {
			if s := t.nouns.scheduled.find(id); s != nil {
				t.deliver(*s)
			}
		}
		return nil, nil
	}
}

// dueScheduled is the waiting messages whose time has come, earliest first, as many as one turn sends.
func (r *Realm) dueScheduled(now int64) []int64 {
	var due []*Scheduled
	for _, s := range r.nouns.scheduled.all() {
		if s.At <= now && !s.Failed {
			due = append(due, s)
		}
	}
	slices.SortFunc(due, func(a, b *Scheduled) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.ID, b.ID)) })
	var ids []int64
	for _, s := range due[:min(len(due), sentAtOnce)] {
		ids = append(ids, s.ID)
	}
	return ids
}

// deliver sends a waiting message as its author, with what he may do now; what may not be sent fails, and he is told.
func (t *Turn) deliver(s Scheduled) {
	system := t.Caller
	defer func() { t.Caller = system }()
	t.Caller = Caller{User: s.User, Client: s.Client}
	me := t.Me()
	var f *MessageSent
	err := error(nil)
	switch {
	case t.Org().Deactivated:
		err = Bad("This organization has been deactivated")
	case !me.Active:
		err = Bad("Account is deactivated")
	case t.Now-s.At > maxLate:
		err = Bad("Message could not be sent at the scheduled time.")
	default:
		f, err = s.command().plan(t, me)
	}
	if err == nil {
		t.send(me, f)
		t.Record(&ScheduledGone{User: s.User, ID: s.ID, Sent: true})
		return
	}
	s.Failed = true
	t.Record(&ScheduledChanged{s})
	if me.Active {
		t.Whisper("The message you scheduled could not be sent. The error message was:\n\n> "+err.Error()+"\n\nThe message was:\n\n"+QuoteBlock(s.Body.Text), s.User)
	}
}
