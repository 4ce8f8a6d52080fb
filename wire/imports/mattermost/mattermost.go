package mattermost

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"parley/wire/imports"
)

const product = "Mattermost"

// export is a bulk export, with everything but its messages.
type export struct {
	archive  fs.FS
	o        imports.Options
	file     string
	size     int64
	teams    []teamRow
	channels []channelRow
	users    []userRow
	bots     []botRow
	emoji    []emojiRow
	senders  map[string]*names // in each team; "": in direct messages
	unknown  map[string]int    // lines by types
}

// names is an ordered set of usernames.
type names struct {
	list []string
	has  map[string]bool
}

func (n *names) add(name string) {
	name = fold(name)
	if name != "" && !n.has[name] {
		n.has[name] = true
		n.list = append(n.list, name)
	}
}

// fold returns the key of a user.
func fold(name string) string { return strings.ToLower(name) }

// Open returns the organizations of an export, one for each team.
func Open(archive fs.FS, o imports.Options) ([]imports.Source, error) {
	e := &export{archive: archive, o: o, senders: map[string]*names{}, unknown: map[string]int{}}
	if err := e.find(); err != nil {
		return nil, err
	}
	if err := e.readHead(); err != nil {
		return nil, err
	}
	var sources []imports.Source
	var known []string
	for i := range e.teams {
		t := &e.teams[i]
		known = append(known, t.Name)
		switch o.Team {
		case "":
			sources = append(sources, &source{export: e, team: t, suffix: t.Name})
		case t.Name:
			sources = append(sources, &source{export: e, team: t})
		}
	}
	if len(sources) == 0 {
		return nil, fmt.Errorf("the export has no team %q; its teams: %s", o.Team, strings.Join(known, ", "))
	}
	return sources, nil
}

// find finds the file of lines.
func (e *export) find() error {
	e.file = e.o.Main
	if e.file == "" {
		var found []string
		for _, pattern := range []string{"import.jsonl", "*.jsonl", "export.json"} {
			if found, _ = fs.Glob(e.archive, pattern); len(found) > 0 {
				break
			}
		}
		if len(found) != 1 {
			return fmt.Errorf("a Mattermost export has one file import.jsonl or export.json, not %d", len(found))
		}
		e.file = found[0]
	}
	info, err := fs.Stat(e.archive, e.file)
	if err == nil {
		e.size = info.Size()
	}
	return err
}

// readHead reads everything but the messages, and the names of their senders.
func (e *export) readHead() error {
	first := true
	err := imports.EachValue(e.archive, e.file, nil, func(l *line) error {
		if first != (l.Type == "version") || first && l.Version != 1 {
			return errors.New("this is not a Mattermost export: exactly its first line is the version 1")
		}
		first = false
		switch {
		case l.Team != nil:
			e.teams = append(e.teams, *l.Team)
		case l.Channel != nil:
			e.channels = append(e.channels, *l.Channel)
		case l.User != nil:
			e.users = append(e.users, *l.User)
		case l.Bot != nil:
			e.bots = append(e.bots, *l.Bot)
		case l.Emoji != nil:
			e.emoji = append(e.emoji, *l.Emoji)
		case l.Post != nil:
			e.addSenders(l.Post.Team, l.Post)
		case l.DirectPost != nil:
			for _, name := range l.DirectPost.Members {
				e.sendersOf("").add(name)
			}
			e.addSenders("", l.DirectPost)
		case l.Type != "version" && l.DirectChannel == nil:
			e.unknown[l.Type]++
		}
		return nil
	})
	if err == nil && first {
		err = errors.New("this is not a Mattermost export: it is empty")
	}
	return err
}

func (e *export) sendersOf(team string) *names {
	if e.senders[team] == nil {
		e.senders[team] = &names{has: map[string]bool{}}
	}
	return e.senders[team]
}

func (e *export) addSenders(team string, p *postRow) {
	n := e.sendersOf(team)
	n.add(p.User)
	for i := range p.Replies {
		n.add(p.Replies[i].User)
	}
}

// source is one team.
type source struct {
	*export
	team   *teamRow
	suffix string
}

func (s *source) Suffix() string { return s.suffix }

// Open opens a file by its path in the export or in its folder data.
func (s *source) Open(name string) (io.ReadCloser, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	f, err := s.archive.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return s.archive.Open(path.Join("data", name))
	}
	return f, err
}

// reader is the state of one Read.
type reader struct {
	*source
	sink     imports.Sink
	read     int64
	users    []imports.User
	mentions *imports.Mentions
	channels map[string]bool
	threads  map[int64]int // of each day, so far
}

