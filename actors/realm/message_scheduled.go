package realm

import (
	"cmp"
	"math"
	"slices"

	"parley/actors/realm/ids"
)

// maxScheduledPerUser is how many scheduled messages one user may have: the text of each is in memory.
const maxScheduledPerUser = 1000

// maxDeliveryDelay is how many seconds after its time a scheduled message may still be sent. Later it fails (protocol),
// unless it is repeated.
const maxDeliveryDelay = 600

// maxDuePerTurn is how many scheduled messages one turn sends. Each takes up to half a millisecond if it has 10,000
// recipients.
const maxDuePerTurn = 5

// ScheduledMessage is the row of a message to be sent later. It was rendered when it was scheduled.
type ScheduledMessage struct {
	ID           int64
	User         UserID
	Channel      ChannelID // 0: direct message
	Topic        string
	People       []UserID // the participants, including the user
	Body         Body
	Content      ContentInfo
	Widget       string
	WidgetData   string
	At           int64
	ReadBySender bool
	Client       string
	Failed       bool
	Repeat       Repeat
}

func (s *ScheduledMessage) owner() UserID { return s.User }

// ScheduledOf returns a user's scheduled messages, ordered by time.
func (r *Realm) ScheduledOf(u UserID) []ScheduledMessage {
	list := r.small.scheduled.list(u)
	slices.SortStableFunc(list, func(a, b ScheduledMessage) int { return cmp.Compare(a.At, b.At) })
	return list
}

// scheduledBytes returns the size of the texts of a user's scheduled messages.
func (r *Realm) scheduledBytes(u UserID) (n int) {
	for _, s := range r.small.scheduled.list(u) {
		n += s.Body.size()
	}
	return n
}

// size returns the bytes of the text and of its HTML.
func (b *Body) size() int { return len(b.Text) + len(b.HTML) }

// Others returns the other participants of a direct message. For a note to oneself it returns the user.
func (s *ScheduledMessage) Others() []UserID {
	if len(s.People) == 1 {
		return s.People
	}
	return excludeUsers(s.People, s.User)
}

// ScheduledForChannel reports whether one of the caller's scheduled messages goes to a channel.
func (v View) ScheduledForChannel(id int64) (bool, error) {
	s, err := v.changeableScheduled(id)
	if err != nil {
		return false, err
	}
	return s.Channel != 0, nil
}

// sendCommand returns the command that sends the message.
func (s *ScheduledMessage) sendCommand() SendMessage {
	c := SendMessage{
		ToChannel: s.Channel != 0, Channel: s.Channel, Topic: s.Topic, Body: s.Body, Content: s.Content,
		ReadBySender: s.ReadBySender, Widget: s.Widget, WidgetData: s.WidgetData,
	}
	for _, u := range s.People {
		c.People = append(c.People, Principal{ID: u})
	}
	return c
}

func errNoScheduled() *Refusal { return Missing("Scheduled message does not exist") }

// SentScheduledMessages is the row of the ids of a user's scheduled messages that were sent. It is needed for the error
// when a client tries to change one of them. A run of ids takes a few bytes.
type SentScheduledMessages struct{ IDs ids.Set }

// changeableScheduled returns one of the caller's scheduled messages, or a refusal that says whether it was already
// sent.
func (v View) changeableScheduled(id int64) (*ScheduledMessage, error) {
	s := v.small.scheduled.findOwned(v.User, id)
	if s != nil {
		return s, nil
	}
	if d := v.small.deliveredScheduled.find(v.User); d != nil && id > 0 && id <= math.MaxUint32 && d.IDs.Has(id) {
		return nil, BadRequest("Scheduled message was already sent")
	}
	return nil, errNoScheduled()
}

// ScheduleMessage asks to send a message later.
type ScheduleMessage struct {
	Message         SendMessage
	At              int64
	ReadBySenderSet bool   // whether the client sent ReadBySender itself
	Repeat          Repeat // without its first time, which is At
}

