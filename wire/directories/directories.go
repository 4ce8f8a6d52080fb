// Package directories compares accounts with the directories of their companies: it deactivates the accounts of people
// that have left, reactivates those of people that are back, and keeps names, roles, groups and pictures up to date.
package directories

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"parley/actors/realm"
	"parley/actors/registry"
	"parley/wire"
	"parley/wire/signon"
)

// firstComparison is how long after the start the first comparison is: clients that connect again come first.
const firstComparison = 10 * time.Second

// peoplePage is the number of people with an identity that one view of an organization returns.
const peoplePage = 1000

// Organizations gives access to the organizations of this node.
type Organizations interface {
	wire.Server
	// Realms returns the organizations by their subdomains.
	Realms() map[string]realm.ID
	// IsAsleep reports whether this node owns an organization that is not in memory.
	IsAsleep(realm.ID) bool
}

// Syncer compares the organizations that this node owns with their directories, each directory in its own rhythm.
type Syncer struct {
	orgs    Organizations
	files   wire.Files
	signOn  *signon.Providers
	log     *slog.Logger
	ctx     context.Context
	cancel  context.CancelFunc
	done    sync.WaitGroup
	entries atomic.Int64 // of the largest directory

	mu    sync.Mutex
	owned map[realm.ID]bool
}

