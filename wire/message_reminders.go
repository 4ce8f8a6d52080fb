package wire

import (
	"errors"

	"parley/actors/realm"
)

var reminderEndpoints = []Endpoint{
	Get("/reminders", func(_ *Call, v realm.View, _ noParameters) (*remindersAnswer, error) {
		return &remindersAnswer{each(v.RemindersOf(v.User), newReminder)}, nil
	}),
	Custom("POST", "/reminders", addReminder),
	CommandFromForm("DELETE", "/reminders/{reminder_id}", func(f reminderIDForm) realm.RemoveReminder {
		return realm.RemoveReminder{ID: f.ID}
	}, emptyAnswer),
}

var reminderEvents = []EventKind{
	Event(func(e *realm.ReminderAdded, _ *Recipient) *remindersAddedEvent {
		return &remindersAddedEvent{Reminders: []reminderJSON{newReminder(e.Reminder)}}
	}),
	Event(func(e *realm.ReminderGone, _ *Recipient) *reminderRemovedEvent {
		return &reminderRemovedEvent{ID: e.ID}
	}),
}

type remindersAnswer struct {
	Reminders []reminderJSON `json:"reminders"`
}

type addedReminderAnswer struct {
	ID int64 `json:"reminder_id"`
}

type remindersAddedEvent struct {
	_         struct{}       `const:"type=reminders op=add"`
	Reminders []reminderJSON `json:"reminders"`
}

type reminderRemovedEvent struct {
	_  struct{} `const:"type=reminders op=remove"`
	ID int64    `json:"reminder_id"`
}

type reminderJSON struct {
	_       struct{}        `const:"type=private"`
	ID      int64           `json:"reminder_id"`
	To      []realm.UserID  `json:"to"`
	Content string          `json:"content"`
	HTML    string          `json:"rendered_content"`
	At      int64           `json:"scheduled_delivery_timestamp"`
	Failed  bool            `json:"failed"` // always false
	Target  realm.MessageID `json:"reminder_target_message_id"`
}

type reminderIDForm struct {
	ID int64 `path:"reminder_id"`
}

type addReminderForm struct {
	Message realm.MessageID `form:"message_id,required"`
	At      int64           `form:"scheduled_delivery_timestamp,required,max=253402214399"` // see MaxTime
	Note    string          `form:"note"`
}

func addReminder(c *Call, f addReminderForm) (*addedReminderAnswer, error) {
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
		return &addedReminderAnswer{id}, nil
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

func newReminder(r realm.Reminder) reminderJSON {
	return reminderJSON{ID: r.ID, To: []realm.UserID{r.User}, Content: r.Body.Text, HTML: r.Body.HTML, At: r.At,
		Target: r.Message}
}
