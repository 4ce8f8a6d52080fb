package realm

import (
	"errors"
	"slices"
	"strings"

	"parley/actors/realm/ids"
)

// editGraceSeconds is added to every time limit of an edit. The client's clock may differ, and the request takes time
// to arrive (protocol).
const editGraceSeconds = 20

// Which messages of the topic a move includes: only the message, it and later ones, or all.
const (
	MoveOne   = "change_one"
	MoveLater = "change_later"
	MoveAll   = "change_all"
)

// EditMessage asks to change a message's text, topic or channel.
type EditMessage struct {
	Message   MessageID
	Content   *NewContent // nil: the text does not change
	Topic     *string     // nil: the topic does not change
	Channel   ChannelID   // 0: the channel does not change
	Mode      string      // MoveOne, MoveLater or MoveAll
	NotifyOld bool
	NotifyNew bool
}

// NewContent is the new text of a message. It was rendered before the turn; OldVersion is the version that the message
// had then.
type NewContent struct {
	Body         Body
	Content      ContentInfo
	Unrenderable bool
	Old          ContentInfo // mentions and files of the old text
	OldVersion   uint16
	OldSum       string // hex SHA-256 of the old text
	WantSum      string // the sum the client expects; "" if it sends none
}

// Edited answers EditMessage.
type Edited struct{ Detached []DetachedUpload }

// ErrStale means that the text was changed after it was read and before this turn. The caller must read it again.
var ErrStale = errors.New("the message's text is another one by now")

// isResolveToggle reports whether two topics differ only by the mark of resolved topics.
func isResolveToggle(a, b string) bool {
	return a != b && (a == resolvedPrefix+b || b == resolvedPrefix+a)
}

func (c EditMessage) Decide(t *Turn) (Edited, error) {
	me := t.Me()
	i, err := t.WritableMessage(c.Message)
	if err != nil {
		return Edited{}, err
	}
	p := &messageEdit{EditMessage: c, me: me, info: i, resolveToggle: false}
	if err := p.check(t); err != nil {
		return Edited{}, err
	}
	answer := p.record(t)
	if n := c.Content; n != nil {
		t.addOutboxJobs(t.previewJobs(c.Message, n.OldVersion+1, me, n.Content))
	}
	return answer, nil
}

// messageEdit is the state of an EditMessage while it is checked.
type messageEdit struct {
	EditMessage
	me            *User
	info          MessageInfo
	newTopic      string   // the new topic, if Topic is not nil
	targetChannel *Channel // the new channel, or the present one if it does not change
	resolveToggle bool     // the edit only marks the topic as resolved or unresolved
	ids           ids.Set  // the messages that move
}

