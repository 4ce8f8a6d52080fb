package crowd

import "fmt"

// messages makes a request that sends, changes or reads messages.
func (a *RequestGenerator) messages(x *Request) {
	id, ok := a.pick(x, "message", 30)
	switch d := a.rng.IntN(100); {
	case d < 30 || !ok:
		a.create(x, "message", "POST /messages", params{"type": "stream", "to": a.channelID(), "topic": a.topic(),
			"content": a.text(), "read_by_sender": a.coin()})
	case d < 40:
		a.create(x, "message", "POST /messages", params{"type": "direct", "to": a.userIDs(3), "content": a.text()})
	case d < 46:
		x.User = a.creator("message", id)
		a.set(x, "PATCH /messages/{message_id}", params{"message_id": id, "content": a.text()})
	case d < 54:
		p := params{"message_id": id, "topic": a.topic(),
			"propagate_mode":                  choose(a, "change_one", "change_later", "change_all"),
			"send_notification_to_old_thread": a.coin(), "send_notification_to_new_thread": a.coin()}
		if a.coin() {
			p["stream_id"] = a.channelID()
			if a.coin() {
				delete(p, "topic")
			}
		}
		a.set(x, "PATCH /messages/{message_id}", p)
	case d < 58:
		a.set(x, "DELETE /messages/{message_id}", params{"message_id": id})
	case d < 59:
		a.set(x, "POST /streams/{stream_id}/delete_topic",
			params{"stream_id": a.channelID(), "topic_name": a.topic()})
	case d < 67:
		a.set(x, choose(a, "POST", "DELETE")+" /messages/{message_id}/reactions",
			params{"message_id": id, "emoji_name": choose(a, "wave", "tada", "heart", "custom")})
	case d < 82:
		a.set(x, "POST /messages/flags", params{"messages": []any{id}, "op": choose(a, "add", "remove"),
			"flag": choose(a, "read", "read", "starred", "collapsed")})
	case d < 86:
		a.set(x, "POST /messages/flags/narrow", params{"anchor": choose(a, "oldest", "newest"), "num_before": 3,
			"num_after": 3, "op": choose(a, "add", "remove"), "flag": "read",
			"narrow": []params{{"operator": "channel", "operand": a.channelID()}}})
	case d < 88:
		a.set(x, choose(a, "POST /mark_all_as_read", "POST /mark_stream_as_read", "POST /mark_topic_as_read"),
			params{"stream_id": a.channelID(), "topic_name": a.topic()})
	case d < 92:
		a.set(x, "POST /submessage", params{"message_id": id, "msg_type": "widget",
			"content": fmt.Sprintf(`{"type":"vote","key":"canned,0","vote":%d}`, choose(a, 1, -1))})
	case d < 94:
		a.set(x, "GET /messages", params{"anchor": "newest", "num_before": 10, "num_after": 0,
			"allow_empty_topic_name": true})
	case d < 97:
		x.File = a.numbered("content")
		a.create(x, "file", "POST /user_uploads", params{})
	default:
		a.set(x, "POST /messages/{message_id}/report", params{"message_id": id, "report_type": "spam"})
	}
}
