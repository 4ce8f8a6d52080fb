package demo

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/markdown/emoji"
)

// conversationTexts are the messages of the demo organization. "== channel > topic" and "== direct: logins" begin a
// conversation; "5d 09:30 login" is the sender of the following text, five days ago at 09:30 UTC, and "30m login" 30
// minutes ago. A last line ":: emoji=logins" is the reactions. The text /resolve resolves the topic.
//
//go:embed conversations.txt
var conversationTexts string

// Content lets the demo send messages with pictures. Without Render, the demo organization has only
// three messages.
type Content struct {
	Render      func(text string, author realm.UserID, v realm.View) (realm.Body, realm.ContentInfo, error)
	SavePicture func(id realm.ID, png []byte) (wire.SavedFile, error)
	// PictureSaved is called when the organization has the row of the picture.
	PictureSaved func(id realm.ID, u realm.Upload) error
	Now          time.Time
}

// message is one message of conversationTexts.
type message struct {
	channel, topic string   // of a channel message
	people         []string // logins in a direct conversation
	from           string   // login
	at             int64    // Unix time in seconds
	today          bool     // users who did not answer later have not read it
	text           string
	reactions      []reaction
}

type reaction struct{ emoji, login string }

// conversation returns the same value for all messages of a topic or of a direct conversation.
func (m *message) conversation() string {
	return m.channel + ">" + m.topic + ">" + strings.Join(m.people, " ")
}

// parseConversations returns the messages in the order of their times.
func parseConversations(text string, now time.Time) ([]*message, error) {
	var list []*message
	var place message
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		fail := func(why string) error { return fmt.Errorf("conversations.txt:%d: %s: %q", i+1, why, line) }
		if head, ok := strings.CutPrefix(line, "== "); ok {
			place = message{}
			if people, direct := strings.CutPrefix(head, "direct: "); direct {
				place.people = strings.Fields(people)
			} else if place.channel, place.topic, ok = strings.Cut(head, " > "); !ok {
				return nil, fail("no topic")
			}
			continue
		}
		if at, from, today, ok := parseSender(line, now); ok {
			m := place
			m.at, m.from, m.today = at, from, today
			list = append(list, &m)
			continue
		}
		if len(list) == 0 {
			return nil, fail("a text without a sender")
		}
		m := list[len(list)-1]
		if all, ok := strings.CutPrefix(line, ":: "); ok {
			for _, one := range strings.Fields(all) {
				name, logins, _ := strings.Cut(one, "=")
				for _, login := range strings.Split(logins, ",") {
					m.reactions = append(m.reactions, reaction{name, login})
				}
			}
			continue
		}
		m.text += line + "\n"
	}
	for _, m := range list {
		m.text = strings.TrimSpace(m.text)
	}
	slices.SortStableFunc(list, func(a, b *message) int { return int(a.at - b.at) })
	return list, nil
}

// parseSender reads "5d 09:30 login" and "30m login".
func parseSender(line string, now time.Time) (at int64, from string, today, ok bool) {
	words := strings.Fields(line)
	if len(words) == 2 {
		minutes, err := strconv.Atoi(strings.TrimSuffix(words[0], "m"))
		return now.Unix() - int64(minutes)*60, words[1], true, err == nil && strings.HasSuffix(words[0], "m")
	}
	if len(words) != 3 || !strings.HasSuffix(words[0], "d") {
		return 0, "", false, false
	}
	days, err := strconv.Atoi(strings.TrimSuffix(words[0], "d"))
	clock, also := time.Parse("15:04", words[1])
	day := now.UTC().Truncate(24*time.Hour).AddDate(0, 0, -days)
	at = day.Add(time.Duration(clock.Hour())*time.Hour + time.Duration(clock.Minute())*time.Minute).Unix()
	return at, words[2], false, err == nil && also == nil
}

// atTime gives turns an earlier time.
type atTime struct {
	realm.Turns
	at int64
}