// Read passes all records to the sink.
func (s *source) Read(sink imports.Sink) error {
	r := &reader{source: s, sink: sink, channels: map[string]bool{}}
	for kind, n := range s.unknown {
		if kind != "scheme" && kind != "role" {
			sink.Drop("lines", "unknown type "+kind, n)
		}
	}
	for _, step := range []func() error{r.putOrganization, r.putUsers, r.putChannels, r.putFollowers, r.putMessages} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) putOrganization() error {
	if err := r.sink.Put(&imports.Organization{Name: r.team.DisplayName,
		Description: "Organization imported from " + product + "!", Product: product}); err != nil {
		return err
	}
	for _, e := range r.emoji {
		if err := checkPath(e.Image); err != nil {
			return err
		}
		if err := r.sink.Put(&imports.Emoji{Key: e.Name, Name: e.Name,
			Image: imports.File{Path: e.Image}}); err != nil {
			return err
		}
	}
	return nil
}

// checkPath refuses a path that leaves the export.
func checkPath(name string) error {
	if name != "" && !fs.ValidPath(name) {
		return fmt.Errorf("the path %q of a file leaves the export: refused", name)
	}
	return nil
}

// putUsers passes the members of the team to the sink, and the senders that are no members as placeholders.
func (r *reader) putUsers() error {
	known := map[string]bool{}
	for i := range r.export.users {
		u := &r.export.users[i]
		for _, t := range u.Teams {
			if t.Name == r.team.Name && !known[fold(u.Username)] {
				known[fold(u.Username)] = true
				r.users = append(r.users, userOf(u, t.Roles))
			}
		}
	}
	senders := append([]string{}, r.sendersOf(r.team.Name).list...)
	if len(r.teams) == 1 {
		senders = append(senders, r.sendersOf("").list...)
	}
	rows := map[string]*userRow{}
	for i := range r.export.users {
		rows[fold(r.export.users[i].Username)] = &r.export.users[i]
	}
	bots := map[string]*botRow{}
	for i := range r.bots {
		bots[fold(r.bots[i].Username)] = &r.bots[i]
	}
	for _, name := range senders {
		if known[name] {
			continue
		}
		known[name] = true
		u := imports.User{Key: name, Name: name, Role: imports.Member, Stub: true}
		if b := bots[name]; b != nil {
			u.Name, u.Stub, u.Bot, u.BotOwner, u.Active = b.DisplayName, false, 1, fold(b.Owner), b.DeleteAt == 0
		} else if row := rows[name]; row != nil {
			u = userOf(row, "")
			u.Active, u.Stub = false, true
		}
		if u.Name == "" {
			u.Name = name
		}
		r.users = append(r.users, u)
	}
	r.mentions = imports.NewMentions(r.users)
	for i := range r.users {
		if u := &r.users[i]; u.Avatar != nil {
			if err := checkPath(u.Avatar.Path); err != nil {
				return err
			}
		}
		if err := r.sink.Put(&r.users[i]); err != nil {
			return err
		}
	}
	return nil
}

// userOf returns the account of a user with roles in the team.
func userOf(in *userRow, roles string) imports.User {
	u := imports.User{Key: fold(in.Username), Email: in.Email, Role: imports.Member, Active: in.DeleteAt == 0,
		Timezone: "UTC", Name: strings.TrimSpace(in.FirstName + " " + in.LastName)}
	if u.Name == "" {
		u.Name = in.Username
	}
	for _, role := range strings.Fields(roles) {
		switch {
		case role == "team_admin":
			u.Role = imports.Owner
		case role == "team_guest" && u.Role != imports.Owner:
			u.Role = imports.Guest
		}
	}
	if in.Picture != "" {
		u.Avatar = &imports.File{Path: in.Picture}
	}
	return u
}

