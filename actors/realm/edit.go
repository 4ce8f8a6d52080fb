package realm

import (
	"errors"
	"slices"
	"strings"
)

// grace is how much longer than its limit an edit may take: the client's clock and the way here are not the user's
// fault (protocol).
const grace = 20

// How many messages a move takes along.
const (
	MoveOne   = "change_one"
	MoveLater = "change_later"
	MoveAll   = "change_all"
)

// EditMessage asks to change a message's text, topic or channel.
type EditMessage struct {
	Message   MessageID
	Content   *NewContent // nil: the text stays
	Topic     *string     // nil: the topic stays
	Channel   ChannelID   // 0: the channel stays
	Mode      string      // MoveOne, MoveLater or MoveAll
	NotifyOld bool
	NotifyNew bool
}

// NewContent is a text that replaces another. It was rendered before the turn, when the message had the old text.
type NewContent struct {
	Body         Body
	Content      Content
	Unrenderable bool
	Old          Content // what the old text did
	OldVersion   uint16
	OldSum       string // hex SHA-256 of the old text
	WantSum      string // what the client believes it is; "" if it does not say
}

// Edited answers EditMessage.
type Edited struct{ Detached []Detached }

// ErrStale: the text was edited by somebody else since it was read; read it again.
var ErrStale = errors.New("the message's text is another one by now")

// isResolveToggle: two topics differ only by the mark of resolved ones.
func isResolveToggle(a, b string) bool {
	return a != b && (a == resolvedPrefix+b || b == resolvedPrefix+a)
}

func (c EditMessage) Decide(t *Turn) (Edited, error) {
	me := t.Me()
	i, err := t.WritableMessage(c.Message)
	if err != nil {
		return Edited{}, err
	}
	p := &editing{EditMessage: c, me: me, i: i, toggle: false}
	if err := p.check(t); err != nil {
		return Edited{}, err
	}
	answer := p.carryOut(t)
	if n := c.Content; n != nil {
		t.errand(t.previews(c.Message, n.OldVersion+1, me, n.Content))
	}
	return answer, nil
}

// editing is an edit on its way through its checks.
type editing struct {
	EditMessage
	me     *User
	i      MessageInfo
	topic  string   // where to, if Topic is not nil
	target *Channel // where to; the message's own channel if that stays
	toggle bool     // marks the topic as resolved or not, and nothing else
	ids    Set      // what moves
}

// check refuses in the protocol's order.
func (p *editing) check(t *Turn) error {
	if p.Content != nil {
		if err := t.mayEditContent(p.me, p.i, grace); err != nil {
			return err
		}
		if p.Content.OldVersion != p.i.Ref.Version {
			return ErrStale
		}
	}
	if err := p.what(t); err != nil {
		return err
	}
	if p.Topic != nil {
		if err := p.mayChangeTopic(t); err != nil {
			return err
		}
	}
	if p.Content != nil {
		if err := p.mayChangeContent(t); err != nil {
			return err
		}
	}
	if p.Channel != 0 {
		if err := p.mayChangeChannel(t); err != nil {
			return err
		}
	}
	if p.Topic == nil && p.Channel == 0 {
		return nil
	}
	return p.which(t)
}

// what settles what is to change, and refuses what does not go together.
func (p *editing) what(t *Turn) error {
	var topicErr error
	if p.Topic != nil {
		if p.topic, topicErr = NormalizeTopic(*p.Topic); topicErr == nil && p.i.Channel != 0 && p.topic == p.i.Topic {
			p.Topic = nil
		}
	}
	if p.Channel == p.i.Channel {
		p.Channel = 0
	}
	if p.Content == nil && p.Topic == nil && p.Channel == 0 {
		return errNothingToChange()
	}
	if p.i.Channel == 0 {
		if p.Channel != 0 {
			return Bad("Direct messages cannot be moved to channels.")
		}
		if p.Topic != nil {
			return Bad("Direct messages cannot have topics.")
		}
	}
	if p.Mode != MoveOne && p.Topic == nil && p.Channel == 0 {
		return Bad("Invalid propagate_mode without topic edit")
	}
	if p.i.Channel != 0 {
		if p.target = t.chans.must(p.i.Channel); p.Channel != 0 {
			p.target = t.chans.find(p.Channel)
		}
	}
	if p.Topic != nil {
		if topicErr != nil {
			return topicErr
		}
		if bare := strings.TrimSpace(strings.TrimPrefix(p.topic+" ", resolvedPrefix)); p.topic != "" && bare != p.topic && (bare == "" || bare == EmptyTopicName) {
			return Bad("General chat cannot be marked as resolved")
		}
	}
	if p.target != nil {
		topic := p.i.Topic
		if p.Topic != nil {
			topic = p.topic
		}
		if (p.Topic != nil || p.Channel != 0) && t.topicAllowed(p.target, topic) != nil {
			if topic == "" {
				return Bad("Topics are required in this organization.")
			}
			return t.topicAllowed(p.target, topic)
		}
	}
	if p.Content != nil && p.Channel != 0 {
		return Bad("Cannot change message content while changing channel")
	}
	if p.Content != nil && t.extraOf(p.Message).Widget != "" {
		return Bad("Widgets cannot be edited.")
	}
	p.toggle = p.Topic != nil && p.Channel == 0 && isResolveToggle(p.i.Topic, p.topic)
	return nil
}

func (p *editing) mayChangeTopic(t *Turn) error {
	from := t.chans.must(p.i.Channel)
	if p.toggle {
		if !t.May(p.me, "can_resolve_topics_group") && !t.channelAllows(p.me, from, "can_resolve_topics_group") {
			return Bad("You don't have permission to resolve topics.")
		}
		return nil
	}
	if !t.May(p.me, "can_move_messages_between_topics_group") && !t.channelAllows(p.me, from, "can_move_messages_within_channel_group") {
		return Bad("You don't have permission to edit this message")
	}
	if p.late(t, p.i.Time, "move_messages_within_stream_limit_seconds") {
		return errTopicLate()
	}
	return nil
}

