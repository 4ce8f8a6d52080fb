package rocketchat

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"parley/wire/imports"
)

const product = "Rocket.Chat"

// Types of rooms and of users.
const (
	publicRoom  = "c"
	privateRoom = "p"
	directRoom  = "d"
	liveChat    = "l"
	voiceCall   = "v"

	person = "user"
	bot    = "bot"
)

// source is the organization of a dump.
type source struct {
	archive  fs.FS
	o        imports.Options
	folder   string // of the collections
	created  int64  // Unix seconds
	users    []user
	rooms    []*room
	emoji    []emojiRow
	roomByID map[string]*room
	keys     map[string]string // ids of users by their names
	known    map[string]bool   // ids of users, those of strangers included
	// strangers are the senders and partners that the dump has no accounts of, by id, with their names.
	strangers []user
	repeated  map[string]bool // ids that several messages have
	uploads   *storedFiles
	pictures  *storedFiles // of emoji
	faults    imports.Faults
	in        imports.Reading        // adds to faults
	copies    map[string]io.ReaderAt // of files that cannot be read at any position
	badRooms  int                    // rooms without an id
}

type user struct {
	id, username, name, email, kind string
	roles, rooms                    []string
	created                         int64 // Unix seconds
	active                          bool
}

type room struct {
	id, kind, name, title, description, parent, team, creator string
	people                                                    []string // ids of users of a direct room
	created                                                   int64    // Unix seconds
	main, readOnly, archived, standard                        bool
	members                                                   int
	place                                                     *room // where its messages go; see findPlaces
	why                                                       string
}

type emojiRow struct{ name, file string }

// Open returns the organization of a dump. It reads everything but the texts of messages.
func Open(archive fs.FS, o imports.Options) ([]imports.Source, error) {
	s := &source{archive: archive, o: o, roomByID: map[string]*room{}, keys: map[string]string{},
		known: map[string]bool{}, repeated: map[string]bool{}, copies: map[string]io.ReaderAt{}}
	s.in.Bad = s.faults.Add
	for _, step := range []func() error{s.find, s.readUsers, s.readRooms, s.readEmoji, s.readFiles, s.scanMessages} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return []imports.Source{s}, nil
}

func (s *source) Suffix() string { return "" }

// collection returns the path of the file of a collection.
func (s *source) collection(name string) string { return path.Join(s.folder, name+".bson") }

// find finds the folder of the collections: the dump itself, or the folder of the database in it.
func (s *source) find() error {
	for _, file := range []string{"users.bson", messageCollection + ".bson"} {
		for _, folder := range []string{"", "*/", "*/*/", "*/*/*/"} {
			for _, ending := range []string{"", ".gz"} {
				found, err := fs.Glob(s.archive, folder+file+ending)
				if err != nil {
					return err
				}
				if len(found) > 1 {
					return fmt.Errorf("the dump has %d databases with a file %s: give the folder of one", len(found),
						file)
				}
				if len(found) == 1 {
					s.folder = path.Dir(found[0])
					return s.readInstances()
				}
			}
		}
	}
	return errors.New("this is not a Rocket.Chat dump: it has no users.bson")
}

// readInstances reads the date of the organization.
func (s *source) readInstances() error {
	return s.eachDocument("instances", s.in, func(d bson.Raw, at position) error {
		if at := millis(d.Lookup("_createdAt")) / 1000; at > 0 && (s.created == 0 || at < s.created) {
			s.created = at
		}
		return nil
	})
}

// readUsers reads the accounts. Password hashes and tokens, which the documents have too, are never looked at.
func (s *source) readUsers() error {
	return s.eachDocument("users", s.in, func(d bson.Raw, at position) error {
		u := user{id: text(d.Lookup("_id")), username: text(d.Lookup("username")), name: text(d.Lookup("name")),
			kind: text(d.Lookup("type")), roles: texts(d.Lookup("roles")), rooms: texts(d.Lookup("__rooms")),
			created: millis(d.Lookup("createdAt")) / 1000, active: true}
		if u.id == "" {
			s.faults.Add("users", "the id is missing", at.String())
			return nil
		}
		if active, ok := d.Lookup("active").BooleanOK(); ok {
			u.active = active
		}
		for _, x := range list(d.Lookup("emails")) {
			if u.email = text(document(x).Lookup("address")); u.email != "" {
				break
			}
		}
		s.users = append(s.users, u)
		s.known[u.id] = true
		if _, twice := s.keys[u.username]; !twice && u.username != "" {
			s.keys[u.username] = u.id
		}
		return nil
	})
}

