package migration

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"

	"parley/actors/realm"
	"parley/snapshot"
	"parley/snapshot/files"
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

// personExport writes the data of one person into a zip file, one entry after the other.
type personExport struct {
	disk   snapshot.Disk
	files  *files.Store
	realm  *realm.Realm
	user   *realm.User
	zip    *zip.Writer
	counts PersonCounts
}

// ExportPerson writes the data of one person as a zip file with JSON and with the person's files as they are. person is
// an email address or an id. Of other users, the file has their ids and names, and their messages in direct
// conversations with the person. It contains no password, key or token.
//
// Deleted messages are left out, also those that the retention archive still has; the file about.json has their number.
// Messages and files are read one after the other: the memory this takes is that of the loaded organization.
func ExportPerson(d snapshot.Disk, store *files.Store, id realm.ID, person string, to io.Writer) (
	counts PersonCounts, err error,
) {
	x, err := snapshot.Recover(d, id)
	if err != nil {
		return counts, err
	}
	e := &personExport{disk: d, files: store, realm: x.Realm, zip: zip.NewWriter(to)}
	if e.user, err = FindPerson(x.Realm, person); err != nil {
		return counts, err
	}
	e.counts.User = e.user.ID
	for _, step := range []func() error{e.writeRows, e.writeMessages, e.writeReactions, e.writeSubmessages,
		e.writeEdits, e.writeFiles, e.writeAbout, e.zip.Close,
	} {
		if err := step(); err != nil {
			return counts, fmt.Errorf("export user %d: %w", e.user.ID, err)
		}
	}
	return e.counts, nil
}

// FindPerson returns the user with an email address or an id. System bots are not found.
func FindPerson(r *realm.Realm, person string) (*realm.User, error) {
	u := r.FindByEmail(person)
	if id, err := strconv.ParseInt(person, 10, 64); u == nil && err == nil {
		u = r.Find(realm.UserID(id))
	}
	if u == nil || u.System {
		return nil, fmt.Errorf("no user %q; parley user list shows them", person)
	}
	return u, nil
}

// writeJSON writes one value as an entry of the zip file.
func (e *personExport) writeJSON(name string, v any) error {
	return e.writeLines(name, func(line func(any) error) error { return line(v) })
}

