package wire

import (
	"fmt"
	"slices"
	"strconv"

	"parley/actors/realm"
	"parley/wire/form"
)

var historyEndpoints = []Endpoint{
	Custom("GET", "/messages", getMessages).AllowVisitors(),
	Custom("GET", "/messages/{message_id}", getMessage).AllowVisitors(),
	Get("/messages/{message_id}/read_receipts", getReadReceipts),
}

type messagesAnswer struct {
	Messages listOf[foundMessageJSON] `json:"messages"`
	Anchor   *int64                   `json:"anchor,omitzero"` // unless the request named the messages
	Found    bool                     `json:"found_anchor"`
	Oldest   bool                     `json:"found_oldest"`
	Newest   bool                     `json:"found_newest"`
	Limited  bool                     `json:"history_limited"` // always false
}

type messageAnswer struct {
	Message messageJSON `json:"message"`
	Content string      `json:"raw_content"`
}

type readReceiptsAnswer struct {
	Users []realm.UserID `json:"user_ids"`
}

// messageJSON is a message as its reader gets it.
type messageJSON struct {
	arrivedMessageJSON
	Flags   []string                 `json:"flags"`
	History *encoded[[]revisionJSON] `json:"edit_history,omitzero"`
}

// foundMessageJSON is a message of a list. The marked texts are there if the narrow has a search.
type foundMessageJSON struct {
	messageJSON
	MatchContent *string `json:"match_content,omitzero"`
	MatchTopic   *string `json:"match_subject,omitzero"`
}

// revisionJSON is an entry of the edit history of a message.
type revisionJSON struct {
	User       realm.UserID     `json:"user_id"`
	At         int64            `json:"timestamp"`
	OldContent *string          `json:"prev_content,omitzero"`
	OldHTML    *string          `json:"prev_rendered_content,omitzero"`
	OldTopic   *string          `json:"prev_topic,omitzero"`
	Topic      *string          `json:"topic,omitzero"`
	OldChannel realm.ChannelID  `json:"prev_stream,omitzero"`
	Channel    *realm.ChannelID `json:"stream,omitzero"`
}

// maxMessagesPerRequest is how many messages one request can ask for (protocol).
const maxMessagesPerRequest = 5000

// messagesPerView is how many messages one view copies: well under 5 ms.
const messagesPerView = 500

type getMessagesForm struct {
	Anchor        form.Anchor       `form:"anchor"`
	Date          form.Opt[string]  `form:"anchor_date"`
	IncludeAnchor form.Opt[bool]    `form:"include_anchor"`
	Before        form.Opt[int64]   `form:"num_before,min=0"`
	After         form.Opt[int64]   `form:"num_after,min=0"`
	Narrow        form.Narrow       `form:"narrow"`
	Gravatar      bool              `form:"client_extavatar,alias=client_gravatar,default=true"`
	Markdown      bool              `form:"apply_markdown,default=true"`
	FirstUnread   form.Opt[bool]    `form:"use_first_unread_anchor"`
	IDs           form.Opt[[]int64] `form:"message_ids,maxitems=5000"`
	EmptyTopic    bool              `form:"allow_empty_topic_name"`
}

func (f *getMessagesForm) Check() *form.Error {
	if f.IDs.Set {
		if f.Anchor.Kind != form.AnchorAbsent || f.IncludeAnchor.Set || f.Before.Set || f.After.Set ||
			f.FirstUnread.Set {
			return form.Unsupported("num_before", "num_after", "anchor", "message_ids", "include_anchor",
				"use_first_unread_anchor")
		}
		return nil
	}
	if f.FirstUnread.Value {
		f.Anchor = form.Anchor{Kind: form.AnchorFirstUnread}
	}
	if f.Anchor.Kind == form.AnchorAbsent {
		return form.MissingAnchor()
	}
	if f.Before.Value > maxMessagesPerRequest || f.After.Value > maxMessagesPerRequest ||
		f.Before.Value+f.After.Value > maxMessagesPerRequest {
		return form.Bad("Too many messages requested (maximum " + strconv.Itoa(maxMessagesPerRequest) + ").")
	}
	if f.Before.Value > 0 && f.After.Value > 0 && f.IncludeAnchor.Set && !f.IncludeAnchor.Value {
		return form.Bad("The anchor can only be excluded at an end of the range")
	}
	return nil
}

