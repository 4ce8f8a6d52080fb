package conform

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"
)

var queueChecks = []check{
	{"registration", "POST /register answers with a queue, the last event id and the feature level", "register-queue",
		0,
		func(s *session) error {
			a, err := s.succeed(0, "POST", "register", form{"event_types": []string{"message"}})
			if err != nil {
				return err
			}
			s.do(0, "DELETE", "events", form{"queue_id": a.text("queue_id")})
			if n := a.number("zulip_feature_level"); n != int64(s.target.Level) {
				return fmt.Errorf("zulip_feature_level must be that of /server_settings, %d, not %d", s.target.Level, n)
			}
			return shape{"queue_id": "string", "last_event_id": "int", "zulip_version": "string"}.fits("the answer",
				a.fields)
		}},
	{"message event", "a message arrives as an event of type message with the message and the flags of the user",
		"get-events", 0, func(s *session) error {
			q, err := s.register(1, "message")
			if err != nil {
				return err
			}
			defer q.close()
			id, err := s.sendDirect(unique(), nil)
			if err != nil {
				return err
			}
			e, err := q.await("message event", isMessage(id))
			if err != nil {
				return err
			}
			if err := (shape{"id": "int", "flags": "list", "message": "object"}).fits("the event", e); err != nil {
				return err
			}
			var m map[string]json.RawMessage
			json.Unmarshal(e["message"], &m)
			return shape{"id": "int", "sender_id": "int", "content": "string", "type": "string", "timestamp": "int",
				"display_recipient": "list", "reactions": "list", "sender_full_name": "string"}.fits("the message", m)
		}},
	{"acknowledging", "events are sent again until a poll acknowledges them with their id, and then no more",
		"get-events", 0, func(s *session) error {
			q, err := s.register(1, "message")
			if err != nil {
				return err
			}
			defer q.close()
			if _, err := s.sendDirect(unique(), nil); err != nil {
				return err
			}
			first, err := q.poll(true)
			if err != nil {
				return err
			}
			second, err := q.poll(true)
			if err != nil {
				return err
			}
			if len(first) == 0 || !reflect.DeepEqual(first, second) {
				return fmt.Errorf("two polls with the same last_event_id must return the same events, but "+
					"returned %d and %d",
					len(first), len(second))
			}
			q.last = number(first[len(first)-1]["id"])
			third, err := q.poll(false)
			if err == nil && len(third) > 0 && text(third[0]["type"]) != "heartbeat" {
				err = fmt.Errorf("after the acknowledgement of event %d, a poll returned %d events", q.last, len(third))
			}
			return err
		}},
	{"no waiting", "a poll with dont_block is answered at once", "get-events", 0, func(s *session) error {
		q, err := s.register(2, "message")
		if err != nil {
			return err
		}
		defer q.close()
		begin := time.Now()
		if _, err := q.poll(false); err != nil {
			return err
		}
		if took := time.Since(begin); took > 5*time.Second {
			return fmt.Errorf("it took %v", took)
		}
		return nil
	}},
	{"unknown queue", "a poll of an unknown queue is answered with BAD_EVENT_QUEUE_ID and the queue_id", "get-events",
		0,
		func(s *session) error {
			const id = "fb67bf8a-c031-47cc-84cf-ed80accacda8"
			a, err := s.refuse(0, "GET", "events", form{"queue_id": id, "last_event_id": -1}, 400, "BAD_EVENT_QUEUE_ID")
			if err == nil && a.text("queue_id") != id {
				err = fmt.Errorf("queue_id must be %s: %s", id, a)
			}
			return err
		}},
	{"queue of others", "a user cannot poll or delete the queue of another user", "get-events", 0,
		func(s *session) error {
			q, err := s.register(0, "message")
			if err != nil {
				return err
			}
			defer q.close()
			if _, err := s.refuse(1, "GET", "events", form{"queue_id": q.id, "last_event_id": q.last,
				"dont_block": true},
				400,
				"BAD_EVENT_QUEUE_ID"); err != nil {
				return err
			}
			if _, err := s.refuse(1, "DELETE", "events", form{"queue_id": q.id}, 400,
				"BAD_EVENT_QUEUE_ID"); err != nil {
				return err
			}
			_, err = q.poll(false)
			return err
		}},
	{"deleted queue", "after DELETE /events the queue does not exist", "delete-queue", 0, func(s *session) error {
		q, err := s.register(0, "message")
		if err != nil {
			return err
		}
		if _, err := s.succeed(0, "DELETE", "events", form{"queue_id": q.id}); err != nil {
			return err
		}
		_, err = s.refuse(0, "GET", "events", form{"queue_id": q.id, "last_event_id": q.last}, 400,
			"BAD_EVENT_QUEUE_ID")
		return err
	}},
	{"local echo", "the sender's own queue gets the local_id of the send as local_message_id", "send-message", 0,
		func(s *session) error {
			q, err := s.register(0, "message")
			if err != nil {
				return err
			}
			defer q.close()
			id, err := s.sendDirect(unique(), form{"queue_id": q.id, "local_id": "17.01"})
			if err != nil {
				return err
			}
			e, err := q.await("message event", isMessage(id))
			if err == nil && text(e["local_message_id"]) != "17.01" {
				err = fmt.Errorf("local_message_id must be 17.01, but is %s", e["local_message_id"])
			}
			return err
		}},
	{"reaction event", "a reaction arrives as an event with op add, the user and the emoji", "get-events", 0,
		func(s *session) error {
			id, err := s.sendDirect(unique(), nil)
			if err != nil {
				return err
			}
			q, err := s.register(0, "reaction")
			if err != nil {
				return err
			}
			defer q.close()
			if _, err := s.succeed(1, "POST", fmt.Sprintf("messages/%d/reactions", id),
				form{"emoji_name": "tada"}); err != nil {
				return err
			}
			e, err := q.await("reaction event", func(e event) bool { return text(e["type"]) == "reaction" })
			if err != nil {
				return err
			}
			if number(e["message_id"]) != id || text(e["op"]) != "add" || number(e["user_id"]) != s.target.Users[1].ID {
				return fmt.Errorf("message_id, op or user_id of the event is wrong: %v", e)
			}
			return shape{"emoji_name": "string", "emoji_code": "string", "reaction_type": "string"}.fits("the event", e)
		}},
	{"edit event", "an edit arrives as update_message with the old and new content", "get-events", 0,
		func(s *session) error {
			before, after := unique(), unique()
			id, err := s.sendDirect(before, nil)
			if err != nil {
				return err
			}
			q, err := s.register(1, "update_message")
			if err != nil {
				return err
			}
			defer q.close()
			a, err := s.do(0, "PATCH", fmt.Sprintf("messages/%d", id), form{"content": after})
			if err != nil {
				return err
			}
			if a.status != 200 {
				return skip("the organization does not allow this edit: %s", a)
			}
			e, err := q.await("update_message event", func(e event) bool { return number(e["message_id"]) == id })
			if err != nil {
				return err
			}
			if text(e["orig_content"]) != before || text(e["content"]) != after {
				return fmt.Errorf("orig_content and content must be %q and %q: %s and %s", before, after,
					e["orig_content"],
					e["content"])
			}
			return shape{"user_id": "int?", "edit_timestamp": "int", "message_ids": "list",
				"rendered_content": "string",
				"flags":            "list"}.fits("the event", e)
		}},
	{"audience", "the event of a direct message reaches only its participants", "get-events", 0,
		func(s *session) error {
			q, err := s.register(2, "message")
			if err != nil {
				return err
			}
			defer q.close()
			secret, err := s.sendDirect(unique(), nil)
			if err != nil {
				return err
			}
			// A message to this user afterwards shows that all earlier events have arrived.
			a, err := s.succeed(1, "POST", "messages", form{"type": "private", "to": []int64{s.target.Users[2].ID},
				"content": unique()})
			if err != nil {
				return err
			}
			leaked := false
			_, err = q.await("message event", func(e event) bool {
				leaked = leaked || isMessage(secret)(e)
				return isMessage(a.number("id"))(e)
			})
			if err == nil && leaked {
				err = fmt.Errorf("user %d got the event of message %d, which was sent to another user",
					s.target.Users[2].ID, secret)
			}
			return err
		}},
}

