package server

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"parley/actors/realm"
	"parley/cmd/internal/cluster"
	"parley/cmd/internal/moving"
	"parley/snapshot"
	"parley/snapshot/codec"
	"parley/snapshot/files"
)

// clusterDisk is the disk of an import into a cluster. This node reads the archive; everything that is stored goes
// through the replicated log, so every core gets the same texts and rows.
type clusterDisk struct {
	snapshot.Disk // encodes rows; it has no store
	importer      *cluster.Importer
	names         map[realm.ID]string // subdomains of the reserved organizations
	epochs        map[realm.ID]uint64
}

// clusterTarget returns the place of an import into a cluster.
func clusterTarget(i *cluster.Importer, store moving.Files) moving.Target {
	d := clusterDisk{importer: i, names: map[realm.ID]string{}, epochs: map[realm.ID]uint64{}}
	return moving.Target{Disk: d, Files: store, Reserve: d.reserve}
}

func (d clusterDisk) reserve(subdomain string, wanted realm.ID) (realm.ID, error) {
	id, epoch, err := d.importer.Reserve(subdomain, wanted)
	if err == nil {
		d.names[id], d.epochs[id] = subdomain, epoch
	}
	return id, err
}

// Bounds returns the last fact of a complete organization.
func (d clusterDisk) Bounds(id realm.ID) (rows, last realm.Seq, err error) {
	last, err = d.importer.Last(id)
	return last, last, err
}

// Claim returns the claim that reserve has made.
func (d clusterDisk) Claim(id realm.ID, _ uint64) (realm.Claimed, error) {
	return realm.Claimed{Epoch: d.epochs[id]}, nil
}

// ClearEmptyRealm deletes the texts and rows of an earlier import under a number.
func (d clusterDisk) ClearEmptyRealm(id uint32) error {
	return d.importer.Clear(realm.ID(id), d.epochs[realm.ID(id)])
}

// TextWriter returns a function that stores texts, about cluster.ImportPart bytes in an entry of the log, and a
// function that stores the rest.
func (d clusterDisk) TextWriter(id realm.ID, epoch uint64) (
	add func(realm.BodyRef, *realm.Body) error, flush func() error,
) {
	var list []realm.TextWrite
	bytes := 0
	flush = func() error {
		if len(list) == 0 {
			return nil
		}
		err := d.importer.AddTexts(realm.Batch{Realm: id, Epoch: epoch, Texts: list})
		list, bytes = nil, 0
		return err
	}
	add = func(ref realm.BodyRef, b *realm.Body) error {
		size := len(codec.EncodeText(b))
		if bytes > 0 && bytes+size > cluster.ImportPart {
			if err := flush(); err != nil {
				return err
			}
		}
		list, bytes = append(list, realm.TextWrite{Ref: ref, Body: b}), bytes+size
		return nil
	}
	return add, flush
}

// ImportRows stores the rows in chunks, and then makes the organization visible on all cores.
func (d clusterDisk) ImportRows(
	id uint32, epoch uint64, at snapshot.Seq, rows func(yield func(snapshot.Row) error) error,
) error {
	n := uint32(0)
	err := snapshot.ChunkRows(cluster.ImportPart, rows, func(chunk []byte) error {
		err := d.importer.AddRows(realm.ID(id), epoch, n, slices.Clone(chunk))
		n++
		return err
	})
	if err != nil {
		return fmt.Errorf("store rows: %w", err)
	}
	return d.importer.Finish(d.names[realm.ID(id)], realm.ID(id), epoch, realm.Seq(at), n)
}

// leaderFiles are the files of an import in the data directory of this core: only the leader's files are served.
type leaderFiles struct {
	*files.Store
	core *cluster.Core
}

// errFilesAtLeader is the reason why an archive with files is not imported at a core that does not lead.
var errFilesAtLeader = errors.New("the archive has files, and this cluster keeps files in the data directory of its " +
	"leader: give the command at the leader, which parley cluster status names, or keep the files in a bucket")

func (f leaderFiles) Save(space string, r io.Reader, limit int64) (files.Saved, error) {
	if !f.core.Leads() {
		return files.Saved{}, errFilesAtLeader
	}
	return f.Store.Save(space, r, limit)
}

func (f leaderFiles) SaveAvatar(r io.Reader, limit int64) (string, error) {
	if !f.core.Leads() {
		return "", errFilesAtLeader
	}
	return f.Store.SaveAvatar(r, limit)
}

func (f leaderFiles) SaveLogo(r io.Reader, limit int64) (string, error) {
	if !f.core.Leads() {
		return "", errFilesAtLeader
	}
	return f.Store.SaveLogo(r, limit)
}
