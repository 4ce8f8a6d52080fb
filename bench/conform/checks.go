package conform

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// checks returns all checks in the order in which they run.
func checks() []check {
	return slices.Concat(errorChecks, readChecks, messageChecks, queueChecks, permissionChecks)
}

// unique returns a text that no other run uses.
func unique() string { return "conform " + strconv.FormatInt(time.Now().UnixNano(), 36) }

var errorChecks = []check{
	{"settings without credentials", "GET /server_settings needs no credentials and describes the server",
		"get-server-settings", 0, func(s *session) error {
			a, err := s.succeed(-1, "GET", "server_settings", nil)
			if err != nil {
				return err
			}
			return shape{"authentication_methods": "object", "zulip_version": "string", "zulip_feature_level": "int",
				"push_notifications_enabled": "bool", "email_auth_enabled": "bool"}.fits("the answer", a.fields)
		}},
	{"no credentials", "a request without credentials is answered with status 401 and code UNAUTHORIZED",
		"rest-error-handling", 0, func(s *session) error {
			_, err := s.refuse(-1, "GET", "users/me", nil, 401, "UNAUTHORIZED")
			return err
		}},
	{"wrong key", "a request with a wrong API key is answered with status 401", "rest-error-handling", 0,
		func(s *session) error {
			wrong := &session{target: s.target, client: s.client}
			wrong.target.Users = slices.Clone(s.target.Users)
			wrong.target.Users[0].Key = "aaaabbbbccccddddeeeeffffgggghhhh"
			_, err := wrong.refuse(0, "GET", "users/me", nil, 401, "UNAUTHORIZED", "INVALID_API_KEY")
			return err
		}},
	{"missing parameter", "a missing parameter is answered with REQUEST_VARIABLE_MISSING and var_name",
		"rest-error-handling", 0, func(s *session) error {
			a, err := s.refuse(0, "POST", "messages", form{"type": "private", "to": []int64{s.target.Users[1].ID}}, 400,
				"REQUEST_VARIABLE_MISSING", "BAD_REQUEST")
			if err == nil && a.text("code") == "REQUEST_VARIABLE_MISSING" && a.text("var_name") != "content" {
				err = fmt.Errorf("var_name must be content: %s", a)
			}
			return err
		}},
	{"bad parameter", "a parameter that is not the expected JSON is answered with status 400", "rest-error-handling", 0,
		func(s *session) error {
			_, err := s.refuse(0, "GET", "messages", form{"anchor": "newest", "num_before": "x", "num_after": 0}, 400)
			return err
		}},
	{"ignored parameters", "the answer lists parameters that the endpoint does not support",
		"rest-error-handling", 167, func(s *session) error {
			a, err := s.succeed(0, "GET", "users/me", form{"not_a_parameter": "1"})
			if err != nil {
				return err
			}
			var names []string
			json.Unmarshal(a.fields["ignored_parameters_unsupported"], &names)
			if !slices.Equal(names, []string{"not_a_parameter"}) {
				return fmt.Errorf("ignored_parameters_unsupported must be [not_a_parameter]: %s", a)
			}
			return nil
		}},
	{"wrong method", "a method that the endpoint does not have is answered with status 405", "rest-error-handling", 0,
		func(s *session) error {
			a, err := s.do(0, "DELETE", "users/me/presence", nil)
			if err == nil && (a.status != 405 || a.text("result") != "error") {
				err = fmt.Errorf("DELETE /users/me/presence: want status 405 and a JSON error, got %s", a)
			}
			return err
		}},
}

var readChecks = []check{
	{"own user", "GET /users/me describes the user of the credentials", "get-own-user", 0, func(s *session) error {
		a, err := s.succeed(0, "GET", "users/me", nil)
		if err != nil {
			return err
		}
		if a.number("user_id") != s.target.Users[0].ID {
			return fmt.Errorf("user_id must be %d: %s", s.target.Users[0].ID, a)
		}
		return shape{"email": "string", "full_name": "string", "is_admin": "bool", "is_bot": "bool",
			"timezone": "string",
			"role":     "int", "date_joined": "string"}.fits("the answer", a.fields)
	}},
	{"users", "GET /users lists the users with their ids, names and roles", "get-users", 0, func(s *session) error {
		return eachObject(s, "users", "members", shape{"user_id": "int", "full_name": "string", "email": "string",
			"is_bot": "bool", "is_active": "bool", "role": "int"})
	}},
	{"channels", "GET /streams lists the channels that the user can see", "get-streams", 0, func(s *session) error {
		return eachObject(s, "streams", "streams", shape{"stream_id": "int", "name": "string", "description": "string",
			"invite_only": "bool", "is_web_public": "bool"})
	}},
	{"subscriptions", "GET /users/me/subscriptions lists the channels of the user with personal settings",
		"get-subscriptions", 0, func(s *session) error {
			return eachObject(s, "users/me/subscriptions", "subscriptions", shape{"stream_id": "int", "name": "string",
				"color": "string", "is_muted": "bool", "pin_to_top": "bool", "invite_only": "bool"})
		}},
}

func eachObject(s *session, path, member string, want shape) error {
	a, err := s.succeed(0, "GET", path, nil)
	if err != nil {
		return err
	}
	list, err := objects(a.fields[member])
	if err != nil {
		return fmt.Errorf("GET /%s, member %s: %w", path, member, err)
	}
	for i, o := range list {
		if err := want.fits(fmt.Sprintf("GET /%s: %s[%d]", path, member, i), o); err != nil {
			return err
		}
	}
	return nil
}

