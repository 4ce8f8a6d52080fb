package mattermost

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
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
	senders  map[string]*names          // in each team; "": in direct messages
	faults   map[string]*imports.Faults // of the messages of each team; "": of all other lines
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
	e := &export{archive: archive, o: o, senders: map[string]*names{}, faults: map[string]*imports.Faults{}}
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
	for team, faults := range s.faults {
		if team == "" || s.teamOf(team) == s.team.Name || !s.hasTeam(team) {
			faults.Report(sink)
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
			if r.teamOf(t.Name) == r.team.Name && !known[fold(u.Username)] {
				known[fold(u.Username)] = true
				r.users = append(r.users, userOf(u, t.Roles))
			}
		}
	}
	senders := append([]string{}, r.sendersOf(r.team.Name).list...)
	if len(r.teams) == 1 {
		for _, team := range slices.Sorted(maps.Keys(r.senders)) {
			if team != r.team.Name {
				senders = append(senders, r.senders[team].list...)
			}
		}
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
			if r.teamOf(t.Name) != r.team.Name {
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

// eachPost passes the messages of the team to fn, with the topics of their threads. other gets the messages of teams
// that the export does not have; it may be nil.
func (r *reader) eachPost(fn func(p *postRow, topic, place string) error, other func(p *postRow, place string)) error {
	r.threads = map[int64]int{}
	in := imports.Reading{Seen: r.count} // readHead has counted the bad values
	return imports.EachLine(r.archive, r.file, in, func(l *line, row imports.Row) error {
		switch {
		case l.Post != nil && r.teamOf(l.Post.Team) == r.team.Name:
			return fn(l.Post, r.topic(l.Post), row.Place())
		case l.Post != nil && other != nil && !r.hasTeam(l.Post.Team):
			other(l.Post, row.Place())
		case l.DirectPost != nil:
			return fn(l.DirectPost, "", row.Place())
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
	if len(p.Replies) == 0 && len(p.Followers) == 0 || !p.timed() {
		return "imported from mattermost"
	}
	day := p.CreateAt / dayMillis
	r.threads[day]++
	return fmt.Sprintf("%s %s thread %d", time.UnixMilli(p.CreateAt).UTC().Format(time.DateOnly), product,
		r.threads[day])
}

// putFollowers makes the followers of a thread follow its topic.
func (r *reader) putFollowers() error {
	return r.eachPost(func(p *postRow, topic, _ string) error {
		if topic == "" || !p.timed() {
			return nil
		}
		for _, f := range p.Followers {
			if err := r.sink.Put(&imports.TopicPolicy{User: fold(f.User), Channel: p.Channel, Topic: topic, Policy: 3,
				Since: p.CreateAt / 1000}); err != nil {
				return err
			}
		}
		return nil
	}, nil)
}

// drop counts a message with its replies that is left out.
func (r *reader) drop(p *postRow, reason, place string) {
	r.sink.DropAt("messages", reason, place)
	if len(p.Reactions) > 0 {
		r.sink.Drop("reactions", "their message is left out", len(p.Reactions))
	}
	if len(p.Attachments) > 0 {
		r.sink.Drop("attachments", "their message is left out", len(p.Attachments))
	}
	for i := range p.Replies {
		r.drop(&p.Replies[i], reason, place+", replies["+strconv.Itoa(i)+"]")
	}
}

func (r *reader) putMessages() error {
	return r.eachPost(func(p *postRow, topic, place string) error {
		direct := topic == ""
		reason := ""
		switch {
		case direct && len(r.teams) != 1:
			reason = "direct messages: the export has more than one team"
		case !direct && !r.channels[p.Channel]:
			reason = "the channel is missing"
		case direct && len(p.Members) == 0:
			reason = "the members of the conversation are missing"
		}
		if reason != "" {
			r.drop(p, reason, place)
			return nil
		}
		thread := ""
		root := keyOf(p, "")
		if len(p.Replies) > 0 || len(p.Followers) > 0 {
			thread = root
		}
		if err := r.put(p, p, root, place, topic, thread); err != nil {
			return err
		}
		for i := range p.Replies {
			at := place + ", replies[" + strconv.Itoa(i) + "]"
			if err := r.put(&p.Replies[i], p, keyOf(&p.Replies[i], root), at, topic, thread); err != nil {
				return err
			}
		}
		return nil
	}, func(p *postRow, place string) { r.drop(p, "the team is missing", place) })
}

// timed reports whether the time of a message is possible.
func (p *postRow) timed() bool { return p.CreateAt > 0 && p.CreateAt < 1<<42 }

// keyOf returns the identity of a message: the place, the time and the text.
func keyOf(p *postRow, root string) string {
	h := fnv.New128a()
	for _, s := range append([]string{root, p.Channel, p.User, p.Message}, p.Members...) {
		fmt.Fprintf(h, "%d %s", len(s), s)
	}
	return fmt.Sprintf("%d %x", p.CreateAt, h.Sum(nil))
}

// put passes one message to the sink. root is the message itself, or the one that it replies to.
func (r *reader) put(p, root *postRow, key, place, topic, thread string) error {
	for _, a := range p.Attachments {
		if err := checkPath(a.Path); err != nil {
			return err
		}
	}
	if !p.timed() {
		alone := *p
		alone.Replies = nil // each of them has its own time
		r.drop(&alone, "the time is impossible", place)
		return nil
	}
	out := &imports.Message{Key: key, Place: place, Order: p.CreateAt, At: p.CreateAt / 1000, Sender: fold(p.User),
		Thread: thread, Text: mentionsIn(p.Message, r.mentions)}
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
		if a.Path == "" {
			r.sink.DropAt("attachments", "the path is missing", place)
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
