package zulip

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"parley/wire/imports"
)

// messageFiles returns the names of the files of messages. It refuses an export in which one of the numbers is missing,
// because its messages are missing.
func (r *reader) messageFiles() ([]string, error) {
	found, err := fs.Glob(r.archive, "messages-*.json")
	if err != nil {
		return nil, err
	}
	present := map[string]bool{}
	for _, name := range found {
		if strings.Trim(strings.TrimSuffix(strings.TrimPrefix(name, "messages-"), ".json"), "0123456789") == "" {
			present[name] = true
		}
	}
	var list []string
	for n := range len(present) {
		name := fmt.Sprintf("messages-%06d.json", n+1)
		if !present[name] {
			return nil, fmt.Errorf("the export is incomplete: %s is missing", name)
		}
		list = append(list, name)
	}
	return list, nil
}

// readAttachments reads which files messages link to.
func (r *reader) readAttachments() error {
	err := tables(r.archive, "attachment.json", r.count, func(name string) rowFunc {
		if name != "zerver_attachment" {
			return nil
		}
		return with(r, r.addAttachment)
	}, r.skipped)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return r.damaged(err, "attachment.json")
}

// damaged counts the rest of a file that cannot be read. It returns other errors.
func (r *reader) damaged(err error, name string) error {
	if err == nil || !imports.Damaged(err) {
		return err
	}
	r.sink.DropAt("files", "damaged: the rest of the file is left out", strings.TrimPrefix(err.Error(), name+", "))
	return nil
}

func (r *reader) addAttachment(a *attachmentRow, place string) error {
	address := "/user_uploads/" + a.PathID
	if r.attachments[address] != nil {
		r.sink.DropAt("attachments", "a second one with the same path", place)
		return nil
	}
	f := &imports.File{Path: path.Join("uploads", a.PathID), Address: address, Name: a.FileName, Owner: key(a.Owner),
		Created: int64(a.CreateTime), Size: a.Size}
	if !fs.ValidPath("uploads/" + a.PathID) {
		f.Path = "uploads/.." // it cannot be opened, and counts as missing
	}
	r.attachments[address] = f
	for _, m := range a.Messages {
		r.filesOf[m] = append(r.filesOf[m], f)
	}
	for _, m := range a.Scheduled {
		r.scheduledIn[m] = append(r.scheduledIn[m], f)
	}
	if len(a.Messages)+len(a.Scheduled) == 0 {
		r.sink.Drop("attachments", "no message links to the file", 1)
	}
	return nil
}

// addReaction adds a reaction to the sorter, by its message.
func (r *reader) addReaction(v *reactionRow, _ string) error {
	item := binary.AppendVarint(nil, v.User)
	item = append(item, strings.Join([]string{v.Name, v.Code, v.Type}, "\x00")...)
	return r.reactions.Add(binary.BigEndian.AppendUint64(nil, uint64(v.Message)), item)
}

func decodeReaction(item []byte) imports.Reaction {
	user, n := binary.Varint(item)
	parts := strings.SplitN(string(item[n:]), "\x00", 3)
	return imports.Reaction{User: key(user), Name: parts[0], Code: parts[1], Type: parts[2]}
}

// joined reads sorted items by the id that their keys begin with. Ids must be asked for in ascending order.
type joined struct {
	next func() ([]byte, []byte, bool)
	stop func()
	err  error
	id   int64
	item []byte
	ok   bool
}

// join begins to read the items of a sorter.
func join(s imports.Sorter) *joined {
	j := &joined{}
	j.next, j.stop = iter.Pull2(func(yield func(k, v []byte) bool) {
		errStop := errors.New("stop")
		if err := s.Sorted(func(k, v []byte) error {
			if !yield(k, v) {
				return errStop
			}
			return nil
		}); !errors.Is(err, errStop) {
			j.err = err
		}
	})
	j.advance()
	return j
}

func (j *joined) advance() {
	k, v, ok := j.next()
	if j.ok = ok; ok {
		j.id, j.item = int64(binary.BigEndian.Uint64(k)), v
	}
}

// each calls fn with the items of an id. It calls other for each skipped item of a lower id.
func (j *joined) each(id int64, fn func(item []byte), other func()) {
	for ; j.ok && j.id <= id; j.advance() {
		if j.id < id {
			other()
		} else {
			fn(j.item)
		}
	}
}

