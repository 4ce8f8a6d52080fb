package wire

import (
	"slices"
	"strconv"

	"parley/actors/realm"
	"parley/actors/realm/ids"
	"parley/wire/form"
)

var flagEndpoints = []Endpoint{
	Custom("POST", "/messages/flags", setFlags),
	Custom("POST", "/messages/flags/narrow", setFlagsNarrow),
	CommandFromForm("POST", "/mark_all_as_read", func(noParameters) realm.ReadAll {
		return realm.ReadAll{}
	}, func(realm.Done) *completeAnswer { return &completeAnswer{true} }),
	CommandFromForm("POST", "/mark_stream_as_read", func(f readChannelForm) realm.ReadChannel {
		return realm.ReadChannel{Channel: realm.ChannelID(f.Channel)}
	}, emptyAnswer),
	CommandFromForm("POST", "/mark_topic_as_read", func(f readTopicForm) realm.ReadTopic {
		return realm.ReadTopic{Channel: realm.ChannelID(f.Channel), Topic: f.Topic}
	}, emptyAnswer),
}

var flagEvents = []EventKind{
	EventOneOf(flagsChanged).sends(formOf[flagAddedEvent](), formOf[flagRemovedEvent]()),
}

type flagsAnswer struct {
	Messages []realm.MessageID `json:"messages"`
	Ignored  []realm.ChannelID `json:"ignored_because_not_subscribed_channels"`
}

type flagsNarrowAnswer struct {
	Processed int                `json:"processed_count"`
	Updated   int                `json:"updated_count"`
	First     *realm.MessageID   `json:"first_processed_id"`
	Last      *realm.MessageID   `json:"last_processed_id"`
	Oldest    bool               `json:"found_oldest"`
	Newest    bool               `json:"found_newest"`
	Ignored   *[]realm.ChannelID `json:"ignored_because_not_subscribed_channels,omitzero"`
}

// completeAnswer reports whether the whole request was carried out.
type completeAnswer struct {
	Complete bool `json:"complete"`
}

type flagEvent struct {
	Flag     string  `json:"flag"`
	Messages []int64 `json:"messages"`
	All      bool    `json:"all"`
}

type flagAddedEvent struct {
	_ struct{} `const:"type=update_message_flags op=add operation=add"`
	flagEvent
}

type flagRemovedEvent struct {
	_ struct{} `const:"type=update_message_flags op=remove operation=remove"`
	flagEvent
	// Details says where messages are that are unread again.
	Details map[string]either[unreadDirectMessage, unreadChannelMessage] `json:"message_details,omitzero"`
}

type unreadDirectMessage struct {
	_         struct{}       `const:"type=private"`
	Mentioned bool           `json:"mentioned,omitzero"`
	Users     []realm.UserID `json:"user_ids"`
}

type unreadChannelMessage struct {
	_         struct{}        `const:"type=stream"`
	Mentioned bool            `json:"mentioned,omitzero"`
	Channel   realm.ChannelID `json:"stream_id"`
	Topic     string          `json:"topic"`
	Unmuted   bool            `json:"unmuted_stream_msg"`
}

type setFlagsForm struct {
	Messages []int64 `form:"messages,required,maxitems=50000"` // bounds the number of turns
	Op       string  `form:"op,required"`
	Flag     string  `form:"flag,required"`
}

func setFlags(c *Call, f setFlagsForm) (*flagsAnswer, error) {
	ids := make([]realm.MessageID, len(f.Messages))
	for i, id := range f.Messages {
		ids[i] = realm.MessageID(id)
	}
	ignored, err := changeFlagsInParts(c, realm.Flag{Messages: ids, Op: f.Op, Flag: f.Flag})
	if err != nil {
		return nil, err
	}
	return &flagsAnswer{ids, ignored}, nil
}

