package migration

import (
	"errors"
	"fmt"
	"html"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/yuin/goldmark-emoji/definition"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/imports"
	"parley/wire/markdown"
	"parley/wire/markdown/emoji"
)

const (
	// batchSize is how many messages are rendered together.
	batchSize = 512
	// flushMessages is the number of messages after which their texts are made durable.
	flushMessages = 4096
	truncated     = "\n[message truncated]"
)

// job is a message on its way: read, rendered, added.
type job struct {
	in       imports.Message
	out      realm.ImportedMessage
	versions []realm.Body                 // of the text, oldest first; the last one is the present one
	edits    []string                     // the texts before each edit, oldest first
	stored   bool                         // by an earlier run
	newest   map[topicKey]realm.MessageID // of the topics that the texts refer to
	differs  string
	compared bool
	err      error
}

// topicKey is a topic of a channel, in the form in which topics are compared.
type topicKey struct {
	channel realm.ChannelID
	topic   string
}

// importMessages renders and adds all messages in their order.
func (x *importer) importMessages() error {
	var batch []*job
	var lastOrder int64
	same := map[string]bool{} // keys of the messages with this order
	total, done := int64(x.arrival), int64(0)
	err := x.messages.Sorted(func(_, item []byte) error {
		if err := x.ctx.Err(); err != nil {
			return err
		}
		d := decoder{b: item}
		j := &job{in: d.message()}
		if d.err != nil {
			return d.err
		}
		if done++; done%batchSize == 0 {
			x.progress("messages", done, total)
		}
		if j.in.Order != lastOrder {
			clear(same)
			lastOrder = j.in.Order
		}
		if same[j.in.Key] {
			x.dropMessage(&j.in, "a second message with the same id")
			return nil
		}
		same[j.in.Key] = true
		if !x.prepare(j) {
			return nil
		}
		if batch = append(batch, j); len(batch) < batchSize {
			return nil
		}
		err := x.addBatch(batch)
		batch = batch[:0]
		return err
	})
	if err == nil {
		err = x.addBatch(batch)
	}
	if err == nil {
		err = x.flush()
	}
	return err
}

// prepare resolves the references of a message. It reports whether the message can be imported.
func (x *importer) prepare(j *job) bool {
	in, out := &j.in, &j.out
	var known bool
	if out.Sender, known = x.userIDs[in.Sender]; !known || out.Sender == 0 {
		x.dropMessage(in, "the sender is missing")
		return false
	}
	if in.Channel != "" {
		if out.Channel = x.channelID[in.Channel]; out.Channel == 0 {
			x.dropMessage(in, "the channel is missing")
			return false
		}
		out.Topic = x.topic(in.Topic)
	} else if out.People, known = x.people(in.People, out.Sender); !known {
		x.dropMessage(in, "a participant is missing")
		return false
	}
	out.At = in.At
	if out.At < 0 || out.At > 1<<32-1 {
		x.dropMessage(in, "the time is impossible")
		return false
	}
	out.Client, out.OwnMarks, out.SenderReceives = x.clientName(in.Client), x.org.OwnMarks, !x.org.OwnMarks
	x.history(j)
	x.reactions(j)
	for _, s := range in.Submessages {
		if id := x.userIDs[s.Sender]; id != 0 {
			out.Extra.Submessages = append(out.Extra.Submessages,
				realm.Submessage{Sender: id, Type: s.Type, Content: s.Content})
		}
	}
	for _, m := range in.Marks {
		u := x.userIDs[m.User]
		if u < firstUserID {
			x.Drop("flags", "the user is missing or a system bot", 1)
			continue
		}
		is := func(flag int) bool { return m.Flags&flag != 0 }
		out.Marks = append(out.Marks, realm.ImportedMark{User: u, Read: is(imports.Read), Starred: is(imports.Starred),
			Collapsed: is(imports.Collapsed), Historical: is(imports.Historical), Mentioned: is(imports.Mentioned),
			ChannelWildcard: is(imports.ChannelWildcard), TopicWildcard: is(imports.TopicWildcard),
			Group: is(imports.GroupMentioned), AlertBit: is(imports.Alert)})
		if is(imports.Starred) {
			x.report.Starred++
		}
		if !is(imports.Read) {
			x.report.Unread++
		}
	}
	return true
}