// sendDirect sends a direct message from user 0 to user 1 and returns its id.
func (s *session) sendDirect(content string, more form) (int64, error) {
	f := form{"type": "private", "to": []int64{s.target.Users[1].ID}, "content": content}
	for k, v := range more {
		f[k] = v
	}
	a, err := s.succeed(0, "POST", "messages", f)
	if err != nil {
		return 0, err
	}
	if kindOf(a.fields["id"]) != "int" || a.number("id") <= 0 {
		return 0, fmt.Errorf("POST /messages: want a positive id, got %s", a)
	}
	return a.number("id"), nil
}

// fetch returns the messages of a narrow around an anchor, as one user.
func (s *session) fetch(user int, anchor int64, narrow any) ([]map[string]json.RawMessage, error) {
	a, err := s.succeed(user, "GET", "messages", form{"anchor": anchor, "num_before": 0, "num_after": 0,
		"narrow":         narrow,
		"apply_markdown": false})
	if err != nil {
		return nil, err
	}
	return objects(a.fields["messages"])
}

var messageChecks = []check{
	{"direct message", "a direct message can be read by its recipient, with the documented members", "get-messages", 0,
		func(s *session) error {
			content := unique()
			id, err := s.sendDirect(content, nil)
			if err != nil {
				return err
			}
			list, err := s.fetch(1, id, []any{})
			if err != nil {
				return err
			}
			if len(list) != 1 || number(list[0]["id"]) != id || text(list[0]["content"]) != content ||
				text(list[0]["type"]) != "private" || number(list[0]["sender_id"]) != s.target.Users[0].ID {
				return fmt.Errorf("GET /messages with anchor %d must return the message, got %v", id, list)
			}
			return shape{"timestamp": "int", "sender_full_name": "string", "sender_email": "string", "flags": "list",
				"reactions": "list", "display_recipient": "list", "subject": "string", "client": "string",
				"is_me_message": "bool", "submessages": "list", "topic_links": "list"}.fits("the message", list[0])
		}},
	{"unknown channel", "a message to a channel that does not exist is answered with STREAM_DOES_NOT_EXIST and " +
		"its name",
		"send-message", 0, func(s *session) error {
			name := unique()
			a, err := s.refuse(0, "POST", "messages", form{"type": "stream", "to": name, "topic": "t", "content": "c"},
				400, "STREAM_DOES_NOT_EXIST")
			if err == nil && a.text("stream") != name {
				err = fmt.Errorf("member stream must be %q: %s", name, a)
			}
			return err
		}},
	{"message of others", "a user who did not receive a direct message cannot read, edit, star or react to it",
		"get-message", 0, func(s *session) error {
			id, err := s.sendDirect(unique(), nil)
			if err != nil {
				return err
			}
			path := fmt.Sprintf("messages/%d", id)
			for _, x := range []struct {
				method, path string
				f            form
			}{{"GET", path, nil}, {"PATCH", path, form{"content": "x"}}, {"DELETE", path, nil},
				{"POST", path + "/reactions", form{"emoji_name": "tada"}}} {
				if _, err := s.refuse(2, x.method, x.path, x.f, 400); err != nil {
					return err
				}
			}
			return nil
		}},
	{"reactions", "a second equal reaction is REACTION_ALREADY_EXISTS, removing an absent one REACTION_DOES_NOT_EXIST",
		"add-reaction", 0, func(s *session) error {
			id, err := s.sendDirect(unique(), nil)
			if err != nil {
				return err
			}
			path, f := fmt.Sprintf("messages/%d/reactions", id), form{"emoji_name": "octopus"}
			if _, err := s.succeed(1, "POST", path, f); err != nil {
				return err
			}
			if _, err := s.refuse(1, "POST", path, f, 400, "REACTION_ALREADY_EXISTS", "BAD_REQUEST"); err != nil {
				return err
			}
			if _, err := s.succeed(1, "DELETE", path, f); err != nil {
				return err
			}
			_, err = s.refuse(1, "DELETE", path, f, 400, "REACTION_DOES_NOT_EXIST", "BAD_REQUEST")
			return err
		}},
	{"flags", "POST /messages/flags answers with the changed ids, and the flag is on the message afterwards",
		"update-message-flags", 0, func(s *session) error {
			id, err := s.sendDirect(unique(), nil)
			if err != nil {
				return err
			}
			a, err := s.succeed(1, "POST", "messages/flags", form{"messages": []int64{id}, "op": "add",
				"flag": "starred"})
			if err != nil {
				return err
			}
			var ids []int64
			if json.Unmarshal(a.fields["messages"], &ids); !slices.Equal(ids, []int64{id}) {
				return fmt.Errorf("messages must be [%d]: %s", id, a)
			}
			list, err := s.fetch(1, id, []any{})
			if err != nil {
				return err
			}
			var flags []string
			if len(list) == 1 {
				json.Unmarshal(list[0]["flags"], &flags)
			}
			if !slices.Contains(flags, "starred") {
				return fmt.Errorf("the flags of the message must contain starred, but are %v", flags)
			}
			return nil
		}},
}