func isMessage(id int64) func(event) bool {
	return func(e event) bool {
		var m struct {
			ID int64 `json:"id"`
		}
		return text(e["type"]) == "message" && json.Unmarshal(e["message"], &m) == nil && m.ID == id
	}
}

// permissionChecks are cells of the permission table that need nothing but three ordinary users.
var permissionChecks = append([]check{
	{"private channel", "a private channel is invisible to users who are not subscribed: list, messages and sends",
		"create-channel", 0, privateChannel},
}, memberRefusals()...)

// memberRefusals returns a check for each request that needs an administrator.
func memberRefusals() (list []check) {
	for _, x := range []struct {
		name, method, path, page string
		f                        form
	}{
		{"member creates user", "POST", "users", "create-user",
			form{"email": "conform@example.invalid", "password": "a long password 27182", "full_name": "Conform"}},
		{"member changes organization", "PATCH", "realm", "", form{"name": "conform"}},
		{"member deactivates user", "DELETE", "users/%d", "deactivate-user", nil},
		{"member changes role", "PATCH", "users/%d", "update-user", form{"role": 200}},
		{"member adds linkifier", "POST", "realm/filters", "add-linkifier",
			form{"pattern": "#(?P<id>[0-9]+)", "url_template": "https://example.invalid/{id}"}},
		{"member exports organization", "POST", "export/realm", "export-realm", nil},
	} {
		list = append(list, check{x.name, "an ordinary user is refused: " + x.method + " /" + x.path, x.page, 0,
			func(s *session) error {
				me, err := s.succeed(0, "GET", "users/me", nil)
				if err != nil {
					return err
				}
				if kindOf(me.fields["is_admin"]) != "bool" {
					return fmt.Errorf("GET /users/me: is_admin must be true or false: %s", me)
				}
				if string(me.fields["is_admin"]) != "false" {
					return skip("the first user is an administrator")
				}
				path := x.path
				if path == "users/%d" {
					path = fmt.Sprintf(path, s.target.Users[1].ID)
				}
				_, err = s.refuse(0, x.method, path, x.f, 400)
				return err
			}})
	}
	return list
}

