package migration

import (
	"io"

	"parley/actors/realm"
	"parley/snapshot"
	"parley/snapshot/files"
	"parley/wire/exports"
)

// ExportPerson writes the data of one user of a stored organization, see exports.WritePerson. person is an email
// address or an id. The memory this takes is that of the loaded organization.
func ExportPerson(d snapshot.Disk, store *files.Store, id realm.ID, person string, to io.Writer) (
	counts exports.PersonCounts, err error,
) {
	x, err := snapshot.Recover(d, id)
	if err != nil {
		return counts, err
	}
	u, err := x.Realm.FindPerson(person)
	if err != nil {
		return counts, err
	}
	return exports.WritePerson(exports.Source{
		View: func(read func(realm.View) error) error { return read(x.Realm.ViewAs(realm.System, 0)) },
		Text: func(ref realm.BodyRef) (realm.Body, bool, error) { return d.Text(id, ref) },
		Open: func(kind, name string) (exports.Stored, error) { return store.Open(kind, name) },
	}, u.ID, to)
}
