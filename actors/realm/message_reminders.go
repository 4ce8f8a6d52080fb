package realm

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"parley/actors/realm/ids"
)

// Limits of reminders. The length of the note is sent to clients; the number bounds the memory used by one user's
// texts.
const (
	MaxReminderNote = 500 // code points
	maxReminders    = 1000
)

// Reminder is the row of a message that a user wants to be reminded of.
type Reminder struct {
	ID      int64
	User    UserID
	Message MessageID
	At      int64
	Body    Body // text of the notification bot's message
}

func (x *Reminder) owner() UserID { return x.User }

// RemindersOf returns a user's reminders, ordered by time.
func (r *Realm) RemindersOf(u UserID) []Reminder {
	list := r.small.reminders.list(u)
	slices.SortStableFunc(list, func(a, b Reminder) int { return cmp.Compare(a.At, b.At) })
	return list
}

// reminderBytes returns the size of the texts of a user's reminders.
func (r *Realm) reminderBytes(u UserID) (n int) {
	for _, x := range r.small.reminders.list(u) {
		n += x.Body.size()
	}
	return n
}

// AddReminder asks for a reminder of a message. Text is the message's source, read before the turn.
type AddReminder struct {
	Message MessageID
	At      int64
	Note    string
	Text    string
	Version uint16
}

func (c AddReminder) Decide(t *Turn) (int64, error) {
	me := t.Me()
	if me == nil {
		return 0, errNotMember()
	}
	i, err := t.ReadableMessage(c.Message)
	if err != nil {
		return 0, err
	}
	if i.Ref.Version != c.Version {
		return 0, ErrStale
	}
	note := strings.TrimSpace(c.Note)
	if runeCount(note) > MaxReminderNote {
		return 0, BadRequest("Maximum reminder note length: %d characters", MaxReminderNote)
	}
	if c.At <= t.Now {
		return 0, errTimeInPast()
	}
	if t.sumCharged(me.ID, t.small.reminders.count) >= maxReminders {
		return 0, BadRequest("Too many reminders (limit: %d)", maxReminders)
	}
	x := Reminder{ID: t.nextID("reminder"), User: me.ID, Message: c.Message, At: c.At}
	text, err := NormalizeContent(t.reminderText(me, i, note, c.Text))
	if err != nil {
		return 0, err
	}
	x.Body, _ = t.Render(text)
	if err := checkOwnTexts("reminders", t.sumCharged(me.ID, t.reminderBytes)+x.Body.size()); err != nil {
		return 0, err
	}
	t.Record(&ReminderAdded{x})
	return x.ID, nil
}

// reminderText returns the text of the reminder: a link to the message, the note, and the message itself.
func (t *Turn) reminderText(me *User, i MessageInfo, note, text string) string {
	var b strings.Builder
	b.WriteString("You asked to be reminded of " + t.messageLink(me, i) + ".")
	if note != "" {
		b.WriteString(reminderNote + QuoteBlock(note))
	}
	b.WriteString("\n\n" + t.SilentMention(i.Sender.ID))
	switch t.extraOrEmpty(i.ID).Widget {
	case "poll":
		b.WriteString(" sent a poll.")
	case "todo":
		b.WriteString(" sent a to-do list.")
	default:
		b.WriteString(" wrote:\n\n" + QuoteBlock(text))
	}
	return b.String()
}

// reminderNote is the text of a reminder before the quoted note.
const reminderNote = " Your note:\n\n"

// deletedReminder is the text, before the note, of the reminder of a message that was deleted since.
const deletedReminder = "You asked to be reminded of a message that was deleted."

// withoutQuote returns the text of a reminder without the message and its link. The note remains.
func (x *Reminder) withoutQuote() string {
	// The link before the note has no line break. A quoted message can contain anything, also this text.
	link, rest, found := strings.Cut(x.Body.Text, "."+reminderNote)
	if !found || strings.Contains(link, "\n") {
		return deletedReminder
	}
	fence, note, _ := strings.Cut(rest, " quote\n")
	note, _, found = strings.Cut(note, "\n"+fence+"\n")
	if !found {
		return deletedReminder
	}
	return deletedReminder + reminderNote + fence + " quote\n" + note + "\n" + fence
}

