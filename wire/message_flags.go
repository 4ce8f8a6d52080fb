package wire

import (
	"slices"
	"strconv"

	"parley/actors/realm"
	"parley/actors/realm/ids"
	"parley/wire/form"
)

var flagEndpoints = []Endpoint{
	Custom("POST", "/messages/flags", setFlags).
		Returns("{messages: [int], ignored_because_not_subscribed_channels: [int]}"),
	Custom("POST", "/messages/flags/narrow", setFlagsNarrow).
		Returns("{processed_count: int, updated_count: int, first_processed_id: int?, last_processed_id: int?, " +
			"found_oldest: bool, found_newest: bool, ignored_because_not_subscribed_channels?: [int]}"),
	CommandFromForm("POST", "/mark_all_as_read", func(noParameters) realm.ReadAll {
		return realm.ReadAll{}
	}, func(realm.Done) Answer { return Answer{"complete": true} }).Returns("{complete: bool}"),
	CommandFromForm("POST", "/mark_stream_as_read", func(f readChannelForm) realm.ReadChannel {
		return realm.ReadChannel{Channel: realm.ChannelID(f.Channel)}
	}, emptyAnswer),
	CommandFromForm("POST", "/mark_topic_as_read", func(f readTopicForm) realm.ReadTopic {
		return realm.ReadTopic{Channel: realm.ChannelID(f.Channel), Topic: f.Topic}
	}, emptyAnswer),
}

var flagEvents = []EventKind{
	EventOneOf(flagsChanged),
}

type setFlagsForm struct {
	Messages []int64 `form:"messages,required,maxitems=50000"` // bounds the number of turns
	Op       string  `form:"op,required"`
	Flag     string  `form:"flag,required"`
}

func setFlags(c *Call, f setFlagsForm) (Answer, error) {
	ids := make([]realm.MessageID, len(f.Messages))
	for i, id := range f.Messages {
		ids[i] = realm.MessageID(id)
	}
	ignored, err := changeFlagsInParts(c, realm.Flag{Messages: ids, Op: f.Op, Flag: f.Flag})
	if err != nil {
		return nil, err
	}
	return Answer{"messages": ids, "ignored_because_not_subscribed_channels": ignored}, nil
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

func setFlagsNarrow(c *Call, f setFlagsNarrowForm) (Answer, error) {
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
	a := Answer{
		"processed_count":    len(result.Page.IDs),
		"updated_count":      result.Changed,
		"first_processed_id": nil,
		"last_processed_id":  nil,
		"found_oldest":       result.Page.Oldest,
		"found_newest":       result.Page.Newest,
	}
	if n := len(result.Page.IDs); n > 0 {
		a["first_processed_id"], a["last_processed_id"] = result.Page.IDs[0], result.Page.IDs[n-1]
	}
	if f.Op == "remove" && f.Flag == "read" { // only here: POST /messages/flags always has the field (protocol)
		a["ignored_because_not_subscribed_channels"] = result.Ignored
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
	op := "remove"
	if e.Add {
		op = "add"
	}
	o := obj{"type": "update_message_flags", "op": op, "operation": op, "flag": flagNames(e.Flag)[0],
		"messages": ids.IDs[int64](e.IDs), "all": e.All}
	if e.Flag == realm.FlagRead && !e.Add {
		details := obj{}
		for _, d := range e.Details() {
			details[strconv.FormatInt(int64(d.ID), 10)] = unreadDetail(d, to.Client)
		}
		o["message_details"] = details
	}
	return o
}

func unreadDetail(d realm.UnreadDetail, c Client) obj {
	o := obj{"type": "private"}
	if d.Mentioned {
		o["mentioned"] = true
	}
	if d.Channel != 0 {
		o["type"], o["stream_id"], o["topic"], o["unmuted_stream_msg"] = "stream", d.Channel, c.Topic(d.Topic),
			d.Unmuted
	} else {
		o["user_ids"] = nonNil(d.People)
	}
	return o
}