// dropMessage counts a message that is left out, and its reactions and files.
func (x *importer) dropMessage(m *imports.Message, reason string) {
	x.DropAt("messages", reason, m.Place)
	const why = "their message is left out"
	if n := len(m.Reactions); n > 0 {
		x.Drop("reactions", why, n)
	}
	if n := len(m.Files); n > 0 {
		x.Drop("attachments", why, n)
	}
}

// people returns the participants of a direct message, ascending, with the sender.
func (x *importer) people(keys []string, sender realm.UserID) ([]realm.UserID, bool) {
	list := []realm.UserID{sender}
	for _, key := range keys {
		id, known := x.userIDs[key]
		if !known || id == 0 {
			return nil, false
		}
		list = append(list, id)
	}
	slices.Sort(list)
	return slices.Compact(list), true
}

// topic returns a topic in its stored form.
func (x *importer) topic(name string) string {
	t, err := realm.NormalizeTopic(name)
	if err != nil {
		x.changed("topics", "invalid characters were removed")
		if t, err = realm.NormalizeTopic(clean(name, realm.MaxTopic)); err != nil {
			t = ""
		}
	}
	return t
}

// text returns a message text in its stored form. Unlike a sent message it is not trimmed, and may be empty.
func (x *importer) text(s string) string {
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "")
		x.changed("messages", "NUL bytes were removed")
	}
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
		x.changed("messages", "invalid UTF-8 was replaced")
	}
	if len(s) > realm.MaxMessage && utf8.RuneCountInString(s) > realm.MaxMessage {
		s = imports.FirstRunes(s, realm.MaxMessage-len(truncated)) + truncated
		x.changed("messages", "the text was cut at the limit")
	}
	return s
}

// clientName returns the name of the client program of a message.
func (x *importer) clientName(name string) string {
	if name = clean(name, 30); name == "" {
		name = x.org.Product
	}
	return name
}

// history converts the edit history: from the newest edit first to the oldest first, with numbered versions.
func (x *importer) history(j *job) {
	in, e := &j.in, &j.out.Extra
	e.Edited, e.Moved = in.Edited, in.Moved
	if in.SentTo != "" && in.SentTo != in.Channel {
		e.SentTo = x.channelID[in.SentTo]
	}
	for i := len(in.History) - 1; i >= 0; i-- {
		r := &in.History[i]
		v := realm.Revision{User: x.userIDs[r.User], At: r.At, TopicBefore: r.TopicBefore, TopicAfter: r.TopicAfter,
			ChannelBefore: x.channelID[r.ChannelBefore], ChannelAfter: x.channelID[r.ChannelAfter]}
		if r.Content && e.Version < 1<<16-2 {
			v.Content, v.Version = true, e.Version
			e.Version++
			j.edits = append(j.edits, x.text(r.Text))
		}
		e.History = append(e.History, v)
	}
}

// reactions converts the reactions of a message. A user has each emoji at most once.
func (x *importer) reactions(j *job) {
	for _, in := range j.in.Reactions {
		u, known := x.userIDs[in.User]
		if !known || u == 0 {
			x.DropAt("reactions", "the user is missing", j.in.Place)
			continue
		}
		r, known := x.reaction(in)
		if !known {
			x.DropAt("reactions", "unknown emoji", j.in.Place)
			continue
		}
		r.User = u
		if slices.ContainsFunc(j.out.Extra.Reactions, func(o realm.Reaction) bool {
			return o.User == r.User && o.Code == r.Code && o.Type == r.Type
		}) {
			x.DropAt("reactions", "the same user and emoji again", j.in.Place)
			continue
		}
		j.out.Extra.Reactions = append(j.out.Extra.Reactions, r)
	}
}

// The types of emoji in the protocol.
const (
	unicodeEmoji = "unicode_emoji"
	customEmoji  = "realm_emoji"
	extraEmoji   = "zulip_extra_emoji"
)

