package imports

import (
	"fmt"
	"io"
	"slices"

	"parley/actors/realm"
	"parley/cmd/internal/cluster"
	"parley/cmd/internal/migration"
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
	keys          map[realm.ID][][32]byte // hashes of their API keys
}

func newClusterDisk(i *cluster.Importer) clusterDisk {
	return clusterDisk{importer: i, names: map[realm.ID]string{}, epochs: map[realm.ID]uint64{},
		keys: map[realm.ID][][32]byte{}}
}

func (d clusterDisk) reserve(subdomain string, wanted realm.ID) (realm.ID, error) {
	return d.reserveNumber(subdomain, wanted, false)
}

// reserveFree reserves the wanted number if no other import has it, and otherwise another one.
func (d clusterDisk) reserveFree(subdomain string, wanted realm.ID) (realm.ID, error) {
	return d.reserveNumber(subdomain, wanted, true)
}

func (d clusterDisk) reserveNumber(subdomain string, wanted realm.ID, free bool) (realm.ID, error) {
	id, epoch, err := d.importer.Reserve(subdomain, wanted, free)
	if err == nil {
		d.names[id], d.epochs[id] = subdomain, epoch
	}
	return id, err
}

// storeKeys stores the hashes of the API keys for the last step, in which the leader compares them with its accounts.
func (d clusterDisk) storeKeys(id realm.ID, hashes [][32]byte) { d.keys[id] = hashes }

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
func (d clusterDisk) ClearEmptyRealm(id realm.ID) error {
	return d.importer.Clear(id, d.epochs[id])
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
	id realm.ID, epoch uint64, at realm.Seq, rows func(yield func(snapshot.Row) error) error,
) error {
	n := uint32(0)
	err := snapshot.ChunkRows(cluster.ImportPart, rows, func(chunk []byte) error {
		err := d.importer.AddRows(id, epoch, n, slices.Clone(chunk))
		n++
		return err
	})
	if err != nil {
		return fmt.Errorf("store rows: %w", err)
	}
	return d.importer.Finish(d.names[id], id, epoch, at, n, d.keys[id])
}

// fileStore stores the files of an import.
type fileStore interface {
	migration.Files
	Put(kind, file string, r io.Reader) (stored bool, err error)
	DiscardNew(keys []string)
}

// importFiles returns the files of an import into this server, or into its cluster.
func (o *Server) importFiles() fileStore {
	if o.Leader == nil || o.Files.IsRemote() {
		return o.Files
	}
	return leaderFiles{o.Files, o.Leader, o.Follower}
}

// leaderFiles are the files of an import in the data directory of this core: only the leader's files are served.
type leaderFiles struct {
	*files.Store
	leader   *cluster.Leader
	follower *cluster.Follower // the link to the leader
}

// check returns an error if this core does not lead.
func (f leaderFiles) check() error {
	if f.leader.IsLeader() {
		return nil
	}
	return fmt.Errorf("the archive has files, and this cluster stores files in the data directory of its leader: run "+
		"the command at the leader, which is %s, or store the files of the cluster in a bucket (parley files move)",
		f.follower.Leader())
}

func (f leaderFiles) Save(space string, r io.Reader, limit int64) (s files.Saved, err error) {
	if err := f.check(); err != nil {
		return s, err
	}
	return f.Store.Save(space, r, limit)
}

func (f leaderFiles) SaveAvatar(r io.Reader, limit int64) (string, error) {
	if err := f.check(); err != nil {
		return "", err
	}
	return f.Store.SaveAvatar(r, limit)
}

func (f leaderFiles) SaveLogo(r io.Reader, limit int64) (string, error) {
	if err := f.check(); err != nil {
		return "", err
	}
	return f.Store.SaveLogo(r, limit)
}

func (f leaderFiles) Put(kind, file string, r io.Reader) (stored bool, err error) {
	if err := f.check(); err != nil {
		return false, err
	}
	return f.Store.Put(kind, file, r)
}
