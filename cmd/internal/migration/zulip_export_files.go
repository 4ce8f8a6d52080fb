package migration

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"parley/actors/realm"
	"parley/snapshot/files"
)

// create creates a file of the export.
func (e *zulipExport) create(name string, write func(w *json.Encoder, out *bufio.Writer) error) error {
	file := filepath.Join(e.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(f, 256<<10)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	err = write(enc, out)
	return errors.Join(err, out.Flush(), f.Close())
}

// writeJSON writes one value as a file of the export.
func (e *zulipExport) writeJSON(name string, v any) error {
	return e.create(name, func(w *json.Encoder, _ *bufio.Writer) error { return w.Encode(v) })
}

// writeMessages writes the files of messages, and collects reactions.
func (e *zulipExport) writeMessages() error {
	last, number := e.realm.LastMessageID(), 0
	for from := realm.MessageID(1); from <= last; from += messagesPerFile {
		list := e.realm.ExportedMessages(from, from+messagesPerFile-1)
		if len(list) == 0 {
			continue
		}
		number++
		var messages, flags []object
		for i := range list {
			row, err := e.message(&list[i])
			if err != nil {
				return err
			}
			messages = append(messages, row)
		}
		e.realm.EachReceived(from, from+messagesPerFile-1, func(id realm.MessageID, u realm.UserID, f realm.Flags) {
			e.next["usermessage"]++
			flags = append(flags, object{"id": e.next["usermessage"], "user_profile": u, "message": id,
				"flags_mask": zulipFlags(f, &list[indexOf(list, id)])})
		})
		if err := e.writeJSON(fmt.Sprintf("messages-%06d.json", number),
			object{"zerver_message": messages, "zerver_usermessage": flags}); err != nil {
			return err
		}
	}
	return nil
}

func indexOf(list []realm.ExportedMessage, id realm.MessageID) int {
	i, _ := slices.BinarySearchFunc(list, id, func(m realm.ExportedMessage, id realm.MessageID) int {
		return int(m.ID - id)
	})
	return i
}

// zulipFlags converts flags to the bits of flags_mask.
func zulipFlags(f realm.Flags, m *realm.ExportedMessage) (bits int) {
	for _, b := range []struct {
		flag realm.Flags
		bit  int
	}{
		{realm.FlagRead, 1}, {realm.FlagStarred, 2}, {realm.FlagCollapsed, 4}, {realm.FlagMentioned, 8},
		{realm.FlagChannelWildcard, 16}, {realm.FlagTopicWildcard, 32}, {realm.FlagAlert, 512},
		{realm.FlagHistorical, 1024},
	} {
		if f&b.flag != 0 {
			bits |= b.bit
		}
	}
	if m.Channel == 0 {
		bits |= 2048
	}
	return bits
}

func (e *zulipExport) message(m *realm.ExportedMessage) (object, error) {
	body, _, err := e.disk.Text(e.realm.ID(), m.Ref)
	if err != nil {
		return nil, fmt.Errorf("message %d: %w", m.ID, err)
	}
	row := object{"id": m.ID, "sender": m.Sender.ID, "realm": 1, "type": 1, "subject": m.Topic, "content": body.Text,
		"rendered_content": body.HTML, "rendered_content_version": 1, "date_sent": float64(m.Time),
		"sending_client": e.client[m.Client], "last_edit_time": nil, "edit_history": nil,
		"has_attachment": len(m.Attachments) > 0, "has_image": m.Image, "has_link": m.Link,
		"is_channel_message": m.Channel != 0, "search_tsvector": nil}
	if m.Channel != 0 {
		row["recipient"] = channelRecipient(m.Channel)
	} else {
		people := make([]realm.UserID, len(m.People))
		for i, u := range m.People {
			people[i] = u.ID
		}
		row["recipient"] = e.recipient(m.Sender.ID, people, m.Talk)
	}
	// also of moves that clients do not count, such as marking a topic as resolved
	edited := max(m.Edited, m.Moved)
	if n := len(m.History); n > 0 {
		edited = max(edited, m.History[n-1].At)
	}
	if edited != 0 {
		row["last_edit_time"] = float64(edited)
	}
	if len(m.History) > 0 {
		if row["edit_history"], err = e.history(m); err != nil {
			return nil, err
		}
	}
	for _, r := range m.Reactions {
		e.add("zerver_reaction", object{"user_profile": r.User, "emoji_name": r.Name, "emoji_code": r.Code,
			"reaction_type": r.Type, "message": m.ID})
	}
	for _, a := range m.Attachments {
		e.usedBy[a] = append(e.usedBy[a], m.ID)
	}
	return row, nil
}

// history returns the edit history as JSON text, newest edit first.
func (e *zulipExport) history(m *realm.ExportedMessage) (string, error) {
	var list []object
	for _, v := range slices.Backward(m.History) {
		row := object{"user_id": optionalID(v.User), "timestamp": v.At}
		if v.Content {
			body, _, err := e.disk.Text(e.realm.ID(), realm.BodyRef{Message: m.ID, Version: v.Version})
			if err != nil {
				return "", fmt.Errorf("message %d: %w", m.ID, err)
			}
			row["prev_content"], row["prev_rendered_content"] = body.Text, body.HTML
			row["prev_rendered_content_version"] = 1
		}
		if v.TopicBefore != nil {
			row["prev_topic"] = *v.TopicBefore
			if v.TopicAfter != nil {
				row["topic"] = *v.TopicAfter
			}
		}
		if v.ChannelBefore != 0 {
			row["prev_stream"], row["stream"] = v.ChannelBefore, v.ChannelAfter
		}
		list = append(list, row)
	}
	data, err := json.Marshal(list)
	return string(data), err
}

// copyFile copies a stored file into the export; false if it is missing.
func (e *zulipExport) copyFile(kind, name, to string) (size int64, ok bool, err error) {
	var out *os.File
	size, ok, err = copyStored(e.files, kind, name, func() (io.Writer, error) {
		file := filepath.Join(e.dir, filepath.FromSlash(to))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return nil, err
		}
		var err error
		out, err = os.Create(file)
		return out, err
	})
	if out != nil {
		err = errors.Join(err, out.Close())
	}
	return size, ok, err
}