func (s *source) readRooms() error {
	err := s.eachDocument("rocketchat_room", s.in, func(d bson.Raw, at position) error {
		r := &room{id: text(d.Lookup("_id")), kind: text(d.Lookup("t")), name: text(d.Lookup("name")),
			title: text(d.Lookup("fname")), description: text(d.Lookup("description")), parent: text(d.Lookup("prid")),
			team: text(d.Lookup("teamId")), main: flag(d.Lookup("teamMain")), readOnly: flag(d.Lookup("ro")),
			archived: flag(d.Lookup("archived")), standard: flag(d.Lookup("default")),
			created: millis(d.Lookup("ts")) / 1000, creator: text(document(d.Lookup("u")).Lookup("_id")),
			people: texts(d.Lookup("uids"))}
		switch {
		case r.id == "":
			s.badRooms++
			s.faults.Add("rooms", "the id is missing", at.String())
			return nil
		case s.roomByID[r.id] != nil:
			s.faults.Add("rooms", "a second one with the same id", at.String())
			return nil
		}
		if r.kind == "" { // nothing says that others may read it
			if r.kind = privateRoom; len(r.people) > 0 {
				r.kind = directRoom
			}
			s.faults.Add("values", "the type is missing: the room is private", at.String()+", t")
		}
		if len(r.people) == 0 { // dumps of older servers
			for _, name := range texts(d.Lookup("usernames")) {
				if id := s.keys[name]; id != "" {
					r.people = append(r.people, id)
				}
			}
		}
		s.rooms, s.roomByID[r.id] = append(s.rooms, r), r
		return nil
	})
	if err != nil {
		return err
	}
	for i := range s.users {
		for _, id := range s.users[i].rooms {
			if s.roomByID[id] == nil && s.badRooms > 0 {
				s.badRooms--
				r := &room{id: id, kind: privateRoom, name: id}
				s.rooms, s.roomByID[id] = append(s.rooms, r), r
				s.faults.Add("rooms", "the document is missing: the room is a private channel", id)
			}
			if r := s.roomByID[id]; r != nil {
				r.members++
			}
		}
	}
	s.findPlaces()
	return nil
}

// findPlaces finds the channel or the direct conversation that the messages of each room go to: the room itself, or for
// a discussion the room that it was begun in.
func (s *source) findPlaces() {
	for _, r := range s.rooms {
		at := r
		for steps := 0; at != nil && at.parent != "" && steps <= len(s.rooms); steps++ {
			at = s.roomByID[at.parent]
		}
		switch {
		case at == nil || at.parent != "":
			r.why = "the parent of the discussion is missing"
		case at.kind == publicRoom || at.kind == privateRoom:
			r.place = at
		case at.kind == directRoom && len(at.people) == 0:
			r.why = "the members of the conversation are missing"
		case at.kind == directRoom:
			r.place = at
		case at.kind == liveChat || at.kind == voiceCall:
			r.why = "live chats and calls are not imported"
		default:
			r.why = "unknown type of room"
		}
	}
}

// readEmoji reads the custom emoji. Each alias is an emoji of its own, with the same picture.
func (s *source) readEmoji() error {
	return s.eachDocument("rocketchat_custom_emoji", s.in, func(d bson.Raw, at position) error {
		name := text(d.Lookup("name"))
		file := name + "." + text(d.Lookup("extension"))
		for _, n := range append([]string{name}, texts(d.Lookup("aliases"))...) {
			s.emoji = append(s.emoji, emojiRow{n, file})
		}
		return nil
	})
}

