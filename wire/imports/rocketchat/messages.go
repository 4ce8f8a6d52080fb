package rocketchat

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"parley/wire/imports"
)

const (
	// maxRepeated limits the ids that several messages may have, because those are in memory. MongoDB never stores two
	// documents with one id.
	maxRepeated = 10_000
	// maxStrangers limits the senders and partners without an account, which are in memory like users.
	maxStrangers = 1_000_000
	// maxThreads limits the threads that get topics of their own: their ids are in memory, some 80 bytes each.
	maxThreads = 1_000_000
)

const messageCollection = "rocketchat_message"

// skipped returns why a message is not imported, or "".
func (s *source) skipped(d bson.Raw) (reason string, r *room) {
	r = s.roomByID[text(d.Lookup("rid"))]
	kind := text(d.Lookup("t"))
	switch {
	case r == nil:
		return "the room is missing", nil
	case r.place == nil:
		return r.why, nil
	case kind == "e2e":
		return "the text is encrypted", nil
	case kind != "":
		return "system messages are not imported", nil
	case flag(d.Lookup("_hidden")):
		return "deleted, or an earlier version of a message", nil
	}
	return "", r
}

// scanMessages finds the people without accounts and the ids that several messages have.
func (s *source) scanMessages() error {
	ids := s.o.Sorter()
	defer ids.Close()
	strangers := map[string]bool{}
	add := func(u user) error {
		if u.id == "" || s.known[u.id] || strangers[u.id] {
			return nil
		}
		if len(strangers) == maxStrangers {
			return fmt.Errorf("more than %d people without accounts", maxStrangers)
		}
		strangers[u.id] = true
		s.strangers = append(s.strangers, u)
		return nil
	}
	err := s.eachDocument(messageCollection, s.in, func(d bson.Raw, _ position) error {
		if why, r := s.skipped(d); why != "" {
			return nil
		} else if r.place.kind == directRoom {
			for _, id := range r.place.people {
				if err := add(user{id: id, name: "Former user"}); err != nil {
					return err
				}
			}
		}
		sender := document(d.Lookup("u"))
		u := user{id: text(sender.Lookup("_id")), name: text(sender.Lookup("name"))}
		if u.name == "" {
			u.name = text(sender.Lookup("username"))
		}
		if err := add(u); err != nil {
			return err
		}
		return ids.Add([]byte(text(d.Lookup("_id"))), nil)
	})
	if err != nil {
		return err
	}
	for id := range strangers {
		s.known[id] = true
	}
	last, first := "", true
	return ids.Sorted(func(key, _ []byte) error {
		if !first && string(key) == last {
			s.repeated[last] = true
			if len(s.repeated) > maxRepeated {
				return fmt.Errorf("more than %d ids that several messages have", maxRepeated)
			}
		}
		first, last = false, string(key)
		return nil
	})
}

func (r *reader) putMessages() error {
	file := r.collection(messageCollection)
	total := int64(0)
	if info, err := fs.Stat(r.archive, file); err == nil {
		total = info.Size()
	}
	in := imports.Reading{Seen: func(n int) { // scanMessages has counted the bad values
		r.read += int64(n)
		r.sink.Size(r.read, total)
	}}
	return r.eachDocument(messageCollection, in, func(d bson.Raw, at position) error {
		why, x := r.skipped(d)
		id := text(d.Lookup("_id"))
		if why == "" && r.repeated[id] {
			if r.seen[id] {
				why = "a second message with the same id"
			}
			r.seen[id] = true
		}
		if why == "" && millis(d.Lookup("ts")) <= 0 {
			why = "the time is impossible"
		}
		if why != "" {
			r.dropMessage(d, why, at)
			return nil
		}
		return r.putMessage(d, x, id, at)
	})
}

// dropMessage counts a message that is left out, with its reactions and files.
func (r *reader) dropMessage(d bson.Raw, why string, at position) {
	r.sink.DropAt("messages", why, at.String())
	m := &imports.Message{}
	r.addReactions(m, document(d.Lookup("reactions")))
	if n := len(m.Reactions); n > 0 {
		r.sink.Drop("reactions", "their message is left out", n)
	}
	if len(document(d.Lookup("file"))) > 0 {
		r.sink.Drop("attachments", "their message is left out", 1)
	}
}

func (r *reader) putMessage(d bson.Raw, x *room, id string, at position) error {
	sent := millis(d.Lookup("ts"))
	out := &imports.Message{Key: id, Place: at.String(), Order: sent, At: sent / 1000,
		Sender: text(document(d.Lookup("u")).Lookup("_id")), Text: r.convert(d)}
	if id == "" {
		out.Key = fmt.Sprintf("at %d", at.byte)
	}
	if x.place.kind == directRoom {
		out.People = x.place.people
	} else {
		out.Channel = x.place.id
		out.Topic, out.Thread = r.topicOf(d, x, id)
	}
	r.addReactions(out, document(d.Lookup("reactions")))
	if flag(d.Lookup("pinned")) {
		r.sink.Drop("pins", "pinned messages have no meaning", 1)
	}
	if n := len(list(d.Lookup("starred"))); n > 0 {
		r.sink.Drop("saved messages", "saved messages are not imported", n)
	}
	r.addFiles(out, d)
	return r.sink.Put(out)
}