func (a atTime) Turn(id realm.ID, c realm.Caller, decide func(*realm.Turn) (any, error)) (any, error) {
	return a.Turns.Turn(id, c, func(t *realm.Turn) (any, error) {
		t.Now = a.at
		return decide(t)
	})
}

// createConversations sends the messages of conversationTexts, and makes what else a user sees after some days: read
// messages, a picture, votes, statuses, and a scheduled message.
func (d *builder) createConversations() error {
	list, err := parseConversations(conversationTexts, d.content.Now)
	if err != nil {
		return err
	}
	picture, err := d.savePicture(list[0].at)
	if err != nil {
		return fmt.Errorf("picture: %w", err)
	}
	for _, m := range list {
		m.text = strings.NewReplacer("{picture}", picture.Name, "{url}", "/user_uploads/"+picture.Path).Replace(m.text)
	}
	// One turn for all: the server does not answer yet, and each turn waits for the disk.
	if _, err := realm.Execute[realm.Done](d.orgs, d.realm, d.caller("olive"), history{d, list}); err != nil {
		return err
	}
	return d.schedule("fay", "general", "friday", "The beta is open! :rocket: Thank you, everyone. Cake at four.")
}

// savePicture stores the picture of the route card.
func (d *builder) savePicture(at int64) (realm.Upload, error) {
	file, err := d.content.SavePicture(d.realm, drawRouteCard())
	if err != nil {
		return realm.Upload{}, err
	}
	u, err := realm.Execute(atTime{d.orgs, at}, d.realm, d.caller("cy"), realm.SaveUpload{Name: "route card.png",
		Type: file.Type, Hash: file.Hash, Size: file.Size, Width: file.Width, Height: file.Height})
	if err != nil {
		return u, err
	}
	return u, d.content.PictureSaved(d.realm, u)
}

// history is the command that sends all messages in their order.
type history struct {
	d    *builder
	list []*message
}

// Decide sends the messages. Its data is part of the program: a message that is refused is a fault of the program.
func (h history) Decide(t *realm.Turn) (realm.Done, error) {
	sent := map[string][]realm.MessageID{} // by conversation
	unread := false
	for _, m := range h.list {
		if m.today && !unread {
			unread = true
			if err := h.readAll(t); err != nil {
				return realm.Done{}, err
			}
		}
		ids := sent[m.conversation()]
		id, err := h.send(t, m, ids)
		if err != nil {
			return realm.Done{}, fmt.Errorf("%s in %s: %w", m.from, m.conversation(), err)
		}
		if id != 0 {
			sent[m.conversation()] = append(ids, id)
		}
	}
	return realm.Done{}, h.finish(t, sent)
}

// as lets the following commands of the turn be those of a user at a time.
func (h history) as(t *realm.Turn, login string, at int64) {
	t.Caller, t.Now = h.d.caller(login), at
}

// readAll marks all messages so far as read.
func (h history) readAll(t *realm.Turn) error {
	now := t.Now
	for _, a := range accounts {
		h.as(t, a.login, now)
		if _, err := (realm.ReadAll{}).Decide(t); err != nil {
			return err
		}
	}
	return nil
}

// send sends one message after its sender has read the conversation. It returns 0 for the command /resolve.
func (h history) send(t *realm.Turn, m *message, earlier []realm.MessageID) (realm.MessageID, error) {
	h.as(t, m.from, m.at)
	if len(earlier) > 0 {
		read := realm.Flag{Messages: earlier, Op: "add", Flag: "read"}
		if _, err := read.Decide(t); err != nil {
			return 0, err
		}
	}
	if m.text == "/resolve" {
		topic := "✔ " + m.topic
		_, err := realm.EditMessage{Message: earlier[0], Topic: &topic, Mode: realm.MoveAll, NotifyNew: true}.Decide(t)
		return 0, err
	}
	cmd, err := h.d.compose(t.View, m)
	if err != nil {
		return 0, err
	}
	done, err := cmd.Decide(t)
	if err != nil {
		return 0, err
	}
	for _, r := range m.reactions {
		h.as(t, r.login, m.at+60)
		code, ok := emoji.CodeOf(r.emoji)
		if !ok {
			return 0, errors.New("no emoji " + r.emoji)
		}
		add := realm.AddReaction{Message: done.ID, Name: r.emoji, NameCode: code}
		if _, err := add.Decide(t); err != nil {
			return 0, fmt.Errorf("%s of %s: %w", r.emoji, r.login, err)
		}
	}
	return done.ID, nil
}