func errTopicLate() *Refusal {
	return Bad("The time limit for editing this message's topic has passed.")
}
func errChannelLate() *Refusal {
	return Bad("The time limit for editing this message's channel has passed")
}

// late reports whether a message of that time is too old for the user to move.
func (p *editing) late(t *Turn, sent int64, limit string) bool {
	seconds, limited := t.OrgSetting(limit).(int64)
	return limited && !p.me.IsModerator() && t.Now-sent > seconds+grace
}

func (p *editing) mayChangeContent(t *Turn) error {
	if p.Content.WantSum != "" && !strings.EqualFold(p.Content.WantSum, p.Content.OldSum) {
		return Refuse(Invalid, "EXPECTATION_MISMATCH", "'prev_content_sha256' value does not match the expected value.")
	}
	if p.Content.Unrenderable {
		return Bad("Unable to render message")
	}
	x := p.Content.Content.added(p.Content.Old)
	if p.i.Channel == 0 {
		return t.mayMentionGroups(p.me, x)
	}
	return t.mayMention(p.me, t.chans.must(p.i.Channel), p.i.Topic, x)
}

// added is the mentions of x that were not in old.
func (x Content) added(old Content) Content {
	n := Content{ChannelWildcard: x.ChannelWildcard && !old.ChannelWildcard, TopicWildcard: x.TopicWildcard && !old.TopicWildcard}
	for _, g := range x.Groups {
		if !contains(ascending(append([]GroupID(nil), old.Groups...)), g) {
			n.Groups = append(n.Groups, g)
		}
	}
	return n
}

func (p *editing) mayChangeChannel(t *Turn) error {
	from := t.chans.must(p.i.Channel)
	if !t.May(p.me, "can_move_messages_between_channels_group") && !t.channelAllows(p.me, from, "can_move_messages_out_of_channel_group") {
		return Bad("You don't have permission to move this message")
	}
	if p.target == nil || p.target.Archived || !t.hasContent(p.me, p.target) {
		return errChannelID()
	}
	if err := t.maySend(p.me, p.target); err != nil {
		return err
	}
	if p.late(t, p.i.Time, "move_messages_between_streams_limit_seconds") {
		return errChannelLate()
	}
	return nil
}

// which settles which messages move.
func (p *editing) which(t *Turn) error {
	topic := p.i.Topic
	if p.Topic != nil {
		topic = p.topic
	}
	if !p.toggle && !p.me.System && t.by.channel[p.target.ID].topics[fold(topic)] == nil && !t.channelAllows(p.me, p.target, "can_create_topic_group") {
		return Bad("You do not have permission to create new topics in this channel.")
	}
	all := t.by.channel[p.i.Channel].topics[fold(p.i.Topic)].ids
	switch p.Mode {
	case MoveOne:
		p.ids = SetOf(p.Message)
		return nil
	case MoveLater:
		p.ids = all.Between(int64(p.Message), MaxMessageID)
	default:
		p.ids = all.Clone()
	}
	if p.Channel != 0 && t.protected(t.chans.must(p.i.Channel)) {
		p.ids = t.rowsWithin(p.me.ID, &p.ids) // what the mover cannot see stays
	}
	if p.Mode == MoveAll && !p.toggle {
		return p.inTime(t)
	}
	return nil
}

// inTime refuses to move a whole topic of which some messages are too old.
func (p *editing) inTime(t *Turn) error {
	limits, err := []string{}, errChannelLate()
	if p.Topic != nil {
		limits = append(limits, "move_messages_within_stream_limit_seconds")
	}
	if p.Channel != 0 {
		limits = append(limits, "move_messages_between_streams_limit_seconds")
	} else {
		err = errTopicLate()
	}
	seen := p.ids
	if t.protected(t.chans.must(p.i.Channel)) {
		seen = t.rowsWithin(p.me.ID, &seen)
	}
	total, allowed, first := seen.Len(), 0, MessageID(0)
	late := func(id int64) bool {
		sent := int64(t.message(MessageID(id)).time)
		return slices.ContainsFunc(limits, func(l string) bool { return p.late(t, sent, l) })
	}
	if oldest, ok := seen.Min(); ok && !late(oldest) {
		return nil // times rise with ids
	}
	seen.eachBackward(func(id int64) bool {
		if late(id) {
			return false // older ones are too old as well
		}
		allowed, first = allowed+1, MessageID(id)
		return true
	})
	switch allowed {
	case total:
		return nil
	case 0:
		return err
	}
	return Refuse(Invalid, "MOVE_MESSAGES_TIME_LIMIT_EXCEEDED", Bad("You only have permission to move the %d/%d most recent messages in this topic.", allowed, total).Msg).
		With("first_message_id_allowed_to_move", first).With("total_messages_in_topic", total).With("total_messages_allowed_to_move", allowed)
}

// mayEditContent decides whether a user may change a message's text now.
func (t *Turn) mayEditContent(me *User, i MessageInfo, grace int64) error {
	if !t.OrgBool("allow_message_editing") {
		return Bad("Your organization has turned off message editing")
	}
	if i.Sender.ID != me.ID {
		return Bad("You don't have permission to edit this message")
	}
	if limit, ok := t.OrgSetting("message_content_edit_limit_seconds").(int64); ok && t.Now-i.Time > limit+grace {
		return Bad("The time limit for editing this message has passed")
	}
	return nil
}
