package realm

import "slices"

// maxTypingAudience is from how many subscribers on a channel hears nothing of typing (protocol).
const maxTypingAudience = 100

// Type tells others that the caller began or stopped to write a message.
type Type struct {
	Stop      bool
	ToChannel bool
	Channel   ChannelID
	Topic     string
	People    []Principal
}

func (c Type) Decide(t *Turn) (Done, error) {
	me := t.Me()
	if me == nil {
		return Done{}, errMember()
	}
	e := &Typing{Stop: c.Stop, Sender: t.Person(me.ID)}
	if c.ToChannel {
		if !me.Flag("send_stream_typing_notifications") {
			return Done{}, Bad("User has disabled typing notifications for channel messages")
		}
		ch := t.chans.find(c.Channel)
		if ch == nil || ch.Archived || !t.hasContent(me, ch) {
			return Done{}, errChannelID()
		}
		if err := t.maySend(me, ch); err != nil {
			return Done{}, err
		}
		topic, err := NormalizeTopic(c.Topic)
		if err != nil {
			return Done{}, err
		}
		e.Channel, e.Topic = ch.ID, topic
		if t.SubscriberCount(ch.ID) <= maxTypingAudience {
			t.tellTyping(t.heard(ch.ID), e)
		}
		return Done{}, nil
	}
	if !me.Flag("send_private_typing_notifications") {
		return Done{}, Bad("User has disabled typing notifications for direct messages")
	}
	members, err := t.directRecipients(me, c.People)
	if err != nil {
		return Done{}, err
	}
	for _, u := range members {
		e.People = append(e.People, t.Person(u))
	}
	t.tellTyping(t.only(members...), e)
	return Done{}, nil
}

// tellTyping tells those of an audience who want to see others type. Limited guests are told the addresses of people
// they know only.
func (t *Turn) tellTyping(to []UserID, e *Typing) {
	veiled := *e
	veiled.Sender.EmailPublic, veiled.People = false, slices.Clone(e.People)
	for i := range veiled.People {
		veiled.People[i].EmailPublic = false
	}
	var know, strange []UserID
	for _, u := range t.typingAudience(to) {
		sees := func(p PersonInfo) bool { return t.maySee(t.users.must(u), t.users.must(p.ID)) }
		if !t.GuestsLimited() || sees(e.Sender) && !slices.ContainsFunc(e.People, func(p PersonInfo) bool { return !sees(p) }) {
			know = append(know, u)
		} else {
			strange = append(strange, u)
		}
	}
	t.Tell(Notice{To: know, Event: e})
	if len(strange) > 0 {
		t.Tell(Notice{To: strange, Event: &veiled})
	}
}

// typingAudience is those of an audience who want to see others type.
func (r *Realm) typingAudience(to []UserID) []UserID {
	return slices.DeleteFunc(slices.Clone(to), func(u UserID) bool { return !r.users.must(u).Flag("receives_typing_notifications") })
}

// Typing is the event that somebody writes, or no longer does.
type Typing struct {
	Stop    bool
	Sender  PersonInfo
	Channel ChannelID // 0: direct
	Topic   string
	People  []PersonInfo // the sender included
}

func (*Typing) EventType() string { return "typing" }

// TypeEdit tells others that the caller began or stopped to edit a message.
type TypeEdit struct {
	Message MessageID
	Stop    bool
}

func (c TypeEdit) Decide(t *Turn) (Done, error) {
	me := t.Me()
	i, err := t.WritableMessage(c.Message)
	if err != nil {
		return Done{}, err
	}
	if err := t.mayEditContent(me, i, 0); err != nil {
		return Done{}, err
	}
	wants, where := "send_private_typing_notifications", "direct"
	if i.Channel != 0 {
		wants, where = "send_stream_typing_notifications", "channel"
	}
	if !me.Flag(wants) {
		return Done{}, Bad("User has disabled typing notifications for %s messages", where)
	}
	if i.Channel != 0 && t.SubscriberCount(i.Channel) > maxTypingAudience {
		return Done{}, nil
	}
	e := &TypingEdit{Stop: c.Stop, Sender: me.ID, Message: i.ID, Channel: i.Channel, Topic: i.Topic}
	for _, p := range i.People {
		e.People = append(e.People, p.ID)
	}
	t.Tell(Notice{To: t.typingAudience(t.hearers(i.ID, t.message(i.ID))), Event: e})
	return Done{}, nil
}

// TypingEdit is the event that somebody edits a message, or no longer does.
type TypingEdit struct {
	Stop    bool
	Sender  UserID
	Message MessageID
	Channel ChannelID // 0: direct
	Topic   string
	People  []UserID
}

func (*TypingEdit) EventType() string { return "typing_edit_message" }
