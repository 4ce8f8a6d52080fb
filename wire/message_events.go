package wire

import (
	"bytes"
	"strconv"

	"parley/actors/queue"
	"parley/actors/realm"
)

// messageEvent is what encodeMessageEvent encodes. The sender's own queue gets the local id.
type messageEvent struct {
	_       struct{}           `const:"type=message"`
	Message arrivedMessageJSON `json:"message"`
	Flags   []string           `json:"flags"`
	LocalID string             `json:"local_message_id,omitzero"`
}

// encodeMessageEvent returns an encoded message event without its id. It returns nil if the text was erased
// meanwhile. The event of a damaged text has damagedBody: without the event the client would not learn of the message,
// and an error would keep all other events from it until the disk is repaired. A further key is impossible, because
// some clients refuse events with keys that they do not know.
func encodeMessageEvent(e *realm.MessageArrived, v variant, ctx RenderContext, local string) []byte {
	var body realm.Body
	if e.Message.Body != nil {
		body = *e.Message.Body
	} else if b, ok := textOfEvent(ctx, e.Message.Ref); ok {
		body = b
	} else {
		return nil
	}
	buffer := bufferPool.Get().(*[]byte)
	b := append((*buffer)[:0], `{"flags":`...)
	b = appendList(b, flagNames(v.flags), appendString)
	if local != "" {
		b = appendString(append(b, `,"local_message_id":`...), local)
	}
	b = appendMessage(append(b, `,"message":`...), &e.Message, body, v.client, ctx.Site, v.hideSender)
	b = append(b, `,"type":"message"`...)
	out := bytes.Clone(b)
	*buffer = b
	if cap(b) <= 1<<20 { // a rare large buffer must not stay in the pool
		bufferPool.Put(buffer)
	}
	return out
}

// textOfEvent returns a text while an event is encoded: damagedBody if it is damaged. It reports false if the text was
// erased. If the node that has the text cannot be reached, it panics: the event must wait.
func textOfEvent(ctx RenderContext, ref realm.BodyRef) (realm.Body, bool) {
	b, ok, err := ctx.Texts.Text(ctx.Realm, ref)
	switch {
	case realm.IsBusy(err):
		panic(queue.Unreadable{Err: err})
	case err != nil:
		return damagedBody, true
	}
	return b, ok
}

// appendMessage appends the same bytes as encode(newMessage(...)) without building the struct, because messages
// are the most frequent events.
func appendMessage(b []byte, m *realm.MessageInfo, body realm.Body, c Client, s Site, unknown bool) []byte {
	sender, name := apiEmail(m.Sender, s), m.Sender.Name
	avatar := avatarURL(m.Sender, s, c.Gravatar && m.Sender.EmailPublic)
	if unknown {
		sender, name, avatar = dummyEmail(m.Sender.ID, s), unknownName, ptr(unknownAvatar)
	}
	content, kind := body.HTML, "text/html"
	if !c.Markdown {
		content, kind = body.Text, "text/x-markdown"
	}
	b = appendJSON(append(b, `{"avatar_url":`...), avatar)
	b = appendString(append(b, `,"client":`...), m.Client)
	b = appendString(append(b, `,"content":`...), content)
	b = appendString(append(b, `,"content_type":`...), kind)
	b = append(b, `,"display_recipient":`...)
	recipient, subject, of := int64(m.Talk)*2, "", "private"
	if m.Channel != 0 {
		b = appendString(b, m.ChannelName)
		recipient, subject, of = int64(m.Channel)*2+1, c.Topic(m.Topic), "stream"
	} else {
		b = appendJSON(b, newPeople(m.People, s))
	}
	b = strconv.AppendInt(append(b, `,"id":`...), int64(m.ID), 10)
	b = strconv.AppendBool(append(b, `,"is_me_message":`...), m.Me)
	if m.Edited != 0 {
		b = strconv.AppendInt(append(b, `,"last_edit_timestamp":`...), m.Edited, 10)
	}
	if m.Moved != 0 {
		b = strconv.AppendInt(append(b, `,"last_moved_timestamp":`...), m.Moved, 10)
	}
	b = append(b, `,"reactions":`...)
	if len(m.Reactions) > 0 {
		b = appendJSON(b, each(m.Reactions, newReaction))
	} else {
		b = append(b, "[]"...)
	}
	b = strconv.AppendInt(append(b, `,"recipient_id":`...), recipient, 10)
	b = appendString(append(b, `,"sender_email":`...), sender)
	b = appendString(append(b, `,"sender_full_name":`...), name)
	b = strconv.AppendInt(append(b, `,"sender_id":`...), int64(m.Sender.ID), 10)
	b = appendString(append(b, `,"sender_realm_str":`...), s.Name)
	if m.Channel != 0 {
		b = strconv.AppendInt(append(b, `,"stream_id":`...), int64(m.Channel), 10)
	}
	b = appendString(append(b, `,"subject":`...), subject)
	b = append(b, `,"submessages":`...)
	if len(m.Submessages) > 0 {
		b = appendJSON(b, newSubmessages(m))
	} else {
		b = append(b, "[]"...)
	}
	b = strconv.AppendInt(append(b, `,"timestamp":`...), m.Time, 10)
	b = append(b, `,"topic_links":`...)
	if len(m.Links) > 0 {
		b = appendJSON(b, topicLinks(m.Links))
	} else {
		b = append(b, "[]"...)
	}
	b = appendString(append(b, `,"type":`...), of)
	return append(b, '}')
}