func (r *reader) putChannels() error {
	for _, c := range r.export.channels {
		if c.Team != r.team.Name {
			continue
		}
		r.channels[c.Name] = true
		out := &imports.Channel{Key: c.Name, Name: c.DisplayName, Description: c.Purpose, Private: c.Type == "P",
			History: c.Type != "P", Archived: c.DeletedAt > 0}
		if out.Name == "" {
			out.Name = c.Name
		}
		if out.Description == "" {
			out.Description = c.Header
		}
		if err := r.sink.Put(out); err != nil {
			return err
		}
	}
	for i := range r.export.users {
		u := &r.export.users[i]
		for _, t := range u.Teams {
			if t.Name != r.team.Name {
				continue
			}
			for _, c := range t.Channels {
				if err := r.sink.Put(&imports.Subscription{User: fold(u.Username), Channel: c.Name, Active: true,
					Pinned: c.Favorite}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// eachPost passes the messages of the team to fn, with the topics of their threads.
func (r *reader) eachPost(fn func(p *postRow, topic string) error) error {
	r.threads = map[int64]int{}
	return imports.EachValue(r.archive, r.file, r.count, func(l *line) error {
		switch {
		case l.Post != nil && l.Post.Team == r.team.Name:
			return fn(l.Post, r.topic(l.Post))
		case l.DirectPost != nil:
			return fn(l.DirectPost, "")
		}
		return nil
	})
}

func (r *reader) count(n int) {
	r.read += int64(n)
	r.sink.Size(r.read, 2*r.size)
}

const dayMillis = 24 * 60 * 60 * 1000

// topic returns the topic of a message and its replies. Threads are numbered by day, in their order in the file.
func (r *reader) topic(p *postRow) string {
	if len(p.Replies) == 0 && len(p.Followers) == 0 || p.CreateAt < 0 || p.CreateAt >= 1<<42 {
		return "imported from mattermost"
	}
	day := p.CreateAt / dayMillis
	r.threads[day]++
	return fmt.Sprintf("%s %s thread %d", time.UnixMilli(p.CreateAt).UTC().Format(time.DateOnly), product,
		r.threads[day])
}

// putFollowers makes the followers of a thread follow its topic.
func (r *reader) putFollowers() error {
	return r.eachPost(func(p *postRow, topic string) error {
		if topic == "" {
			return nil
		}
		for _, f := range p.Followers {
			if err := r.sink.Put(&imports.TopicPolicy{User: fold(f.User), Channel: p.Channel, Topic: topic, Policy: 3,
				Since: p.CreateAt / 1000}); err != nil {
				return err
			}
		}
		return nil
	})
}

func (r *reader) putMessages() error {
	return r.eachPost(func(p *postRow, topic string) error {
		direct := topic == ""
		switch {
		case direct && len(r.teams) != 1:
			r.sink.Drop("messages", "direct messages: the export has more than one team", 1+len(p.Replies))
			return nil
		case !direct && !r.channels[p.Channel]:
			r.sink.Drop("messages", "the channel is missing", 1+len(p.Replies))
			return nil
		case direct && len(p.Members) == 0:
			r.sink.Drop("messages", "the members of the conversation are missing", 1+len(p.Replies))
			return nil
		}
		thread := ""
		root := keyOf(p, "")
		if len(p.Replies) > 0 || len(p.Followers) > 0 {
			thread = root
		}
		if err := r.put(p, p, root, topic, thread); err != nil {
			return err
		}
		for i := range p.Replies {
			if err := r.put(&p.Replies[i], p, keyOf(&p.Replies[i], root), topic, thread); err != nil {
				return err
			}
		}
		return nil
	})
}

// keyOf returns the identity of a message: the place, the time and the text.
func keyOf(p *postRow, root string) string {
	h := fnv.New128a()
	for _, s := range append([]string{root, p.Channel, p.User, p.Message}, p.Members...) {
		fmt.Fprintf(h, "%d %s", len(s), s)
	}
	return fmt.Sprintf("%d %x", p.CreateAt, h.Sum(nil))
}

// put passes one message to the sink. root is the message itself, or the one that it replies to.
func (r *reader) put(p, root *postRow, key, topic, thread string) error {
	out := &imports.Message{Key: key, Order: p.CreateAt, At: p.CreateAt / 1000, Sender: fold(p.User), Thread: thread,
		Text: mentionsIn(p.Message, r.mentions)}
	if topic != "" {
		out.Channel, out.Topic = root.Channel, topic
	} else {
		for _, name := range root.Members {
			out.People = append(out.People, fold(name))
		}
	}
	for _, e := range p.Reactions {
		out.Reactions = append(out.Reactions, imports.Reaction{User: fold(e.User), Name: e.Name})
	}
	if p.Pinned {
		r.sink.Drop("pins", "pinned messages have no meaning", 1)
	}
	if len(p.FlaggedBy) > 0 {
		r.sink.Drop("saved messages", "saved messages are not imported", len(p.FlaggedBy))
	}
	for _, a := range p.Attachments {
		if err := checkPath(a.Path); err != nil {
			return err
		}
		if a.Path == "" {
			r.sink.Drop("attachments", "the path is missing", 1)
			continue
		}
		h := sha256.Sum256([]byte(a.Path))
		f := imports.File{Path: path.Join("data", a.Path), Name: path.Base(a.Path),
			Address: "/user_uploads/import/" + hex.EncodeToString(h[:16])}
		if out.Text != "" {
			out.Text += "\n"
		}
		out.Text += imports.Link(f.Name, f.Address)
		out.Files = append(out.Files, f)
	}
	return r.sink.Put(out)
}
