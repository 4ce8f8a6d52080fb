package exports

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"

	"parley/actors/realm"
)

// PersonCounts count the objects in the export of one person's data.
type PersonCounts struct {
	User           realm.UserID `json:"user_id"`
	Messages       int          `json:"messages"`        // sent by the person
	DirectMessages int          `json:"direct_messages"` // sent to the person by others
	Reactions      int          `json:"reactions"`
	Submessages    int          `json:"submessages"` // votes and other changes of polls and to-do lists
	Edits          int          `json:"edits"`       // by the person, and of the person's messages
	Files          int          `json:"files"`
	MissingFiles   int          `json:"missing_files"` // have a row, but the server does not have the content
	Drafts         int          `json:"drafts"`
	Scheduled      int          `json:"scheduled_messages"`
	Subscriptions  int          `json:"subscriptions"`
	Invitations    int          `json:"invitations"`
	Archived       int          `json:"deleted_messages_left_out"` // of the person, in the retention archive

	Missing []string `json:"-"` // the MissingFiles
}

func (c PersonCounts) String() string {
	return fmt.Sprintf("user %d: %d messages, %d direct messages of others, %d reactions, %d files, %d drafts, "+
		"%d subscriptions, %d invitations, %d votes, %d edits", c.User, c.Messages, c.DirectMessages, c.Reactions,
		c.Files, c.Drafts, c.Subscriptions, c.Invitations, c.Submessages, c.Edits)
}

// object is a row of the export.
type object = map[string]any

// Source has the data of an organization from which the data of a user are exported.
type Source struct {
	// View calls read with a view of the server. It is called many times: the organization may change in between, and
	// the export ends with the first error.
	View func(read func(realm.View) error) error
	Text func(realm.BodyRef) (realm.Body, bool, error)
	// Open returns a stored file, or an error that wraps fs.ErrNotExist.
	Open func(kind, name string) (Stored, error)
}

// Stored is an opened file.
type Stored interface {
	Size() int64 // in bytes
	Section(from, bytes int64) (io.ReadCloser, error)
	Close() error
}

// person writes the data of one user into a zip file, one entry after the other.
type person struct {
	source Source
	id     realm.UserID
	last   realm.MessageID // newer messages are left out
	zip    *zip.Writer
	counts PersonCounts
}

// WritePerson writes the data of one user as a zip file with JSON and with the user's files as they are. Of other
// users, the file has their ids and names, and their messages in direct conversations with the user. It contains no
// password, key or token.
//
// Deleted messages are left out, also those that the retention archive still has; the file about.json has their number.
// Messages and files are read one after the other, so this takes little memory.
func WritePerson(s Source, id realm.UserID, to io.Writer) (PersonCounts, error) {
	e := &person{source: s, id: id, zip: zip.NewWriter(to)}
	e.counts.User = id
	for _, step := range []func() error{e.begin, e.writeRows, e.writeMessages, e.writeReactions, e.writeSubmessages,
		e.writeEdits, e.writeFiles, e.writeAbout, e.zip.Close,
	} {
		if err := step(); err != nil {
			return e.counts, fmt.Errorf("export user %d: %w", id, err)
		}
	}
	return e.counts, nil
}

func (e *person) begin() error {
	return e.source.View(func(v realm.View) error {
		e.last = v.LastMessageID()
		return nil
	})
}

// read calls fn with the user in a view. What fn returns is encoded within the view, because rows may change after it.
func (e *person) read(fn func(realm.View, *realm.User) any) (encoded []byte, err error) {
	err = e.source.View(func(v realm.View) error {
		u := v.Find(e.id)
		if u == nil {
			return errors.New("the user does not exist")
		}
		var text bytes.Buffer
		enc := json.NewEncoder(&text)
		enc.SetEscapeHTML(false)
		err := enc.Encode(fn(v, u))
		encoded = text.Bytes()
		return err
	})
	return encoded, err
}

// writeRow writes what fn returns as an entry of the zip file.
func (e *person) writeRow(name string, fn func(realm.View, *realm.User) any) error {
	text, err := e.read(fn)
	if err != nil {
		return err
	}
	w, err := e.zip.Create(name)
	if err == nil {
		_, err = w.Write(text)
	}
	return err
}