// reaction returns an emoji with its code and type; false if there is no such emoji.
func (x *importer) reaction(in imports.Reaction) (r realm.Reaction, known bool) {
	if in.Type == "" {
		if key, custom := x.emojiKeys[in.Name]; custom {
			in.Code, in.Type = key, customEmoji
		} else if name, code, standard := emojiOfShortName(in.Name); standard {
			in.Name, in.Code, in.Type, known = name, code, unicodeEmoji, true
		} else if name, code, standard := emojiOfCharacters(in.Name); standard {
			in.Name, in.Code, in.Type = name, code, unicodeEmoji
		}
	}
	r = realm.Reaction{Name: in.Name, Code: in.Code, Type: in.Type}
	switch in.Type {
	case customEmoji:
		id, known := x.emojiIDs[in.Code]
		r.Code = strconv.FormatInt(id, 10)
		return r, known
	case unicodeEmoji:
		_, named := emoji.NameOf(in.Code)
		return r, (named || known) && len(in.Name) <= maxName
	case extraEmoji:
		return r, in.Code == "zulip"
	}
	return r, false
}

// emojiOfShortName returns the emoji that other chat servers give a short name. Some of these names are the protocol's
// names of other emoji, so the characters decide; a name without characters can be one of the protocol. The color of
// the skin is left out. A few codes have no name in the protocol: their reactions have the short name.
func emojiOfShortName(short string) (name, code string, ok bool) {
	if name, code, ok = emojiOfPlainName(short); ok {
		return name, code, true
	}
	for _, tone := range skinTones {
		if plain, toned := strings.CutSuffix(short, tone); toned {
			return emojiOfPlainName(plain)
		}
	}
	return "", "", false
}

// emojiOfCharacters returns the emoji that the characters show. The color of the skin is left out.
func emojiOfCharacters(s string) (name, code string, ok bool) {
	code = emoji.CodeOfCharacter(strings.Map(func(r rune) rune {
		if r >= firstSkinTone && r <= lastSkinTone {
			return -1
		}
		return r
	}, s))
	name, ok = emoji.NameOf(code)
	return name, code, ok
}

// Characters that color the skin of the emoji before them.
const (
	firstSkinTone = 0x1f3fb
	lastSkinTone  = 0x1f3ff
)

// skinTones are the ends of short names with a color of the skin. Longer ends come before their own ends.
var skinTones = []string{"_medium_light_skin_tone", "_medium_dark_skin_tone", "_light_skin_tone", "_medium_skin_tone",
	"_dark_skin_tone", "_tone1", "_tone2", "_tone3", "_tone4", "_tone5"}

func emojiOfPlainName(short string) (name, code string, ok bool) {
	code, ok = emoji.CodeOfShortName(short)
	if e, found := shortNames().Get(short); !ok && found && len(e.Unicode) > 0 {
		code, ok = emoji.CodeOfCharacter(string(e.Unicode)), true
	}
	if !ok {
		code, ok = emoji.CodeOf(short)
		return short, code, ok
	}
	if name, ok = emoji.NameOf(code); !ok {
		name = short
	}
	return name, code, true
}

// shortNames are the short names of emoji that Mattermost and Rocket.Chat share with GitHub.
var shortNames = sync.OnceValue(func() definition.Emojis { return definition.Github() })

// addBatch stores the files of messages, renders them on all processors, and adds them.
func (x *importer) addBatch(batch []*job) error {
	for _, j := range batch {
		if err := x.files(j); err != nil {
			return err
		}
	}
	for _, j := range batch {
		j.out.ID = x.nextID
		x.nextID++
		if j.out.ID > realm.MaxMessageID {
			return fmt.Errorf("more than %d messages", realm.MaxMessageID)
		}
		r, ok, err := x.log.next()
		if err != nil || ok && r.Message != j.out.ID {
			return errors.Join(err,
				errors.New("the archive has changed since the import was interrupted: drop it with --restart"))
		}
		if ok {
			j.stored, j.out.Content, j.differs, j.compared = true, r.Content, r.Rendered, r.Compared
		}
		x.recordTopics(j)
	}
	var all sync.WaitGroup
	workers := min(runtime.GOMAXPROCS(0), len(batch))
	for w := range workers {
		all.Go(func() {
			for i := w; i < len(batch); i += workers {
				if !batch[i].stored {
					x.render(batch[i])
				}
			}
		})
	}
	all.Wait()
	for _, j := range batch {
		if err := errors.Join(j.err, x.rowsErr); err != nil {
			return err
		}
		if err := x.addMessage(j); err != nil {
			return err
		}
	}
	if x.unflushed += len(batch); x.unflushed >= flushMessages {
		return x.flush()
	}
	return nil
}

