package slack

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"parley/wire/imports"
)

const (
	product = "Slack"
	// An archive may unpack to maxUnpacked bytes, or to maxExpansion times its own size if that is more.
	maxUnpacked  = 1 << 30
	maxExpansion = 10
	// longValue is the length from which on a value of a profile field needs a field of long text, in code points.
	longValue = 50
)

// canvas is a file of a conversation that has no messages.
const canvas = "canvas_in_the_conversation.json"

// Open returns the organization of an export.
func Open(archive fs.FS, o imports.Options) ([]imports.Source, error) {
	s := &source{archive: archive, o: o, days: map[string][]string{}}
	if err := fs.WalkDir(archive, ".", s.visit); err != nil {
		return nil, err
	}
	if o.Packed > 0 && s.size > maxUnpacked && s.size/maxExpansion > o.Packed {
		return nil, fmt.Errorf("the archive unpacks to %d bytes, more than %d times its size: refused", s.size,
			maxExpansion)
	}
	for _, name := range []string{"channels.json", "users.json"} {
		if _, err := fs.Stat(archive, name); err != nil {
			return nil, fmt.Errorf("this is not a Slack export: it has no %s", name)
		}
	}
	return []imports.Source{s}, nil
}

// source is the organization of an export.
type source struct {
	archive fs.FS
	o       imports.Options
	size    int64
	days    map[string][]string // files by directory
}

func (s *source) Suffix() string { return "" }

// visit refuses a path that Slack does not write, and records the size and the conversation of a file.
func (s *source) visit(name string, e fs.DirEntry, err error) error {
	if err != nil || name == "." {
		return err
	}
	depth := strings.Count(name, "/")
	if e.IsDir() && depth > 0 || !e.IsDir() && (depth > 1 || path.Ext(name) != ".json") {
		return fmt.Errorf("this is not a Slack export: it has %q", name)
	}
	if e.IsDir() {
		return nil
	}
	info, err := e.Info()
	if err != nil {
		return err
	}
	s.size += info.Size()
	if dir, file := path.Split(name); dir != "" && file != canvas {
		dir = strings.TrimSuffix(dir, "/")
		s.days[dir] = append(s.days[dir], name)
	}
	return nil
}

// Open opens a file of a message: from the directory of downloaded files, or from Slack.
func (s *source) Open(name string) (io.ReadCloser, error) {
	part := strings.SplitN(name, "\n", 3)
	if len(part) != 3 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	id, file, address := part[0], part[1], part[2]
	if s.o.FilesIn != nil {
		for _, name := range []string{id, id + path.Ext(file), id + "-" + file, id + "/" + file,
			"__uploads/" + id + "/" + file} {
			if !fs.ValidPath(name) {
				continue
			}
			if r, err := s.o.FilesIn(name); err == nil {
				return r, nil
			}
		}
	}
	if s.o.Fetch != nil && s.o.Token != "" {
		return s.o.Fetch(address, s.o.Token)
	}
	return nil, &fs.PathError{Op: "open", Path: id, Err: fs.ErrNotExist}
}

// conversation is a channel or a direct conversation.
type conversation struct {
	channelRow
	dir     string
	direct  bool
	private bool
}

// reader is the state of one Read.
type reader struct {
	*source
	sink          imports.Sink
	read          int64
	rows          []userRow
	users         []imports.User
	known         map[string]string // keys of users by id
	strangers     []string
	names         map[string]string // of strangers
	conversations []conversation
	fieldKeys     []string
	long          map[string]bool // profile fields with long values
	text          converter
	owner         string
	threads       imports.Sorter
}

// Read passes all records to the sink.
func (s *source) Read(sink imports.Sink) (err error) {
	r := &reader{source: s, sink: sink, known: map[string]string{}, names: map[string]string{}, long: map[string]bool{},
		threads: s.o.Sorter()}
	defer func() { err = errors.Join(err, r.threads.Close()) }()
	for _, step := range []func() error{r.readUsers, r.readConversations, r.findStrangers, r.putOrganization,
		r.putUsers,
		r.putChannels, r.putMessages, r.putThreads} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) count(n int) {
	r.read += int64(n)
	r.sink.Size(r.read, 2*r.size)
}