// Read passes all records to the sink.
func (s *source) Read(sink imports.Sink) error {
	r := &reader{source: s, sink: sink, seen: map[string]bool{}, threads: map[string]int{}}
	s.faults.Report(sink)
	for _, step := range []func() error{r.putOrganization, r.putUsers, r.putChannels, r.putMessages} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// reader is the state of one Read.
type reader struct {
	*source
	sink     imports.Sink
	mentions *imports.Mentions
	read     int64
	seen     map[string]bool // ids of source.repeated so far
	threads  map[string]int  // numbers of threads, by the id of the first message
}

func (r *reader) putOrganization() error {
	if err := r.sink.Put(&imports.Organization{Description: "Organization imported from " + product + "!",
		Product: product, Created: r.created}); err != nil {
		return err
	}
	used := map[string]bool{}
	for _, e := range r.emoji {
		if used[e.name] {
			r.sink.Drop("emoji", "a second one with the same name", 1)
			continue
		}
		used[e.name] = true
		if err := r.sink.Put(&imports.Emoji{Key: e.name, Name: e.name,
			Image: imports.File{Path: pictureFolder + e.file, Name: e.file}}); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) putUsers() error {
	admin := ""
	for i := range r.source.users {
		if u := &r.source.users[i]; admin == "" && u.has("admin") && !u.isBot() {
			admin = u.id
		}
	}
	var users []imports.User
	for i := range r.source.users {
		users = append(users, r.account(&r.source.users[i], admin))
	}
	for i := range r.strangers {
		u := &r.strangers[i]
		users = append(users, imports.User{Key: u.id, Name: u.name, Role: imports.Member, Stub: true})
	}
	r.mentions = imports.NewMentions(users)
	for i := range users {
		if err := r.sink.Put(&users[i]); err != nil {
			return err
		}
	}
	return nil
}

func (u *user) has(role string) bool {
	for _, x := range u.roles {
		if x == role {
			return true
		}
	}
	return false
}

func (u *user) isBot() bool { return u.kind == bot || u.has("bot") }

// account returns the account of a user. The first administrator owns the bots.
func (r *reader) account(u *user, admin string) imports.User {
	a := imports.User{Key: u.id, Name: u.name, Email: u.email, Role: imports.Member, Joined: u.created,
		Active: u.active && u.kind == person, Stub: !u.isBot() && u.kind != person}
	if a.Name == "" {
		a.Name = u.username
	}
	if a.Email == "" && u.username != "" && strings.Contains(r.o.Host, ".") {
		a.Email = u.username + "-" + u.kind + "@" + r.o.Host
	}
	switch {
	case u.isBot():
		a.Bot, a.BotOwner = 1, admin // a generic bot
	case u.has("admin"):
		a.Role = imports.Owner
	case u.has("guest"):
		a.Role = imports.Guest
	}
	return a
}

func (r *reader) putChannels() error {
	teams := map[string]string{}
	for _, x := range r.rooms {
		if x.main {
			teams[x.team] = x.name
		}
	}
	for _, x := range r.rooms {
		switch {
		case x.place == nil:
			r.sink.Drop("rooms", x.why, 1)
			continue
		case x.place != x || x.kind == directRoom:
			continue
		}
		c := &imports.Channel{Key: x.id, Name: x.channelName(), Description: x.description, Created: x.created,
			Creator: x.creator, Private: x.kind == privateRoom, History: x.kind == publicRoom,
			Archived: x.archived || x.members == 0, Default: x.standard}
		if team, ok := teams[x.team]; ok && x.team != "" && !x.main {
			c.Description = strings.TrimSpace("[Team " + team + " channel]. " + c.Description)
		}
		c.Description = strings.ReplaceAll(c.Description, "\n", " ")
		if x.readOnly {
			c.Settings = map[string]imports.GroupValue{"can_send_message_group": {Group: "role:moderators"}}
		}
		if err := r.sink.Put(c); err != nil {
			return err
		}
	}
	for i := range r.source.users {
		u := &r.source.users[i]
		for _, id := range u.rooms {
			x := r.roomByID[id]
			if x == nil || x.place != x || x.kind == directRoom {
				continue // discussions have the subscribers of their channel
			}
			if err := r.sink.Put(&imports.Subscription{User: u.id, Channel: id, Active: true}); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxChannelName limits the names of channels and the topics made from names, in code points (protocol).
const maxChannelName = 60

// cut shortens a name. The id of its room keeps it different from others.
func cut(name, id string) string {
	if imports.FirstRunes(name, maxChannelName) == name {
		return name
	}
	id = " [" + id + "]"
	return imports.FirstRunes(name, max(maxChannelName-len([]rune(id)), 0)) + id
}

func (x *room) channelName() string {
	name := x.name
	if name == "" {
		name = x.title
	}
	if x.main {
		name = "[TEAM] " + name
	}
	return cut(name, x.id)
}

// topic returns the topic of a discussion.
func (x *room) topic() string {
	title := x.title
	if title == "" {
		title = x.name
	}
	return cut(title+" (Imported from Rocket.Chat)", x.id)
}