// render renders the text of a message and its earlier versions. It is called by several goroutines at a time.
func (x *importer) render(j *job) {
	defer func() {
		if p := recover(); p != nil {
			j.err = fmt.Errorf("message %s cannot be rendered: %v", j.in.Key, p)
		}
	}()
	v := x.viewOf(j.out.Sender)
	t := wire.ImportedText{Author: j.out.Sender, Newest: func(c realm.ChannelID, topic string) realm.MessageID {
		return j.newest[topicKey{c, strings.ToLower(topic)}]
	}, Mentions: x.mentionsOf(&j.in)}
	render := func(text string) (realm.Body, realm.ContentInfo) {
		t.Text = text
		body, content, err := x.renderer.RenderImported(t, v, x.site)
		if err != nil {
			body, content = realm.Body{Text: text, HTML: "<p>" + escape(text) + "</p>"}, realm.ContentInfo{}
		}
		return body, content
	}
	body, content := render(j.in.Text)
	if j.in.HTML != "" {
		if wereActive(j.in.HTML, body.HTML) {
			t.AsActive = true
			body, content = render(j.in.Text)
		}
		j.compared, j.differs = true, difference(j.in.HTML, body.HTML)
	}
	for _, text := range j.edits {
		earlier, _ := render(text)
		j.versions = append(j.versions, earlier)
	}
	j.versions, j.out.Content = append(j.versions, body), content
	if x.o.DryRun {
		j.versions = nil
	}
}

// mentionSpan is a mention of a user in exported HTML.
var mentionSpan = regexp.MustCompile(`<span class="user-mention(?: silent)?" data-user-id="([0-9]+)">@?([^<]+)</span>`)

// mentionsOf returns the users whom the exported HTML of a message and of its earlier versions mentions. Their rows can
// have other names now: a deleted user is called "Deleted user", and others change their names.
func (x *importer) mentionsOf(in *imports.Message) (list []wire.ImportedMention) {
	texts := []string{in.HTML}
	for i := range in.History {
		texts = append(texts, in.History[i].HTML)
	}
	for _, text := range texts {
		if !strings.Contains(text, `class="user-mention`) {
			continue
		}
		for _, found := range mentionSpan.FindAllStringSubmatch(text, -1) {
			id, err := strconv.ParseInt(found[1], 10, 64)
			user, known := x.userIDs[found[1]]
			m := wire.ImportedMention{User: user, Name: html.UnescapeString(found[2]), ID: id}
			if err == nil && known && !slices.Contains(list, m) {
				list = append(list, m)
			}
		}
	}
	return list
}

// viewOf returns the view of the author of a text. The server's own bots can see everything.
func (x *importer) viewOf(author realm.UserID) realm.View {
	v := x.build.View(x.began.Unix())
	if author >= firstUserID {
		v.Caller = realm.Caller{User: author}
	}
	return v
}

// recordTopics notes the newest messages of the topics that the texts of a message refer to, then its own topic.
func (x *importer) recordTopics(j *job) {
	if !j.stored {
		for _, text := range append(j.edits, j.in.Text) {
			if !strings.Contains(text, "#**") {
				continue
			}
			for _, ref := range markdown.Scan(text).Channels {
				c := x.build.View(0).FindChannelByName(ref.Name)
				if c == nil || !ref.HasTopic {
					continue
				}
				key := topicKey{c.ID, strings.ToLower(ref.Topic)}
				if id := x.newest[key]; id != 0 {
					if j.newest == nil {
						j.newest = map[topicKey]realm.MessageID{}
					}
					j.newest[key] = id
				}
			}
		}
	}
	if j.out.Channel != 0 {
		x.newest[topicKey{j.out.Channel, strings.ToLower(j.out.Topic)}] = j.out.ID
	}
}

var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace

// addMessage adds a rendered message: its texts to the store, the rest to the rows.
func (x *importer) addMessage(j *job) error {
	if !j.stored && !x.o.DryRun {
		for i := range j.versions {
			if err := x.addText(realm.BodyRef{Message: j.out.ID, Version: uint16(i)}, &j.versions[i]); err != nil {
				return err
			}
		}
		x.log.add(&logRecord{Message: j.out.ID, Content: j.out.Content, Rendered: j.differs, Compared: j.compared})
	}
	x.count(j)
	x.build.AddMessage(&j.out)
	return nil
}

