package realm

import (
	"errors"
	"fmt"
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

// NewContent is the new text of a message. It was rendered before the turn.
type NewContent struct {
	Body         Body
	Content      ContentInfo
	Invalid      error // the refusal of a text that cannot be stored
	Unrenderable bool
	WantSum      string      // the sum the client expects of the present text; "" if it sends none
	Old          *OldContent // the present text; nil: it was not read
}

// OldContent has the facts about the present text of a message before the turn.
type OldContent struct {
	Version  uint16
	Sum      string       // hex SHA-256
	Mentions *ContentInfo // nil: the text was not rendered, so its mentions are those in the message's row
}

// Edited answers EditMessage.
type Edited struct{ Detached []DetachedUpload }

// ErrStale means that the text was changed after it was read and before this turn, or that the turn needs what was not
// read. The caller must read and render the text, and try again.
var ErrStale = errors.New("the message's text has changed in the meantime")

// isResolveToggle reports whether two topics differ only by the mark of resolved topics.
func isResolveToggle(a, b string) bool {
	return a != b && (a == resolvedPrefix+b || b == resolvedPrefix+a)
}

func (c EditMessage) Decide(t *Turn) (Edited, error) {
	me := t.Me()
	// First of all: a user that cannot read the message must not learn from another refusal that it exists.
	info, err := t.WritableMessage(c.Message)
	if err != nil {
		return Edited{}, err
	}
	if c.Content != nil && c.Content.Invalid != nil {
		return Edited{}, c.Content.Invalid
	}
	p := &messageEdit{EditMessage: c, me: me, info: info}
	if err := p.check(t); err != nil || p.unchanged {
		return Edited{}, err
	}
	answer := p.record(t)
	if c.Content != nil {
		t.addOutboxJobs(t.previewJobs(c.Message, info.Ref.Version+1, me, c.Content.Content))
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
	unchanged     bool     // the messages are in the channel already, and nothing else was asked for
	ids           ids.Set  // the messages that move
	oldMentions   ContentInfo
}

// topicAfter returns the topic that the message has after the edit.
func (p *messageEdit) topicAfter() string {
	if p.Topic != nil {
		return p.newTopic
	}
	return p.info.Topic
}

// check refuses edits that are not allowed. If several rules are broken, the caller must get the refusal that comes
// first in the protocol. So the order of the checks, here and in the methods below, must not change:
//
//  1. The permission to edit the text, and its time limit. They come before all checks of the request itself, so a user
//     without permission gets the same refusal for every request with a text.
//  2. The present text: findOldMentions. All later checks of the text use its mentions and its sum. They are wrong if
//     the text has changed since it was read: the caller reads it again and retries.
//  3. The combination of changes: checkCombination. It also drops the parts whose new value is the present one, so the
//     permissions below are needed only for parts that really change.
//  4. The permissions for each part: topic, then text, then channel. A move to another channel needs the permission to
//     change the topic only if the topic changes too.
//  5. The messages that move: selectMessages. It comes last, because its time limit is the only check that looks at all
//     messages of a topic.
func (p *messageEdit) check(t *Turn) error {
	if p.Content != nil {
		if err := t.mayEditContent(p.me, p.info, editGraceSeconds); err != nil {
			return err
		}
		if err := p.findOldMentions(t); err != nil {
			return err
		}
	}
	if err := p.checkCombination(t); err != nil {
		return err
	}
	if p.unchanged {
		return p.mayChangeChannel(t)
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

// findOldMentions sets the mentions of the present text. It returns ErrStale if the caller has not read the text but
// the turn needs it, or if the text has changed since.
func (p *messageEdit) findOldMentions(t *Turn) error {
	old := p.Content.Old
	switch {
	case old != nil && old.Version != p.info.Ref.Version, old == nil && p.Content.WantSum != "":
		return ErrStale
	case old != nil && old.Mentions != nil:
		p.oldMentions = *old.Mentions
		return nil
	}
	var known bool
	if p.oldMentions, known = t.storedMentions(p.Message); !known {
		return ErrStale
	}
	return nil
}

// checkCombination finds out which parts change and refuses changes that do not fit together. It sets newTopic,
// targetChannel and resolveToggle, and it sets Topic and Channel to nothing if they would not change. Its order must
// not change: see check.
func (p *messageEdit) checkCombination(t *Turn) error {
	// First drop the parts that do not change: only then can it be said that nothing changes. An invalid topic counts
	// as a change for now. Its error is returned below, because the protocol has the refusals in between first.
	var topicErr error
	if p.Topic != nil {
		p.newTopic, topicErr = NormalizeTopic(*p.Topic)
		if topicErr == nil && p.info.Channel != 0 && p.newTopic == p.info.Topic {
			p.Topic = nil
		}
	}
	sameChannel := p.Channel != 0 && p.Channel == p.info.Channel
	if sameChannel {
		p.Channel = 0
	}
	if p.Content == nil && p.Topic == nil && p.Channel == 0 {
		if !sameChannel {
			return errNothingToChange()
		}
		p.unchanged, p.targetChannel = true, t.channels.must(p.info.Channel)
		return nil
	}
	// Direct messages have neither channel nor topic. After this, a change of topic or channel is about a channel
	// message.
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
	// A target channel that does not exist is nil here. mayChangeChannel refuses it later, with the same words as for a
	// channel that the user cannot see.
	if p.info.Channel != 0 {
		if p.targetChannel = t.channels.must(p.info.Channel); p.Channel != 0 {
			p.targetChannel = t.channels.find(p.Channel)
		}
	}
	if p.targetChannel != nil && topicErr == nil && !t.scope.HasTopic(p.targetChannel.ID, p.topicAfter()) {
		return ErrKeyScope("This API key is not allowed to move messages there.")
	}
	// The topic itself, then whether the target channel allows it. A move without a new topic is checked too: the
	// target channel may not allow the present one.
	if p.Topic != nil {
		if topicErr != nil {
			return topicErr
		}
		if marksGeneralChat(p.newTopic) {
			return BadRequest("General chat cannot be marked as resolved")
		}
	}
	if p.targetChannel != nil && (p.Topic != nil || p.Channel != 0) {
		if err := t.checkTopicsPolicy(p.targetChannel, p.topicAfter()); err != nil {
			if p.topicAfter() == "" { // an edit has other words for it than a new message
				return BadRequest("Topics are required in this organization.")
			}
			return err
		}
	}
	// The text comes last: a new text fits every change but that of the channel, and messages with a widget have none.
	if p.Content != nil && p.Channel != 0 {
		return BadRequest("Cannot change message content while changing channel")
	}
	if p.Content != nil && t.extraOrEmpty(p.Message).Widget != "" {
		return BadRequest("Widgets cannot be edited.")
	}
	if p.Content != nil && p.info.Ref.Version == maxTextVersion {
		return BadRequest("This message has been edited too many times.")
	}
	p.resolveToggle = p.Topic != nil && p.Channel == 0 && isResolveToggle(p.info.Topic, p.newTopic)
	return nil
}

// marksGeneralChat reports whether a topic is general chat with the mark of resolved topics. General chat is the empty
// topic, or its name for clients that do not know the empty topic.
func marksGeneralChat(topic string) bool {
	bare := strings.TrimSpace(strings.TrimPrefix(topic+" ", resolvedPrefix))
	return topic != "" && bare != topic && (bare == "" || bare == EmptyTopicName)
}

// mayChangeTopic refuses users that are not allowed to change the topic. To mark a topic as resolved is a permission of
// its own and has no time limit. The permission comes before the time limit: without it the age does not matter.
func (p *messageEdit) mayChangeTopic(t *Turn) error {
	from := t.channels.must(p.info.Channel)
	if p.resolveToggle {
		if !t.HasPermission(p.me, "can_resolve_topics_group") &&
			!t.channelAllows(p.me, from, "can_resolve_topics_group") {
			return BadRequest("You don't have permission to resolve topics.")
		}
		return nil
	}
	if !t.HasPermission(p.me, "can_move_messages_between_topics_group") &&
		!t.channelAllows(p.me, from, "can_move_messages_within_channel_group") {
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
	return limited && !p.me.IsModerator() && t.Now-sent-editGraceSeconds > seconds
}

// mayChangeContent checks a new text. It refuses the text if the client expected another present text, if it could not
// be rendered, or if it adds mentions that the user is not allowed to make. Only new mentions are checked: a user may
// keep a mention although the permission for it was withdrawn.
func (p *messageEdit) mayChangeContent(t *Turn) error {
	if p.Content.WantSum != "" && !strings.EqualFold(p.Content.WantSum, p.Content.Old.Sum) {
		return Refuse(Invalid, "EXPECTATION_MISMATCH", "'prev_content_sha256' value does not match the expected value.")
	}
	if p.Content.Unrenderable {
		return BadRequest("Unable to render message")
	}
	added := p.Content.Content.addedMentions(p.oldMentions)
	if p.info.Channel == 0 {
		return t.checkGroupMentions(p.me, added)
	}
	return t.checkMentions(p.me, t.channels.must(p.info.Channel), p.info.Topic, added)
}

// addedMentions returns the mentions of x that are not in old.
func (x ContentInfo) addedMentions(old ContentInfo) ContentInfo {
	added := ContentInfo{
		ChannelWildcard: x.ChannelWildcard && !old.ChannelWildcard,
		TopicWildcard:   x.TopicWildcard && !old.TopicWildcard,
	}
	for _, g := range x.Groups {
		if !containsSorted(sortUnique(append([]GroupID(nil), old.Groups...)), g) {
			added.Groups = append(added.Groups, g)
		}
	}
	return added
}

// mayChangeChannel refuses users that are not allowed to move the message to the target channel. The order: the
// permission to move messages out of the present channel, then access to the target, then the permission to send there,
// then the time limit. Access comes before the permission to send, so the refusal does not reveal that a channel
// exists.
func (p *messageEdit) mayChangeChannel(t *Turn) error {
	from := t.channels.must(p.info.Channel)
	if !t.HasPermission(p.me, "can_move_messages_between_channels_group") &&
		!t.channelAllows(p.me, from, "can_move_messages_out_of_channel_group") {
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

// selectMessages sets the messages that move. It first refuses a move that would create a topic if the user is not
// allowed to. To mark a topic as resolved does not count as creating one.
func (p *messageEdit) selectMessages(t *Turn) error {
	createsTopic := t.index.channels[p.targetChannel.ID].topics[fold(p.topicAfter())] == nil
	if createsTopic && !p.resolveToggle && !p.me.System &&
		!t.channelAllows(p.me, p.targetChannel, "can_create_topic_group") {
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

// checkTopicAge refuses to move a whole topic if some of its messages are too old. If all are, it returns the refusal
// for one message. If only some are, its refusal says how many the user may move, so the client can offer MoveLater.
// Only messages that the user can see are counted: the numbers must not reveal others.
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
		return slices.ContainsFunc(limits, func(limit string) bool { return p.tooLate(t, sent, limit) })
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
	msg := fmt.Sprintf("You only have permission to move the %d/%d most recent messages in this topic.", allowed, total)
	return Refuse(Invalid, "MOVE_MESSAGES_TIME_LIMIT_EXCEEDED", msg).
		With("first_message_id_allowed_to_move", first).
		With("total_messages_in_topic", total).
		With("total_messages_allowed_to_move", allowed)
}

// mayEditContent refuses users that are not allowed to change the text of a message now. Only its sender is, and the
// organization can forbid it or set a time limit. grace is added to the limit, in seconds. The organization's setting
// is checked first: it is the same for all messages.
func (t *Turn) mayEditContent(me *User, info MessageInfo, grace int64) error {
	if !t.OrgBool("allow_message_editing") {
		return BadRequest("Your organization has turned off message editing")
	}
	if info.Sender.ID != me.ID {
		return BadRequest("You don't have permission to edit this message")
	}
	if limit, ok := t.OrgSetting("message_content_edit_limit_seconds").(int64); ok && t.Now-info.Time-grace > limit {
		return BadRequest("The time limit for editing this message has passed")
	}
	return nil
}
