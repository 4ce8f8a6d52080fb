package teams

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"parley/wire/imports"
)

const product = "Microsoft Teams"

// Files of an export.
const (
	usersFile    = "users/usersList.json"
	teamsFile    = "teams/teamsList.json"
	settingsFile = "teams/teamsSettings.json"
)

const (
	// maxStrangers limits the people and apps without an account, which are in memory like users.
	maxStrangers = 1_000_000
	// maxChats limits the chats, whose members are in memory.
	maxChats = 1_000_000
	// maxOthers limits the files that are not imported and that the report names.
	maxOthers = 1000
)

// source is the organization of an export.
type source struct {
	archive        fs.FS
	o              imports.Options
	users          []userRow
	teams          []*team
	channels       map[string]*channel
	administrators map[string]bool
	guests         map[string]bool
	chats          map[string]*chat
	posts          *posts
	// strangers are the people and apps that the export has no accounts of.
	strangers []stranger
	known     map[string]bool // keys of users, those of strangers included
	files     []file          // of messages
	others    []string        // files that are not imported; at most maxOthers
	unnamed   int             // others beyond maxOthers
	size      int64           // of files, in bytes
	faults    imports.Faults
	in        imports.Reading // adds to faults
}

type stranger struct {
	key, name string
	app       bool
}

type team struct {
	id, name, description string
	private, archived     bool
	members               []string
	created               int64 // Unix seconds; 0: unknown
}

type channel struct {
	id, name string
	team     *team
	created  int64 // Unix seconds
	// own says that the channel has members of its own: it becomes a channel, and not a topic.
	own     bool
	why     string // why it is left out; "": it is not
	members []string
}

// chat is a direct conversation.
type chat struct {
	people []string // keys of those whose files have the chat, and of both partners of a chat of two
}

// file is a file of messages.
type file struct {
	name string
	user string // key of the user whose chats it has; "": it is of a team
}

// Open returns the organization of an export. It reads everything but the texts of messages.
func Open(archive fs.FS, o imports.Options) ([]imports.Source, error) {
	folder, ok := imports.FindFolder(archive, usersFile)
	if !ok {
		if folder, ok = imports.FindFolder(archive, teamsFile); !ok {
			return nil, fmt.Errorf("this is not a Microsoft Teams export: it has no %s", usersFile)
		}
	}
	archive, err := fs.Sub(archive, folder)
	if err != nil {
		return nil, err
	}
	s := &source{archive: archive, o: o, channels: map[string]*channel{}, administrators: map[string]bool{},
		guests: map[string]bool{}, chats: map[string]*chat{}, posts: newPosts(), known: map[string]bool{}}
	s.in.Bad = s.faults.Add
	for _, step := range []func() error{s.find, s.readUsers, s.readTeams, s.readChannels, s.scan, s.scanTitles} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	if len(s.users) == 0 && len(s.teams) == 0 {
		return nil, fmt.Errorf("this is not a Microsoft Teams export: %s and %s have no rows", usersFile, teamsFile)
	}
	return []imports.Source{s}, nil
}

func (s *source) Suffix() string { return "" }

// Open fetches a picture from Microsoft Graph. The export has no files.
func (s *source) Open(name string) (io.ReadCloser, error) {
	if !s.online() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return s.o.Fetch(name, s.o.Token)
}

// find finds the files of messages, and the files that are not imported.
func (s *source) find() error {
	return fs.WalkDir(s.archive, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		parts := strings.Split(name, "/")
		kind, id, _ := strings.Cut(strings.TrimSuffix(path.Base(name), ".json"), "_")
		switch {
		case slices.Contains([]string{usersFile, teamsFile, settingsFile}, name):
		case len(parts) != 3 || id != parts[1] || path.Ext(name) != ".json":
			s.leaveOut(name)
		case parts[0] == "teams" && (kind == "channels" || kind == "teamMembers"):
		case parts[0] == "teams" && kind == "messages":
			s.files = append(s.files, file{name: name})
		case parts[0] == "users" && kind == "messages":
			s.files = append(s.files, file{name: name, user: id})
		default:
			s.leaveOut(name)
		}
		return nil
	})
}