// writeLines writes an entry of JSON values, a line each.
func (e *person) writeLines(name string, write func(line func(any) error) error) error {
	w, err := e.zip.Create(name)
	if err != nil {
		return err
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return write(enc.Encode)
}

// personSettings returns all settings of the user by name: the chosen values, or the defaults.
func (e *person) personSettings(_ realm.View, u *realm.User) any {
	out := object{}
	for _, s := range realm.UserSettings {
		if v, set := u.Settings[s.Name]; set {
			out[s.Name] = v
		} else {
			out[s.Name] = s.Default
		}
	}
	return out
}

// writeRows writes everything of the user but messages, reactions and files.
func (e *person) writeRows() error {
	for _, x := range []struct {
		name string
		row  func(realm.View, *realm.User) any
	}{{"profile.json", e.profile}, {"settings.json", e.personSettings}, {"logins.json", e.logins},
		{"subscriptions.json", e.subscriptions}, {"preferences.json", e.preferences}, {"drafts.json", e.unsent},
		{"invitations.json", e.invitations},
	} {
		if err := e.writeRow(x.name, x.row); err != nil {
			return err
		}
	}
	return nil
}

// profile returns the account with its profile fields, groups and bots. It also counts the deleted messages.
func (e *person) profile(v realm.View, u *realm.User) any {
	fields, bots, groups := object{}, []object{}, []string{}
	services := map[any]*realm.BotDetails{}
	realm.EachRowOf(v.Realm, func(_ any, f *realm.ProfileField) {
		if value, has := u.Profile[f.ID]; has {
			fields[f.Name] = value
		}
	})
	realm.EachRowOf(v.Realm, func(_ any, b *realm.User) {
		if b.BotOwner == u.ID {
			bots = append(bots, object{"id": b.ID, "email": b.Email, "name": b.Name, "active": b.Active})
		}
	})
	realm.EachRowOf(v.Realm, func(key any, d *realm.BotDetails) { services[key] = d })
	realm.EachRowOf(v.Realm, func(_ any, g *realm.Group) {
		if slices.Contains(g.Members, u.ID) {
			groups = append(groups, g.Name)
		}
	})
	realm.EachRowOf(v.Realm, func(_ any, a *realm.ArchivedMessages) { e.counts.Archived += a.SentBy(u.ID) })
	for _, b := range bots {
		list := []object{}
		if details := services[b["id"]]; details != nil {
			for _, s := range details.Services {
				list = append(list, object{"name": s.Name, "url": s.URL})
			}
		}
		b["services"] = list
	}
	status := v.StatusOf(u.ID)
	return object{"user_id": u.ID, "email": u.Email, "full_name": u.Name, "role": int(u.Role), "is_active": u.Active,
		"is_bot": u.IsBot(), "date_joined": u.Joined, "timezone": u.Timezone, "avatar_source": u.Avatar,
		"profile_fields": fields, "groups": groups, "bots": bots,
		"status": object{"text": status.Text, "emoji_name": status.EmojiName}}
}

// logins returns sessions, keys and devices without their secrets.
func (e *person) logins(v realm.View, u *realm.User) any {
	sessions, keys, devices, tokens := []object{}, []object{}, []object{}, []object{}
	for _, s := range v.StoredBrowserSessions(u.ID) {
		sessions = append(sessions, object{"id": s.ID, "opened": s.Opened, "last_used": s.Used, "browser": s.Agent,
			"address": s.Address})
	}
	for _, k := range u.KeyInfo {
		scope, topics := realm.KeyScope{}, []string{}
		if k.Scope != nil {
			scope = *k.Scope
		}
		for _, p := range scope.Places {
			if p.Topic != nil {
				topics = append(topics, *p.Topic)
			}
		}
		keys = append(keys, object{"rights": append([]string{}, scope.Rights...), "topics": topics,
			"endpoints": append([]string{}, scope.Endpoints...), "networks": append([]string{}, scope.Networks...),
			"id": k.ID, "label": k.Label, "created": k.Created, "expires": k.Expires,
			"last_used": k.Used})
	}
	for _, d := range v.DevicesOf(u.ID) {
		devices = append(devices, object{"id": d.ID, "kind": d.TokenKind, "updated": d.Updated})
	}
	for _, t := range v.PushTokensOf(u.ID) {
		tokens = append(tokens, object{"kind": t.Kind, "app": t.App, "since": t.Since})
	}
	since := int64(0)
	if f := v.FactorOf(u.ID); f != nil {
		since = f.Since
	}
	row := v.ScimRow(u.ID)
	scim := object{"user_name": row.UserName, "external_id": row.ExternalID, "formatted": row.Formatted,
		"given_name": row.Given, "family_name": row.Family}
	passkeys, identities := []object{}, []object{}
	for _, p := range v.PasskeysOf(u.ID) {
		passkeys = append(passkeys, object{"name": p.Name, "added": p.Added, "last_used": p.Used})
	}
	for _, x := range v.IdentitiesOf(u.ID) {
		identities = append(identities, object{"issuer": x.Issuer, "subject": x.Subject, "linked": x.Linked,
			"deactivated": x.Suspended})
	}
	return object{"browser_sessions": sessions, "api_keys": keys, "devices": devices, "push_registrations": tokens,
		"identities": identities, "passkeys": passkeys, "second_factor_since": since,
		"scim": scim}
}

// channelName returns the name of a channel, "" for one that does not exist.
func channelName(v realm.View, id realm.ChannelID) string {
	if c := v.FindChannel(id); c != nil {
		return c.Name
	}
	return ""
}

func (e *person) subscriptions(v realm.View, u *realm.User) any {
	list := []object{}
	realm.EachRowOf(v.Realm, func(key any, row *realm.Subscriptions) {
		if key != u.ID {
			return
		}
		for _, s := range row.List {
			list = append(list, object{"channel_id": s.Channel, "channel": channelName(v, s.Channel),
				"active": s.Active, "color": s.Color, "is_muted": s.Muted, "pin_to_top": s.Pinned,
				"desktop_notifications": s.Desktop, "audible_notifications": s.Audible, "push_notifications": s.Push,
				"email_notifications": s.Email, "wildcard_mentions_notify": s.Wildcard})
		}
	})
	e.counts.Subscriptions = len(list)
	return list
}

// invitations returns the invitations and the links that the person made, without the tokens in their addresses.
func (e *person) invitations(v realm.View, u *realm.User) any {
	list := []object{}
	realm.EachRowOf(v.Realm, func(_ any, i *realm.Invite) {
		if i.By != u.ID {
			return
		}
		list = append(list, object{"id": i.ID, "is_link": i.Multi, "email": i.Email, "sent": i.At, "expires": i.Expires,
			"role": int(i.Role), "channel_ids": append([]realm.ChannelID{}, i.Channels...),
			"group_ids": append([]realm.GroupID{}, i.Groups...), "welcome_message": i.Welcome, "uses": i.Uses,
			"state": i.State})
	})
	e.counts.Invitations = len(list)
	return list
}

// preferences returns alert words, muted users, policies of topics, views, and the ids of starred and collapsed
// messages.
func (e *person) preferences(v realm.View, u *realm.User) any {
	words, muted, topics, views := []string{}, []object{}, []object{}, []object{}
	starred, collapsed := []int64{}, []int64{}
	for _, m := range v.MutedBy(u.ID) {
		muted = append(muted, object{"user_id": m.User, "since": m.Since})
	}
	for _, n := range v.NavigationViewsOf(u.ID) {
		views = append(views, object{"fragment": n.Fragment, "is_pinned": n.Pinned, "name": n.Name})
	}
	realm.EachRowOf(v.Realm, func(key any, row *realm.AlertWords) {
		if key == u.ID {
			words = append(words, row.List...)
		}
	})
	realm.EachRowOf(v.Realm, func(key any, row *realm.TopicPolicies) {
		if key != u.ID {
			return
		}
		for _, p := range row.List {
			topics = append(topics, object{"channel_id": p.Channel, "channel": channelName(v, p.Channel),
				"topic": p.Topic, "visibility_policy": p.Policy, "since": p.Since})
		}
	})
	realm.EachRowOf(v.Realm, func(key any, row *realm.MessageMarks) {
		if key == u.ID {
			row.Starred.Each(func(id int64) bool { starred = append(starred, id); return true })
			row.Collapsed.Each(func(id int64) bool { collapsed = append(collapsed, id); return true })
		}
	})
	return object{"alert_words": words, "muted_users": muted, "topics": topics, "navigation_views": views,
		"starred_messages": starred, "collapsed_messages": collapsed}
}

// unsent returns texts that the person has stored but not sent.
func (e *person) unsent(v realm.View, u *realm.User) any {
	drafts, scheduled, reminders, snippets := []object{}, []object{}, []object{}, []object{}
	for _, d := range v.DraftsOf(u.ID) {
		drafts = append(drafts, object{"id": d.ID, "type": d.Type, "to": d.To, "topic": d.Topic, "content": d.Content,
			"timestamp": d.Edited})
	}
	for _, s := range v.ScheduledOf(u.ID) {
		scheduled = append(scheduled, object{"id": s.ID, "channel_id": s.Channel, "topic": s.Topic,
			"to":      append([]realm.UserID{}, s.People...),
			"content": s.Body.Text, "scheduled_delivery_timestamp": s.At, "failed": s.Failed,
			"repeated": s.Repeat.Every, "timezone": s.Repeat.Zone})
	}
	for _, r := range v.RemindersOf(u.ID) {
		reminders = append(reminders, object{"id": r.ID, "message_id": r.Message, "at": r.At,
			"content": r.Body.Text})
	}
	for _, s := range v.SnippetsOf(u.ID) {
		snippets = append(snippets, object{"id": s.ID, "title": s.Title, "content": s.Content, "created": s.Created})
	}
	e.counts.Drafts, e.counts.Scheduled = len(drafts), len(scheduled)
	return object{"drafts": drafts, "scheduled_messages": scheduled, "reminders": reminders,
		"saved_snippets": snippets}
}

// messagesPerView is how many messages one view looks at: about a millisecond.
const messagesPerView = 500

// eachMessage calls fn with every message that chosen returns true for, a few at a time in memory.
func (e *person) eachMessage(chosen func(*realm.ExportedMessage) bool, fn func(*realm.ExportedMessage) error) error {
	for from := realm.MessageID(1); from <= e.last; from += messagesPerView {
		var list []realm.ExportedMessage
		err := e.source.View(func(v realm.View) error {
			for _, m := range v.ExportedMessages(from, min(from+messagesPerView-1, e.last)) {
				if chosen(&m) {
					m.Attachments = slices.Clone(m.Attachments)
					list = append(list, m)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		for i := range list {
			if err := fn(&list[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// isOwn reports whether the user sent a message.
func (e *person) isOwn(m *realm.ExportedMessage) bool { return m.Sender.ID == e.id }

// writeMessages writes the messages that the user sent and the direct messages that they took part in.
func (e *person) writeMessages() error {
	return e.writeLines("messages.jsonl", func(line func(any) error) error {
		chosen := func(m *realm.ExportedMessage) bool {
			return e.isOwn(m) || slices.ContainsFunc(m.People, func(p realm.UserInfo) bool { return p.ID == e.id })
		}
		return e.eachMessage(chosen, func(m *realm.ExportedMessage) error {
			row, err := e.message(m, e.isOwn(m))
			if err != nil {
				return err
			}
			if e.isOwn(m) {
				e.counts.Messages++
			} else {
				e.counts.DirectMessages++
			}
			return line(row)
		})
	})
}

// message returns a message with its text. Only own messages have earlier texts.
func (e *person) message(m *realm.ExportedMessage, own bool) (object, error) {
	body, _, err := e.source.Text(m.Ref)
	if err != nil {
		return nil, fmt.Errorf("message %d: %w", m.ID, err)
	}
	row := object{"id": m.ID, "sender_id": m.Sender.ID, "sender": m.Sender.Name, "timestamp": m.Time,
		"content": body.Text, "client": m.Client}
	if m.Channel != 0 {
		row["channel_id"], row["channel"], row["topic"] = m.Channel, m.ChannelName, m.Topic
	} else {
		people := []object{}
		for _, p := range m.People {
			people = append(people, object{"id": p.ID, "name": p.Name})
		}
		row["participants"] = people
	}
	if m.Edited != 0 {
		row["edited"] = m.Edited
	}
	if len(m.Attachments) > 0 {
		row["files"] = m.Attachments
	}
	earlier := []object{}
	for _, v := range m.History {
		if !own || !v.Content {
			continue
		}
		body, kept, err := e.source.Text(realm.BodyRef{Message: m.ID, Version: v.Version})
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", m.ID, err)
		}
		if kept {
			earlier = append(earlier, object{"until": v.At, "content": body.Text})
		}
	}
	if len(earlier) > 0 {
		row["earlier_contents"] = earlier
	}
	return row, nil
}

// writeReactions writes the person's reactions, also those to messages that the export does not contain.
func (e *person) writeReactions() error {
	return e.writeLines("reactions.jsonl", func(line func(any) error) error {
		chosen := func(m *realm.ExportedMessage) bool {
			return slices.ContainsFunc(m.Reactions, func(r realm.Reaction) bool { return r.User == e.id })
		}
		return e.eachMessage(chosen, func(m *realm.ExportedMessage) error {
			for _, r := range m.Reactions {
				if r.User != e.id {
					continue
				}
				e.counts.Reactions++
				row := object{"message_id": m.ID, "emoji_name": r.Name, "emoji_code": r.Code, "reaction_type": r.Type}
				if err := line(row); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// writeSubmessages writes the person's votes and other changes of polls and to-do lists, also of those that the export
// does not contain.
func (e *person) writeSubmessages() error {
	return e.writeLines("submessages.jsonl", func(line func(any) error) error {
		chosen := func(m *realm.ExportedMessage) bool {
			return slices.ContainsFunc(m.Submessages, func(s realm.Submessage) bool { return s.Sender == e.id })
		}
		return e.eachMessage(chosen, func(m *realm.ExportedMessage) error {
			for _, s := range m.Submessages {
				if s.Sender != e.id {
					continue
				}
				e.counts.Submessages++
				row := object{"id": s.ID, "message_id": m.ID, "type": s.Type, "content": s.Content}
				if err := line(row); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// writeEdits writes the edits and moves that the person made, and those that others made of the person's messages. The
// earlier texts of the person's messages are in messages.jsonl; those of others are theirs.
func (e *person) writeEdits() error {
	return e.writeLines("edits.jsonl", func(line func(any) error) error {
		chosen := func(m *realm.ExportedMessage) bool {
			return len(m.History) > 0
		}
		return e.eachMessage(chosen, func(m *realm.ExportedMessage) error {
			for _, v := range m.History {
				if v.User != e.id && m.Sender.ID != e.id {
					continue
				}
				e.counts.Edits++
				row := object{"message_id": m.ID, "user_id": v.User, "at": v.At, "content_changed": v.Content}
				if v.TopicBefore != nil && v.TopicAfter != nil {
					row["topic_before"], row["topic_after"] = *v.TopicBefore, *v.TopicAfter
				}
				if v.ChannelAfter != 0 {
					row["channel_id_before"], row["channel_id_after"] = v.ChannelBefore, v.ChannelAfter
				}
				if err := line(row); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// writeFiles writes the files that the user uploaded, their avatar, and a list of them.
func (e *person) writeFiles() error {
	var uploads []realm.Upload
	avatar := ""
	if _, err := e.read(func(v realm.View, u *realm.User) any {
		avatar = u.AvatarFile
		realm.EachRowOf(v.Realm, func(_ any, x *realm.Upload) {
			if x.Owner == e.id {
				uploads = append(uploads, *x)
			}
		})
		return nil
	}); err != nil {
		return err
	}
	list, seen := []object{}, map[string]bool{}
	for _, u := range uploads {
		if seen[u.Path] {
			continue
		}
		seen[u.Path] = true
		name := path.Join("files", u.Path)
		has, err := e.copyFile(realm.ContentFile, u.Hash, name)
		if err != nil {
			return err
		}
		if e.counts.Files++; !has {
			e.addMissing("/user_uploads/" + u.Path)
		}
		list = append(list, object{"file": name, "name": u.Name, "size": u.Size, "content_type": u.Type,
			"created": u.Created, "missing": !has})
	}
	if avatar != "" {
		has, err := e.copyFile(realm.PictureFile, avatar+".png", "avatar.png")
		if err != nil {
			return err
		}
		if !has {
			e.addMissing("pictures/" + avatar + ".png") // as a backup names it
		}
	}
	return e.writeLines("files.json", func(line func(any) error) error { return line(list) })
}

func (e *person) addMissing(file string) {
	e.counts.MissingFiles++
	e.counts.Missing = append(e.counts.Missing, file)
}

// copyFile copies a stored file into the zip file; false if it is missing.
func (e *person) copyFile(kind, file, to string) (bool, error) {
	in, err := e.source.Open(kind, file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer in.Close()
	content, err := in.Section(0, in.Size())
	if err != nil {
		return false, err
	}
	defer content.Close()
	out, err := e.zip.Create(to)
	if err == nil {
		_, err = io.Copy(out, content)
	}
	return true, err
}

// writeAbout writes the numbers of everything in the file.
func (e *person) writeAbout() error {
	return e.writeRow("about.json", func(v realm.View, _ *realm.User) any {
		return object{"format": 1, "organization": v.Org().Name, "counts": e.counts}
	})
}