func (r *reader) readUsers() error {
	addresses := map[string]string{}
	err := imports.EachRow(r.archive, "users.json", r.count, func(u *userRow) error {
		if _, twice := r.known[u.ID]; twice || u.ID == "" {
			return fmt.Errorf("two users have the id %q", u.ID)
		}
		r.known[u.ID] = u.ID
		address := strings.ToLower(strings.TrimSpace(u.Profile.Email))
		if first := addresses[address]; first != "" {
			r.known[u.ID] = first
			r.sink.Drop("users", "another user has the same address: they became one user", 1)
			return nil
		}
		if address != "" {
			addresses[address] = u.ID
		}
		r.rows = append(r.rows, *u)
		return nil
	})
	slices.SortStableFunc(r.rows, func(a, b userRow) int { return rank(a) - rank(b) })
	return err
}

// rank sorts the primary owner before all others.
func rank(u userRow) int {
	if u.Primary {
		return 0
	}
	return 1
}

func (r *reader) readConversations() error {
	dirs := map[string]bool{}
	for _, file := range []string{"channels.json", "groups.json", "mpims.json", "dms.json"} {
		if _, err := fs.Stat(r.archive, file); err != nil {
			continue // exports of the free plan have only the public channels
		}
		err := imports.EachRow(r.archive, file, r.count, func(c *channelRow) error {
			v := conversation{channelRow: *c, dir: c.Name, direct: file == "mpims.json" || file == "dms.json",
				private: file == "groups.json"}
			if file == "dms.json" {
				v.dir = c.ID
			}
			if dirs[v.dir] || v.dir == "" {
				return fmt.Errorf("two conversations have the name %q", v.dir)
			}
			dirs[v.dir] = true
			r.conversations = append(r.conversations, v)
			return nil
		})
		if err != nil {
			return err
		}
	}
	for dir, files := range r.days {
		if !dirs[dir] {
			r.sink.Drop("files", "its conversation is not in the export", len(files))
		}
	}
	return nil
}