// flag is the flags of a user for a message.
type flag struct {
	message, user int64
	flags         int32
}

// maxFlagsInMemory is how many rows of flags of one file of messages are in memory: 24 bytes each. More are sorted on
// disk.
const maxFlagsInMemory = 500_000

// putMessages reads the files of messages.
func (r *reader) putMessages() error {
	reactions := join(r.reactions)
	m := &messageReader{reader: r, reactions: reactions, last: math.MinInt64, hasFiles: map[int64]bool{}}
	defer func() { m.reactions.stop() }()
	for _, name := range r.files {
		if err := m.readFile(name); err != nil {
			return err
		}
	}
	m.reactions.each(math.MaxInt64, func([]byte) {}, m.lostReaction)
	for id := range r.filesOf {
		if !m.hasFiles[id] {
			r.sink.Drop("attachments", "its message is missing", 1)
		}
	}
	return m.reactions.err
}

// messageReader joins messages with their flags, reactions and files.
type messageReader struct {
	*reader
	reactions *joined
	unordered map[int64][]imports.Reaction // nil: messages come in the order of their ids
	last      int64
	hasFiles  map[int64]bool
}

func (m *messageReader) lostReaction() { m.sink.Drop("reactions", "the message is missing", 1) }

// readFile reads one file of messages.
func (m *messageReader) readFile(name string) error {
	var messages []messageRow
	var flags []flag
	var more imports.Sorter
	defer func() {
		if more != nil {
			more.Close()
		}
	}()
	err := tables(m.archive, name, m.count, func(table string) rowFunc {
		switch table {
		case "zerver_message":
			return with(m.reader, func(v *messageRow, place string) error {
				v.place = place
				messages = append(messages, *v)
				return nil
			})
		case "zerver_usermessage":
			return with(m.reader, func(v *flagsRow, _ string) error {
				if len(flags) < maxFlagsInMemory {
					flags = append(flags, flag{v.Message, v.User, int32(v.Flags)})
					return nil
				}
				if more == nil {
					more = m.o.Sorter()
				}
				item := binary.AppendVarint(binary.AppendVarint(nil, v.User), v.Flags)
				return more.Add(binary.BigEndian.AppendUint64(nil, uint64(v.Message)), item)
			})
		}
		return nil
	}, m.skipped)
	if err := m.damaged(err, name); err != nil {
		return err
	}
	slices.SortStableFunc(flags, func(a, b flag) int { return cmp.Compare(a.message, b.message) })
	slices.SortStableFunc(messages, func(a, b messageRow) int { return cmp.Compare(a.ID, b.ID) })
	var rest *joined
	if more != nil {
		rest = join(more)
		defer rest.stop()
	}
	lost := func() { m.sink.Drop("flags", "the message is missing", 1) }
	for i := range messages {
		row := &messages[i]
		var marks []imports.Mark
		for ; len(flags) > 0 && flags[0].message <= row.ID; flags = flags[1:] {
			if flags[0].message < row.ID {
				lost()
				continue
			}
			marks = append(marks, imports.Mark{User: key(flags[0].user), Flags: marksOf(int64(flags[0].flags))})
		}
		if rest != nil {
			rest.each(row.ID, func(item []byte) {
				user, n := binary.Varint(item)
				f, _ := binary.Varint(item[n:])
				marks = append(marks, imports.Mark{User: key(user), Flags: marksOf(f)})
			}, lost)
		}
		if err := m.putMessage(row, marks); err != nil {
			return err
		}
	}
	for range flags {
		lost()
	}
	if rest != nil {
		rest.each(math.MaxInt64, func([]byte) {}, lost)
		return rest.err
	}
	return nil
}

// marksOf converts the bits of flags_mask.
func marksOf(bits int64) (flags int) {
	for i, f := range map[int]int{0: imports.Read, 1: imports.Starred, 2: imports.Collapsed, 3: imports.Mentioned,
		4: imports.ChannelWildcard, 5: imports.TopicWildcard, 6: imports.GroupMentioned, 9: imports.Alert,
		10: imports.Historical} {
		if bits&(1<<i) != 0 {
			flags |= f
		}
	}
	return flags
}

