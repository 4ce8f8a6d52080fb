package server

import (
	"fmt"
	"testing"
)

// matrixTimeLimits checks time limits: a moment before each limit, a moment after it, and without a limit. Every user
// asks about an own message, and about one of the keeper if others may move it.
func matrixTimeLimits(t *testing.T, l *coverage) {
	s := newMatrixStage(t, l)
	const limit = 1000 // seconds
	const grace = 20   // extra seconds for an edit or a move
	away := s.must(s.keeper, "POST", "/channels/create", "name", "away", "subscribers", []int64{s.keeper.id}).int("id")
	s.must(s.keeper, "POST", "/messages", "type", "channel", "to", away, "topic", "t", "content", "x")
	s.must(s.keeper, "PATCH", "/realm", "can_move_messages_between_channels_group",
		map[string]any{"new": s.groups["role:members"]})
	home := s.targetChannel()
	s.must(s.keeper, "DELETE", fmt.Sprintf("/users/%d", s.by["gone"].id))
	// Administrators and moderators may move messages without a limit; no user may edit without one; users who may
	// delete every message have no limit.
	mover := func(p *matrixUser) bool { return p.isAdmin() || p.name == "moderator" }
	for _, q := range []struct {
		name, setting string
		grace         int64
		own           bool // asks about an own message
		exempt        func(p *matrixUser) bool
		late          string
		ask           func(p *matrixUser, id int64, n int) reply
	}{
		{"edits", "message_content_edit_limit_seconds", grace, true, func(*matrixUser) bool { return false },
			"The time limit for editing this message has passed", func(p *matrixUser, id int64, n int) reply {
				return s.call(p, "PATCH", fmt.Sprintf("/messages/%d", id), "content", fmt.Sprint("edited ", n))
			}},
		{"types an edit", "message_content_edit_limit_seconds", 0, true, func(*matrixUser) bool { return false },
			"The time limit for editing this message has passed", func(p *matrixUser, id int64, n int) reply {
				return s.call(p, "POST", fmt.Sprintf("/messages/%d/typing", id), "op", "start")
			}},
		{"deletes", "message_content_delete_limit_seconds", 0, true, (*matrixUser).isAdmin,
			"The time limit for deleting this message has passed", func(p *matrixUser, id int64, n int) reply {
				return s.call(p, "DELETE", fmt.Sprintf("/messages/%d", id))
			}},
		{"moves to a topic", "move_messages_within_stream_limit_seconds", grace, false, mover,
			"The time limit for editing this message's topic has passed.", func(p *matrixUser, id int64, n int) reply {
				return s.call(p, "PATCH", fmt.Sprintf("/messages/%d", id), "topic", fmt.Sprint("topic ", n),
					"send_notification_to_new_thread", false)
			}},
		{"moves a whole topic", "move_messages_within_stream_limit_seconds", grace, false, mover,
			"The time limit for editing this message's topic has passed.", func(p *matrixUser, id int64, n int) reply {
				return s.call(p, "PATCH", fmt.Sprintf("/messages/%d", id), "topic", fmt.Sprint("topic ", n),
					"propagate_mode", "change_all", "send_notification_to_new_thread", false)
			}},
		{"marks a topic as resolved", "move_messages_within_stream_limit_seconds", grace, false,
			func(*matrixUser) bool { return true }, "", func(p *matrixUser, id int64, n int) reply {
				return s.call(p, "PATCH", fmt.Sprintf("/messages/%d", id), "topic", fmt.Sprintf("✔ before %d", n),
					"propagate_mode", "change_all")
			}},
		{"moves to a channel", "move_messages_between_streams_limit_seconds", grace, false, mover,
			"The time limit for editing this message's channel has passed", func(p *matrixUser, id int64, n int) reply {
				return s.call(p, "PATCH", fmt.Sprintf("/messages/%d", id), "stream_id", away,
					"send_notification_to_new_thread", false)
			}},
	} {
		for _, limited := range []bool{true, false} {
			value := any(limit)
			if !limited {
				value = `"unlimited"`
			}
			s.must(s.keeper, "PATCH", "/realm", q.setting, value)
			for _, age := range []int64{limit + q.grace, limit + q.grace + 1} {
				ids := map[string]int64{}
				for n, p := range s.people {
					author := s.keeper
					if q.own && p.name != "gone" {
						author = p
					}
					ids[p.name] = s.must(author, "POST", "/messages", "type", "channel", "to", home, "topic",
						fmt.Sprint("before ", n), "content", "x").int("id")
				}
				s.now.Add(age)
				for n, p := range s.people {
					want := loginError(p, false)
					switch late := limited && age > limit+q.grace; {
					case want != "":
					case p.isGuest() && q.name == "moves to a channel":
						want = "You don't have permission to move this message"
					case late && !q.exempt(p):
						want = q.late
					}
					got := q.ask(p, ids[p.name], n)
					s.checkAnswer(s.question(q.name), got.msg(), want,
						"%s: %s %d seconds after it was sent, limited: %v", p.name, q.name, age, limited)
				}
				for n := range s.people { // delete the topics of this round
					for _, topic := range []string{fmt.Sprint("before ", n), fmt.Sprint("topic ", n),
						fmt.Sprint("✔ before ", n)} {
						for _, ch := range []int64{home, away} {
							s.must(s.keeper, "POST", fmt.Sprintf("/streams/%d/delete_topic", ch), "topic_name", topic)
						}
					}
				}
			}
		}
	}
	s.summary()
}
