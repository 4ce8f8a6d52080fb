package teams

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"parley/wire/imports"
)

const (
	// maxPosts limits the posts that replies refer to: their titles are in memory, some 150 bytes each.
	maxPosts = 500_000
	// maxTopic limits topics, in code points. It is the protocol's.
	maxTopic = 60
	// maxPlace limits the name of the channel before the title of a post, in code points.
	maxPlace = 20
	// generalChannel is the first channel of each team. Its name says nothing.
	generalChannel = "General"
)

// postKey is the hash of a channel and the id of a post in it.
type postKey [16]byte

func keyOf(channel, id string) postKey {
	h := sha256.Sum256([]byte(channel + "\x00" + id))
	return postKey(h[:16])
}

// posts are the titles of posts that have replies.
type posts struct {
	titles map[postKey]string
	full   bool
}

func newPosts() *posts { return &posts{titles: map[postKey]string{}} }

// place returns where a message of a channel is; the reason if the message is left out.
func (s *source) place(m *messageRow) (c *channel, why string) {
	if why = m.skipped(); why != "" {
		return nil, why
	}
	if m.Channel == nil || m.Channel.Channel == "" {
		return nil, "the channel is missing"
	}
	if c = s.channels[m.Channel.Channel]; c == nil {
		return nil, "the export does not have the channel: who may read it is unknown"
	}
	return c, c.why
}

// isReply reports whether a message replies to a post.
func (m *messageRow) isReply() bool { return m.ReplyTo != "" && m.ReplyTo != m.ID }

// scan finds the people without accounts, the members of chats, and the posts that have replies.
func (s *source) scan() error {
	for _, f := range s.files {
		info, err := fs.Stat(s.archive, f.name)
		if err != nil {
			return err
		}
		if s.size += info.Size(); f.user != "" {
			if err := s.add(f.user, ""); err != nil {
				return err
			}
		}
		if err := imports.EachRow(s.archive, f.name, s.in, func(m *messageRow, _ imports.Row) error {
			if f.user != "" {
				return s.scanChat(f.user, m)
			}
			_, why := s.place(m)
			if why != "" {
				return nil
			}
			if s.o.Threads && m.isReply() {
				s.posts.add(keyOf(m.Channel.Channel, m.ReplyTo))
			}
			return s.addPeople(m)
		}); err != nil {
			return err
		}
	}
	members := [][]string{}
	for _, t := range s.teams {
		members = append(members, t.members)
	}
	for _, c := range s.channels {
		members = append(members, c.members)
	}
	return s.addMembers(slices.Sorted(slices.Values(slices.Concat(members...))))
}

// addMembers adds the members of teams and channels that have no accounts.
func (s *source) addMembers(keys []string) error {
	for _, key := range keys {
		if err := s.add(key, ""); err != nil {
			return err
		}
	}
	return nil
}

// addPeople adds the people of a message that have no accounts.
func (s *source) addPeople(m *messageRow) error {
	list := []*identityRow{m.From}
	for i := range m.Reactions {
		list = append(list, m.Reactions[i].User)
	}
	for _, who := range list {
		if who == nil {
			continue
		}
		p := who.User
		if p == nil || p.ID == "" {
			p = who.Application
		}
		if p == nil {
			continue
		}
		if err := s.add(who.key(), imports.Name(p.Name)); err != nil {
			return err
		}
	}
	return nil
}

func (s *source) scanChat(user string, m *messageRow) error {
	if m.skipped() != "" || m.Chat == "" {
		return nil
	}
	c := s.chats[m.Chat]
	if c == nil {
		if len(s.chats) == maxChats {
			return fmt.Errorf("more than %d chats", maxChats)
		}
		c = &chat{}
		s.chats[m.Chat] = c
	}
	if n := len(c.people); n == 0 || c.people[n-1] != user {
		c.people = append(c.people, user) // the messages of one user are in one file
	}
	return s.addPeople(m)
}

// partners returns both people of a chat of two, whose id names them; nil: it is another one.
func partners(chat string) []string {
	ids, ok := strings.CutSuffix(strings.TrimPrefix(chat, "19:"), "@unq.gbl.spaces")
	a, b, two := strings.Cut(ids, "_")
	if !ok || !two || a == "" || b == "" {
		return nil
	}
	return []string{a, b}
}

// add notes that a post has replies.
func (p *posts) add(key postKey) {
	if _, ok := p.titles[key]; !ok {
		if p.full = p.full || len(p.titles) == maxPosts; !p.full {
			p.titles[key] = ""
		}
	}
}