// requestClient returns the client capabilities that the parameters of a request express. Logged-out visitors always
// get avatar URLs.
func requestClient(c *Call, markdown, gravatar, emptyTopic bool) Client {
	client := Client{Markdown: markdown, Gravatar: gravatar && c.Account != nil}
	if emptyTopic {
		client.Caps |= realm.CapEmptyTopicName
	}
	return client
}

func getMessages(c *Call, f getMessagesForm) (*messagesAnswer, error) {
	terms, query := narrowTerms(f.Narrow)
	search, err := newNarrowSearch(c, query)
	if err != nil {
		return nil, err
	}
	var page realm.Page
	if f.IDs.Set {
		page.IDs, err = search.messagesAmong(c, terms, f.IDs.Value)
	} else {
		var anchor realm.Anchor
		if anchor, err = realmAnchor(f.Anchor, f.Date); err != nil {
			return nil, err
		}
		page, err = search.page(c, terms, realm.PageRange{
			Anchor:  anchor,
			Before:  int(f.Before.Value),
			After:   int(f.After.Value),
			Exclude: f.IncludeAnchor.Set && !f.IncludeAnchor.Value,
		})
	}
	if err != nil {
		return nil, err
	}
	found := &messagePage{
		call:   c,
		client: requestClient(c, f.Markdown, f.Gravatar, f.EmptyTopic),
		search: search,
		memory: answerMemory{call: c},
	}
	if f.IDs.Set {
		err = found.collectAll(page.IDs)
	} else {
		err = found.collectAround(&page)
	}
	if err != nil {
		return nil, err
	}
	out := &messagesAnswer{Messages: listOf[foundMessageJSON]{found.elements()}, Found: page.Found, Oldest: page.Oldest,
		Newest: page.Newest}
	if !f.IDs.Set {
		out.Anchor = &page.Anchor
	}
	return out, nil
}

// ReadMessage is a message of an answer as programs in this process get it: some fields of its JSON.
type ReadMessage struct {
	ID       realm.MessageID
	Time     int64
	Sender   string
	SenderID realm.UserID
	Channel  realm.ChannelID // 0: a direct message
	Name     string          // of the channel
	People   []ReadPerson    // of a direct message
	Topic    string
	Content  string
}

// ReadPerson is a participant of a direct message.
type ReadPerson struct {
	ID   realm.UserID
	Name string
}

// MessagesOf returns the messages of an answer of GET /messages, oldest first, and whether the oldest one of the narrow
// is among them. Encoding and parsing the answer would take as long as making it.
func MessagesOf(answer any) (list []ReadMessage, oldest bool) {
	a, ok := answer.(*messagesAnswer)
	if !ok {
		panic(fmt.Sprintf("BUG: an answer with messages is %T", answer))
	}
	p := a.Messages.page
	list = make([]ReadMessage, len(p.list))
	for i := range p.list {
		m := &p.list[i]
		x := newMessageOf(&m.VisibleMessage, m.body, p.client, p.call.Site)
		list[i] = ReadMessage{ID: x.ID, Time: x.Time, Sender: x.Name, SenderID: x.Sender, Channel: x.Channel,
			Topic: x.Topic, Content: x.Content}
		if x.Channel != 0 {
			list[i].Name = m.ChannelName
			continue
		}
		people, _ := x.Display.value.([]personJSON)
		for _, person := range people {
			list[i].People = append(list[i].People, ReadPerson{person.ID, person.Name})
		}
	}
	return list, a.Oldest
}

