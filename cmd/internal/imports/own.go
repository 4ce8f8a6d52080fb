package imports

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"

	"parley/actors/realm"
	"parley/cmd/internal/cluster"
	"parley/cmd/internal/datadir"
	"parley/cmd/internal/migration"
	"parley/cmd/internal/orgfiles"
	"parley/snapshot"
	"parley/wire"
)

// OwnImport is the import of an organization that parley export has written.
type OwnImport struct {
	Dir       string // data directory
	File      string // absolute path
	Subdomain string // instead of the exported one; . is the root organization, "" keeps the exported one
	NewKeys   bool   // revoke all API keys
	Progress  func(migration.Progress)
}

// RunOwn adds the organization: to the server that runs in the data directory, or to the directory itself if no
// server runs there. The file is verified before anything is written, not even a directory. It returns the digest of
// the organization as text.
func RunOwn(x OwnImport) (digest string, err error) {
	if x.Subdomain != "." {
		if err := wire.CheckSubdomain(x.Subdomain); err != nil {
			return "", err
		}
	}
	f, err := os.Open(x.File)
	if err != nil {
		return "", err
	}
	defer f.Close()
	in := request{Format: migration.OwnFormat, File: x.File, Realm: x.Subdomain, NewKeys: x.NewKeys}
	if l, ran, err := send(x.Dir, in, x.Progress); ran {
		return l.Digest, err
	}
	if err := migration.CheckOwn(f); err != nil {
		return "", err
	}
	if err := datadir.CheckVersion(x.Dir); err != nil {
		return "", err
	}
	if _, err := cluster.OpenStopped(x.Dir); err != nil {
		return "", err
	}
	store, err := snapshot.Open(x.Dir, snapshot.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return "", datadir.StartError(x.Dir, err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	secret, err := datadir.LoadSecret(x.Dir)
	if err != nil {
		return "", err
	}
	uploads, end, err := orgfiles.Open(x.Dir, false)
	if err != nil {
		return "", err
	}
	defer end()
	disk := snapshot.Disk{Store: store}
	organizations, err := migration.FindOrganizations(disk)
	if err != nil {
		return "", err
	}
	o := migration.OwnOptions{Subdomain: x.Subdomain, NewKeys: x.NewKeys, Secret: secret, Progress: x.Progress}
	d, err := migration.ImportOwn(context.Background(), f, o, migration.OwnTarget{Disk: disk, Files: uploads,
		Find: organizations.Find, Reserve: organizations.Reserve,
		KeyOwner: func(hash [32]byte) realm.ID { return organizations.ByKeyHash[hash] },
		Verify:   func(id realm.ID) (snapshot.Digest, error) { return storedDigest(disk, id) }})
	return d.String(), err
}

// storedDigest returns the digest of the stored rows of an organization.
func storedDigest(d snapshot.Disk, id realm.ID) (snapshot.Digest, error) {
	x, err := snapshot.Recover(d, id)
	if err != nil {
		return snapshot.Digest{}, err
	}
	return snapshot.StateDigest(x.Realm), nil
}

// importOwn carries out an import at a running server.
func (o *Server) importOwn(ctx context.Context, in request, secret []byte,
	progress func(migration.Progress)) (digest string, err error) {
	f, err := os.Open(in.File)
	if err != nil {
		return "", err
	}
	defer f.Close()
	disk := snapshot.Disk{Store: o.Store}
	to := migration.OwnTarget{Disk: disk, Files: o.Files, Serve: o.Orgs.ServeImported,
		Verify: func(id realm.ID) (snapshot.Digest, error) { return storedDigest(disk, id) },
		Find: func(subdomain string) (id realm.ID, found bool) {
			id, _, found = o.Orgs.RealmByName(subdomain)
			return id, found
		},
		KeyOwner: func(hash [32]byte) realm.ID {
			id, _ := o.Orgs.RealmOfKey(hash)
			return id
		}}
	reserve, reserveFree := o.Orgs.ReserveRealm, o.Orgs.ReserveFreeRealm
	if o.Leader != nil {
		// An import whose client has disconnected still removes its texts and rows.
		d := newClusterDisk(&cluster.Importer{Ctx: context.WithoutCancel(ctx), Leader: o.Leader, Follower: o.Follower})
		to.Disk, to.Files, to.Verify, to.Serve = d, o.importFiles(), nil, nil
		to.StoreKeys = d.storeKeys
		reserve, reserveFree = d.reserve, d.reserveFree
	}
	claimFile := "" // has the number that this import has reserved
	to.Reserve = func(subdomain string, wanted realm.ID) (id realm.ID, err error) {
		claimFile = filepath.Join(o.Data, "imports", "own-"+subdomain)
		if claimed := o.readClaim(claimFile); claimed != 0 {
			id, err = reserve(subdomain, claimed)
		} else {
			id, err = reserveFree(subdomain, wanted)
		}
		if err != nil {
			return 0, err
		}
		err = os.MkdirAll(filepath.Dir(claimFile), 0o700)
		return id, errors.Join(err, datadir.WriteAndSync(claimFile, fmt.Append(nil, id)))
	}
	defer func() {
		if claimFile != "" {
			os.Remove(claimFile) // nothing is left of a failed import
		}
	}()
	d, err := migration.ImportOwn(ctx, f, migration.OwnOptions{Subdomain: in.Realm, NewKeys: in.NewKeys, Secret: secret,
		Progress: progress}, to)
	return d.String(), err
}

// readClaim returns the number that an earlier attempt of the same import has reserved before the process was killed,
// so that its texts and rows are removed; 0: there is none.
func (o *Server) readClaim(file string) realm.ID {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	id, err := strconv.ParseUint(string(text), 10, 32)
	if err != nil {
		return 0
	}
	if _, last, err := (snapshot.Disk{Store: o.Store}).Bounds(realm.ID(id)); err != nil || last != 0 {
		return 0
	}
	return realm.ID(id)
}
