package realm

import "iter"

// Batch is the facts of one or more turns on their way to the journal, encoded.
type Batch struct {
	Realm ID
	Epoch uint64
	After Seq // number of the fact before the first
	Facts [][]byte
	Texts []TextWrite
}

// TextWrite writes one version of a message's text, or erases it when Body is nil.
type TextWrite struct {
	Ref  BodyRef
	Body *Body
}

// EncodedRow is one row of a snapshot; Value nil removes it.
type EncodedRow struct {
	Table      uint16
	Key, Value []byte
}

// BlocksTable is the number of the table of messages, which in a large organization is most of what is loaded.
const BlocksTable uint16 = 6

// UnackedEventsTable is the number under which a snapshot keeps events that some queue has not acknowledged.
const UnackedEventsTable uint16 = 0xFFF0

// PresenceTable is the number under which a snapshot keeps who was here.
const PresenceTable uint16 = 0xFFF1

// TextWriter is a fact that writes message texts in its own batch.
type TextWriter interface {
	Bodies() iter.Seq2[BodyRef, *Body]
}

// TextEraser is a fact that erases message texts in its own batch.
type TextEraser interface{ Erased() []BodyRef }

// CredentialChange is a fact after which somebody's credentials must be looked at anew.
type CredentialChange interface{ Accounts() []UserID }

func (f *UserJoined) Accounts() []UserID      { return []UserID{f.User.ID} }
func (f *UserChanged) Accounts() []UserID     { return []UserID{f.ID} }
func (f *KeyIssued) Accounts() []UserID       { return []UserID{f.ID} }
func (f *PasswordChanged) Accounts() []UserID { return []UserID{f.ID} }