// newMessageForReader returns a message with the reader's flags and the visible part of its edit history.
func newMessageForReader(c *Call, m *realm.VisibleMessage, body realm.Body, r Client) (out messageJSON, err error) {
	if m.Channel != 0 {
		m.Links = topicLinksOf(c, m.Topic)
	}
	out = newMessageOf(m, body, r, c.Site)
	if len(m.History) > 0 {
		old := revisionTexts{call: c, left: maxHistoryBytes, html: true}
		list, err := old.revisions(m, r)
		if err != nil {
			return out, err
		}
		memory := answerMemory{call: c}
		if err := memory.add(maxHistoryBytes - max(old.left, 0)); err != nil {
			return out, err
		}
		out.History = ptr(encodedAs[[]revisionJSON](encode(list)))
	}
	return out, nil
}

// newMessageOf returns a message with the reader's flags.
func newMessageOf(m *realm.VisibleMessage, body realm.Body, r Client, s Site) messageJSON {
	return messageJSON{arrivedMessageJSON: newMessage(&m.MessageInfo, body, r, s, m.SenderHidden),
		Flags: flagNames(m.Flags)}
}

// maxListedHistoryBytes bounds the old texts, in bytes, that one message has in a listing. A listing has thousands of
// messages; all old texts of one message are at /messages/{message_id}/history.
const maxListedHistoryBytes = 10_000

// revisionTexts adds old texts to the edit history of one message, the newest first, while they fit. An entry whose
// text does not fit has neither prev_content nor prev_rendered_content. Listings contain no HTML: an old text of 10 kB
// can have 200 kB of it.
type revisionTexts struct {
	call *Call
	left int  // bytes of old texts and HTML that still fit; negative after the first one that does not
	html bool // whether entries contain the HTML
}

// revisions returns the edit history of a message, newest first.
func (t *revisionTexts) revisions(m *realm.VisibleMessage, r Client) ([]revisionJSON, error) {
	out := make([]revisionJSON, 0, len(m.History))
	for _, x := range slices.Backward(m.History) {
		o := revisionJSON{User: x.User, At: x.At}
		if x.Content {
			if err := t.add(&o, realm.BodyRef{Message: m.ID, Version: x.Version}); err != nil {
				return nil, err
			}
		}
		if x.TopicBefore != nil && x.TopicAfter != nil {
			o.OldTopic, o.Topic = ptr(r.Topic(*x.TopicBefore)), ptr(r.Topic(*x.TopicAfter))
		}
		if x.ChannelBefore != 0 {
			o.OldChannel, o.Channel = x.ChannelBefore, &x.ChannelAfter
		}
		out = append(out, o)
	}
	return out, nil
}

// add adds an old text to the entry of its edit, if it fits. A text that was erased in the meantime is left out.
func (t *revisionTexts) add(o *revisionJSON, ref realm.BodyRef) error {
	if t.left < 0 {
		return nil
	}
	b, ok, err := t.call.Server.Text(t.call.Realm, ref)
	if err != nil || !ok {
		return err
	}
	size := len(b.Text)
	if t.html {
		size += len(b.HTML)
	}
	if t.left -= size; t.left < 0 {
		return nil
	}
	o.OldContent = &b.Text
	if t.html {
		o.OldHTML = &b.HTML
	}
	return nil
}

type getMessageForm struct {
	Message    int64 `path:"message_id"`
	Markdown   bool  `form:"apply_markdown,default=true"`
	EmptyTopic bool  `form:"allow_empty_topic_name"`
}

func getMessage(c *Call, f getMessageForm) (*messageAnswer, error) {
	m, err := Read(c, func(v realm.View) (realm.VisibleMessage, error) {
		return v.VisibleMessage(realm.MessageID(f.Message))
	})
	if err != nil {
		return nil, err
	}
	body, ok, err := c.Server.Text(c.Realm, m.Ref)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, realm.BadRequest("Invalid message(s)")
	}
	out, err := newMessageForReader(c, &m, body, requestClient(c, f.Markdown, true, f.EmptyTopic))
	return &messageAnswer{out, body.Text}, err
}

type readReceiptsForm struct {
	Message int64 `path:"message_id"`
}

func getReadReceipts(c *Call, v realm.View, f readReceiptsForm) (*readReceiptsAnswer, error) {
	users, err := v.ReadReceipts(realm.MessageID(f.Message))
	if err != nil {
		return nil, err
	}
	return &readReceiptsAnswer{users}, nil
}
