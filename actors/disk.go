package actors

import (
	"parley/actors/presence"
	"parley/actors/realm"
)

// Disk stores the journal, the rows and the texts of every realm. Package snapshot implements it.
type Disk interface {
	Realms() ([]realm.ID, error)
	// Claim makes this process the only writer of a realm. rows is the sequence number of the stored rows, last is the
	// last fact in the journal.
	Claim(id realm.ID) (epoch uint64, last, rows realm.Seq, err error)
	// Load puts the rows into r and the presence rows into table. It returns the stored unacked events: events that
	// some event queue had not acknowledged.
	Load(id realm.ID, r *realm.Realm, book *presence.Table) ([]realm.Told, error)
	// LoadPresence puts only the presence rows into table.
	LoadPresence(id realm.ID, book *presence.Table) error
	// Tail calls fn with every fact of the journal after a sequence number, in order.
	Tail(id realm.ID, after realm.Seq, fn func(realm.Record) error) error
	Encode(f realm.Fact) []byte
	// EncodeRow encodes one row of a snapshot. A nil row means that the row is to be deleted.
	EncodeRow(table uint16, key, row any) realm.EncodedRow
	// EncodeUnacked encodes the unacked events of one fact as a row.
	EncodeUnacked(t realm.Told) realm.EncodedRow
	// Append commits batches with one sync. After an error nothing that is written later can be trusted either.
	Append([]realm.Batch) error
	// Snapshot writes changed rows, records their sequence number and deletes the facts up to it, in one batch.
	Snapshot(id realm.ID, epoch uint64, at realm.Seq, rows []realm.EncodedRow) error
	// SavePresence writes rows of presence without a sync. The last of them may be lost in a crash.
	SavePresence(id realm.ID, epoch uint64, rows []realm.EncodedRow) error
	// Text reads one version of a message's text. It reports false if there is none.
	Text(id realm.ID, ref realm.BodyRef) (realm.Body, bool, error)
}
