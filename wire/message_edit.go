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
	Custom("PATCH", "/messages/{message_id}", editMessage).Returns("{detached_uploads: [Attachment]}"),
	CommandFromForm("DELETE", "/messages/{message_id}", deleteMessage, emptyAnswer),
	Custom("POST", "/streams/{stream_id}/delete_topic", deleteTopic).Returns("{complete: bool}"),
	Custom("GET", "/messages/{message_id}/history", getMessageHistory).
		Returns("{message_history: [PastMessage], next_offset?: int}"),
}

var editEvents = []EventKind{
	LazyEvent(messageUpdated),
	Events(messagesDeleted),
}

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

func editMessage(c *Call, f editForm) (Answer, error) {
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
		uploads := []any{}
		for _, d := range edited.Detached {
			uploads = append(uploads, obj{"id": d.ID, "name": d.Name, "path_id": d.Path, "size": d.Size,
				"create_time": d.Created, "message_ids": nonNil(d.Messages)})
		}
		return Answer{"detached_uploads": uploads}, nil
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

func deleteTopic(c *Call, f deleteTopicForm) (Answer, error) {
	job, err := Execute(c, realm.DeleteTopic{Channel: f.Channel, Topic: f.Topic})
	if err != nil {
		return nil, err
	}
	complete, err := waitForJob(c, job)
	return Answer{"complete": complete}, err
}

func messageUpdated(e *realm.MessageUpdate, to *Recipient) any {
	o := obj{"type": "update_message", "user_id": e.User, "rendering_only": e.User == 0, "edit_timestamp": e.At,
		"message_id":  e.Message,
		"message_ids": e.IDs, "flags": modernFlagNames(to.Flags)}
	if e.User == 0 {
		o["user_id"] = nil
	}
	if e.Channel != 0 {
		o["stream_id"] = e.Channel
		if e.ChannelName != "" {
			o["stream_name"] = e.ChannelName
		}
	}
	body, ok := updatedText(e, to)
	if e.Content && !ok && !e.Moved {
		return nil // the text was erased meanwhile
	}
	if e.Content && ok {
		o["content"], o["rendered_content"], o["is_me_message"] = body.Text, body.HTML, e.Me
		if e.User != 0 {
			// The message has had so many edits since that its history lost this text: it is sent as empty.
			old, _ := textOfEvent(to.RenderContext, realm.BodyRef{Message: e.Message, Version: e.OldVersion})
			o["orig_content"], o["orig_rendered_content"] = old.Text, old.HTML
		}
	}
	if e.Moved {
		o["propagate_mode"], o["orig_subject"] = e.Mode, to.Topic(e.OrigTopic)
		if e.TopicChanged {
			o["subject"], o["topic_links"] = to.Topic(e.Topic), topicLinks(e.Links)
		}
		if e.NewChannel != e.Channel {
			o["new_stream_id"] = e.NewChannel
		}
	}
	return o
}

// updatedText returns the new text of an edit. It reports false if there is none, or if it was erased meanwhile.
func updatedText(e *realm.MessageUpdate, to *Recipient) (realm.Body, bool) {
	switch {
	case !e.Content:
		return realm.Body{}, false
	case e.Body != nil:
		return *e.Body, true
	}
	return textOfEvent(to.RenderContext, realm.BodyRef{Message: e.Message, Version: e.Version})
}

func messagesDeleted(e *realm.MessagesVanished, to *Recipient) []any {
	one := obj{"type": "delete_message", "message_type": "private"}
	if e.Channel != 0 {
		one["message_type"], one["stream_id"], one["topic"] = "stream", e.Channel, to.Topic(e.Topic)
	}
	if to.Has(realm.CapBulkMessageDeletion) {
		one["message_ids"] = e.IDs
		return []any{one}
	}
	var out []any
	for _, id := range e.IDs {
		o := obj{"message_id": id}
		for k, v := range one {
			o[k] = v
		}
		out = append(out, o)
	}
	return out
}
