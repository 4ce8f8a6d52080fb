package mirror

import (
	"errors"
	"fmt"
	"maps"
)

// channelTables are the tables that can hold a channel; it is in at most one of the last three.
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

// countSubscribers sets subscriber_count if the complete list of subscribers is known.
func (m *Mirror) countSubscribers(o Object) {
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
			id := idText(o["stream_id"])
			if t := m.tables["streams"]; t != nil && t[id] == nil {
				return fmt.Errorf("subscribed to channel %s, which no event has created", id)
			}
			delete(m.tables["unsubscribed"], id)
			delete(m.tables["never_subscribed"], id)
			if s := m.tables["streams"][id]; s != nil {
				s["subscriber_count"] = o["subscriber_count"]
			}
			// A client that could read the channel without a subscription got none of its reactions and submessages.
			if o["invite_only"] == true || m.flat["is_guest"] == true {
				m.dropMessages(Int(o["stream_id"]))
			}
			m.put("subscriptions", id, o)
		}
		return nil
	case "remove":
		for _, x := range objects(e["subscriptions"]) {
			id := idText(x["stream_id"])
			o := m.tables["subscriptions"][id]
			if o == nil {
				return fmt.Errorf("subscription to channel %s does not exist", id)
			}
			delete(m.tables["subscriptions"], id)
			m.put("unsubscribed", id, o)
			// A client does not learn which other users leave together with its own user, so the remaining members
			// are unknown.
			m.eachChannel(id, func(o Object) { delete(o, "subscribers"); delete(o, "subscriber_count") })
			m.dropUnread(Int(x["stream_id"]))
			if o["invite_only"] == true || m.flat["is_guest"] == true {
				m.dropMessages(Int(x["stream_id"]))
			}
		}
		return nil
	case "update":
		o := m.tables["subscriptions"][idText(e["stream_id"])]
		if o == nil {
			return errors.New("update of a subscription that does not exist")
		}
		o[str(e["property"])] = e["value"]
		return nil
	case "peer_add", "peer_remove":
		for _, id := range Ints(e["stream_ids"]) {
			if !m.eachChannel(idText(float64(id)), func(o Object) {
				m.changeMembers(o, Ints(e["user_ids"]),
					str(e["op"]) == "peer_add")
			}) {
				return fmt.Errorf("peer event of channel %d, which does not exist", id)
			}
		}
		return nil
	}
	return errOp
}

// changeMembers adds users to a channel or removes them, in one table.
func (m *Mirror) changeMembers(o Object, people []int64, join bool) {
	if _, known := o["subscriber_count"]; !known {
		return
	}
	if _, full := o["subscribers"].([]any); full {
		changeSet(o, "subscribers", people, join)
		m.countSubscribers(o)
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
			id := idText(o["stream_id"])
			if m.tables["streams"][id] != nil {
				return fmt.Errorf("channel %s exists already", id)
			}
			m.put("streams", id, o)
			if m.tables["subscriptions"][id] == nil {
				m.put("never_subscribed", id, o)
			}
		}
		return nil
	case "delete":
		for _, o := range objects(e["streams"]) {
			id := idText(o["stream_id"])
			if !m.eachChannel(id, func(Object) {}) && len(m.tables) > 0 && m.tables["streams"] != nil {
				return fmt.Errorf("channel %s does not exist", id)
			}
			for _, name := range channelTables {
				delete(m.tables[name], id)
			}
			m.dropMessages(Int(o["stream_id"]))
			m.dropUnread(Int(o["stream_id"]))
		}
		return nil
	case "update":
		id := Int(e["stream_id"])
		property, subscribed := str(e["property"]), m.tables["subscriptions"][idText(e["stream_id"])] != nil
		if e["value"] == true && (property == "is_archived" || !subscribed && property == "invite_only") {
			m.dropUnread(id)
			if !subscribed {
				m.dropMessages(id)
			}
		}
		data := Object{property: e["value"]}
		for _, k := range []string{"rendered_description", "history_public_to_subscribers", "is_web_public"} {
			if v, ok := e[k]; ok {
				data[k] = v
			}
		}
		if !m.eachChannel(idText(e["stream_id"]), func(o Object) { maps.Copy(o, data) }) && m.tables["streams"] != nil {
			return errors.New("the channel does not exist")
		}
		return nil
	}
	return errOp
}

// dropUnread removes the unread messages of a channel that was left or archived: the server marks them as read a
// little later.
func (m *Mirror) dropUnread(channel int64) {
	for id, u := range m.unread {
		if u.stream == channel {
			delete(m.unread, id)
		}
	}
}

// dropMessages removes the messages of a channel that its owner can no longer read: a client without their events
// fetches them again.
func (m *Mirror) dropMessages(channel int64) {
	for id, o := range m.messages {
		if Int(o["stream_id"]) == channel {
			delete(m.messages, id)
		}
	}
}