// flush makes the texts durable, then the log that names them.
func (x *importer) flush() error {
	if x.unflushed = 0; x.o.DryRun {
		return nil
	}
	x.beforeWrite()
	if err := x.flushTexts(); err != nil {
		return err
	}
	x.beforeWrite()
	return x.log.flush()
}

// count counts a message in the report.
func (x *importer) count(j *job) {
	r, in := x.report, &j.in
	r.Messages++
	r.Reactions += len(j.out.Extra.Reactions)
	if in.Channel == "" {
		r.DirectMessages++
	} else {
		countIn(r.PerChannel, x.channelName(j.out.Channel))
	}
	countIn(r.PerAuthor, in.Sender)
	if in.Thread != "" {
		countIn(r.PerThread, in.Thread)
	}
	for _, e := range j.out.Extra.Reactions {
		countIn(r.PerEmoji, e.Name)
	}
	if len(j.out.Extra.History) > 0 {
		r.Edited++
	}
	if j.compared {
		r.Compared++
	}
	if j.differs != "" {
		x.counts.add(x.counts.rendering, j.differs, "the HTML differs from the exported one", "", 1)
	}
	x.countRetention(j)
}

// countRetention counts a message for which a retention rule exists. The rules run as soon as a server has the
// organization.
func (x *importer) countRetention(j *job) {
	days := x.build.View(0).RetentionDays(j.out.Channel)
	if days < 0 {
		return
	}
	if x.retention == nil {
		x.retention = map[realm.ChannelID]*Retention{}
	}
	rule := x.retention[j.out.Channel]
	if rule == nil {
		rule = &Retention{Days: days}
		if j.out.Channel != 0 {
			rule.Channel = x.channelName(j.out.Channel)
		}
		x.retention[j.out.Channel] = rule
	}
	rule.Messages++
	if j.in.At+days*secondsPerDay <= x.began.Unix() {
		rule.Due++
	}
}

const secondsPerDay = 24 * 3600

func (x *importer) channelName(id realm.ChannelID) string {
	return x.build.View(0).FindChannel(id).Name
}

// files stores the files of a message that are not stored yet, and puts their new addresses into its texts.
func (x *importer) files(j *job) error {
	j.in.Text = x.text(j.in.Text)
	for i := range j.in.Files {
		f := &j.in.Files[i]
		if f.Address == "" {
			continue
		}
		to, known := x.addresses[f.Address]
		if !known {
			var err error
			if to, err = x.addFile(j, f); err != nil {
				return err
			}
			x.addresses[f.Address] = to
		}
		if to == "" {
			continue
		}
		j.in.Text = strings.ReplaceAll(j.in.Text, f.Address, to)
		j.in.HTML = strings.ReplaceAll(j.in.HTML, f.Address, to)
		for k := range j.edits {
			j.edits[k] = strings.ReplaceAll(j.edits[k], f.Address, to)
		}
	}
	return nil
}

// addFile stores a file and returns its new address; "" if the archive does not have it.
func (x *importer) addFile(j *job, f *imports.File) (string, error) {
	saved, err := x.saveFile(f, f.Address)
	if err != nil {
		return "", fmt.Errorf("file %s: %w", f.Path, err)
	}
	if saved.Missing {
		x.DropAt("attachments", "the file is not in the archive, or damaged", j.in.Place)
		return "", nil
	}
	owner := x.userIDs[f.Owner]
	if owner == 0 {
		owner = j.out.Sender
	}
	created := f.Created
	if created == 0 {
		created = j.in.At
	}
	u := x.build.AddUpload(
		realm.Upload{Name: f.Name, Owner: owner, Size: saved.Size, Type: saved.Type, Hash: saved.Hash,
			Created: created, Width: saved.Width, Height: saved.Height, Animated: saved.Animated},
		x.random("file "+strconv.Itoa(x.report.Attachments), 32),
	)
	x.report.Attachments++
	countIn(x.report.PerFile, path.Ext(u.Name))
	return "/user_uploads/" + u.Path, nil
}
