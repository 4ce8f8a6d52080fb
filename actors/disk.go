package actors

import (
	"parley/actors/presence"
	"parley/actors/realm"
)

// Disk is the journal, the rows and the texts, in the realm's own terms.
type Disk interface {
	Realms() ([]realm.ID, error)
	// Claim makes this process the realm's only writer; rows is the number its rows stand at, last the journal's end.
	Claim(id realm.ID) (epoch uint64, last, rows realm.Seq, err error)
	// Load puts the rows into r and the book of presence, and returns the events kept for queues that had not acknowledged them.
	Load(id realm.ID, r *realm.Realm, book *presence.Table) ([]realm.Told, error)
	// LoadPresence puts what the rows say of presence alone into the book.
	LoadPresence(id realm.ID, book *presence.Table) error
	Tail(id realm.ID, after realm.Seq, fn func(realm.Seq, realm.Fact) error) error
	Encode(f realm.Fact) []byte
	EncodeRow(table uint16, key, row any) realm.EncodedRow
	EncodeUnacked(t realm.Told) realm.EncodedRow
	// Append commits batches with one sync. An error means nothing later can be trusted either.
	Append([]realm.Batch) error
	Snapshot(id realm.ID, epoch uint64, at realm.Seq, rows []realm.EncodedRow) error
	Text(id realm.ID, ref realm.BodyRef) (realm.Body, bool, error)
}
