package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"

	"parley/actors/realm"
	"parley/wire/form"
)

var editEndpoints = []Endpoint{
	Custom("PATCH", "/messages/{message_id}", editMessage),
	CommandFromForm("DELETE", "/messages/{message_id}", deleteMessage, emptyAnswer),
	Custom("POST", "/streams/{stream_id}/delete_topic", deleteTopic),
	Custom("GET", "/messages/{message_id}/history", getMessageHistory),
}

var editEvents = []EventKind{
	LazyEvent(messageUpdated).sends(formOf[messageEditedEvent](), formOf[messageMovedEvent]()),
	Events(messagesDeleted).sends(formOf[directsDeletedEvent](), formOf[directDeletedEvent](),
		formOf[messagesDeletedEvent](), formOf[messageDeletedEvent]()),
}

// editAnswer has the files that no message contains any more.
type editAnswer struct {
	Detached []attachmentJSON `json:"detached_uploads"`
}

// updatedMessage is a message that was edited, moved or rendered again.
type updatedMessage struct {
	_             struct{}          `const:"type=update_message"`
	User          realm.UserID      `json:"user_id" zero:"null"`
	RenderingOnly bool              `json:"rendering_only"`
	At            int64             `json:"edit_timestamp"`
	Message       realm.MessageID   `json:"message_id"`
	IDs           []realm.MessageID `json:"message_ids"`
	Flags         []string          `json:"flags"`
	ChannelName   string            `json:"stream_name,omitzero"`
}

// updatedText is the new text. The old one is absent if the text was only rendered again.
type updatedText struct {
	Text    string  `json:"content"`
	HTML    string  `json:"rendered_content"`
	Me      bool    `json:"is_me_message"`
	OldText *string `json:"orig_content,omitzero"`
	OldHTML *string `json:"orig_rendered_content,omitzero"`
}

type messageEditedEvent struct {
	updatedMessage
	updatedText
	Channel realm.ChannelID `json:"stream_id,omitzero"`
}

// messageMovedEvent is a move, which can change the text too.
type messageMovedEvent struct {
	updatedMessage
	*updatedText
	Channel    realm.ChannelID `json:"stream_id"`
	Mode       string          `json:"propagate_mode" enum:"change_one|change_later|change_all"`
	OrigTopic  string          `json:"orig_subject"`
	Topic      *string         `json:"subject,omitzero"`
	Links      []topicLinkJSON `json:"topic_links,omitzero"`
	NewChannel realm.ChannelID `json:"new_stream_id,omitzero"`
}

// deletedHere says where messages were deleted.
type (
	deletedHere struct {
		_       struct{}        `const:"type=delete_message message_type=stream"`
		Channel realm.ChannelID `json:"stream_id"`
		Topic   string          `json:"topic"`
	}
)

// Clients without the capability for several messages get an event for each.
type (
	deletedMessage struct {
		ID realm.MessageID `json:"message_id"`
	}
	deletedMessages struct {
		IDs []realm.MessageID `json:"message_ids"`
	}
	directDeletedEvent struct {
		_ struct{} `const:"type=delete_message message_type=private"`
		deletedMessage
	}
	directsDeletedEvent struct {
		_ struct{} `const:"type=delete_message message_type=private"`
		deletedMessages
	}
	messageDeletedEvent struct {
		deletedHere
		deletedMessage
	}
	messagesDeletedEvent struct {
		deletedHere
		deletedMessages
	}
)

type editForm struct {
	Message   realm.MessageID  `path:"message_id"`
	Content   form.Opt[string] `form:"content"`
	Topic     form.Opt[string] `form:"topic,alias=subject,strip"`
	Channel   form.Opt[int64]  `form:"stream_id"`
	Mode      string           `form:"propagate_mode,default=change_one,enum=change_one|change_later|change_all"`
	NotifyOld bool             `form:"send_notification_to_old_thread,default=false"`
	NotifyNew bool             `form:"send_notification_to_new_thread,default=true"`
	Sum       string           `form:"prev_content_sha256"`
}

// maxEditAttempts is the number of times the server retries an edit whose message changed meanwhile, before it
// refuses.
const maxEditAttempts = 5

func editMessage(c *Call, f editForm) (*editAnswer, error) {
	cmd := realm.EditMessage{Message: f.Message, Mode: f.Mode, NotifyOld: f.NotifyOld, NotifyNew: f.NotifyNew}
	if f.Topic.Set {
		cmd.Topic = &f.Topic.Value
	}
	if f.Channel.Set {
		if cmd.Channel = realm.ChannelID(f.Channel.Value); cmd.Channel <= 0 {
			return nil, realm.BadRequest("Invalid channel ID")
		}
	}
	for attempt := range maxEditAttempts {
		var err error
		if f.Content.Set {
			if cmd.Content, err = prepareContent(c, &f, attempt > 0); err != nil {
				return nil, err
			}
		}
		edited, err := Execute(c, cmd)
		if errors.Is(err, realm.ErrStale) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return &editAnswer{each(edited.Detached, newAttachment)}, nil
	}
	return nil, realm.Refuse(realm.Busy, "BAD_REQUEST", "The message is being edited; try again.")
}

