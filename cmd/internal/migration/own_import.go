package migration

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"parley/actors"
	"parley/actors/realm"
	"parley/snapshot"
	"parley/snapshot/files"
)

// OwnFormat is the name of the format that parley export writes.
const OwnFormat = "parley"

// OwnOptions describe the import of an organization that parley export has written.
type OwnOptions struct {
	Subdomain string // instead of the exported one; . is the root organization, "" keeps the exported one
	NewKeys   bool   // revoke all API keys
	Secret    []byte // of the server
	// Progress is called now and then. It may be nil.
	Progress func(Progress)
}

// OwnTarget is the place of such an import.
type OwnTarget struct {
	Disk interface {
		snapshot.RowWriter
		Claim(id realm.ID, seen uint64) (realm.Claimed, error)
		ClearEmptyRealm(id realm.ID) error
		TextWriter(id realm.ID, epoch uint64) (add func(realm.BodyRef, *realm.Body) error, flush func() error)
	}
	Files interface {
		Save(space string, r io.Reader, limit int64) (files.Saved, error)
		Put(kind, file string, r io.Reader) (stored bool, err error)
		Release(hash string, used func() (bool, error)) error
		DiscardNew(keys []string)
	}
	// Find returns the organization with a subdomain.
	Find func(subdomain string) (id realm.ID, found bool)
	// Reserve returns the number for the organization: wanted if that is free. It returns an error if the subdomain is
	// in use.
	Reserve func(subdomain string, wanted realm.ID) (realm.ID, error)
	// KeyOwner returns the organization that has an API key with a hash; 0: none has.
	KeyOwner func(hash [32]byte) realm.ID
	// StoreKeys is called with the hashes of all API keys before the organization becomes visible. nil: KeyOwner is
	// enough, because no other import runs.
	StoreKeys func(id realm.ID, hashes [][32]byte)
	// Verify returns the digest of the stored rows. nil: they are verified elsewhere.
	Verify func(id realm.ID) (snapshot.Digest, error)
	// Serve makes the organization visible to users. nil: it is visible, or no server runs.
	Serve func(subdomain string, id realm.ID) error
}

// ownImport is one import of an organization that parley export has written.
type ownImport struct {
	ctx context.Context
	o   OwnOptions
	to  OwnTarget

	id      realm.ID
	texts   int64
	pins    []string // of files that are being saved
	created []string // files that did not exist before
}

// CheckOwn reads and verifies an export.
func CheckOwn(f io.Reader) error {
	_, err := snapshot.ReadExport(f, 1, discardFile, nil)
	return err
}

// discardFile reads a file of an export and stores nothing.
func discardFile(_, name string, content io.Reader) (string, error) {
	_, err := io.Copy(io.Discard, content)
	return name, err
}

// ImportOwn adds the organization of an export and returns the digest of its rows. The file is verified before anything
// is written. The organization becomes visible at one moment; after an error nothing shows that an import ran.
func ImportOwn(ctx context.Context, f *os.File, o OwnOptions, to OwnTarget) (digest snapshot.Digest, err error) {
	i := &ownImport{ctx: ctx, o: o, to: to}
	read := func(id realm.ID, file func(kind, name string, content io.Reader) (string, error),
		text func(realm.BodyRef, *realm.Body) error) (*snapshot.Imported, error) {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return nil, err
		}
		x, err := snapshot.ReadExport(f, id, file, text)
		if err == nil {
			i.applyOptions(x)
		}
		return x, err
	}
	x, err := read(1, discardFile, nil)
	if err != nil {
		return digest, err
	}
	subdomain := x.Realm.Org().StringID
	if id, taken := to.Find(subdomain); taken {
		return digest, ErrTaken(subdomain, id)
	}
	if err := i.checkKeys(x); err != nil {
		return digest, err
	}
	if i.id, err = to.Reserve(subdomain, x.Head.Realm); err != nil {
		return digest, err
	}
	claimed, err := to.Disk.Claim(i.id, realm.AnyEpoch)
	if err != nil {
		return digest, err
	}
	defer func() {
		for _, p := range i.pins {
			to.Files.Release(p, nil)
		}
		// An organization that exists all the same is not cleared, and keeps its files.
		if err != nil && to.Disk.ClearEmptyRealm(i.id) == nil {
			to.Files.DiscardNew(i.created)
		}
	}()
	if err := to.Disk.ClearEmptyRealm(i.id); err != nil {
		return digest, err
	}
	text, flush := to.Disk.TextWriter(i.id, claimed.Epoch)
	if x, err = read(i.id, i.save, i.counted(x.Realm.Org().Name, text)); err == nil {
		err = flush()
	}
	if err != nil {
		return digest, err
	}
	i.addLinkTokens(x)
	digest = snapshot.StateDigest(x.Realm)
	if err := ctx.Err(); err != nil {
		return digest, err
	}
	if to.StoreKeys != nil {
		var keys [][32]byte
		x.Realm.EachUser(func(u *realm.User) { keys = append(keys, KeyHashes(u)...) })
		to.StoreKeys(i.id, keys)
	}
	if err := x.Install(to.Disk, i.id, claimed.Epoch); err != nil {
		return digest, err
	}
	if to.Verify != nil {
		stored, err := to.Verify(i.id)
		if err != nil {
			return digest, err
		}
		if stored != digest {
			return digest, fmt.Errorf("the stored organization is\n%s, but the imported one is\n%s", stored, digest)
		}
	}
	if to.Serve != nil {
		err = to.Serve(subdomain, i.id)
	}
	return digest, err
}