// findStrangers finds the members and senders that users.json does not have: users of other workspaces.
func (r *reader) findStrangers() error {
	for _, c := range r.conversations {
		for _, id := range c.Members {
			r.stranger(id, "")
		}
		for _, file := range r.days[c.dir] {
			if err := imports.EachRow(r.archive, file, r.count, func(m *messageRow) error {
				if m.skipped() == "" {
					name := ""
					if m.Profile != nil && m.sender() == m.User {
						name = cmp.Or(m.Profile.Real, m.Profile.Name)
					}
					r.stranger(m.sender(), name)
				}
				return nil
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *reader) stranger(id, name string) {
	if r.known[id] == "" && id != "" {
		r.known[id] = id
		r.strangers = append(r.strangers, id)
		r.names[id] = ""
	}
	if old, stranger := r.names[id]; stranger && old == "" {
		r.names[id] = name
	}
}

// fieldNames are the fields of all profiles that become custom profile fields.
var fieldNames = []string{"phone", "skype"}

func (r *reader) putOrganization() error {
	seen := map[string]bool{}
	custom := 0
	o := &imports.Organization{Description: "Organization imported from " + product + "!", Product: product}
	for i := range r.rows {
		values := profile(&r.rows[i])
		for key, value := range values {
			if utf8.RuneCountInString(value) > longValue {
				r.long[key] = true
			}
			if !seen[key] && !slices.Contains(fieldNames, key) {
				r.fieldKeys = append(r.fieldKeys, key)
			}
			seen[key] = true
		}
	}
	slices.Sort(r.fieldKeys)
	for _, key := range slices.Concat(fieldNames, r.fieldKeys) {
		if !seen[key] {
			continue
		}
		f := imports.ProfileField{Key: key, Name: key, Type: 1, Editable: true}
		if !slices.Contains(fieldNames, key) {
			custom++
			f.Name = "Slack custom field " + strconv.Itoa(custom)
		}
		if r.long[key] {
			f.Type = 2
		}
		o.ProfileFields = append(o.ProfileFields, f)
	}
	return r.sink.Put(o)
}

// profile returns the values of the custom profile fields of a user.
func profile(u *userRow) map[string]string {
	out := map[string]string{}
	for key, f := range u.Profile.Fields {
		if f.Value != "" {
			out[key] = f.Value
		}
	}
	for key, value := range map[string]string{"phone": u.Profile.Phone, "skype": u.Profile.Skype} {
		if value != "" {
			out[key] = value
		}
	}
	return out
}

func (r *reader) putUsers() error {
	bots := map[string]int{}
	for i := range r.rows {
		r.users = append(r.users, r.user(&r.rows[i], bots))
	}
	for _, id := range r.strangers {
		r.users = append(r.users, imports.User{Key: id, Name: cmp.Or(r.names[id], id), Role: imports.Member,
			Stub: true})
	}
	r.text = converter{mentions: imports.NewMentions(r.users), user: func(id string) string { return r.known[id] },
		channels: map[string]string{}}
	for i := range r.users {
		if err := r.sink.Put(&r.users[i]); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) user(in *userRow, bots map[string]int) imports.User {
	u := imports.User{Key: in.ID, Name: in.Name, Email: in.Profile.Email, Role: imports.Member,
		Active: in.Deleted == nil || !*in.Deleted, Timezone: "America/New_York", Profile: profile(in)}
	if in.Deleted != nil && !*in.Deleted {
		u.Name = cmp.Or(in.Real, in.Name)
	}
	if strings.Contains(in.TZ, "/") {
		u.Timezone = in.TZ
	}
	switch {
	case in.Restricted || in.Ultra:
		u.Role = imports.Guest
	case in.Owner || in.Primary:
		u.Role = imports.Owner
	case in.Admin:
		u.Role = imports.Administrator
	}
	if in.Primary && r.owner == "" {
		r.owner = in.ID
	}
	if in.Bot || in.ID == "USLACKBOT" {
		u.Bot, u.BotOwner = 1, r.owner
		if u.Email == "" && strings.Contains(r.o.Host, ".") {
			u.Email = r.botAddress(in, bots)
		}
	}
	return u
}

// botAddress returns the address of a bot, which is made from its name.
func (r *reader) botAddress(in *userRow, bots map[string]int) string {
	name := cmp.Or(in.Profile.Normalized, in.Profile.First, in.Name, in.ID)
	name = strings.ReplaceAll(name, "Bot", "")
	name = strings.Map(func(c rune) rune {
		if c < 0x80 && imports.Word(byte(c)) || c == '-' || c == '_' {
			return c
		}
		return -1
	}, strings.ToLower(name))
	if in.ID == "USLACKBOT" {
		name = "imported-slackbot"
	}
	if bots[name]++; bots[name] > 1 {
		name += "-" + strconv.Itoa(bots[name])
	}
	return name + "-bot@" + r.o.Host
}

func (r *reader) putChannels() error {
	for _, c := range r.conversations {
		if c.direct {
			continue
		}
		r.text.channels[c.ID] = imports.FirstRunes(c.Name, 60)
	}
	for _, c := range r.conversations {
		if c.direct {
			continue
		}
		if err := r.sink.Put(&imports.Channel{Key: c.ID, Name: c.Name, Created: int64(c.Created), Private: c.private,
			Description: r.text.text(c.Purpose.Value), Creator: r.known[c.Creator], History: !c.private,
			Archived: c.Archived, Default: !c.Archived && (c.Name == "general" || c.Name == "random")}); err != nil {
			return err
		}
	}
	for _, c := range r.conversations {
		if c.direct {
			continue
		}
		for _, m := range c.Members {
			s := &imports.Subscription{User: r.known[m], Channel: c.ID, Active: true}
			if err := r.sink.Put(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// putMessages passes the messages outside of threads to the sink, and those of threads of channels to the sorter.
func (r *reader) putMessages() error {
	for i := range r.conversations {
		c := &r.conversations[i]
		for _, file := range r.days[c.dir] {
			if err := imports.EachRow(r.archive, file, r.count, func(raw *json.RawMessage) error {
				var m messageRow
				if err := json.Unmarshal(*raw, &m); err != nil {
					return err
				}
				if reason := m.skipped(); reason != "" {
					r.sink.Drop("messages", reason, 1)
					return nil
				}
				thread, ok := micros(m.ThreadTS)
				if c.direct || !r.o.Threads || !ok || m.ThreadTS == "" {
					return r.put(c, &m, "imported from "+product)
				}
				at, _ := micros(m.TS)
				key := binary.BigEndian.AppendUint64(nil, uint64(thread/1_000_000))
				key = binary.BigEndian.AppendUint64(key, uint64(at))
				return r.threads.Add(key, append(binary.AppendUvarint(nil, uint64(i)), *raw...))
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

const daySeconds = 24 * 60 * 60

// putThreads numbers the threads of each day by their first messages, and passes their messages to the sink.
func (r *reader) putThreads() (err error) {
	byDay := r.o.Sorter()
	defer func() { err = errors.Join(err, byDay.Close()) }()
	current, first := uint64(0), uint64(0)
	if err := r.threads.Sorted(func(key, item []byte) error {
		thread, at := binary.BigEndian.Uint64(key), binary.BigEndian.Uint64(key[8:])
		if thread != current || first == 0 {
			current, first = thread, at
		}
		k := binary.BigEndian.AppendUint64(nil, thread/daySeconds)
		k = binary.BigEndian.AppendUint64(k, first)
		return byDay.Add(binary.BigEndian.AppendUint64(k, thread), item)
	}); err != nil {
		return err
	}
	day, number := uint64(0), 0
	current = 0
	return byDay.Sorted(func(key, item []byte) error {
		d, thread := binary.BigEndian.Uint64(key), binary.BigEndian.Uint64(key[16:])
		if d != day {
			day, number, current = d, 0, 0
		}
		if thread != current || number == 0 {
			current = thread
			number++
		}
		i, n := binary.Uvarint(item)
		var m messageRow
		if err := json.Unmarshal(item[n:], &m); err != nil {
			return err
		}
		date := time.Unix(int64(thread), 0).UTC().Format(time.DateOnly)
		return r.put(&r.conversations[i], &m, fmt.Sprintf("%s %s thread %d", date, product, number))
	})
}

// put passes one message to the sink.
func (r *reader) put(c *conversation, m *messageRow, topic string) error {
	at, ok := micros(m.TS)
	if !ok {
		r.sink.Drop("messages", "the time is impossible", 1)
		return nil
	}
	out := &imports.Message{Key: c.ID + " " + m.TS, Order: at, At: at / 1_000_000, Sender: r.known[m.sender()],
		Text: r.text.text(*m.Text)}
	if m.ThreadTS != "" {
		out.Thread = c.ID + " " + m.ThreadTS
	}
	switch m.Subtype {
	case "me_message", "bot_add", "sh_room_created":
		out.Text = "/me " + out.Text
	}
	if !c.direct {
		out.Channel, out.Topic = c.ID, topic
	} else if len(c.Members) == 0 {
		r.sink.Drop("messages", "the members of the conversation are missing", 1)
		return nil
	}
	if c.direct {
		for _, id := range c.Members {
			out.People = append(out.People, r.known[id])
		}
	}
	for _, e := range m.Reactions {
		name, _, _ := strings.Cut(e.Name, "::")
		for _, id := range e.Users {
			out.Reactions = append(out.Reactions, imports.Reaction{User: r.known[id], Name: name})
		}
	}
	r.files(m, out)
	return r.sink.Put(out)
}

// files adds the files of a message to its text.
func (r *reader) files(m *messageRow, out *imports.Message) {
	files := m.Files
	if len(files) == 0 && m.Subtype == "file_share" && m.File != nil {
		files = []fileRow{*m.File}
	}
	for _, f := range files {
		if f.Mode == "tombstone" || f.Mode == "hidden_by_limit" || f.Access == "access_denied" ||
			f.Access == "file_not_found" || f.URL == "" {
			r.sink.Drop("attachments", "the file was deleted or is hidden", 1)
			continue
		}
		line := ""
		if u, err := url.Parse(f.URL); err == nil && u.Host == "files.slack.com" {
			u.RawQuery, u.Fragment = "", "" // the query has a secret
			address := imports.EscapeAddress(u.String())
			line = imports.Link(cmp.Or(f.Title, f.Name, f.ID), address)
			out.Files = append(out.Files, imports.File{Path: f.ID + "\n" + oneLine(f.Name) + "\n" + f.URL,
				Address: address,
				Name:    cmp.Or(f.Name, f.Title, f.ID), Type: f.Mimetype, Owner: r.known[f.User],
				Created: int64(f.Created),
				Size:    int64(f.Size)})
		} else {
			line = imports.Link(cmp.Or(f.Title, f.Name, f.URL), f.URL)
		}
		if out.Text != "" {
			out.Text += "\n"
		}
		out.Text += line
	}
}

func oneLine(s string) string { return strings.ReplaceAll(s, "\n", " ") }
