package mirror

import (
	"errors"
	"fmt"
	"maps"
)

// channelTables are where a client may have a channel; of the last three it is in one at most.
var channelTables = []string{"streams", "subscriptions", "unsubscribed", "never_subscribed"}

func (m *Mirror) eachChannel(id string, fn func(o Object)) (found bool) {
	for _, name := range channelTables {
		if o := m.tables[name][id]; o != nil {
			found = true
			fn(o)
		}
	}
	return found
}

// counted has a channel count its subscribers where it knows them all.
func (m *Mirror) counted(o Object) {
	if list, ok := o["subscribers"].([]any); ok {
		o["subscriber_count"] = float64(len(list))
	}
}

func (m *Mirror) subscription(e Object) error {
	if m.tables["subscriptions"] == nil {
		return nil
	}
	switch str(e["op"]) {
	case "add":
		for _, o := range objects(e["subscriptions"]) {
			id := text(o["stream_id"])
			if t := m.tables["streams"]; t != nil && t[id] == nil {
				return fmt.Errorf("subscribed to channel %s, which was not told of", id)
			}
			delete(m.tables["unsubscribed"], id)
			delete(m.tables["never_subscribed"], id)
			if s := m.tables["streams"][id]; s != nil {
				s["subscriber_count"] = o["subscriber_count"]
			}
			m.put("subscriptions", id, o)
		}
		return nil
	case "remove":
		for _, x := range objects(e["subscriptions"]) {
			id := text(x["stream_id"])
			o := m.tables["subscriptions"][id]
			if o == nil {
				return fmt.Errorf("subscription to channel %s is not there", id)
			}
			delete(m.tables["subscriptions"], id)
			m.put("unsubscribed", id, o)
			// Who leaves together with others is not told of them, so nobody knows who is left.
			m.eachChannel(id, func(o Object) { delete(o, "subscribers"); delete(o, "subscriber_count") })
			m.unneeded(Int(x["stream_id"]))
			if o["invite_only"] == true || m.flat["is_guest"] == true {
				m.forget(Int(x["stream_id"]))
			}
		}
		return nil
	case "update":
		o := m.tables["subscriptions"][text(e["stream_id"])]
		if o == nil {
			return errors.New("update of a subscription that is not there")
		}
		o[str(e["property"])] = e["value"]
		return nil
	case "peer_add", "peer_remove":
		for _, id := range Ints(e["stream_ids"]) {
			if !m.eachChannel(text(float64(id)), func(o Object) {
				m.members(o, Ints(e["user_ids"]),
					str(e["op"]) == "peer_add")
			}) {
				return fmt.Errorf("peers of channel %d, which is not there", id)
			}
		}
		return nil
	}
	return errOp
}

// members has people join or leave a channel as one of the tables knows it.
func (m *Mirror) members(o Object, people []int64, join bool) {
	if _, known := o["subscriber_count"]; !known {
		return
	}
	if _, full := o["subscribers"].([]any); full {
		changeSet(o, "subscribers", people, join)
		m.counted(o)
		return
	}
	n := Int(o["subscriber_count"])
	if join {
		n += int64(len(people))
	} else {
		n -= int64(len(people))
	}
	o["subscriber_count"] = float64(n)
	if _, some := o["partial_subscribers"].([]any); some {
		changeSet(o, "partial_subscribers", people, join)
	}
}

func (m *Mirror) stream(e Object) error {
	switch str(e["op"]) {
	case "create":
		for _, o := range objects(e["streams"]) {
			id := text(o["stream_id"])
			if m.tables["streams"][id] != nil {
				return fmt.Errorf("channel %s is there already", id)
			}
			m.put("streams", id, o)
			if m.tables["subscriptions"][id] == nil {
				m.put("never_subscribed", id, o)
			}
		}
		return nil
	case "delete":
		for _, o := range objects(e["streams"]) {
			id := text(o["stream_id"])
			if !m.eachChannel(id, func(Object) {}) && len(m.tables) > 0 && m.tables["streams"] != nil {
				return fmt.Errorf("channel %s is not there", id)
			}
			for _, name := range channelTables {
				delete(m.tables[name], id)
			}
			m.forget(Int(o["stream_id"]))
			m.unneeded(Int(o["stream_id"]))
		}
		return nil
	case "update":
		id := Int(e["stream_id"])
		if data, in := str(e["property"]), m.tables["subscriptions"][text(e["stream_id"])] != nil; e["value"] == true && (data == "is_archived" || !in && data == "invite_only") {
			m.unneeded(id)
			if !in {
				m.forget(id)
			}
		}
		data := Object{str(e["property"]): e["value"]}
		for _, k := range []string{"rendered_description", "history_public_to_subscribers", "is_web_public"} {
			if v, ok := e[k]; ok {
				data[k] = v
			}
		}
		if !m.eachChannel(text(e["stream_id"]), func(o Object) { maps.Copy(o, data) }) && m.tables["streams"] != nil {
			return errors.New("the channel is not there")
		}
		return nil
	}
	return errOp
}

// unneeded drops what is unread in a channel that was left or archived: it is read, the server says so a little later.
func (m *Mirror) unneeded(channel int64) {
	for id, u := range m.unread {
		if u.stream == channel {
			delete(m.unread, id)
		}
	}
}

// forget drops the messages of a channel one may no longer read: what is not followed any more is fetched anew.
func (m *Mirror) forget(channel int64) {
	for id, o := range m.messages {
		if Int(o["stream_id"]) == channel {
			delete(m.messages, id)
		}
	}
}