// compose returns the command that sends a message.
func (d *builder) compose(v realm.View, m *message) (cmd realm.SendMessage, err error) {
	cmd = realm.SendMessage{ToChannel: m.channel != "", ChannelName: m.channel, Topic: m.topic, ReadBySender: true}
	for _, login := range m.people {
		cmd.People = append(cmd.People, realm.Principal{ID: d.ids[login]})
	}
	cmd.Widget, cmd.WidgetData = wire.WidgetIn(m.text)
	cmd.Body, cmd.Content, err = d.content.Render(m.text, d.ids[m.from], v)
	return cmd, err
}

// finish adds votes, a done task, starred messages, a followed topic, and statuses.
func (h history) finish(t *realm.Turn, sent map[string][]realm.MessageID) error {
	now := h.d.content.Now.Unix()
	poll, todo := sent["general>where do we meet?>"][0], sent["engineering>release 1.9>"][0]
	var commands []realm.Command[realm.Done]
	var logins []string
	add := func(login string, c realm.Command[realm.Done]) {
		commands, logins = append(commands, c), append(logins, login)
	}
	for option, voters := range []string{"ann fay cy ed olive", "di", "bo"} {
		for _, login := range strings.Fields(voters) {
			add(login, realm.AddSubmessage{Message: poll, Type: "widget",
				Content: fmt.Sprintf(`{"type":"vote","key":"canned,%d","vote":1}`, option)})
		}
	}
	add("ed", realm.AddSubmessage{Message: todo, Type: "widget", Content: `{"type":"strike","key":"0,canned"}`})
	for _, s := range [][3]string{{"cy", "Drawing", "art"}, {"ed", "On the train until noon", "train"},
		{"fay", "Writing, please no calls", "writing"}, {"mo", "", "sun_face"}} {
		code, ok := emoji.CodeOf(s[2])
		if !ok {
			return errors.New("no emoji " + s[2])
		}
		add(s[0], realm.SetStatus{Text: &s[1], Emoji: &realm.Reaction{Name: s[2], Code: code, Type: "unicode_emoji"}})
	}
	for i, c := range commands {
		h.as(t, logins[i], now)
		if _, err := c.Decide(t); err != nil {
			return fmt.Errorf("%T of %s: %w", c, logins[i], err)
		}
	}
	h.dropEmails(t)
	h.as(t, "ann", now)
	_, err := realm.Flag{Messages: []realm.MessageID{poll, todo}, Op: "add", Flag: "starred"}.Decide(t)
	return err
}

// dropEmails removes the emails about messages that the accounts have not read: no person has missed them.
func (h history) dropEmails(t *realm.Turn) {
	var jobs []int64
	for _, a := range accounts {
		for _, j := range t.MissedMessageJobs(h.d.ids[a.login]) {
			jobs = append(jobs, j.ID)
		}
	}
	t.FinishOutboxJobs(jobs)
}

// scheduledHour is the hour of the next day, in UTC, at which the scheduled message of the demo is sent.
const scheduledHour = 9

// schedule schedules a message for the next morning.
func (d *builder) schedule(login, channel, topic, text string) error {
	at := d.content.Now.UTC().Truncate(24*time.Hour).AddDate(0, 0, 1).Add(scheduledHour * time.Hour)
	_, err := d.orgs.Turn(d.realm, d.caller(login), func(t *realm.Turn) (any, error) {
		cmd, err := d.compose(t.View, &message{channel: channel, topic: topic, from: login, text: text})
		if err != nil {
			return nil, err
		}
		return realm.ScheduleMessage{Message: cmd, At: at.Unix()}.Decide(t)
	})
	return err
}