// prepareContent renders the new text. The present one is read if the client expects a sum of it, and read and rendered
// if renderOld is set: the first attempt of an edit compares with the mentions in the message's row. It refuses callers
// that are not allowed to read the message, if it reads the text.
func prepareContent(c *Call, f *editForm, renderOld bool) (content *realm.NewContent, err error) {
	content = &realm.NewContent{WantSum: strings.TrimSpace(f.Sum)}
	if content.WantSum != "" || renderOld {
		if content.Old, err = readOldContent(c, f.Message, renderOld); err != nil {
			return nil, err
		}
	}
	text := f.Content.Value
	if strings.TrimSpace(text) == "" {
		text = "(deleted)"
	}
	if text, content.Invalid = realm.NormalizeContent(text); content.Invalid != nil {
		return content, nil
	}
	if content.Body, content.Content, err = render(c, text); err != nil {
		content.Unrenderable = true
	}
	return content, nil
}

// readOldContent reads the present text of a message that the caller can read.
func readOldContent(c *Call, id realm.MessageID, withMentions bool) (*realm.OldContent, error) {
	info, err := Read(c, func(v realm.View) (realm.MessageInfo, error) { return v.WritableMessage(id) })
	if err != nil {
		return nil, err
	}
	body, ok, err := c.Server.Text(c.Realm, info.Ref)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, realm.BadRequest("Invalid message(s)")
	}
	sum := sha256.Sum256([]byte(body.Text))
	old := &realm.OldContent{Version: info.Ref.Version, Sum: hex.EncodeToString(sum[:])}
	if withMentions {
		if _, mentions, err := render(c, body.Text); err == nil {
			old.Mentions = &mentions
		} else {
			old.Mentions = &realm.ContentInfo{}
		}
	}
	return old, nil
}

type messageIDForm struct {
	Message realm.MessageID `path:"message_id"`
}

func deleteMessage(f messageIDForm) realm.DeleteMessage {
	return realm.DeleteMessage{Message: f.Message}
}

type deleteTopicForm struct {
	Channel realm.ChannelID `path:"stream_id"`
	Topic   string          `form:"topic_name,required,strip"`
}

func deleteTopic(c *Call, f deleteTopicForm) (*completeAnswer, error) {
	job, err := Execute(c, realm.DeleteTopic{Channel: f.Channel, Topic: f.Topic})
	if err != nil {
		return nil, err
	}
	complete, err := waitForJob(c, job)
	return &completeAnswer{complete}, err
}

func messageUpdated(e *realm.MessageUpdate, to *Recipient) any {
	common := updatedMessage{User: e.User, RenderingOnly: e.User == 0, At: e.At, Message: e.Message, IDs: e.IDs,
		Flags: modernFlagNames(to.Flags)}
	if e.Channel != 0 {
		common.ChannelName = e.ChannelName
	}
	text := newUpdatedText(e, to)
	if !e.Moved {
		if text == nil {
			return nil // the text was erased meanwhile
		}
		return &messageEditedEvent{common, *text, e.Channel}
	}
	out := &messageMovedEvent{updatedMessage: common, updatedText: text, Channel: e.Channel, Mode: e.Mode,
		OrigTopic: to.Topic(e.OrigTopic)}
	if e.TopicChanged {
		out.Topic, out.Links = ptr(to.Topic(e.Topic)), topicLinks(e.Links)
	}
	if e.NewChannel != e.Channel {
		out.NewChannel = e.NewChannel
	}
	return out
}

// newUpdatedText returns the text of an event, nil if it did not change, or if it was erased meanwhile.
func newUpdatedText(e *realm.MessageUpdate, to *Recipient) *updatedText {
	body, ok := textAfterEdit(e, to)
	if !ok {
		return nil
	}
	out := &updatedText{Text: body.Text, HTML: body.HTML, Me: e.Me}
	if e.User != 0 {
		// The message has had so many edits since that its history lost this text: it is sent as empty.
		old, _ := textOfEvent(to.RenderContext, realm.BodyRef{Message: e.Message, Version: e.OldVersion})
		out.OldText, out.OldHTML = &old.Text, &old.HTML
	}
	return out
}

// textAfterEdit returns the new text of an edit. It reports false if there is none, or if it was erased meanwhile.
func textAfterEdit(e *realm.MessageUpdate, to *Recipient) (realm.Body, bool) {
	switch {
	case !e.Content:
		return realm.Body{}, false
	case e.Body != nil:
		return *e.Body, true
	}
	return textOfEvent(to.RenderContext, realm.BodyRef{Message: e.Message, Version: e.Version})
}

func messagesDeleted(e *realm.MessagesVanished, to *Recipient) []any {
	here, bulk := deletedHere{Channel: e.Channel, Topic: to.Topic(e.Topic)}, deletedMessages{e.IDs}
	if to.Has(realm.CapBulkMessageDeletion) {
		if e.Channel == 0 {
			return []any{&directsDeletedEvent{deletedMessages: bulk}}
		}
		return []any{&messagesDeletedEvent{here, bulk}}
	}
	return each(e.IDs, func(id realm.MessageID) any {
		if e.Channel == 0 {
			return &directDeletedEvent{deletedMessage: deletedMessage{id}}
		}
		return &messageDeletedEvent{here, deletedMessage{id}}
	})
}