// topicOf returns the topic of a message in a channel, and the thread that it belongs to.
func (r *reader) topicOf(d bson.Raw, x *room, id string) (topic, thread string) {
	root := text(d.Lookup("tmid"))
	if len(list(d.Lookup("replies"))) > 0 {
		root = id
	}
	if x.place != x {
		return x.topic(), root
	}
	if root == "" {
		return "Imported from " + product, ""
	}
	n := r.threads[root]
	if n == 0 {
		if len(r.threads) == maxThreads {
			r.sink.Drop(
				"threads",
				fmt.Sprintf("more than %d threads: the message is in the ordinary topic", maxThreads),
				1,
			)
			return "Imported from " + product, root
		}
		n = len(r.threads) + 1
		r.threads[root] = n
	}
	return fmt.Sprintf("Thread %d (Imported from %s)", n, product), root
}

// convert returns the text of a message with the mentions of people and rooms that the message lists.
func (r *reader) convert(d bson.Raw) string {
	s := text(d.Lookup("msg"))
	if people := list(d.Lookup("mentions")); len(people) > 0 && strings.IndexByte(s, '@') >= 0 {
		found := map[string]string{}
		for _, x := range people {
			m := document(x)
			switch id := text(m.Lookup("_id")); id {
			case "all", "here":
				found[id] = "@**all**"
			default:
				if to, ok := r.mentions.Of(id); ok {
					found[text(m.Lookup("username"))] = to
				}
			}
		}
		s = replaceListed(s, '@', found)
	}
	if rooms := list(d.Lookup("channels")); len(rooms) > 0 && strings.IndexByte(s, '#') >= 0 {
		found := map[string]string{}
		for _, x := range rooms {
			m := document(x)
			if to := r.roomByID[text(m.Lookup("_id"))]; to != nil {
				if link := to.link(); link != "" {
					found[text(m.Lookup("name"))] = link
				}
			}
		}
		s = replaceListed(s, '#', found)
	}
	return s
}

func replaceListed(s string, mark byte, found map[string]string) string {
	return imports.ReplaceNames(s, mark, func(name string) (string, bool) {
		to, ok := found[name]
		return to, ok
	})
}

// link returns the link to a room, or "" if texts cannot link to it.
func (x *room) link() string {
	switch {
	case x.place == nil || x.place.kind == directRoom:
		return ""
	case x.place != x:
		return "#**" + x.place.channelName() + ">" + x.topic() + "**"
	}
	return "#**" + x.channelName() + "**"
}

// skinTones are the ends of the names of emoji with a color of the skin, which are dropped.
var skinTones = []string{"_tone1", "_tone2", "_tone3", "_tone4", "_tone5"}

func (r *reader) addReactions(out *imports.Message, reactions bson.Raw) {
	elements, err := reactions.Elements()
	if err != nil {
		return
	}
	for _, e := range elements {
		name := strings.Trim(e.Key(), ":")
		for _, tone := range skinTones {
			name = strings.TrimSuffix(name, tone)
		}
		for _, username := range texts(document(e.Value()).Lookup("usernames")) {
			out.Reactions = append(out.Reactions, imports.Reaction{User: r.keys[username], Name: name})
		}
	}
}

// addFiles links the files of a message from its text. Small copies of pictures are left out: the server makes its own.
func (r *reader) addFiles(out *imports.Message, d bson.Raw) {
	files := []bson.Raw{}
	if f := document(d.Lookup("file")); len(f) > 0 {
		files = append(files, f)
	}
	for _, v := range list(d.Lookup("files")) {
		f := document(v)
		if len(files) > 0 && text(f.Lookup("_id")) == text(files[0].Lookup("_id")) ||
			text(f.Lookup("typeGroup")) == "thumb" || strings.HasPrefix(text(f.Lookup("name")), "thumb-") {
			continue
		}
		files = append(files, f)
	}
	for _, f := range files {
		id := text(f.Lookup("_id"))
		row, ok := r.uploads.row(id)
		if !ok {
			r.sink.DropAt("attachments", "the upload is missing", out.Place)
			continue
		}
		name := fileName(text(row.Lookup("name")), id)
		if name == "" {
			name = fileName(text(f.Lookup("name")), id)
		}
		file := imports.File{Path: uploadFolder + id, Name: name, Owner: text(row.Lookup("userId")),
			Address: fmt.Sprintf("/user_uploads/import/%x", binary.BigEndian.AppendUint64(nil, r.uploads.number(id)))}
		for _, part := range []struct{ text, before string }{{text(row.Lookup("description")), "\n"},
			{imports.Link(name, file.Address), "\n\n"}} {
			if out.Text != "" && part.text != "" {
				out.Text += part.before
			}
			out.Text += part.text
		}
		out.Files = append(out.Files, file)
	}
}
