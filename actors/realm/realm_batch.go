package realm

import "iter"

// Batch is the encoded facts of one or more turns, to be written to the journal.
type Batch struct {
	Realm ID
	Epoch uint64
	After Seq // number of the fact before the first one
	Facts [][]byte
	Texts []TextWrite
}

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
func (f *KeysRevoked) Accounts() []UserID     { return []UserID{f.User} }
func (f *KeyUsed) Accounts() []UserID         { return []UserID{f.User} }
func (f *PasswordChanged) Accounts() []UserID { return []UserID{f.ID} }