// removeQuotes replaces the reminders of messages that are about to be deleted, or are deleted: their texts quote the
// messages. The users keep their notes and times. Clients get the removal and the addition of a reminder with the same
// id.
func (t *Turn) removeQuotes(messages []MessageID) {
	var quoting ids.Set
	for _, id := range messages {
		quoting.Union(findSet(t.index.remindersOf, id))
	}
	for _, id := range ids.IDs[int64](quoting) {
		x := *t.small.reminders.must(id)
		text := x.withoutQuote()
		if x.Body.Text == text {
			continue
		}
		x.Body, _ = t.Render(text)
		t.Record(&ReminderGone{x.User, x.ID})
		t.Record(&ReminderAdded{x})
	}
}

// messageLink returns a Markdown link to a message, for a reader of it.
func (r *Realm) messageLink(me *User, i MessageInfo) string {
	if i.Channel != 0 && !strings.ContainsAny(i.ChannelName+i.Topic, "*>@`") {
		return "#**" + i.ChannelName + ">" + i.Topic + "@" + i.ID.String() + "**"
	}
	return "[a message](" + r.messageFragment(me, i) + ")"
}

// messageFragment returns the URL fragment under which clients show a message.
func (r *Realm) messageFragment(me *User, i MessageInfo) string {
	if i.Channel != 0 {
		return "#narrow/channel/" + i.Channel.String() + "/near/" + i.ID.String()
	}
	var people []string
	for _, p := range i.People {
		if p.ID != me.ID || len(i.People) == 1 {
			people = append(people, strconv.FormatInt(int64(p.ID), 10))
		}
	}
	return "#narrow/dm/" + strings.Join(people, ",") + "/near/" + i.ID.String()
}

// ReminderAdded says that a user will be reminded of a message.
type ReminderAdded struct{ Reminder Reminder }

func (*ReminderAdded) EventType() string { return "reminders" }

func (f *ReminderAdded) apply(r *Realm) {
	x := f.Reminder
	r.reserveID("reminder", x.ID)
	r.small.reminders.put(x.ID, &x)
	openSet(r.index.remindersOf, x.Message).Add(x.ID)
}

func (f *ReminderAdded) notices(r *Realm) []Notice {
	return []Notice{{To: r.usersAudience(f.Reminder.User), Event: f}}
}

// RemoveReminder asks to delete a reminder.
type RemoveReminder struct{ ID int64 }

func (c RemoveReminder) Decide(t *Turn) (Done, error) {
	if t.small.reminders.findOwned(t.User, c.ID) == nil {
		return Done{}, Missing("Reminder does not exist")
	}
	t.Record(&ReminderGone{t.User, c.ID})
	return Done{}, nil
}

// ReminderGone says that a reminder was sent or deleted.
type ReminderGone struct {
	User UserID
	ID   int64
}

func (*ReminderGone) EventType() string { return "reminders" }

func (f *ReminderGone) apply(r *Realm) { r.removeReminder(f.ID) }
func (f *ReminderGone) notices(r *Realm) []Notice {
	return []Notice{{To: r.usersAudience(f.User), Event: f}}
}

// removeReminder removes an existing reminder.
func (r *Realm) removeReminder(id int64) {
	message := r.small.reminders.must(id).Message
	s := r.index.remindersOf[message]
	if s.Remove(id); s.Empty() {
		delete(r.index.remindersOf, message)
	}
	r.small.reminders.remove(id)
}

// remindersDue returns a turn that sends reminders whose time has come, or nil if there are none.
func remindersDue(r *Realm, now int64) func(*Turn) (any, error) {
	var due []*Reminder
	for _, x := range r.small.reminders.all() {
		if x.At <= now {
			due = append(due, x)
		}
	}
	if len(due) == 0 {
		return nil
	}
	slices.SortFunc(due, func(a, b *Reminder) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.ID, b.ID)) })
	var ids []int64
	for _, x := range due[:min(len(due), maxDuePerTurn)] {
		ids = append(ids, x.ID)
	}
	return func(t *Turn) (any, error) {
		for _, id := range ids {
			x := *t.small.reminders.must(id)
			if t.users.must(x.User).Active { // deactivated users get no reminder
				t.NotifyUsers(x.Body.Text, x.User)
			}
			t.Record(&ReminderGone{x.User, x.ID})
		}
		return nil, nil
	}
}