func (p *messageEdit) check(t *Turn) error {
	if p.Content != nil {
		if err := t.mayEditContent(p.me, p.info, editGraceSeconds); err != nil {
			return err
		}
		if p.Content.OldVersion != p.info.Ref.Version {
			return ErrStale
		}
	}
	if err := p.checkCombination(t); err != nil {
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
	return p.selectMessages(t)
}

func (p *messageEdit) checkCombination(t *Turn) error {
	var topicErr error
	if p.Topic != nil {
		if p.newTopic, topicErr = NormalizeTopic(*p.Topic); topicErr == nil && p.info.Channel != 0 && p.newTopic == p.info.Topic {
			p.Topic = nil
		}
	}
	if p.Channel == p.info.Channel {
		p.Channel = 0
	}
	if p.Content == nil && p.Topic == nil && p.Channel == 0 {
		return errNothingToChange()
	}
	if p.info.Channel == 0 {
		if p.Channel != 0 {
			return BadRequest("Direct messages cannot be moved to channels.")
		}
		if p.Topic != nil {
			return BadRequest("Direct messages cannot have topics.")
		}
	}
	if p.Mode != MoveOne && p.Topic == nil && p.Channel == 0 {
		return BadRequest("Invalid propagate_mode without topic edit")
	}
	if p.info.Channel != 0 {
		if p.targetChannel = t.channels.must(p.info.Channel); p.Channel != 0 {
			p.targetChannel = t.channels.find(p.Channel)
		}
	}
	if p.Topic != nil {
		if topicErr != nil {
			return topicErr
		}
		if bare := strings.TrimSpace(strings.TrimPrefix(p.newTopic+" ", resolvedPrefix)); p.newTopic != "" && bare != p.newTopic && (bare == "" || bare == EmptyTopicName) {
			return BadRequest("General chat cannot be marked as resolved")
		}
	}
	if p.targetChannel != nil {
		topic := p.info.Topic
		if p.Topic != nil {
			topic = p.newTopic
		}
		if (p.Topic != nil || p.Channel != 0) && t.checkTopicsPolicy(p.targetChannel, topic) != nil {
			if topic == "" {
				return BadRequest("Topics are required in this organization.")
			}
			return t.checkTopicsPolicy(p.targetChannel, topic)
		}
	}
	if p.Content != nil && p.Channel != 0 {
		return BadRequest("Cannot change message content while changing channel")
	}
	if p.Content != nil && t.extraOrEmpty(p.Message).Widget != "" {
		return BadRequest("Widgets cannot be edited.")
	}
	p.resolveToggle = p.Topic != nil && p.Channel == 0 && isResolveToggle(p.info.Topic, p.newTopic)
	return nil
}

func (p *messageEdit) mayChangeTopic(t *Turn) error {
	from := t.channels.must(p.info.Channel)
	if p.resolveToggle {
		if !t.HasPermission(p.me, "can_resolve_topics_group") && !t.channelAllows(p.me, from, "can_resolve_topics_group") {
			return BadRequest("You don't have permission to resolve topics.")
		}
		return nil
	}
	if !t.HasPermission(p.me, "can_move_messages_between_topics_group") && !t.channelAllows(p.me, from, "can_move_messages_within_channel_group") {
		return BadRequest("You don't have permission to edit this message")
	}
	if p.tooLate(t, p.info.Time, "move_messages_within_stream_limit_seconds") {
		return errTopicLate()
	}
	return nil
}

func errTopicLate() *Refusal {
	return BadRequest("The time limit for editing this message's topic has passed.")
}
func errChannelLate() *Refusal {
	return BadRequest("The time limit for editing this message's channel has passed")
}

// tooLate reports whether a message sent at that time is too old for the user to move. limit is the name of the
// organization setting. Moderators have no limit.
func (p *messageEdit) tooLate(t *Turn, sent int64, limit string) bool {
	seconds, limited := t.OrgSetting(limit).(int64)
	return limited && !p.me.IsModerator() && t.Now-sent > seconds+editGraceSeconds
}

func (p *messageEdit) mayChangeContent(t *Turn) error {
	if p.Content.WantSum != "" && !strings.EqualFold(p.Content.WantSum, p.Content.OldSum) {
		return Refuse(Invalid, "EXPECTATION_MISMATCH", "'prev_content_sha256' value does not match the expected value.")
	}
	if p.Content.Unrenderable {
		return BadRequest("Unable to render message")
	}
	x := p.Content.Content.addedMentions(p.Content.Old)
	if p.info.Channel == 0 {
		return t.checkGroupMentions(p.me, x)
	}
	return t.checkMentions(p.me, t.channels.must(p.info.Channel), p.info.Topic, x)
}

// addedMentions returns the mentions of x that are not in old.
func (x ContentInfo) addedMentions(old ContentInfo) ContentInfo {
	n := ContentInfo{ChannelWildcard: x.ChannelWildcard && !old.ChannelWildcard, TopicWildcard: x.TopicWildcard && !old.TopicWildcard}
	for _, g := range x.Groups {
		if !containsSorted(sortUnique(append([]GroupID(nil), old.Groups...)), g) {
			n.Groups = append(n.Groups, g)
		}
	}
	return n
}

func (p *messageEdit) mayChangeChannel(t *Turn) error {
	from := t.channels.must(p.info.Channel)
	if !t.HasPermission(p.me, "can_move_messages_between_channels_group") && !t.channelAllows(p.me, from, "can_move_messages_out_of_channel_group") {
		return BadRequest("You don't have permission to move this message")
	}
	if p.targetChannel == nil || p.targetChannel.Archived || !t.hasContentAccess(p.me, p.targetChannel) {
		return errInvalidChannel()
	}
	if err := t.checkMaySend(p.me, p.targetChannel); err != nil {
		return err
	}
	if p.tooLate(t, p.info.Time, "move_messages_between_streams_limit_seconds") {
		return errChannelLate()
	}
	return nil
}

func (p *messageEdit) selectMessages(t *Turn) error {
	topic := p.info.Topic
	if p.Topic != nil {
		topic = p.newTopic
	}
	if !p.resolveToggle && !p.me.System && t.index.channels[p.targetChannel.ID].topics[fold(topic)] == nil && !t.channelAllows(p.me, p.targetChannel, "can_create_topic_group") {
		return BadRequest("You do not have permission to create new topics in this channel.")
	}
	all := t.index.channels[p.info.Channel].topics[fold(p.info.Topic)].ids
	switch p.Mode {
	case MoveOne:
		p.ids = ids.SetOf(p.Message)
		return nil
	case MoveLater:
		p.ids = all.Between(int64(p.Message), MaxMessageID)
	default:
		p.ids = all.Clone()
	}
	if p.Channel != 0 && t.hasProtectedHistory(t.channels.must(p.info.Channel)) {
		p.ids = t.rowsWithin(p.me.ID, &p.ids) // messages that the moving user cannot see do not move
	}
	if p.Mode == MoveAll && !p.resolveToggle {
		return p.checkTopicAge(t)
	}
	return nil
}

func (p *messageEdit) checkTopicAge(t *Turn) error {
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
	if t.hasProtectedHistory(t.channels.must(p.info.Channel)) {
		seen = t.rowsWithin(p.me.ID, &seen)
	}
	total, allowed, first := seen.Len(), 0, MessageID(0)
	late := func(id int64) bool {
		sent := int64(t.message(MessageID(id)).time)
		return slices.ContainsFunc(limits, func(l string) bool { return p.tooLate(t, sent, l) })
	}
	if oldest, ok := seen.Min(); ok && !late(oldest) {
		return nil // times ascend with ids
	}
	seen.EachBackward(func(id int64) bool {
		if late(id) {
			return false // older ones are too late as well
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
	return Refuse(Invalid, "MOVE_MESSAGES_TIME_LIMIT_EXCEEDED", BadRequest("You only have permission to move the %d/%d most recent messages in this topic.", allowed, total).Msg).
		With("first_message_id_allowed_to_move", first).With("total_messages_in_topic", total).With("total_messages_allowed_to_move", allowed)
}

func (t *Turn) mayEditContent(me *User, i MessageInfo, grace int64) error {
	if !t.OrgBool("allow_message_editing") {
		return BadRequest("Your organization has turned off message editing")
	}
	if i.Sender.ID != me.ID {
		return BadRequest("You don't have permission to edit this message")
	}
	if limit, ok := t.OrgSetting("message_content_edit_limit_seconds").(int64); ok && t.Now-i.Time > limit+grace {
		return BadRequest("The time limit for editing this message has passed")
	}
	return nil
}