func (s *source) leaveOut(name string) {
	if len(s.others) == maxOthers {
		s.unnamed++
		return
	}
	s.others = append(s.others, name)
}

func (s *source) readUsers() error {
	err := eachRow(s, usersFile, func(u *userRow, row imports.Row) error {
		switch {
		case u.ID == "":
			s.faults.Add("users", "the id is missing", row.Place())
		case s.known[u.ID]:
			s.faults.Add("users", "a second one with the same id", row.Place())
		default:
			s.known[u.ID] = true
			s.users = append(s.users, *u)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.readRoles()
}

// eachRow reads a file. A file that is missing is counted.
func eachRow[T any](s *source, name string, fn func(*T, imports.Row) error) error {
	err := imports.EachRow(s.archive, name, s.in, fn)
	if errors.Is(err, fs.ErrNotExist) {
		s.faults.Add("files", "the file is missing", name)
		return nil
	}
	return err
}

// readTeams reads the teams. Who sees a team that has no settings is unknown: it is private.
func (s *source) readTeams() error {
	rows, settings := map[string]*teamRow{}, map[string]*settingsRow{}
	var order []string
	if err := eachRow(s, teamsFile, func(t *teamRow, row imports.Row) error {
		if t.ID != "" && rows[t.ID] == nil {
			rows[t.ID] = t
			order = append(order, t.ID)
			return nil
		}
		s.faults.Add("teams", "the id is missing, or a second one has it", row.Place())
		return nil
	}); err != nil {
		return err
	}
	if err := eachRow(s, settingsFile, func(t *settingsRow, row imports.Row) error {
		if t.ID == "" || settings[t.ID] != nil {
			s.faults.Add("teams", "the id is missing, or a second one has it", row.Place())
			return nil
		}
		settings[t.ID] = t
		if rows[t.ID] == nil {
			order = append(order, t.ID)
		}
		return nil
	}); err != nil {
		return err
	}
	folders, err := fs.ReadDir(s.archive, "teams")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	has := map[string]bool{}
	for _, e := range folders {
		if has[e.Name()] = e.IsDir(); e.IsDir() && rows[e.Name()] == nil && settings[e.Name()] == nil {
			order = append(order, e.Name())
		}
	}
	for _, id := range order {
		if settings[id] == nil && !has[id] {
			s.faults.Add("teams", "a group of the organization without a team", teamsFile+", "+id)
			continue
		}
		row, more := cmp.Or(rows[id], &teamRow{}), cmp.Or(settings[id], &settingsRow{})
		if err := s.addTeam(id, row, more, has[id]); err != nil {
			return err
		}
	}
	return nil
}

func (s *source) addTeam(id string, row *teamRow, settings *settingsRow, folder bool) error {
	t := &team{id: id, name: cmp.Or(row.Name, settings.Name, id), archived: settings.Archived,
		description: strings.Join(strings.Fields(row.Description), " "),
		private:     !strings.EqualFold(cmp.Or(settings.Visibility, row.Privacy), "public")}
	s.teams = append(s.teams, t)
	if !folder {
		return nil
	}
	seen := map[string]bool{}
	return eachRow(s, teamFile(id, "teamMembers"), func(m *memberRow, row imports.Row) error {
		if m.User == "" || seen[m.User] {
			s.faults.Add("members", "the id is missing, or a second one has it", row.Place())
			return nil
		}
		seen[m.User] = true
		t.members = append(t.members, m.User)
		return nil
	})
}

// teamFile returns the path of a file of a team.
func teamFile(id, kind string) string { return "teams/" + id + "/" + kind + "_" + id + ".json" }

func (s *source) readChannels() error {
	for _, t := range s.teams {
		name := teamFile(t.id, "channels")
		if _, err := fs.Stat(s.archive, path.Dir(name)); err != nil {
			continue
		}
		if err := eachRow(s, name, func(row *channelRow, at imports.Row) error {
			if row.ID == "" || s.channels[row.ID] != nil {
				s.faults.Add("channels", "the id is missing, or a second one has it", at.Place())
				return nil
			}
			c := &channel{id: row.ID, name: cmp.Or(row.Name, row.ID), team: t, created: millis(row.Created) / 1000,
				own: row.Membership != "standard"}
			if c.created > 0 && (t.created == 0 || c.created < t.created) {
				t.created = c.created
			}
			if row.Archived {
				s.faults.Add("values", "a topic is never archived: the value is left out", at.Place()+", IsArchived")
			}
			s.channels[c.id] = c
			return s.readOwn(c)
		}); err != nil {
			return err
		}
	}
	return nil
}

// readOwn reads the members of a channel that not all members of the team see. Without them, no user gets access to it.
func (s *source) readOwn(c *channel) error {
	if !c.own {
		return nil
	}
	ok, err := s.readMembers(c)
	if !ok {
		c.why = "the export has no members of private and shared channels: a token gets them"
	}
	return err
}

// add adds a person or an app without an account.
func (s *source) add(key, name string) error {
	if key == "" || s.known[key] {
		return nil
	}
	if len(s.strangers) == maxStrangers {
		return fmt.Errorf("more than %d people without accounts", maxStrangers)
	}
	s.known[key] = true
	s.strangers = append(s.strangers, stranger{key, cmp.Or(name, "Former user"), strings.HasPrefix(key, appKey(""))})
	return nil
}

// Read passes all records to the sink.
func (s *source) Read(sink imports.Sink) error {
	r := &reader{source: s, sink: sink}
	s.faults.Report(sink)
	for _, name := range s.others {
		sink.DropAt("files", "not imported", name)
	}
	if s.unnamed > 0 {
		sink.Drop("files", "not imported", s.unnamed)
	}
	for _, step := range []func() error{r.putOrganization, r.putUsers, r.putChannels, r.putMessages, r.putChats} {
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
}

func (r *reader) putOrganization() error {
	return r.sink.Put(&imports.Organization{Description: "Organization imported from " + product + "!",
		Product: product})
}

func (r *reader) putUsers() error {
	var users []imports.User
	owner := ""
	for i := range r.users {
		u := &r.users[i]
		a := imports.User{Key: u.ID, Name: u.Name, Email: u.email(), Role: imports.Member, Active: true}
		switch {
		case r.administrators[u.ID]:
			a.Role = imports.Owner
			owner = cmp.Or(owner, u.ID)
		case r.guests[u.ID], strings.Contains(u.Principal, guestMark):
			a.Role = imports.Guest
		}
		users = append(users, a)
	}
	for _, x := range r.strangers {
		a := imports.User{Key: x.key, Name: x.name, Role: imports.Member, Stub: true}
		if x.app {
			a.Stub, a.Bot, a.BotOwner = false, 1, owner // a generic bot
		}
		users = append(users, a)
	}
	r.mentions = imports.NewMentions(users)
	for i := range users {
		if err := r.sink.Put(&users[i]); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) putChannels() error {
	for _, t := range r.teams {
		if err := r.sink.Put(&imports.Channel{Key: t.id, Name: t.name, Description: t.description, Created: t.created,
			Private: t.private, History: !t.private, Archived: t.archived}); err != nil {
			return err
		}
	}
	own := slices.DeleteFunc(slices.Collect(maps.Values(r.channels)), func(c *channel) bool {
		return !c.own || c.why != ""
	})
	slices.SortFunc(own, func(a, b *channel) int { return cmp.Compare(a.id, b.id) })
	for _, c := range own {
		if err := r.sink.Put(&imports.Channel{Key: c.id, Name: c.team.name + " - " + c.name, Created: c.created,
			Private: true, Archived: c.team.archived}); err != nil {
			return err
		}
	}
	for _, t := range r.teams {
		if err := r.subscribe(t.id, t.members); err != nil {
			return err
		}
	}
	for _, c := range own {
		if err := r.subscribe(c.id, c.members); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) subscribe(channel string, people []string) error {
	for _, key := range people {
		if err := r.sink.Put(&imports.Subscription{User: key, Channel: channel, Active: true}); err != nil {
			return err
		}
	}
	return nil
}
