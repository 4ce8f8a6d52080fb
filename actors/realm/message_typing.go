package realm

import "slices"

// maxTypingAudience is the largest number of subscribers for which typing in a channel is sent (protocol).
const maxTypingAudience = 100

// SendTyping asks to notify others that the caller starts or stops writing a message.
type SendTyping struct {
	Stop      bool
	ToChannel bool
	Channel   ChannelID
	Topic     string
	People    []Principal
}

func (c SendTyping) Decide(t *Turn) (Done, error) {
	me := t.Me()
	if me == nil {
		return Done{}, errNotMember()
	}
	e := &Typing{Stop: c.Stop, Sender: t.UserInfo(me.ID)}
	if c.ToChannel {
		if !me.BoolSetting("send_stream_typing_notifications") {
			return Done{}, BadRequest("User has disabled typing notifications for channel messages")
		}
		ch := t.channels.find(c.Channel)
		if ch == nil || ch.Archived || !t.hasContentAccess(me, ch) {
			return Done{}, errInvalidChannel()
		}
		if err := t.checkMaySend(me, ch); err != nil {
			return Done{}, err
		}
		topic, err := NormalizeTopic(c.Topic)
		if err != nil {
			return Done{}, err
		}
		e.Channel, e.Topic = ch.ID, topic
		if t.SubscriberCount(ch.ID) <= maxTypingAudience {
			t.sendTyping(t.subscribersAudience(ch.ID), e)
		}
		return Done{}, nil
	}
	if !me.BoolSetting("send_private_typing_notifications") {
		return Done{}, BadRequest("User has disabled typing notifications for direct messages")
	}
	members, err := t.directRecipients(me, c.People)
	if err != nil {
		return Done{}, err
	}
	for _, u := range members {
		e.People = append(e.People, t.UserInfo(u))
	}
	t.sendTyping(t.usersAudience(members...), e)
	return Done{}, nil
}

// sendTyping sends the event to those users that want typing notifications. Limited guests get email addresses only of
// users they may see.
func (t *Turn) sendTyping(to []UserID, e *Typing) {
	redacted := *e // without email addresses
	redacted.Sender.EmailPublic, redacted.People = false, slices.Clone(e.People)
	for i := range redacted.People {
		redacted.People[i].EmailPublic = false
	}
	var full, limited []UserID
	for _, u := range t.typingAudience(to) {
		sees := func(p UserInfo) bool { return t.maySeeUser(t.users.must(u), t.users.must(p.ID)) }
		if !t.GuestsLimited() ||
			sees(e.Sender) && !slices.ContainsFunc(e.People, func(p UserInfo) bool { return !sees(p) }) {
			full = append(full, u)
		} else {
			limited = append(limited, u)
		}
	}
	t.SendEphemeral(Notice{To: full, Event: e})
	if len(limited) > 0 {
		t.SendEphemeral(Notice{To: limited, Event: &redacted})
	}
}

// Typing is the event that a user starts or stops writing a message.
type Typing struct {
	Stop    bool
	Sender  UserInfo
	Channel ChannelID // 0: direct message
	Topic   string
	People  []UserInfo // including the sender
}

func (*Typing) EventType() string { return "typing" }

// SendEditTyping asks to notify others that the caller starts or stops editing a message.
type SendEditTyping struct {
	Message MessageID
	Stop    bool
}

func (c SendEditTyping) Decide(t *Turn) (Done, error) {
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
	if !me.BoolSetting(wants) {
		return Done{}, BadRequest("User has disabled typing notifications for %s messages", where)
	}
	if i.Channel != 0 && t.SubscriberCount(i.Channel) > maxTypingAudience {
		return Done{}, nil
	}
	e := &TypingEdit{Stop: c.Stop, Sender: me.ID, Message: i.ID, Channel: i.Channel, Topic: i.Topic}
	for _, p := range i.People {
		e.People = append(e.People, p.ID)
	}
	t.SendEphemeral(Notice{To: t.typingAudience(t.messageAudience(i.ID, t.message(i.ID))), Event: e})
	return Done{}, nil
}

// TypingEdit is the event that a user starts or stops editing a message.
type TypingEdit struct {
	Stop    bool
	Sender  UserID
	Message MessageID
	Channel ChannelID // 0: direct message
	Topic   string
	People  []UserID
}

func (*TypingEdit) EventType() string { return "typing_edit_message" }