// changeFlagsInParts changes the flags of many messages in several turns, so that other requests run in between. It
// returns the channels whose messages were not changed. A refusal applies to the whole request.
func changeFlagsInParts(c *Call, cmd realm.Flag) ([]realm.ChannelID, error) {
	parts := slices.Collect(slices.Chunk(cmd.Messages, realm.MaxFlagged))
	if len(parts) <= 1 {
		result, err := Execute(c, cmd)
		return result.Ignored, err
	}
	for _, part := range parts {
		cmd.Messages = part
		if err := checkPermission(c, func(v realm.View) error { return v.MayFlag(cmd) }); err != nil {
			return nil, err
		}
	}
	ignored := []realm.ChannelID{}
	cmd.Checked = true
	for _, part := range parts {
		cmd.Messages = part
		result, err := Execute(c, cmd)
		if err != nil {
			return nil, err
		}
		ignored = append(ignored, result.Ignored...)
	}
	slices.Sort(ignored)
	return slices.Compact(ignored), nil
}

type setFlagsNarrowForm struct {
	Anchor        form.Anchor      `form:"anchor,required"`
	Date          form.Opt[string] `form:"anchor_date,extension=an anchor by date as in GET /messages"`
	IncludeAnchor bool             `form:"include_anchor,default=true"`
	Before        int64            `form:"num_before,required,min=0"`
	After         int64            `form:"num_after,required,min=0"`
	Narrow        form.Narrow      `form:"narrow"`
	Op            string           `form:"op,required"`
	Flag          string           `form:"flag,required"`
}

func setFlagsNarrow(c *Call, f setFlagsNarrowForm) (*flagsNarrowAnswer, error) {
	anchor, err := realmAnchor(f.Anchor, f.Date)
	if err != nil {
		return nil, err
	}
	terms, query := narrowTerms(f.Narrow)
	search, err := newNarrowSearch(c, query)
	if err != nil {
		return nil, err
	}
	const many = 1 << 30 // larger than any narrow, and the sum of two does not overflow
	cmd := realm.FlagNarrow{
		Terms: terms,
		Hits:  search.found.Hits,
		Op:    f.Op,
		Flag:  f.Flag,
		Range: realm.PageRange{Anchor: anchor, Before: int(min(f.Before, many)), After: int(min(f.After, many)),
			Exclude: !f.IncludeAnchor},
	}
	if err := search.fixPage(c, &cmd); err != nil {
		return nil, err
	}
	result, err := Execute(c, cmd)
	if err != nil {
		return nil, err
	}
	ids := result.Page.IDs
	a := &flagsNarrowAnswer{Processed: len(ids), Updated: result.Changed, Oldest: result.Page.Oldest,
		Newest: result.Page.Newest}
	if n := len(ids); n > 0 {
		a.First, a.Last = &ids[0], &ids[n-1]
	}
	if f.Op == "remove" && f.Flag == "read" { // only here: POST /messages/flags always has the field (protocol)
		a.Ignored = &result.Ignored
	}
	return a, nil
}

type readChannelForm struct {
	Channel int64 `form:"stream_id,required"`
}

type readTopicForm struct {
	Channel int64  `form:"stream_id,required"`
	Topic   string `form:"topic_name,required"`
}

func flagsChanged(e *realm.FlagsEvent, to *Recipient) any {
	common := flagEvent{flagNames(e.Flag)[0], ids.IDs[int64](e.IDs), e.All}
	if e.Add {
		return &flagAddedEvent{flagEvent: common}
	}
	out := &flagRemovedEvent{flagEvent: common}
	if e.Flag == realm.FlagRead {
		out.Details = map[string]either[unreadDirectMessage, unreadChannelMessage]{}
		for _, d := range e.Details() {
			at := strconv.FormatInt(int64(d.ID), 10)
			if d.Channel == 0 {
				out.Details[at] = either[unreadDirectMessage, unreadChannelMessage]{
					unreadDirectMessage{Mentioned: d.Mentioned, Users: d.People}}
				continue
			}
			out.Details[at] = either[unreadDirectMessage, unreadChannelMessage]{unreadChannelMessage{
				Mentioned: d.Mentioned, Channel: d.Channel, Topic: to.Topic(d.Topic), Unmuted: d.Unmuted}}
		}
	}
	return out
}