func privateChannel(s *session) error {
	name := unique()
	a, err := s.do(0, "POST", "users/me/subscriptions", form{"subscriptions": []map[string]string{{"name": name}},
		"invite_only": true})
	if err != nil {
		return err
	}
	if a.status != 200 {
		return skip("the organization does not let this user create a private channel: %s", a)
	}
	a, err = s.succeed(0, "GET", "get_stream_id", form{"stream": name})
	if err != nil {
		return err
	}
	id := a.number("stream_id")
	a, err = s.succeed(0, "POST", "messages", form{"type": "stream", "to": id, "topic": "t", "content": "secret"})
	if err != nil {
		return err
	}
	message := a.number("id")
	list, err := s.succeed(1, "GET", "streams", nil)
	if err != nil {
		return err
	}
	channels, err := objects(list.fields["streams"])
	if err != nil {
		return err
	}
	for _, c := range channels {
		if number(c["stream_id"]) == id {
			return fmt.Errorf("GET /streams shows private channel %d to a user who is not subscribed", id)
		}
	}
	if _, err := s.refuse(1, "GET", fmt.Sprintf("messages/%d", message), nil, 400); err != nil {
		return err
	}
	if _, err := s.refuse(1, "POST", "messages", form{"type": "stream", "to": id, "topic": "t", "content": "x"},
		400); err != nil {
		return err
	}
	if _, err := s.refuse(1, "GET", "get_stream_id", form{"stream": name}, 400); err != nil {
		return err
	}
	// The channel is removed as far as an ordinary user can: by leaving it.
	_, err = s.succeed(0, "DELETE", "users/me/subscriptions", form{"subscriptions": []string{name}})
	return err
}
