package migration

import (
	"archive/zip"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"parley/actors/realm"
	"parley/snapshot"
)

// Formats of a compliance export.
const (
	ComplianceCSV  = "csv"
	ComplianceJSON = "jsonl"
	ComplianceEML  = "eml"
)

// ComplianceCriteria choose the messages of a compliance export. A message must meet all criteria that are set.
type ComplianceCriteria struct {
	Persons  []string // email address or id: the messages of one of them, and their direct conversations
	Channels []string // name or id: messages that are, or once were, in one of them
	// UserIDs and ChannelIDs are further persons and channels, of the request of an owner.
	UserIDs    []realm.UserID
	ChannelIDs []realm.ChannelID
	From, To   int64  // Unix seconds in which the message was sent; To is not included; 0: no limit
	Search     string // part of one of the message's texts or of its topic, in any case
	Format     string // ComplianceCSV, ComplianceJSON or ComplianceEML
}

// Check returns an error if the format is unknown.
func (c ComplianceCriteria) Check() error {
	if formats := []string{ComplianceCSV, ComplianceJSON, ComplianceEML}; !slices.Contains(formats, c.Format) {
		return fmt.Errorf("--format must be one of %s, not %q", strings.Join(formats, ", "), c.Format)
	}
	return nil
}

// String returns the criteria for the audit log.
func (c ComplianceCriteria) String() string {
	text := "format " + c.Format
	if len(c.Persons) > 0 {
		text += fmt.Sprintf(", %d persons", len(c.Persons)) // no addresses: entries are kept for years
	}
	if len(c.Channels) > 0 {
		text += ", channels " + strings.Join(c.Channels, " ")
	}
	for _, x := range []struct {
		name string
		at   int64
	}{{"from", c.From}, {"before", c.To}} {
		if x.at != 0 {
			text += ", " + x.name + " " + time.Unix(x.at, 0).UTC().Format(time.RFC3339)
		}
	}
	if c.Search != "" {
		text += ", with a search"
	}
	return text
}

// ComplianceCounts are the numbers of a compliance export.
type ComplianceCounts struct {
	Messages int `json:"messages"` // all, with the deleted ones
	Deleted  int `json:"deleted"`  // of Messages
	Held     int `json:"held"`     // of Messages: with a legal hold
	Edits    int `json:"edits"`    // changes of texts
	Moves    int `json:"moves"`    // changes of channel or topic
	Erased   int `json:"erased"`   // of Messages: the text was erased
}

func (c ComplianceCounts) String() string {
	return fmt.Sprintf("%d messages, %d of them deleted, %d on hold, %d erased; %d edits, %d moves", c.Messages,
		c.Deleted, c.Held, c.Erased, c.Edits, c.Moves)
}

// complianceRecord is a message of the export in the form of JSON.
type complianceRecord struct {
	ID        realm.MessageID    `json:"id"`
	Sent      string             `json:"sent"`
	Sender    compliancePerson   `json:"sender"`
	ChannelID realm.ChannelID    `json:"channel_id,omitzero"`
	Channel   string             `json:"channel,omitempty"`
	Topic     *string            `json:"topic,omitempty"`
	People    []compliancePerson `json:"participants,omitempty"`
	Content   string             `json:"content"`
	Erased    bool               `json:"erased,omitempty"` // the text does not exist any more
	Client    string             `json:"client"`
	Changes   []complianceChange `json:"changes"`
	Deleted   *complianceRemoval `json:"deleted,omitempty"`
	Holds     []int64            `json:"legal_holds,omitempty"`
	Files     []string           `json:"files,omitempty"`
}

type compliancePerson struct {
	ID    realm.UserID `json:"id"`
	Email string       `json:"email"`
	Name  string       `json:"name"`
}

// complianceChange is one edit or move. Before is the text or place before it.
type complianceChange struct {
	At      string           `json:"at"`
	By      compliancePerson `json:"by"`
	Content *string          `json:"content_before,omitempty"`
	Topic   *string          `json:"topic_before,omitempty"`
	NewName *string          `json:"topic_after,omitempty"`
	From    string           `json:"channel_before,omitempty"`
	To      string           `json:"channel_after,omitempty"`
}

type complianceRemoval struct {
	At     string            `json:"at"`
	By     *compliancePerson `json:"by,omitempty"` // nil: the retention policy or the server
	Reason string            `json:"reason"`
}

