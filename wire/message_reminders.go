package wire

import (
	"errors"

	"parley/actors/realm"
)

var reminderEndpoints = []Endpoint{
	Get("/reminders", func(_ *Call, v realm.View, _ noParameters) (Answer, error) {
		return Answer{"reminders": reminderObjects(v.RemindersOf(v.User))}, nil
	}).Returns("{reminders: [Reminder]}"),
	Custom("POST", "/reminders", addReminder).Returns("{reminder_id: int}"),
	CommandFromForm("DELETE", "/reminders/{reminder_id}", func(f reminderIDForm) realm.RemoveReminder {
		return realm.RemoveReminder{ID: f.ID}
	}, emptyAnswer),
}

var reminderEvents = []EventKind{
	EventOneOf(func(e *realm.ReminderAdded, _ *Recipient) any {
		return obj{"type": "reminders", "op": "add", "reminders": []any{reminderObject(e.Reminder)}}
	}),
	EventOneOf(func(e *realm.ReminderGone, _ *Recipient) any {
		return obj{"type": "reminders", "op": "remove", "reminder_id": e.ID}
	}),
}

type reminderIDForm struct {
	ID int64 `path:"reminder_id"`
}

type addReminderForm struct {
	Message realm.MessageID `form:"message_id,required"`
	At      int64           `form:"scheduled_delivery_timestamp,required,max=253402214399"` // see MaxTime
	Note    string          `form:"note"`
}

func addReminder(c *Call, f addReminderForm) (Answer, error) {
	for range maxEditAttempts {
		info, text, err := readText(c, f.Message)
		if err != nil {
			return nil, err
		}
		id, err := Execute(c, realm.AddReminder{Message: f.Message, At: f.At, Note: f.Note, Text: text,
			Version: info.Ref.Version})
		if errors.Is(err, realm.ErrStale) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return Answer{"reminder_id": id}, nil
	}
	return nil, realm.Refuse(realm.Busy, "BAD_REQUEST", "The message is being edited; try again.")
}

// readText returns a message that the caller can read, and its Markdown source.
func readText(c *Call, id realm.MessageID) (realm.MessageInfo, string, error) {
	info, err := Read(c, func(v realm.View) (realm.MessageInfo, error) { return v.ReadableMessage(id) })
	if err != nil {
		return info, "", err
	}
	body, ok, err := c.Server.Text(c.Realm, info.Ref)
	if err != nil {
		return info, "", err
	}
	if !ok {
		return info, "", realm.BadRequest("Invalid message(s)")
	}
	return info, body.Text, nil
}

func reminderObjects(list []realm.Reminder) []any {
	out := []any{}
	for _, r := range list {
		out = append(out, reminderObject(r))
	}
	return out
}

func reminderObject(r realm.Reminder) obj {
	return obj{
		"reminder_id":                  r.ID,
		"type":                         "private",
		"to":                           []realm.UserID{r.User},
		"content":                      r.Body.Text,
		"rendered_content":             r.Body.HTML,
		"scheduled_delivery_timestamp": r.At,
		"failed":                       false,
		"reminder_target_message_id":   r.Message,
	}
}
