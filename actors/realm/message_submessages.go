package realm

import (
	"encoding/json"
	"math"
	"slices"
)

// maxSubmessages is how many submessages one message may have. Its row is written as a whole, so a poll must not grow
// without limit. No poll in use has nearly as many votes.
const maxSubmessages = 5000

// AddSubmessage asks to attach data to a message that has a widget.
type AddSubmessage struct {
	Message       MessageID
	Type, Content string
}

func (c AddSubmessage) Decide(t *Turn) (Done, error) {
	me := t.Me()
	i, err := t.WritableMessage(c.Message)
	if err != nil {
		return Done{}, err
	}
	author := i.Sender.ID == me.ID
	if !author && !slices.ContainsFunc(i.Submessages, func(s Submessage) bool { return s.Sender == i.Sender.ID }) {
		return Done{}, BadRequest("You cannot attach a submessage to this message.")
	}
	var data map[string]any
	if err := json.Unmarshal([]byte(c.Content), &data); err != nil {
		if !json.Valid([]byte(c.Content)) {
			return Done{}, BadRequest("Invalid json for submessage")
		}
	}
	votes := false
	switch t.extraOrEmpty(c.Message).Widget {
	case "poll":
		if votes, err = checkPoll(data, author); err != nil {
			return Done{}, err
		}
	case "todo":
		if err := checkTodo(data, author); err != nil {
			return Done{}, err
		}
	}
	if len(i.Submessages) >= maxSubmessages {
		return Done{}, BadRequest("This message has too many submessages.")
	}
	if votes && i.Channel != 0 {
		t.followOnParticipation(me, i.Channel, i.Topic)
	}
	t.Record(&SubmessageAdded{Message: c.Message, Submessage: Submessage{
		ID: t.nextID("submessage"), Sender: me.ID, Type: c.Type, Content: c.Content,
	}})
	return Done{}, nil
}

// extraOrEmpty returns a message's extra row for reading, or an empty one if it has none.
func (r *Realm) extraOrEmpty(id MessageID) *MessageExtra {
	if m := r.message(id); m != nil {
		if e := r.extra(id, m); e != nil {
			return e
		}
	}
	return &MessageExtra{}
}

// maxWidgetKey is the largest number that a widget may give to an option or task (protocol).
const maxWidgetKey = 1000

// checkPoll refuses data that the poll widget does not accept. It reports whether the data is a vote.
func checkPoll(data map[string]any, author bool) (vote bool, err error) {
	kind, ok := data["type"].(string)
	if !ok {
		return false, BadRequest(`poll data["type"] is not a string`)
	}
	switch kind {
	case "vote":
		if _, ok := data["key"].(string); !ok {
			return false, BadRequest(`poll data["key"] is not a string`)
		}
		if n, ok := wholeNumber(data["vote"]); !ok || n != 1 && n != -1 {
			return false, BadRequest(`Invalid poll data["vote"]`)
		}
		return true, nil
	case "question":
		if _, ok := data["question"].(string); !ok {
			return false, BadRequest(`poll data["question"] is not a string`)
		}
		if !author {
			return false, BadRequest("You can't edit a question unless you are the author.")
		}
	case "new_option":
		if _, ok := data["option"].(string); !ok {
			return false, BadRequest(`poll data["option"] is not a string`)
		}
		return false, checkWidgetKey("poll", "idx", data["idx"])
	default:
		return false, BadRequest("Unknown type for poll data: %s", kind)
	}
	return false, nil
}

// checkTodo refuses data that the to-do widget does not accept.
func checkTodo(data map[string]any, author bool) error {
	kind, ok := data["type"].(string)
	if !ok {
		return BadRequest(`todo data["type"] is not a string`)
	}
	switch kind {
	case "new_task":
		for _, k := range []string{"task", "desc"} {
			if _, ok := data[k].(string); !ok {
				return BadRequest(`todo data["%s"] is not a string`, k)
			}
		}
		if _, ok := data["completed"].(bool); !ok {
			return BadRequest(`todo data["completed"] is not a boolean`)
		}
		return checkWidgetKey("todo", "key", data["key"])
	case "strike":
		if _, ok := data["key"].(string); !ok {
			return BadRequest(`todo data["key"] is not a string`)
		}
	case "new_task_list_title":
		if _, ok := data["title"].(string); !ok {
			return BadRequest(`todo data["title"] is not a string`)
		}
		if !author {
			return BadRequest("You can't edit the task list title unless you are the author.")
		}
	default:
		return BadRequest("Unknown type for todo list data: %s", kind)
	}
	return nil
}

// checkWidgetKey refuses a value that is not an integer between 0 and maxWidgetKey.
func checkWidgetKey(widget, name string, value any) error {
	n, ok := wholeNumber(value)
	switch {
	case !ok:
		return BadRequest(`%s data["%s"] is not an integer`, widget, name)
	case n < 0:
		return BadRequest(`%s data["%s"] is too small`, widget, name)
	case n > maxWidgetKey:
		return BadRequest(`%s data["%s"] is too large`, widget, name)
	}
	return nil
}

// wholeNumber returns a decoded JSON number as an int, or false if it is not an integer of 32 bits.
func wholeNumber(v any) (int, bool) {
	f, ok := v.(float64)
	return int(f), ok && f == math.Trunc(f) && math.Abs(f) < 1<<31
}

// SubmessageAdded says that a submessage was attached to a message.
type SubmessageAdded struct {
	Message    MessageID
	Submessage Submessage
}

func (*SubmessageAdded) EventType() string { return "submessage" }

func (f *SubmessageAdded) apply(r *Realm) {
	r.reserveID("submessage", f.Submessage.ID)
	e := r.changeExtra(f.Message)
	e.Submessages = append(e.Submessages, f.Submessage)
}

func (f *SubmessageAdded) notices(r *Realm) []Notice {
	return []Notice{{To: r.messageAudience(f.Message, r.message(f.Message)), Event: f}}
}