// reactionsOf returns the reactions of a message. If messages do not come in the order of their ids, all reactions are
// read into memory.
func (m *messageReader) reactionsOf(id int64) (list []imports.Reaction, err error) {
	if id < m.last && m.unordered == nil {
		m.unordered = map[int64][]imports.Reaction{}
		m.reactions.stop()
		err = m.reader.reactions.Sorted(func(k, item []byte) error {
			n := int64(binary.BigEndian.Uint64(k))
			m.unordered[n] = append(m.unordered[n], decodeReaction(item))
			return nil
		})
		m.reactions = &joined{stop: func() {}}
	}
	m.last = max(m.last, id)
	if m.unordered != nil {
		return m.unordered[id], err
	}
	m.reactions.each(id, func(item []byte) { list = append(list, decodeReaction(item)) }, m.lostReaction)
	return list, m.reactions.err
}

func (m *messageReader) putMessage(row *messageRow, marks []imports.Mark) error {
	out := &imports.Message{Key: key(row.ID), Place: row.place, Order: row.ID, At: int64(row.DateSent),
		Sender: key(row.Sender), Text: row.Content, Client: m.clients[row.Client], Marks: marks}
	if m.byDate {
		out.Order = out.At
	}
	if row.Rendered != nil {
		out.HTML = *row.Rendered
	}
	reactions, err := m.reactionsOf(row.ID)
	if err != nil {
		return err
	}
	out.Reactions = reactions
	if !m.address(row.Recipient, row.Sender, &out.Channel, &out.People) {
		m.sink.DropAt("messages", "the recipient is missing", row.place)
		if n := len(out.Reactions); n > 0 {
			m.sink.Drop("reactions", "their message is left out", n)
		}
		return nil
	}
	if out.Channel != "" {
		out.Topic = row.Subject
	}
	for _, f := range m.filesOf[row.ID] {
		m.hasFiles[row.ID] = true
		out.Files = append(out.Files, *f)
	}
	m.history(row, out)
	return m.sink.Put(out)
}

// history reads the edit history, newest edit first.
func (m *messageReader) history(row *messageRow, out *imports.Message) {
	defer func() { // the history can be lost, or switched off
		out.Moved = max(out.Moved, int64(row.LastMoved))
		if len(out.History) == 0 && row.LastMoved == 0 {
			out.Edited = max(out.Edited, int64(row.LastEdit))
		}
	}()
	if row.EditHistory == nil || *row.EditHistory == "" {
		return
	}
	var rows []json.RawMessage
	if err := json.Unmarshal([]byte(*row.EditHistory), &rows); err != nil {
		m.sink.DropAt("edit histories", "it cannot be read", row.place)
		return
	}
	edits := make([]editRow, len(rows))
	for i := range rows {
		place := row.place + ", edit_history[" + strconv.Itoa(i) + "]"
		if !imports.DecodeRow(rows[i], &edits[i], func(field, reason string) {
			m.sink.DropAt("values", reason, place+"."+field)
		}) {
			m.sink.DropAt("rows", "not an object: the row is left out", place)
		}
	}
	topic := row.Subject
	channel := out.Channel
	for _, e := range edits {
		v := imports.Revision{User: key(e.User), At: int64(e.Timestamp)}
		if e.PrevContent != nil {
			v.Content, v.Text, v.HTML = true, *e.PrevContent, e.PrevRendered
			out.Edited = max(out.Edited, v.At)
		}
		if before := cmp.Or(e.PrevTopic, e.PrevSubject); before != nil {
			after := topic
			if e.Topic != nil {
				after = *e.Topic
			}
			v.TopicBefore, v.TopicAfter = before, &after
			topic = *before
			if !onlyResolved(*before, after) {
				out.Moved = max(out.Moved, v.At)
			}
		}
		if e.PrevStream != 0 {
			v.ChannelBefore, v.ChannelAfter = key(e.PrevStream), channel
			if e.Stream != 0 {
				v.ChannelAfter = key(e.Stream)
			}
			channel = v.ChannelBefore
			out.Moved = max(out.Moved, v.At)
		}
		out.History = append(out.History, v)
	}
	if channel != out.Channel {
		out.SentTo = channel
	}
}

// onlyResolved reports whether two topics differ only in the mark of resolved topics.
func onlyResolved(a, b string) bool {
	const mark = "✔ "
	return strings.TrimLeft(a, mark) == strings.TrimLeft(b, mark)
}
