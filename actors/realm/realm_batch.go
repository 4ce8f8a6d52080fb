package realm

import (
	"errors"
	"iter"
	"math"
)

// Batch is the encoded facts of one or more turns, with everything that applying them needs. Every process that applies
// the same batches has the same state and sends the same events.
type Batch struct {
	Realm    ID
	Epoch    uint64 // of the owner that recorded the facts
	After    Seq    // number of the fact before the first one
	Now      int64  // clock reading with which the facts are applied, Unix seconds; 0 in journals without readings
	Level    uint16 // rule level of the owner
	Facts    [][]byte
	Texts    []TextWrite
	Requests []Request // by Seq
}

// Last returns the number of the last fact of the batch.
func (b *Batch) Last() Seq { return b.After + Seq(len(b.Facts)) }

// Join appends the facts of the next batch of the same realm and owner. It reports false, and changes nothing, if they
// must be applied with other inputs.
func (b *Batch) Join(next Batch) bool {
	if next.Realm != b.Realm || next.Epoch != b.Epoch || next.After != b.Last() || next.Now != b.Now ||
		next.Level != b.Level {
		return false
	}
	b.Facts = append(b.Facts, next.Facts...)
	b.Texts = append(b.Texts, next.Texts...)
	b.Requests = append(b.Requests, next.Requests...)
	return true
}

// Request says that a turn recorded its facts for a request with an id. By the id, the sender of the request can find
// out whether it was carried out.
type Request struct {
	ID  string
	Seq Seq // the last fact of the turn
}

// AnyEpoch, as the expected epoch of a claim, makes the claim succeed with every present epoch.
const AnyEpoch = math.MaxUint64

// Claimed is the state of a realm when a process became its owner.
type Claimed struct {
	Epoch uint64 // for every batch of the new owner
	Last  Seq    // the last fact in the journal
	Rows  Seq    // sequence number of the stored rows
}

// ErrMoved says that a batch was not stored: another process owns the realm now, or the journal has other facts than
// the process that recorded the batch.
var ErrMoved = errors.New("the realm has another owner or other facts")

// ErrBehind says that the journal does not have the facts any more that a follower needs: it must load the rows again.
var ErrBehind = errors.New("the facts after this one are only in the rows")

// Record is one fact of the journal.
type Record struct {
	Inputs
	Fact Fact
}

// Inputs are the values with which a fact of the journal is applied.
type Inputs struct {
	Seq     Seq
	Now     int64  // clock reading; 0 in journals from before there was one
	Level   uint16 // rule level; 0 with Now
	Request string // id of the request whose last fact this is, or ""
}

// MaxRequestID is how many bytes the id of a request may have.
const MaxRequestID = 128

// TextWrite writes one version of a message's text. Body nil erases it.
type TextWrite struct {
	Ref  BodyRef
	Body *Body
}

// EncodedRow is one row of a snapshot. Value nil removes it.
type EncodedRow struct {
	Table      uint16
	Key, Value []byte
}

// OrganizationTable is the number of the table with the one row of the organization.
const OrganizationTable uint16 = 1

// BlocksTable is the number of the table of messages. In a large organization it is most of the data that is loaded.
const BlocksTable uint16 = 6

// UnackedEventsTable is the number of the snapshot's table of events that a queue has not acknowledged.
const UnackedEventsTable uint16 = 0xFFF0

// PresenceTable is the number of the snapshot's table of users' presence.
const PresenceTable uint16 = 0xFFF1

// TextWriter is a fact that writes message texts in its own batch.
type TextWriter interface {
	Bodies() iter.Seq2[BodyRef, *Body]
}

// TextEraser is a fact that erases message texts in its own batch.
type TextEraser interface{ Erased() []BodyRef }

// CredentialChange is a fact that changes credentials. Cached credentials of its Accounts are invalid after it.
type CredentialChange interface{ Accounts() []UserID }

func (f *UserJoined) Accounts() []UserID      { return []UserID{f.User.ID} }
func (f *UserChanged) Accounts() []UserID     { return []UserID{f.ID} }
func (f *KeyIssued) Accounts() []UserID       { return []UserID{f.ID} }
func (f *KeyAdded) Accounts() []UserID        { return []UserID{f.User} }
func (f *ScopedKeyAdded) Accounts() []UserID  { return []UserID{f.User} }
func (f *KeysRevoked) Accounts() []UserID     { return []UserID{f.User} }
func (f *KeyUsed) Accounts() []UserID         { return []UserID{f.User} }
func (f *PasswordChanged) Accounts() []UserID { return []UserID{f.ID} }

// FillTexts copies the texts of a batch into its decoded facts, whose encoded form does not contain them.
func (b *Batch) FillTexts(facts []Fact) {
	if len(b.Texts) == 0 {
		return
	}
	texts := make(map[BodyRef]*Body, len(b.Texts))
	for _, t := range b.Texts {
		if t.Body != nil {
			texts[t.Ref] = t.Body
		}
	}
	for _, f := range facts {
		if w, ok := f.(TextWriter); ok {
			for ref, body := range w.Bodies() {
				if text := texts[ref]; text != nil {
					*body = *text
				}
			}
		}
	}
}

// EventTexts returns the texts that an event shows.
func EventTexts(e Event) []BodyRef {
	switch e := e.(type) {
	case *MessageArrived:
		return []BodyRef{e.Message.Ref}
	case *MessageUpdate:
		if e.Content {
			return []BodyRef{{Message: e.Message, Version: e.Version}, {Message: e.Message, Version: e.OldVersion}}
		}
	}
	return nil
}

// NewBatch returns the batch of a turn that has just recorded facts in r. encode encodes a fact.
func NewBatch(r *Realm, epoch uint64, facts []Fact, encode func(Fact) []byte) Batch {
	b := Batch{
		Realm: r.id, Epoch: epoch, After: r.seq - Seq(len(facts)), Now: r.index.clock, Level: r.Level(),
		Facts: make([][]byte, len(facts)),
	}
	for i, f := range facts {
		b.Facts[i] = encode(f)
		if w, ok := f.(TextWriter); ok {
			for ref, body := range w.Bodies() {
				b.Texts = append(b.Texts, TextWrite{Ref: ref, Body: body})
			}
		}
		if e, ok := f.(TextEraser); ok {
			for _, ref := range e.Erased() {
				b.Texts = append(b.Texts, TextWrite{Ref: ref})
			}
		}
	}
	return b
}

// StoredTexts returns the texts that a fact from the journal has written, as they are now: a text that was erased since
// is erased. read reads a text.
func StoredTexts(f Fact, read func(BodyRef) (Body, bool, error)) (list []TextWrite, err error) {
	if w, ok := f.(TextWriter); ok {
		for ref := range w.Bodies() {
			body, found, err := read(ref)
			switch {
			case err != nil:
				return nil, err
			case found:
				list = append(list, TextWrite{Ref: ref, Body: &body})
			default:
				list = append(list, TextWrite{Ref: ref})
			}
		}
	}
	if e, ok := f.(TextEraser); ok {
		for _, ref := range e.Erased() {
			list = append(list, TextWrite{Ref: ref})
		}
	}
	return list, nil
}