// scanTitles finds the titles of the posts that have replies, and completes the people of chats of two.
func (s *source) scanTitles() error {
	for _, id := range slices.Sorted(maps.Keys(s.chats)) { // strangers are in the same order each time
		c := s.chats[id]
		for _, key := range partners(id) {
			if s.known[appKey(key)] {
				key = appKey(key)
			}
			if err := s.add(key, ""); err != nil {
				return err
			}
			c.people = append(c.people, key)
		}
	}
	if len(s.posts.titles) == 0 {
		return nil
	}
	for _, f := range s.files {
		if f.user != "" {
			continue
		}
		if err := imports.EachRow(s.archive, f.name, imports.Reading{}, func(m *messageRow, _ imports.Row) error {
			c, why := s.place(m)
			if why != "" || m.isReply() {
				return nil
			}
			key := keyOf(c.id, m.ID)
			if _, ok := s.posts.titles[key]; ok {
				s.posts.titles[key] = topicOf(c, m)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// topicOf returns the topic of a post: its subject, or its first words, after the name of the channel.
func topicOf(c *channel, m *messageRow) string {
	title := strings.Join(strings.Fields(m.Subject), " ")
	if title == "" {
		title = firstWords(m.html())
	}
	if title == "" {
		return c.name
	}
	if c.name != generalChannel && !c.own {
		title = shorten(c.name, maxPlace) + ": " + title
	}
	return shorten(title, maxTopic)
}

// shorten cuts a text at a limit in code points.
func shorten(s string, limit int) string {
	if cut := imports.FirstRunes(s, limit); cut == s {
		return s
	}
	return strings.TrimSpace(imports.FirstRunes(s, limit-1)) + "…"
}

// topic returns the topic of a message, and the thread that it belongs to.
func (r *reader) topic(c *channel, m *messageRow) (topic, thread string) {
	root := m.ID
	if m.isReply() {
		root = m.ReplyTo
	}
	key := keyOf(c.id, root)
	title, replied := r.posts.titles[key]
	switch {
	case !r.o.Threads:
		return c.name, ""
	case replied:
		if title == "" { // the post itself is missing
			title = c.name
		}
		return title, hex.EncodeToString(key[:])
	case m.isReply():
		why := fmt.Sprintf("more than %d threads: the message is in the topic of its channel", maxPosts)
		r.sink.Drop("threads", why, 1)
		return c.name, hex.EncodeToString(key[:])
	case strings.TrimSpace(m.Subject) != "":
		return topicOf(c, m), ""
	}
	return c.name, ""
}

// reading counts the bytes that are read. scan has counted the bad values.
func (r *reader) reading() imports.Reading {
	return imports.Reading{Seen: func(n int) {
		r.read += int64(n)
		r.sink.Size(r.read, r.size)
	}}
}

// putMessages passes the messages of channels to the sink.
func (r *reader) putMessages() error {
	for _, f := range r.files {
		if f.user != "" {
			continue
		}
		if err := imports.EachRow(r.archive, f.name, r.reading(), func(m *messageRow, row imports.Row) error {
			c, why := r.place(m)
			if why != "" {
				r.drop(m, why, row.Place())
				return nil
			}
			out := r.message(m, c.id, row.Place())
			if out.Channel = c.team.id; c.own {
				out.Channel = c.id
			}
			out.Topic, out.Thread = r.topic(c, m)
			return r.sink.Put(out)
		}); err != nil {
			return err
		}
	}
	return nil
}

// putChats passes the messages of chats to the sink. Each member of a chat has a file with them: they are sorted on
// disk, so that each one is passed once.
func (r *reader) putChats() error {
	sorted := r.o.Sorter()
	defer sorted.Close()
	for _, f := range r.files {
		if f.user == "" {
			continue
		}
		if err := imports.EachRow(r.archive, f.name, r.reading(), func(m *messageRow, row imports.Row) error {
			id := m.ID
			if id == "" { // it has no copies that can be found
				id = row.Place()
			}
			return sorted.Add([]byte(m.Chat+"\x00"+id), append([]byte(row.Place()+"\x00"), row.Raw...))
		}); err != nil {
			return err
		}
	}
	var last []byte
	return sorted.Sorted(func(key, item []byte) error {
		if bytes.Equal(key, last) {
			return nil
		}
		last = append(last[:0], key...)
		place, raw, _ := bytes.Cut(item, []byte{0})
		m := &messageRow{}
		imports.DecodeRow(raw, m, func(_, _ string) {})
		c := r.chats[m.Chat]
		why := m.skipped()
		if why == "" && c == nil {
			why = "the chat is missing"
		}
		if why != "" {
			r.drop(m, why, string(place))
			return nil
		}
		out := r.message(m, m.Chat, string(place))
		out.People = c.people
		return r.sink.Put(out)
	})
}

// drop counts a message that is left out, with its reactions and attachments.
func (r *reader) drop(m *messageRow, why, place string) {
	r.sink.DropAt("messages", why, place)
	for kind, n := range map[string]int{"reactions": len(m.Reactions), "attachments": len(m.Attachments)} {
		if n > 0 {
			r.sink.Drop(kind, "their message is left out", n)
		}
	}
}

// message returns the record of a message without its place.
func (r *reader) message(m *messageRow, in, place string) *imports.Message {
	sent := m.sent()
	out := &imports.Message{Key: in + "/" + m.ID, Place: place, Order: sent, At: sent / 1000, Sender: m.From.key(),
		Edited: max(millis(m.Edited), 0) / 1000}
	if m.ID == "" {
		out.Key = place
	}
	c := &converter{reader: r, message: m, out: out}
	out.Text = c.convert(m.html(), 0)
	for i := range m.Reactions {
		x := &m.Reactions[i]
		out.Reactions = append(out.Reactions, imports.Reaction{User: x.User.key(), Name: reactionName(x.Type)})
	}
	return out
}

// oldReactions are the emoji of the reactions that had names before Teams had all emoji.
var oldReactions = map[string]string{"like": "👍", "heart": "❤", "laugh": "😆", "surprised": "😮", "sad": "🙁",
	"angry": "😠"}

// reactionName returns the characters of the emoji of a reaction, or its name.
func reactionName(kind string) string {
	if characters := oldReactions[kind]; characters != "" {
		return characters
	}
	return kind
}
