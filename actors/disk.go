package actors

import (
	"errors"

	"parley/actors/owner"
	"parley/actors/presence"
	"parley/actors/realm"
)

// Journal orders and stores the batches of every realm, for all the nodes that follow it.
type Journal interface {
	// Claim makes the caller the only writer of a realm, if the realm still has the epoch that the caller has seen;
	// realm.AnyEpoch is every epoch. Claiming a new id creates the realm. The error is a realm.ErrMoved if another
	// process has claimed the realm in between.
	Claim(id realm.ID, seen uint64) (realm.Claimed, error)
	owner.Writer
}

// Disk stores the journal, the rows and the texts of every realm. Package snapshot implements it.
type Disk interface {
	Journal
	owner.Disk
	Realms() ([]realm.ID, error)
	// Load puts the rows into r and the presence rows into table. It returns the stored unacked events: events that
	// some event queue had not acknowledged.
	Load(id realm.ID, r *realm.Realm, table *presence.Table) ([]realm.Publication, error)
	// LoadPresence puts only the presence rows into table.
	LoadPresence(id realm.ID, table *presence.Table) error
	// Tail calls fn with every fact of the journal after a sequence number, in order.
	Tail(id realm.ID, after realm.Seq, fn func(realm.Record) error) error
	// Text reads one version of a message's text. It reports false if there is none.
	Text(id realm.ID, ref realm.BodyRef) (realm.Body, bool, error)
}

// NoDisk is the disk of a node that stores nothing: all its realms are replicas.
type NoDisk struct{}

// errNoDisk is the error of everything that needs a disk.
var errNoDisk = errors.New("this node stores nothing")

func (NoDisk) Claim(realm.ID, uint64) (realm.Claimed, error) { return realm.Claimed{}, errNoDisk }

func (NoDisk) Append(batches []realm.Batch) []error {
	errs := make([]error, len(batches))
	for i := range errs {
		errs[i] = errNoDisk
	}
	return errs
}

func (NoDisk) WriteRows(realm.ID, uint64, realm.Seq, []realm.EncodedRow) error { return errNoDisk }
func (NoDisk) Realms() ([]realm.ID, error)                                     { return nil, nil }
func (NoDisk) LoadPresence(realm.ID, *presence.Table) error                    { return errNoDisk }
func (NoDisk) Tail(realm.ID, realm.Seq, func(realm.Record) error) error        { return errNoDisk }
func (NoDisk) FindRequest(realm.ID, string) (realm.Seq, bool, error)           { return 0, false, errNoDisk }
func (NoDisk) Encode(realm.Fact) []byte                                        { return nil }
func (NoDisk) EncodeRow(uint16, any, any) realm.EncodedRow                     { return realm.EncodedRow{} }
func (NoDisk) EncodeUnacked(realm.Publication) realm.EncodedRow                { return realm.EncodedRow{} }
func (NoDisk) SavePresence(realm.ID, uint64, []realm.EncodedRow) error         { return errNoDisk }
func (NoDisk) Text(realm.ID, realm.BodyRef) (realm.Body, bool, error) {
	return realm.Body{}, false, errNoDisk
}
func (NoDisk) Load(realm.ID, *realm.Realm, *presence.Table) ([]realm.Publication, error) {
	return nil, errNoDisk
}