func (c ScheduleMessage) Decide(t *Turn) (int64, error) {
	me := t.Me()
	if me == nil {
		return 0, errNotMember()
	}
	s, err := t.planScheduled(me, c)
	if err != nil {
		return 0, err
	}
	if t.sumCharged(me.ID, t.small.scheduled.count) >= maxScheduledPerUser {
		return 0, BadRequest("Too many scheduled messages (limit: %d)", maxScheduledPerUser)
	}
	if err := checkOwnTexts("scheduled messages", t.sumCharged(me.ID, t.scheduledBytes)+s.Body.size()); err != nil {
		return 0, err
	}
	s.ID = t.nextID("scheduled")
	t.Record(&MessageScheduled{s})
	return s.ID, nil
}

// planScheduled checks a message as if it were sent now.
func (t *Turn) planScheduled(me *User, c ScheduleMessage) (ScheduledMessage, error) {
	f, err := c.Message.plan(t, me)
	if err != nil {
		return ScheduledMessage{}, err
	}
	if c.At <= t.Now {
		return ScheduledMessage{}, errTimeInPast()
	}
	s := ScheduledMessage{
		User: me.ID, Channel: f.Channel, Topic: f.TopicName, People: f.People, At: c.At, Client: t.Caller.Client,
		Body: c.Message.Body, Content: c.Message.Content, ReadBySender: c.Message.ReadBySender,
		Widget: c.Message.Widget, WidgetData: c.Message.WidgetData,
	}
	if s.Repeat, err = t.planRepeat(me, c.Repeat, c.At); err != nil {
		return ScheduledMessage{}, err
	}
	if toSelf := s.Channel == 0 && len(s.People) == 1; toSelf && !c.ReadBySenderSet {
		s.ReadBySender = false
	}
	return s, nil
}

func errTimeInPast() *Refusal { return BadRequest("Scheduled delivery time must be in the future.") }

// MessageScheduled says that a message was scheduled.
type MessageScheduled struct{ Message ScheduledMessage }

func (*MessageScheduled) EventType() string { return "scheduled_messages" }

func (f *MessageScheduled) apply(r *Realm) {
	s := f.Message
	r.reserveID("scheduled", s.ID)
	r.small.scheduled.put(s.ID, &s)
}

func (f *MessageScheduled) notices(r *Realm) []Notice {
	return []Notice{{To: r.usersAudience(f.Message.User), Event: f}}
}

// ChangeScheduled asks to change a scheduled message. Nil fields stay unchanged.
type ChangeScheduled struct {
	ID            int64
	ToChannel     *bool // the type
	Channel       *ChannelID
	RawChannelID  string      // see SendMessage
	People        []Principal // used if HasRecipients is set and the message is direct
	HasRecipients bool
	Topic         *string
	Body          *Body
	Content       ContentInfo
	Widget        string
	WidgetData    string
	At            *int64
	Repeat        *Repeat
}

func (c ChangeScheduled) Decide(t *Turn) (Done, error) {
	me := t.Me()
	if me == nil {
		return Done{}, errNotMember()
	}
	if c.ToChannel == nil && !c.HasRecipients && c.Topic == nil && c.Body == nil && c.At == nil &&
		c.Repeat == nil {
		return Done{}, errNothingToChange()
	}
	if c.ToChannel != nil && !c.HasRecipients {
		return Done{}, BadRequest("Recipient required when updating type of scheduled message.")
	}
	if c.ToChannel != nil && *c.ToChannel && c.Topic == nil {
		return Done{}, BadRequest("Topic required when updating scheduled message type to channel.")
	}
	old, err := t.changeableScheduled(c.ID)
	if err != nil {
		return Done{}, err
	}
	m := old.sendCommand()
	if c.ToChannel != nil {
		m.ToChannel = *c.ToChannel
	}
	if c.HasRecipients {
		m.People, m.Channel, m.RawChannelID = c.People, 0, c.RawChannelID
		if c.Channel != nil {
			m.Channel = *c.Channel
		}
	}
	if c.Topic != nil {
		m.Topic = *c.Topic
	}
	if c.Body != nil {
		m.Body, m.Content, m.Widget, m.WidgetData = *c.Body, c.Content, c.Widget, c.WidgetData
	}
	at := old.At
	if c.At != nil {
		at = *c.At
	}
	repeat := old.Repeat
	if c.Repeat != nil {
		repeat = *c.Repeat
	}
	s, err := t.planScheduled(me, ScheduleMessage{Message: m, At: at, ReadBySenderSet: true, Repeat: repeat})
	if err != nil {
		return Done{}, err
	}
	s.ID, s.Client = old.ID, old.Client
	if c.At == nil && c.Repeat == nil {
		s.Repeat = old.Repeat // its first time may be a longer month's day than At
	}
	if err := checkOwnTexts("scheduled messages",
		t.sumCharged(me.ID, t.scheduledBytes)+s.Body.size()-old.Body.size()); err != nil {
		return Done{}, err
	}
	t.Record(&ScheduledChanged{s})
	return Done{}, nil
}