// compliance writes a compliance export.
type compliance struct {
	disk     snapshot.Disk
	realm    *realm.Realm
	c        ComplianceCriteria
	persons  map[realm.UserID]bool
	channels map[realm.ChannelID]bool
	counts   ComplianceCounts
}

// complianceWriter writes records in one format.
type complianceWriter interface {
	write(*complianceRecord) error
	close() error
}

// ExportCompliance writes the messages that meet the criteria as a zip file, with edits, moves, deletions and legal
// holds: first the existing messages in the order of their ids, then those in the archive of deleted messages. The file
// about.json has the criteria, the counts and the legal holds. Files of messages are named and not contained. Messages
// are read one after the other: the memory this takes is that of the loaded organization.
func ExportCompliance(d snapshot.Disk, id realm.ID, c ComplianceCriteria, now time.Time, to io.Writer) (
	counts ComplianceCounts, err error,
) {
	x, err := snapshot.Recover(d, id)
	if err != nil {
		return counts, err
	}
	e := &compliance{disk: d, realm: x.Realm, c: c}
	if err := e.resolve(); err != nil {
		return counts, err
	}
	z := zip.NewWriter(to)
	w, err := newComplianceWriter(c.Format, z, x.Realm.Org().Name)
	if err != nil {
		return counts, err
	}
	if err := e.each(w.write); err != nil {
		return counts, err
	}
	if err := w.close(); err != nil {
		return counts, err
	}
	return e.counts, e.writeAbout(z, now)
}

// resolve finds the persons and channels of the criteria.
func (e *compliance) resolve() error {
	users, channels, err := e.realm.ViewAs(realm.System, 0).ComplianceIDs(e.c.Persons, e.c.Channels)
	if err != nil {
		return err
	}
	e.persons, e.channels = map[realm.UserID]bool{}, map[realm.ChannelID]bool{}
	for _, id := range slices.Concat(users, e.c.UserIDs) {
		e.persons[id] = true
	}
	for _, id := range slices.Concat(channels, e.c.ChannelIDs) {
		e.channels[id] = true
	}
	return nil
}

// each calls write with each message that meets the criteria, and counts.
func (e *compliance) each(write func(*complianceRecord) error) (err error) {
	take := func(list []realm.RecordedMessage) {
		for i := range list {
			if err == nil {
				err = e.take(&list[i], write)
			}
		}
	}
	last := e.realm.LastMessageID()
	for from := realm.MessageID(1); from <= last && err == nil; from += messagesPerFile {
		take(e.realm.RecordedMessages(from, from+messagesPerFile-1))
	}
	e.realm.EachRow(func(_ uint16, _, row any) {
		if archived, ok := row.(*realm.ArchivedMessages); ok && err == nil {
			take(e.realm.DeletedMessages(archived))
		}
	})
	return err
}

func (e *compliance) take(m *realm.RecordedMessage, write func(*complianceRecord) error) error {
	if !e.chosen(m) {
		return nil
	}
	r, err := e.record(m)
	if err != nil || e.c.Search != "" && !r.contains(e.c.Search) {
		return err
	}
	e.counts.Messages++
	for _, x := range []struct {
		count *int
		is    bool
	}{{&e.counts.Deleted, r.Deleted != nil}, {&e.counts.Held, len(r.Holds) > 0}, {&e.counts.Erased, r.Erased}} {
		if x.is {
			*x.count++
		}
	}
	for i := range r.Changes {
		if r.Changes[i].Topic != nil || r.Changes[i].From != "" {
			e.counts.Moves++
		}
	}
	for _, v := range m.History {
		if v.Content {
			e.counts.Edits++
		}
	}
	return write(r)
}

// chosen reports whether a message meets all criteria but the search.
func (e *compliance) chosen(m *realm.RecordedMessage) bool {
	if e.c.From != 0 && m.Time < e.c.From || e.c.To != 0 && m.Time >= e.c.To {
		return false
	}
	if len(e.persons) > 0 && !e.persons[m.Sender.ID] &&
		!slices.ContainsFunc(m.People, func(p realm.UserInfo) bool { return e.persons[p.ID] }) {
		return false
	}
	return len(e.channels) == 0 || e.channels[m.Channel] || e.channels[m.SentTo] ||
		slices.ContainsFunc(m.History, func(v realm.Revision) bool { return e.channels[v.ChannelBefore] })
}