// Start starts the comparison with all directories that have one. Close ends it.
func Start(orgs Organizations, files wire.Files, p *signon.Providers, log *slog.Logger) *Syncer {
	s := &Syncer{orgs: orgs, files: files, signOn: p, log: log, owned: map[realm.ID]bool{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	for _, e := range p.All() {
		if e.Directory != nil && e.Directory.SyncEvery() > 0 {
			s.done.Go(func() { s.run(e) })
		}
	}
	return s
}

// Close ends the comparison, also one in progress.
func (s *Syncer) Close() {
	s.cancel()
	s.done.Wait()
}

// Begin implements actors.OwnerTask.
func (s *Syncer) Begin(id realm.ID) { s.setOwned(id, true) }

// End implements actors.OwnerTask.
func (s *Syncer) End(id realm.ID) { s.setOwned(id, false) }

func (s *Syncer) setOwned(id realm.ID, owned bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if owned {
		s.owned[id] = true
	} else {
		delete(s.owned, id)
	}
}

func (s *Syncer) isOwned(id realm.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.owned[id]
}

// run compares with one directory until Close.
func (s *Syncer) run(e *signon.Entry) {
	c := comparison{Syncer: s, entry: e, versions: map[account]string{}}
	for wait := min(firstComparison, e.Directory.SyncEvery()); ; wait = e.Directory.SyncEvery() {
		select {
		case <-s.ctx.Done():
			return
		case <-time.After(wait):
		}
		began := time.Now()
		out, err := c.compare()
		switch {
		case s.ctx.Err() != nil:
			return
		case err != nil:
			s.log.Error("comparing accounts with a directory failed", "method", e.Type+":"+e.Name, "err", err)
		case out.accounts > 0:
			s.log.Info("accounts compared with a directory", "method", e.Type+":"+e.Name, "people", out.people,
				"accounts", out.accounts, "changed", out.changed,
				"took", time.Since(began).Round(time.Millisecond).String())
		}
	}
}

// account is an account of an organization.
type account struct {
	realm realm.ID
	user  realm.UserID
}

// known is an account with an identity of the directory.
type known struct {
	account
	subject string
	active  bool
}

// comparison is the comparison with one directory.
type comparison struct {
	*Syncer
	entry *signon.Entry
	// versions are the versions of the entries whose pictures were read.
	versions map[account]string
}

// outcome has the numbers of one comparison.
type outcome struct{ people, accounts, changed int }

var errEmpty = errors.New("the directory has no users at all, so nothing is changed: check base_dn, user_filter and " +
	"what the program may read")

// compare compares all accounts with the directory once. If it cannot read the whole directory, it deactivates no
// account.
func (c *comparison) compare() (out outcome, err error) {
	accounts := c.accounts()
	if len(accounts) == 0 {
		return out, nil
	}
	bySubject := map[string][]known{}
	for _, k := range accounts {
		bySubject[k.subject] = append(bySubject[k.subject], k)
	}
	out.accounts = len(accounts)
	ctx, cancel := context.WithTimeout(c.ctx, signon.MaxSync)
	defer cancel()
	missing := maps.Clone(bySubject)
	wanted := func(subject string) bool { return bySubject[subject] != nil }
	out.people, err = c.entry.Directory.Each(ctx, wanted, func(e signon.DirectoryEntry, s *signon.Session) error {
		delete(missing, e.Subject)
		for _, k := range bySubject[e.Subject] {
			p := c.entry.Person(e.Identity, true)
			release, err := c.addPicture(k, e, s, &p)
			if err != nil {
				return err
			}
			out.changed += c.update(k, p)
			release()
		}
		return nil
	})
	if err == nil && out.people == 0 {
		err = errEmpty
	}
	if err != nil {
		return out, err
	}
	c.entries.Store(max(c.entries.Load(), int64(out.people)))
	for subject, list := range missing {
		for _, k := range list {
			if k.active {
				who := signon.Identity{Issuer: c.entry.Issuer, Subject: subject}
				out.changed += c.update(k, c.entry.Person(who, false))
			}
		}
	}
	return out, nil
}

// accounts returns the accounts with an identity of the directory, of the organizations that this node owns. Those that
// are asleep are loaded: the keys of people that have left would work again with the first request.
func (c *comparison) accounts() (out []known) {
	for subdomain, id := range c.orgs.Realms() {
		if !c.isOwned(id) && !c.orgs.IsAsleep(id) || c.signOn.Find(subdomain, c.entry.Type, c.entry.Name) == nil {
			continue
		}
		for after := realm.UserID(0); ; {
			x, err := c.orgs.View(id, realm.System, func(v realm.View) (any, error) {
				return v.PeopleOf(c.entry.Issuer, after, peoplePage), nil
			})
			list, _ := x.([]realm.KnownPerson)
			if err != nil {
				c.log.Error("listing the people of a directory failed", "realm", id, "err", err)
			}
			for _, p := range list {
				out = append(out, known{account{id, p.User}, p.Identity.Subject, p.Active})
				after = p.User
			}
			if len(list) < peoplePage {
				break
			}
		}
	}
	return out
}

// addPicture stores the picture of an entry that has changed, and adds its name to the person. release must be called
// when the account refers to it.
func (c *comparison) addPicture(
	k known, e signon.DirectoryEntry, s *signon.Session, p *realm.Person,
) (release func(), err error) {
	release = func() {}
	if !c.entry.Directory.HasPictures() || !k.active || e.Version != "" && c.versions[k.account] == e.Version {
		return release, nil
	}
	picture, err := s.Picture(e)
	if err != nil {
		return release, err
	}
	c.versions[k.account] = e.Version
	if len(picture) == 0 {
		return release, nil
	}
	name, err := c.files.SaveAvatar(k.realm, bytes.NewReader(picture), wire.MaxAvatarBytes)
	if err != nil { // no reason to leave out the rest
		c.log.Warn("the picture of a directory is left out", "realm", k.realm, "user", int64(k.user), "err", err)
		return release, nil
	}
	p.Picture = name
	return func() {
		if err := c.files.Release(name, nil); err != nil {
			c.log.Error("releasing a picture failed", "realm", k.realm, "err", err)
		}
	}, nil
}

// update changes an account as the directory says. It returns the number of changed accounts.
func (c *comparison) update(k known, p realm.Person) (changed int) {
	out, err := realm.Execute(c.orgs, k.realm, realm.System, realm.UpdateFromProvider{User: k.user, Person: p})
	if err != nil {
		c.log.Error("updating an account from a directory failed", "realm", k.realm, "user", int64(k.user), "err", err)
		return 0
	}
	for _, text := range out.Problems {
		c.log.Warn("a value of a login provider is left out", "realm", k.realm, "user", int64(k.user), "err", text)
	}
	if !out.Changed {
		return 0
	}
	c.log.Info("account updated from a directory", "realm", k.realm, "user", int64(k.user), "active", p.Active)
	return 1
}

// Bounds describes the bounds of the comparison.
func (s *Syncer) Bounds() []registry.Bound {
	return []registry.Bound{{
		Name:     "directory_entries",
		Of:       "users of one LDAP directory",
		Overflow: "the comparison with the directory fails, and deactivates nobody",
		Reason:   "a comparison keeps about 100 bytes for each account, and must end in five minutes",
		Limit:    registry.Constant(signon.MaxDirectoryEntries),
		Used:     func() int64 { return s.entries.Load() },
		Whole:    "the operator chooses the directory",
	}}
}
