package slack

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

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

// leftOut are the files, in the folder of a conversation or of the whole export, whose objects have no counterpart,
// with their names in the report.
var leftOut = map[string]string{"canvas_in_the_conversation.json": "canvases", "canvases.json": "canvases",
	"lists.json": "lists", "bookmarks.json": "bookmarks"}

// Open returns the organization of an export.
func Open(archive fs.FS, o imports.Options) ([]imports.Source, error) {
	const channels, users = "channels.json", "users.json"
	folder, ok := imports.FindFolder(archive, channels)
	if !ok {
		if folder, ok = imports.FindFolder(archive, users); !ok {
			return nil, fmt.Errorf("this is not a Slack export: it has no %s", channels)
		}
	}
	archive, err := fs.Sub(archive, folder)
	if err != nil {
		return nil, err
	}
	s := &source{archive: archive, o: o, days: map[string][]string{},
		files: localFiles{byPath: map[string]bool{}, byID: map[string]string{}}}
	if err := fs.WalkDir(archive, ".", s.visit); err != nil {
		return nil, err
	}
	if o.Packed > 0 && s.size > maxUnpacked && s.size/maxExpansion > o.Packed {
		return nil, fmt.Errorf("the archive unpacks to %d bytes, more than %d times its size: refused", s.size,
			maxExpansion)
	}
	readable := 0
	for _, name := range []string{channels, users} {
		if err := imports.EachRow(archive, name, imports.Reading{}, func(*struct{}, imports.Row) error {
			readable++
			return nil
		}); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	if readable == 0 {
		return nil, fmt.Errorf("this is not a Slack export: %s and %s have no rows", channels, users)
	}
	return []imports.Source{s}, nil
}

// source is the organization of an export.
type source struct {
	archive fs.FS
	o       imports.Options
	size    int64
	days    map[string][]string // files by directory
	files   localFiles
	dropped []string // files of leftOut; at most maxOthers
	others  []string // files that are no part of an export; at most maxOthers
	unnamed int      // others beyond maxOthers
}

// maxOthers limits the files that are no part of an export and that the report names.
const maxOthers = 1000

func (s *source) Suffix() string { return "" }

// visit records the size and the conversation of a file.
func (s *source) visit(name string, e fs.DirEntry, err error) error {
	if err != nil || name == "." || e.IsDir() {
		return err
	}
	info, err := e.Info()
	if err != nil {
		return err
	}
	depth := strings.Count(name, "/")
	switch dir, file := path.Split(name); {
	case s.files.add(name):
		return nil
	case depth > 1 || path.Ext(name) != ".json":
		if len(s.others) == maxOthers {
			s.unnamed++
		} else {
			s.others = append(s.others, name)
		}
		return nil
	case leftOut[file] != "":
		if len(s.dropped) < maxOthers {
			s.dropped = append(s.dropped, name)
		}
	case dir != "":
		dir = strings.TrimSuffix(dir, "/")
		s.days[dir] = append(s.days[dir], name)
	}
	s.size += info.Size()
	return nil
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
	in            imports.Reading // counts bad values
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
	r.in = imports.Reading{Seen: r.count, Bad: sink.DropAt}
	defer func() { err = errors.Join(err, r.threads.Close()) }()
	for _, step := range []func() error{r.readUsers, r.readConversations, r.findStrangers, r.putOrganization,
		r.putUsers, r.reportLeftOut,
		r.putChannels, r.putMessages, r.putThreads} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// reportLeftOut counts the canvases, lists and bookmarks, which are not imported.
func (r *reader) reportLeftOut() error {
	for _, name := range r.dropped {
		kind := leftOut[path.Base(name)]
		err := imports.EachRow(r.archive, name, r.in, func(_ *struct{}, row imports.Row) error {
			r.sink.DropAt(kind, "they have no counterpart", row.Place())
			return nil
		})
		if err != nil {
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
	err := imports.EachRow(r.archive, "users.json", r.in, func(u *userRow, row imports.Row) error {
		if _, twice := r.known[u.ID]; twice || u.ID == "" {
			r.sink.DropAt("users", "no id, or the id of another user", row.Place())
			return nil
		}
		r.known[u.ID] = u.ID
		address := strings.ToLower(strings.TrimSpace(u.Profile.Email))
		if first := addresses[address]; first != "" {
			r.known[u.ID] = first
			r.sink.DropAt("users", "another user has the same address: they became one user", row.Place())
			return nil
		}
		if address != "" {
			addresses[address] = u.ID
		}
		r.rows = append(r.rows, *u)
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		r.sink.DropAt("files", "missing: all users are placeholders", "users.json")
		err = nil
	}
	slices.SortStableFunc(r.rows, func(a, b userRow) int { return rank(a) - rank(b) })
	for _, name := range r.others {
		r.sink.DropAt("files", "not a part of an export of Slack", name)
	}
	if r.unnamed > 0 {
		r.sink.Drop("files", "not a part of an export of Slack", r.unnamed)
	}
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
	c := conversationReader{reader: r, folders: map[string]string{}, byFolder: map[string]int{}, ids: map[string]bool{}}
	for dir := range r.days {
		c.folders[norm.NFC.String(dir)] = dir
	}
	for _, file := range []string{"channels.json", "groups.json", "mpims.json", "dms.json"} {
		err := imports.EachRow(r.archive, file, r.rowsOf(&c), func(v *channelRow, row imports.Row) error {
			c.add(v, file, row.Place())
			return nil
		})
		if errors.Is(err, fs.ErrNotExist) {
			continue // exports of the free plan have only the public channels
		}
		if err != nil {
			return err
		}
	}
	return c.recover()
}

// rowsOf returns the functions for reading the rows of conversations. A row that is no object counts as one without a
// name.
func (r *reader) rowsOf(c *conversationReader) imports.Reading {
	return imports.Reading{Seen: r.count, Bad: func(kind, reason, place string) {
		if kind != "values" {
			c.faults++
		}
		r.sink.DropAt(kind, reason, place)
	}}
}

// conversationReader reads the rows of conversations.
type conversationReader struct {
	*reader
	folders  map[string]string // by their names in normal form
	byFolder map[string]int    // places in reader.conversations
	ids      map[string]bool
	nameless []conversation
	faults   int // rows that cannot be read
}

func (c *conversationReader) add(row *channelRow, file, place string) {
	v := conversation{channelRow: *row, dir: row.Name, direct: file == "mpims.json" || file == "dms.json",
		private: file == "groups.json"}
	if file == "dms.json" {
		v.dir = row.ID
	}
	if v.ID == "" {
		v.ID = cmp.Or(v.dir, place)
	}
	v.Members = slices.DeleteFunc(v.Members, func(id string) bool { return id == "" })
	if dir := c.folders[norm.NFC.String(v.dir)]; dir != "" {
		v.dir = dir
	}
	if v.direct && len(v.Members) == 0 && v.dir != "" {
		if v.Members = c.writers(v.dir); len(v.Members) > 0 {
			c.sink.DropAt("values", "the members are missing: those who wrote are the members", place)
		}
	}
	first, twice := c.byFolder[v.dir]
	switch {
	case v.dir == "":
		c.nameless = append(c.nameless, v)
		return
	case twice:
		c.sink.DropAt("channels", "two conversations have the same name: they became one", place)
		// The folder may have the messages of both: they are private if one of the two is.
		c.conversations[first].private = c.conversations[first].private || v.private || v.direct
		return
	case c.ids[v.ID]:
		c.sink.DropAt("channels", "two conversations have the same id: the second one has another id", place)
		v.ID = place
	}
	c.ids[v.ID], c.byFolder[v.dir] = true, len(c.conversations)
	c.conversations = append(c.conversations, v)
}

// recover finds the conversations of the folders that no row names. If a single row has lost its name, a single folder
// is its own. Otherwise the folder becomes a private channel of those who wrote in it.
func (c *conversationReader) recover() error {
	var lost []string
	for _, dir := range slices.Sorted(maps.Keys(c.days)) {
		if _, known := c.byFolder[dir]; !known {
			lost = append(lost, dir)
		}
	}
	if len(lost) == 1 && len(c.nameless) == 1 && c.faults == 0 {
		v := c.nameless[0]
		v.dir, v.Name = lost[0], lost[0]
		if v.direct && len(v.Members) == 0 {
			v.Members = c.writers(lost[0])
		}
		c.sink.DropAt("channels", "the name is missing: it has the name of its folder", lost[0])
		c.conversations = append(c.conversations, v)
		return nil
	}
	for _, v := range c.nameless {
		c.sink.DropAt("channels", "the name is missing", v.ID)
	}
	for _, dir := range lost {
		v := conversation{channelRow: channelRow{ID: "folder " + dir, Name: dir, Members: c.writers(dir)}, dir: dir,
			private: true}
		if len(v.Members) == 0 {
			c.sink.Drop("files", "its conversation is not in the export", len(c.days[dir]))
			continue
		}
		c.sink.DropAt("channels", "its row is missing: a private channel of those who wrote in it", dir)
		c.conversations = append(c.conversations, v)
	}
	return nil
}

// writers returns the ids of those who wrote in a folder.
func (c *conversationReader) writers(dir string) (ids []string) {
	known := map[string]bool{}
	for _, file := range c.days[dir] {
		if err := imports.EachRow(c.archive, file, imports.Reading{}, func(m *messageRow, _ imports.Row) error {
			if id := m.sender(); m.skipped() == "" && !known[id] {
				known[id] = true
				ids = append(ids, id)
			}
			return nil
		}); err != nil {
			return ids
		}
	}
	return ids
}

// findStrangers finds the members and senders that users.json does not have: users of other workspaces.
func (r *reader) findStrangers() error {
	for _, c := range r.conversations {
		for _, id := range c.Members {
			r.stranger(id, "")
		}
		for _, file := range r.days[c.dir] {
			in := imports.Reading{Seen: r.count} // the second reading counts bad values
			if err := imports.EachRow(r.archive, file, in, func(m *messageRow, _ imports.Row) error {
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
		if err := r.sink.Put(&imports.Channel{Key: c.ID, Name: c.Name, Created: c.Created, Private: c.private,
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
			if err := imports.EachRow(r.archive, file, r.in, func(m *messageRow, row imports.Row) error {
				at, ok := micros(m.TS)
				reason := m.skipped()
				if reason == "" && !ok {
					reason = "the time is impossible"
				}
				if reason != "" {
					r.sink.DropAt("messages", reason, row.Place())
					r.dropPartsOf(m)
					return nil
				}
				thread, ok := micros(m.ThreadTS)
				if m.ThreadTS != "" && !ok {
					r.sink.DropAt("values", "the time is impossible: the message is in no thread",
						row.Place()+", thread_ts")
					m.ThreadTS = ""
				}
				if c.direct || !r.o.Threads || !ok {
					return r.put(c, m, row.Place(), "imported from "+product)
				}
				key := binary.BigEndian.AppendUint64(nil, uint64(thread/1_000_000))
				key = binary.BigEndian.AppendUint64(key, uint64(at))
				item := binary.AppendUvarint(nil, uint64(i))
				item = binary.AppendUvarint(item, uint64(len(row.Place())))
				return r.threads.Add(key, append(append(item, row.Place()...), row.Raw...))
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// dropPartsOf counts the reactions and files of a message that is left out.
func (r *reader) dropPartsOf(m *messageRow) {
	if n := m.reactions(); n > 0 {
		r.sink.Drop("reactions", "their message is left out", n)
	}
	if n := len(m.Files); n > 0 {
		r.sink.Drop("attachments", "their message is left out", n)
	}
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
		length, more := binary.Uvarint(item[n:])
		item = item[n+more:]
		var m messageRow
		imports.DecodeRow(item[length:], &m, func(string, string) {}) // putMessages has counted the bad values
		date := time.Unix(int64(thread), 0).UTC().Format(time.DateOnly)
		topic := fmt.Sprintf("%s %s thread %d", date, product, number)
		return r.put(&r.conversations[i], &m, string(item[:length]), topic)
	})
}

// put passes one message to the sink. Its time is valid.
func (r *reader) put(c *conversation, m *messageRow, place, topic string) error {
	at, _ := micros(m.TS)
	out := &imports.Message{Key: c.ID + " " + identity(m.TS, at), Place: place, Order: at, At: at / 1_000_000,
		Sender: r.known[m.sender()], Text: r.text.text(*m.Text)}
	if thread, ok := micros(m.ThreadTS); ok {
		out.Thread = c.ID + " " + identity(m.ThreadTS, thread)
	}
	switch m.Subtype {
	case "me_message", "bot_add", "sh_room_created":
		out.Text = "/me " + out.Text
	}
	if !c.direct {
		out.Channel, out.Topic = c.ID, topic
	} else if len(c.Members) == 0 {
		r.sink.DropAt("messages", "the members of the conversation are missing", place)
		r.dropPartsOf(m)
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
	r.addFiles(m, out, c.dir)
	return r.sink.Put(out)
}

// addFiles adds the files of a message to its text. dir is the folder of the conversation.
func (r *reader) addFiles(m *messageRow, out *imports.Message, dir string) {
	files := m.Files
	if len(files) == 0 && m.Subtype == "file_share" && m.File != nil {
		files = []fileRow{*m.File}
	}
	for i := range files {
		line := r.addFile(&files[i], out, dir)
		if out.Text != "" && line != "" {
			out.Text += "\n"
		}
		out.Text += line
	}
}

// addFile adds a file to a message. It returns the line that links to it; "" if there is nothing to link to.
func (r *reader) addFile(f *fileRow, out *imports.Message, dir string) string {
	local := r.files.find(f, dir)
	u, err := url.Parse(f.URL)
	atSlack := err == nil && u.Host == "files.slack.com"
	switch {
	case local != "":
	case f.Mode == "tombstone" || f.Mode == "hidden_by_limit" || f.Access == "access_denied" ||
		f.Access == "file_not_found":
		r.sink.DropAt("attachments", "the file was deleted or is hidden", out.Place)
		return ""
	case f.URL == "":
		r.sink.DropAt("attachments", "the file has no address", out.Place)
		return ""
	case !atSlack:
		return imports.Link(cmp.Or(f.Title, f.Name, f.URL), f.URL)
	}
	var address string
	if atSlack {
		u.RawQuery, u.Fragment = "", "" // the query has a secret
		address = imports.EscapeAddress(u.String())
	} else {
		h := sha256.Sum256([]byte(local))
		address = "/user_uploads/import/" + hex.EncodeToString(h[:16])
	}
	name := cmp.Or(f.Name, f.Title, path.Base(local))
	if local == "" {
		name = cmp.Or(f.Name, f.Title, f.ID, "file")
	}
	out.Files = append(out.Files, imports.File{Path: filePath(f, local), Address: address, Name: name,
		Type: f.Mimetype, Owner: r.known[f.User], Created: f.Created, Size: max(f.Size, 0)})
	return imports.Link(cmp.Or(f.Title, f.Name, name), address)
}