func (e *compliance) person(id realm.UserID) compliancePerson {
	u := e.realm.Find(id)
	if u == nil { // the server
		return compliancePerson{ID: id}
	}
	return compliancePerson{u.ID, u.Email, u.Name}
}

func rfc3339(at int64) string { return time.Unix(at, 0).UTC().Format(time.RFC3339) }

// record returns a message with all its texts.
func (e *compliance) record(m *realm.RecordedMessage) (*complianceRecord, error) {
	body, kept, err := e.disk.Text(e.realm.ID(), m.Ref)
	if err != nil {
		return nil, fmt.Errorf("message %d: %w", m.ID, err)
	}
	r := &complianceRecord{ID: m.ID, Sent: rfc3339(m.Time), Sender: e.person(m.Sender.ID), Content: body.Text,
		Erased: !kept, Client: m.Client, Holds: m.Holds, Files: m.Attachments, Changes: []complianceChange{}}
	if m.Channel != 0 {
		r.ChannelID, r.Channel, r.Topic = m.Channel, m.ChannelName, &m.Topic
	}
	for _, p := range m.People {
		r.People = append(r.People, e.person(p.ID))
	}
	for _, v := range m.History {
		c := complianceChange{At: rfc3339(v.At), By: e.person(v.User), Topic: v.TopicBefore, NewName: v.TopicAfter}
		if v.ChannelBefore != 0 {
			c.From, c.To = e.channelName(v.ChannelBefore), e.channelName(v.ChannelAfter)
		}
		if v.Content {
			before, kept, err := e.disk.Text(e.realm.ID(), realm.BodyRef{Message: m.ID, Version: v.Version})
			if err != nil {
				return nil, fmt.Errorf("message %d: %w", m.ID, err)
			}
			if kept {
				c.Content = &before.Text
			}
		}
		r.Changes = append(r.Changes, c)
	}
	slices.SortStableFunc(r.Changes, func(a, b complianceChange) int { return cmp.Compare(a.At, b.At) })
	if d := m.Deleted; d != nil {
		r.Deleted = &complianceRemoval{At: rfc3339(d.At), Reason: "deleted by a user"}
		switch {
		case d.Reason == realm.DeletedByPolicy:
			r.Deleted.Reason = "retention policy"
		case d.By == 0:
			r.Deleted.Reason = "deleted by the server"
		default:
			by := e.person(d.By)
			r.Deleted.By = &by
		}
	}
	return r, nil
}

// channelName returns the name of a channel with its number: names can be used again.
func (e *compliance) channelName(id realm.ChannelID) string {
	if c := e.realm.FindChannel(id); c != nil {
		return c.Name + " (" + id.String() + ")"
	}
	return "(" + id.String() + ")"
}

// contains reports whether one of the texts or topics contains a text, in any case.
func (r *complianceRecord) contains(text string) bool {
	text = strings.ToLower(text)
	in := func(s *string) bool { return s != nil && strings.Contains(strings.ToLower(*s), text) }
	return in(&r.Content) || in(r.Topic) || slices.ContainsFunc(r.Changes, func(c complianceChange) bool {
		return in(c.Content) || in(c.Topic)
	})
}

// writeAbout describes the export, and ends it.
func (e *compliance) writeAbout(z *zip.Writer, now time.Time) error {
	w, err := z.Create("about.json")
	if err != nil {
		return err
	}
	holds := []object{}
	e.realm.EachRow(func(_ uint16, key, row any) {
		if h, ok := row.(*realm.LegalHold); ok {
			holds = append(holds, object{"id": key, "user_id": h.User, "channel_id": h.Channel, "reason": h.Reason,
				"since": rfc3339(h.At)})
		}
	})
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	if err := enc.Encode(object{"organization": e.realm.Org().Name, "exported": now.UTC().Format(time.RFC3339),
		"persons":  texts(e.c.Persons, e.c.UserIDs),
		"channels": texts(e.c.Channels, e.c.ChannelIDs),
		"from":     optionalTime(e.c.From), "before": optionalTime(e.c.To), "search": e.c.Search, "format": e.c.Format,
		"counts": e.counts, "legal_holds": holds}); err != nil {
		return err
	}
	return z.Close()
}

// texts returns names, and numbers as texts.
func texts[T fmt.Stringer](names []string, ids []T) []string {
	out := append([]string{}, names...)
	for _, id := range ids {
		out = append(out, id.String())
	}
	return out
}

func optionalTime(at int64) any {
	if at == 0 {
		return nil
	}
	return rfc3339(at)
}