// writeLines writes an entry of JSON values, a line each.
func (e *personExport) writeLines(name string, write func(line func(any) error) error) error {
	w, err := e.zip.Create(name)
	if err != nil {
		return err
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return write(enc.Encode)
}

// personSettings returns all settings of the person by name: the chosen values, or the defaults.
func (e *personExport) personSettings() object {
	out := object{}
	for _, s := range realm.UserSettings {
		if v, set := e.user.Settings[s.Name]; set {
			out[s.Name] = v
		} else {
			out[s.Name] = s.Default
		}
	}
	return out
}

// writeRows writes everything of the person but messages, reactions and files.
func (e *personExport) writeRows() error {
	u, fields, bots, groups := e.user, object{}, []object{}, []string{}
	services := map[any]*realm.BotDetails{}
	e.realm.EachRow(func(_ uint16, key, row any) {
		switch v := row.(type) {
		case *realm.ProfileField:
			if value, has := u.Profile[v.ID]; has {
				fields[v.Name] = value
			}
		case *realm.User:
			if v.BotOwner == u.ID {
				bots = append(bots, object{"id": v.ID, "email": v.Email, "name": v.Name, "active": v.Active})
			}
		case *realm.BotDetails:
			services[key] = v
		case *realm.Group:
			if slices.Contains(v.Members, u.ID) {
				groups = append(groups, v.Name)
			}
		case *realm.ArchivedMessages:
			e.counts.Archived += v.SentBy(u.ID)
		}
	})
	for _, b := range bots {
		list := []object{}
		if details := services[b["id"]]; details != nil {
			for _, s := range details.Services {
				list = append(list, object{"name": s.Name, "url": s.URL})
			}
		}
		b["services"] = list
	}
	status := e.realm.StatusOf(u.ID)
	return errors.Join(
		e.writeJSON("profile.json", object{"user_id": u.ID, "email": u.Email, "full_name": u.Name, "role": int(u.Role),
			"is_active": u.Active, "is_bot": u.IsBot(), "date_joined": u.Joined, "timezone": u.Timezone,
			"avatar_source": u.Avatar, "profile_fields": fields, "groups": groups, "bots": bots,
			"status": object{"text": status.Text, "emoji_name": status.EmojiName}}),
		e.writeJSON("settings.json", e.personSettings()),
		e.writeJSON("logins.json", e.logins()),
		e.writeJSON("subscriptions.json", e.subscriptions()),
		e.writeJSON("preferences.json", e.preferences()),
		e.writeJSON("drafts.json", e.unsent()),
		e.writeJSON("invitations.json", e.invitations()),
	)
}

// logins returns sessions, keys and devices without their secrets.
func (e *personExport) logins() object {
	sessions, keys, devices, tokens := []object{}, []object{}, []object{}, []object{}
	for _, s := range e.realm.StoredBrowserSessions(e.user.ID) {
		sessions = append(sessions, object{"id": s.ID, "opened": s.Opened, "last_used": s.Used, "browser": s.Agent,
			"address": s.Address})
	}
	for _, k := range e.user.KeyInfo {
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
	for _, d := range e.realm.DevicesOf(e.user.ID) {
		devices = append(devices, object{"id": d.ID, "kind": d.TokenKind, "updated": d.Updated})
	}
	for _, t := range e.realm.PushTokensOf(e.user.ID) {
		tokens = append(tokens, object{"kind": t.Kind, "app": t.App, "since": t.Since})
	}
	since := int64(0)
	if f := e.realm.FactorOf(e.user.ID); f != nil {
		since = f.Since
	}
	row := e.realm.ScimRow(e.user.ID)
	scim := object{"user_name": row.UserName, "external_id": row.ExternalID, "formatted": row.Formatted,
		"given_name": row.Given, "family_name": row.Family}
	passkeys, identities := []object{}, []object{}
	for _, p := range e.realm.PasskeysOf(e.user.ID) {
		passkeys = append(passkeys, object{"name": p.Name, "added": p.Added, "last_used": p.Used})
	}
	for _, x := range e.realm.IdentitiesOf(e.user.ID) {
		identities = append(identities, object{"issuer": x.Issuer, "subject": x.Subject, "linked": x.Linked,
			"deactivated": x.Suspended})
	}
	return object{"browser_sessions": sessions, "api_keys": keys, "devices": devices, "push_registrations": tokens,
		"identities": identities, "passkeys": passkeys, "second_factor_since": since,
		"scim": scim}
}

// channelName returns the name of a channel, "" for one that does not exist.
func (e *personExport) channelName(id realm.ChannelID) string {
	if c := e.realm.FindChannel(id); c != nil {
		return c.Name
	}
	return ""
}

func (e *personExport) subscriptions() []object {
	list := []object{}
	e.realm.EachRow(func(_ uint16, key, row any) {
		v, ok := row.(*realm.Subscriptions)
		if !ok || key != e.user.ID {
			return
		}
		for _, s := range v.List {
			list = append(list, object{"channel_id": s.Channel, "channel": e.channelName(s.Channel),
				"active": s.Active, "color": s.Color, "is_muted": s.Muted, "pin_to_top": s.Pinned,
				"desktop_notifications": s.Desktop, "audible_notifications": s.Audible, "push_notifications": s.Push,
				"email_notifications": s.Email, "wildcard_mentions_notify": s.Wildcard})
		}
	})
	e.counts.Subscriptions = len(list)
	return list
}

// invitations returns the invitations and the links that the person made, without the tokens in their addresses.
func (e *personExport) invitations() []object {
	list := []object{}
	e.realm.EachRow(func(_ uint16, _, row any) {
		i, ok := row.(*realm.Invite)
		if !ok || i.By != e.user.ID {
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
func (e *personExport) preferences() object {
	words, muted, topics, views := []string{}, []object{}, []object{}, []object{}
	starred, collapsed := []int64{}, []int64{}
	for _, m := range e.realm.MutedBy(e.user.ID) {
		muted = append(muted, object{"user_id": m.User, "since": m.Since})
	}
	for _, v := range e.realm.NavigationViewsOf(e.user.ID) {
		views = append(views, object{"fragment": v.Fragment, "is_pinned": v.Pinned, "name": v.Name})
	}
	e.realm.EachRow(func(_ uint16, key, row any) {
		if key != e.user.ID {
			return
		}
		switch v := row.(type) {
		case *realm.AlertWords:
			words = append(words, v.List...)
		case *realm.TopicPolicies:
			for _, p := range v.List {
				topics = append(topics, object{"channel_id": p.Channel, "channel": e.channelName(p.Channel),
					"topic": p.Topic, "visibility_policy": p.Policy, "since": p.Since})
			}
		case *realm.MessageMarks:
			v.Starred.Each(func(id int64) bool { starred = append(starred, id); return true })
			v.Collapsed.Each(func(id int64) bool { collapsed = append(collapsed, id); return true })
		}
	})
	return object{"alert_words": words, "muted_users": muted, "topics": topics, "navigation_views": views,
		"starred_messages": starred, "collapsed_messages": collapsed}
}

// unsent returns texts that the person has stored but not sent.
func (e *personExport) unsent() object {
	drafts, scheduled, reminders, snippets := []object{}, []object{}, []object{}, []object{}
	for _, d := range e.realm.DraftsOf(e.user.ID) {
		drafts = append(drafts, object{"id": d.ID, "type": d.Type, "to": d.To, "topic": d.Topic, "content": d.Content,
			"timestamp": d.Edited})
	}
	for _, s := range e.realm.ScheduledOf(e.user.ID) {
		scheduled = append(scheduled, object{"id": s.ID, "channel_id": s.Channel, "topic": s.Topic,
			"to":      append([]realm.UserID{}, s.People...),
			"content": s.Body.Text, "scheduled_delivery_timestamp": s.At, "failed": s.Failed,
			"repeated": s.Repeat.Every, "timezone": s.Repeat.Zone})
	}
	for _, r := range e.realm.RemindersOf(e.user.ID) {
		reminders = append(reminders, object{"id": r.ID, "message_id": r.Message, "at": r.At,
			"content": r.Body.Text})
	}
	for _, s := range e.realm.SnippetsOf(e.user.ID) {
		snippets = append(snippets, object{"id": s.ID, "title": s.Title, "content": s.Content, "created": s.Created})
	}
	e.counts.Drafts, e.counts.Scheduled = len(drafts), len(scheduled)
	return object{"drafts": drafts, "scheduled_messages": scheduled, "reminders": reminders,
		"saved_snippets": snippets}
}

// eachMessage calls fn with every message of the organization, a few at a time in memory.
func (e *personExport) eachMessage(fn func(*realm.ExportedMessage) error) error {
	last := e.realm.LastMessageID()
	for from := realm.MessageID(1); from <= last; from += messagesPerFile {
		list := e.realm.ExportedMessages(from, from+messagesPerFile-1)
		for i := range list {
			if err := fn(&list[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeMessages writes the messages that the person sent and the direct messages that they took part in.
func (e *personExport) writeMessages() error {
	return e.writeLines("messages.jsonl", func(line func(any) error) error {
		return e.eachMessage(func(m *realm.ExportedMessage) error {
			own := m.Sender.ID == e.user.ID
			if !own && !slices.ContainsFunc(m.People, func(p realm.UserInfo) bool { return p.ID == e.user.ID }) {
				return nil
			}
			row, err := e.message(m, own)
			if err != nil {
				return err
			}
			if own {
				e.counts.Messages++
			} else {
				e.counts.DirectMessages++
			}
			return line(row)
		})
	})
}

// message returns a message with its text. Only own messages have earlier texts.
func (e *personExport) message(m *realm.ExportedMessage, own bool) (object, error) {
	body, _, err := e.disk.Text(e.realm.ID(), m.Ref)
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
		body, kept, err := e.disk.Text(e.realm.ID(), realm.BodyRef{Message: m.ID, Version: v.Version})
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
func (e *personExport) writeReactions() error {
	return e.writeLines("reactions.jsonl", func(line func(any) error) error {
		return e.eachMessage(func(m *realm.ExportedMessage) error {
			for _, r := range m.Reactions {
				if r.User != e.user.ID {
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
func (e *personExport) writeSubmessages() error {
	return e.writeLines("submessages.jsonl", func(line func(any) error) error {
		return e.eachMessage(func(m *realm.ExportedMessage) error {
			for _, s := range m.Submessages {
				if s.Sender != e.user.ID {
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
func (e *personExport) writeEdits() error {
	return e.writeLines("edits.jsonl", func(line func(any) error) error {
		return e.eachMessage(func(m *realm.ExportedMessage) error {
			for _, v := range m.History {
				if v.User != e.user.ID && m.Sender.ID != e.user.ID {
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

// writeFiles writes the files that the person uploaded, their avatar, and a list of them.
func (e *personExport) writeFiles() error {
	var uploads []*realm.Upload
	e.realm.EachRow(func(_ uint16, _, row any) {
		if u, ok := row.(*realm.Upload); ok && u.Owner == e.user.ID {
			uploads = append(uploads, u)
		}
	})
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
	if e.user.AvatarFile != "" {
		has, err := e.copyFile(realm.PictureFile, e.user.AvatarFile+".png", "avatar.png")
		if err != nil {
			return err
		}
		if !has {
			e.addMissing(files.Key(realm.PictureFile, e.user.AvatarFile+".png"))
		}
	}
	return e.writeJSON("files.json", list)
}

func (e *personExport) addMissing(file string) {
	e.counts.MissingFiles++
	e.counts.Missing = append(e.counts.Missing, file)
}

// copyFile copies a stored file into the zip file; false if it is missing.
func (e *personExport) copyFile(kind, file, to string) (bool, error) {
	_, ok, err := copyStored(e.files, kind, file, func() (io.Writer, error) { return e.zip.Create(to) })
	return ok, err
}

// writeAbout writes the numbers of everything in the file.
func (e *personExport) writeAbout() error {
	return e.writeJSON("about.json", object{"format": 1, "organization": e.realm.Org().Name, "counts": e.counts})
}