// ScheduledChanged says that a scheduled message was edited, or that sending it failed.
type ScheduledChanged struct{ Message ScheduledMessage }

func (*ScheduledChanged) EventType() string { return "scheduled_messages" }

func (f *ScheduledChanged) apply(r *Realm) { s := f.Message; r.small.scheduled.put(s.ID, &s) }

func (f *ScheduledChanged) notices(r *Realm) []Notice {
	return []Notice{{To: r.usersAudience(f.Message.User), Event: f}}
}

// Unschedule asks to delete a scheduled message.
type Unschedule struct{ ID int64 }

func (c Unschedule) Decide(t *Turn) (Done, error) {
	if t.small.scheduled.findOwned(t.User, c.ID) == nil {
		return Done{}, errNoScheduled()
	}
	t.Record(&ScheduledGone{User: t.User, ID: c.ID})
	return Done{}, nil
}

// ScheduledGone says that a scheduled message was sent or deleted.
type ScheduledGone struct {
	User UserID
	ID   int64
	Sent bool
}

func (*ScheduledGone) EventType() string { return "scheduled_messages" }

func (f *ScheduledGone) apply(r *Realm) {
	r.small.scheduled.remove(f.ID)
	if f.Sent {
		r.small.deliveredScheduled.ensure(f.User).IDs.Add(f.ID)
	}
}

func (f *ScheduledGone) notices(r *Realm) []Notice {
	return []Notice{{To: r.usersAudience(f.User), Event: f}}
}

// scheduledDue returns a turn that sends scheduled messages whose time has come, or nil if there are none.
func scheduledDue(r *Realm, now int64) func(*Turn) (any, error) {
	due := r.dueScheduled(now)
	if len(due) == 0 {
		return nil
	}
	return func(t *Turn) (any, error) {
		for _, id := range due {
			if s := t.small.scheduled.find(id); s != nil {
				t.deliverScheduled(*s)
			}
		}
		return nil, nil
	}
}

// dueScheduled returns the ids of scheduled messages whose time has come, earliest first, at most maxDuePerTurn.
func (r *Realm) dueScheduled(now int64) []int64 {
	var due []*ScheduledMessage
	for _, s := range r.small.scheduled.all() {
		if s.At <= now && !s.Failed {
			due = append(due, s)
		}
	}
	slices.SortFunc(due, func(a, b *ScheduledMessage) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.ID, b.ID))
	})
	var ids []int64
	for _, s := range due[:min(len(due), maxDuePerTurn)] {
		ids = append(ids, s.ID)
	}
	return ids
}

// deliverScheduled sends a scheduled message as its author, with the author's present permissions. If that fails, the
// message is marked as failed and the author is notified.
func (t *Turn) deliverScheduled(s ScheduledMessage) {
	system := t.Caller
	defer func() { t.Caller = system }()
	t.Caller = Caller{User: s.User, Client: s.Client}
	me := t.Me()
	var f *MessageSent
	err := error(nil)
	switch {
	case t.Org().Deactivated:
		err = BadRequest("This organization has been deactivated")
	case !me.Active:
		err = BadRequest("Account is deactivated")
	case t.Now-s.At > maxDeliveryDelay && s.Repeat.Every == "":
		err = BadRequest("Message could not be sent at the scheduled time.")
	default:
		f, err = s.sendCommand().plan(t, me)
	}
	if err == nil {
		t.send(me, f)
		if !t.repeatScheduled(s) {
			t.Record(&ScheduledGone{User: s.User, ID: s.ID, Sent: true})
		}
		return
	}
	s.Failed = true
	t.Record(&ScheduledChanged{s})
	if me.Active {
		t.NotifyUsers("The message you scheduled could not be sent. The error message was:\n\n> "+err.Error()+
			"\n\nThe message was:\n\n"+QuoteBlock(s.Body.Text), s.User)
	}
}