// ErrTaken is the error of an import under a subdomain that is in use.
func ErrTaken(subdomain string, id realm.ID) error {
	return fmt.Errorf("organization %q exists already, as number %d; choose another name with --realm", subdomain, id)
}

// ownProgressEvery is how many texts are stored between two reports of the progress.
const ownProgressEvery = 10_000

// counted returns a function that stores a text, and reports the progress.
func (i *ownImport) counted(
	organization string, text func(realm.BodyRef, *realm.Body) error,
) func(realm.BodyRef, *realm.Body) error {
	return func(ref realm.BodyRef, b *realm.Body) error {
		if err := i.ctx.Err(); err != nil {
			return err
		}
		if i.texts++; i.texts%ownProgressEvery == 0 && i.o.Progress != nil {
			i.o.Progress(Progress{Organization: organization, Step: "texts", Done: i.texts})
		}
		return text(ref, b)
	}
}

// checkKeys returns an error if another organization of the server has an API key of the export.
func (i *ownImport) checkKeys(x *snapshot.Imported) (clash error) {
	x.Realm.EachUser(func(u *realm.User) {
		for _, h := range KeyHashes(u) {
			if id := i.to.KeyOwner(h); id != 0 {
				clash = actors.ErrKeysInUse(id)
			}
		}
	})
	return clash
}

// KeyHashes returns the hashes of all API keys of a user.
func KeyHashes(u *realm.User) [][32]byte {
	out := slices.Clone(u.Keys)
	for _, k := range u.KeyInfo {
		out = append(out, k.Hash)
	}
	return out
}

// applyOptions changes the rows as the options of the import say.
func (i *ownImport) applyOptions(x *snapshot.Imported) {
	x.Realm.EachRow(func(_ uint16, _, row any) {
		switch r := row.(type) {
		case *realm.Organization:
			if i.o.Subdomain != "" {
				r.StringID = strings.TrimPrefix(i.o.Subdomain, ".")
			}
			// Owners agreed to the services of the other server's operator.
			for _, consent := range []string{realm.AssistantSetting, realm.MeaningSetting} {
				delete(r.Settings, consent)
			}
		case *realm.User:
			if i.o.NewKeys {
				r.Keys, r.KeyInfo = nil, nil
				r.KeyEpoch++
			}
		}
	})
}

// addLinkTokens makes the links valid that lists of invitations show on this server: the token of a link is derived
// from the server's secret. Links that were sent stay valid.
func (i *ownImport) addLinkTokens(x *snapshot.Imported) {
	x.Realm.EachRow(func(_ uint16, _, row any) {
		if r, ok := row.(*realm.Invite); ok && r.Multi {
			if h := actors.HashKey(actors.LinkToken(i.o.Secret, i.id, r.ID)); !slices.Contains(r.Tokens, h) {
				r.Tokens = append(r.Tokens, h)
			}
		}
	})
}

// maxImportedFile limits one file in bytes; it is larger than every upload limit.
const maxImportedFile = 1 << 40

// save writes a file and returns the name that rows use for it.
func (i *ownImport) save(kind, name string, content io.Reader) (string, error) {
	if err := i.ctx.Err(); err != nil {
		return "", err
	}
	if kind != realm.ContentFile {
		stored, err := i.to.Files.Put(kind, name, content)
		if stored {
			i.created = append(i.created, files.Key(kind, name))
		}
		return name, err
	}
	saved, err := i.to.Files.Save(strconv.Itoa(int(i.id)), content, maxImportedFile)
	if err == nil { // the number was free, so no other organization has this file
		i.created, i.pins = append(i.created, files.ContentKey(saved.Hash)), append(i.pins, saved.Hash)
	}
	return saved.Hash, err
}