// copyStored copies a stored file to the writer that create returns; false if it is missing.
func copyStored(
	store *files.Store, kind, name string, create func() (io.Writer, error),
) (size int64, ok bool, err error) {
	in, err := store.Open(kind, name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	defer in.Close()
	r, err := in.Section(0, in.Size())
	if err != nil {
		return 0, false, err
	}
	defer r.Close()
	out, err := create()
	if err == nil {
		size, err = io.Copy(out, r)
	}
	return size, true, err
}

// writeUploads writes the files that messages link to.
func (e *zulipExport) writeUploads() error {
	records, attachments := []object{}, []object{}
	for _, u := range e.upload {
		messages := e.usedBy[u.Path]
		size, ok, err := e.copyFile(realm.ContentFile, u.Hash, path.Join("uploads", u.Path))
		if err != nil {
			return err
		}
		if !ok {
			e.missing = append(e.missing, "/user_uploads/"+u.Path)
			continue
		}
		owner := ""
		if o := e.users[u.Owner]; o != nil {
			owner = o.Email
		}
		records = append(records, object{"realm_id": 1, "user_profile_id": u.Owner, "user_profile_email": owner,
			"s3_path": u.Path, "path": u.Path, "size": size, "last_modified": float64(u.Created),
			"content_type": u.Type})
		attachments = append(attachments, object{"id": u.ID, "file_name": u.Name, "path_id": u.Path, "owner": u.Owner,
			"realm": 1, "create_time": float64(u.Created), "size": size, "content_type": u.Type, "is_realm_public": nil,
			"is_web_public": nil, "messages": append([]realm.MessageID{}, messages...),
			"scheduled_messages": append([]int64{}, e.scheduledUses[u.Path]...)})
	}
	return errors.Join(e.writeJSON("uploads/records.json", records),
		e.writeJSON("attachment.json", object{"zerver_attachment": attachments}),
		e.writeJSON("analytics.json", object{"analytics_realmcount": []any{}, "analytics_usercount": []any{},
			"analytics_streamcount": []any{}}))
}

// writePictures writes avatars, emoji, the icon and the logos.
func (e *zulipExport) writePictures() error {
	avatars, emojis, icons := []object{}, []object{}, []object{}
	put := func(list *[]object, folder, kind, from, to string, more object) error {
		for _, ending := range []string{"", ".original"} {
			name := to + ending
			if folder != "emoji" && ending != "" {
				name = strings.TrimSuffix(to, ".png") + ending
			}
			size, ok, err := e.copyFile(kind, from, path.Join(folder, name))
			if !ok && ending == "" {
				e.missing = append(e.missing, files.Key(kind, from))
			}
			if err != nil || !ok {
				return err
			}
			row := object{"realm_id": 1, "s3_path": name, "path": name, "size": size}
			maps.Copy(row, more)
			*list = append(*list, row)
		}
		return nil
	}
	var err error
	for _, u := range e.users {
		if u.AvatarFile != "" {
			err = errors.Join(err, put(&avatars, "avatars", realm.PictureFile, u.AvatarFile+".png",
				"1/user"+u.ID.String()+".png", object{"user_profile_id": u.ID, "user_profile_email": u.Email,
					"avatar_version": u.AvatarVersion, "last_modified": 0.0, "content_type": nil}))
		}
	}
	for _, m := range e.realm.CustomEmojis() {
		err = errors.Join(err, put(&emojis, "emoji", realm.ContentFile, m.Hash, "1/emoji/images/"+m.File(),
			object{"author": m.Author, "file_name": m.File(), "name": m.Name, "deactivated": m.Deactivated}))
	}
	o := e.realm.Org()
	for _, p := range []struct{ name, file string }{
		{"icon", o.IconFile}, {"logo", o.LogoFile}, {"night_logo", o.NightLogoFile},
	} {
		if p.file != "" {
			err = errors.Join(err,
				put(&icons, "realm_icons", realm.PictureFile, p.file+".png", "1/"+p.name+".png", nil))
		}
	}
	for name, list := range map[string][]object{"avatars": avatars, "emoji": emojis, "realm_icons": icons} {
		err = errors.Join(err, e.writeJSON(name+"/records.json", list))
	}
	return err
}

// writeTables writes realm.json, a row at a time, and stats.json.
func (e *zulipExport) writeTables() error {
	stats := object{}
	for name, rows := range e.tables {
		stats[name] = len(rows)
	}
	err := e.create("realm.json", func(w *json.Encoder, out *bufio.Writer) error {
		for i, name := range slices.Sorted(maps.Keys(e.tables)) {
			out.WriteString(map[bool]string{true: "{", false: ","}[i == 0] + strconv.Quote(name) + ":[")
			for k, row := range e.tables[name] {
				if k > 0 {
					out.WriteByte(',')
				}
				if err := w.Encode(row); err != nil {
					return err
				}
			}
			out.WriteString("]")
		}
		_, err := out.WriteString("}\n")
		return err
	})
	return errors.Join(err, e.writeJSON("stats.json", object{"realm": stats}))
}

// writeTar writes the files of a folder as a compressed tar with one top directory.
func writeTar(dir, top string, to io.Writer) error {
	z := gzip.NewWriter(to)
	t := tar.NewWriter(z)
	root := os.DirFS(dir)
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		h, err := tar.FileInfoHeader(info, "")
		if err != nil {
			return err
		}
		h.Uid, h.Gid, h.Uname, h.Gname = 0, 0, "", ""
		if h.Name = path.Join(top, name); entry.IsDir() {
			h.Name += "/"
		}
		if err := t.WriteHeader(h); err != nil || entry.IsDir() {
			return err
		}
		f, err := root.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(t, f)
		return err
	})
	return errors.Join(err, t.Close(), z.Close())
}
