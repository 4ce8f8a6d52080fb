package realm

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"
)

// A passkey is a key pair in a device of a user (WebAuthn). It is a second factor; with a PIN or a fingerprint it
// replaces the password, too. The realm has the public key. The server checks signatures.

const (
	// MaxPasskeys limits the passkeys of one user: more than one person has devices.
	MaxPasskeys = 20
	// maxPasskeyName limits the name of a passkey in characters.
	maxPasskeyName = 60
	// maxPasskeyID and maxPasskeyKey limit the identifier and the public key of a passkey in bytes: the limit of the
	// standard, and an RSA key of 4,096 bits with its encoding.
	maxPasskeyID  = 1023
	maxPasskeyKey = 1024
)

// Passkey is one passkey of a user.
type Passkey struct {
	ID   []byte // chosen by the device
	Key  []byte // public key (COSE)
	Name string // chosen by the user
	// Added and Used are Unix seconds; Used is 0 before the first use.
	Added, Used int64
	// Asked is when the server asked the question of the last use, in Unix milliseconds. Answers to earlier questions
	// are refused, so each answer works once, in every node.
	Asked int64
	Count uint32 // of signatures, as the device said last; 0 for devices that do not count
	Flags byte   // of the authenticator data of the registration, or of the last use
}

// Passkeys is the row with the passkeys of one user, oldest first.
type Passkeys struct{ List []Passkey }

// PasskeysOf returns the passkeys of a user, oldest first. The list is never modified.
func (r *Realm) PasskeysOf(u UserID) []Passkey {
	if l := r.small.passkeys.find(u); l != nil {
		return l.List
	}
	return nil
}

// HasPasskeys reports whether any user has a passkey.
func (r *Realm) HasPasskeys() bool { return r.small.passkeys.size() > 0 }

// HasFactor reports whether a user has a second factor: an app or a passkey.
func (r *Realm) HasFactor(u UserID) bool {
	f := r.FactorOf(u)
	return f != nil && f.Secret != "" || len(r.PasskeysOf(u)) > 0
}

func errNoPasskey() *Refusal { return Missing("There is no such passkey.") }

// ErrPasskey refuses an answer that proves no passkey of the account.
func ErrPasskey() error {
	return Refuse(Unauthenticated, "AUTHENTICATION_FAILED", "This passkey does not belong to the account, or the page "+
		"was open too long. Please try again.")
}

// findPasskey returns the passkey of a user with an identifier, or nil.
func (r *Realm) findPasskey(u UserID, id []byte) *Passkey {
	list := r.PasskeysOf(u)
	if i := indexOfPasskey(list, id); i >= 0 {
		return &list[i]
	}
	return nil
}

func indexOfPasskey(list []Passkey, id []byte) int {
	return slices.IndexFunc(list, func(p Passkey) bool { return bytes.Equal(p.ID, id) })
}

// passkeyName returns the name of a passkey as it is stored.
func passkeyName(text string) (string, error) {
	name := strings.Join(strings.Fields(text), " ")
	if name == "" || utf8.RuneCountInString(name) > maxPasskeyName || !utf8.ValidString(name) ||
		strings.ContainsRune(name, 0) {
		return "", BadRequest("The name of a passkey has 1 to 60 characters.")
	}
	return name, nil
}

// AddPasskey asks to store a new passkey of a user. The server sends it after it has checked the device's answer, and
// who asks. It returns whether the recovery codes are stored: a user without any has no second factor so far.
type AddPasskey struct {
	User     UserID
	Passkey  Passkey // without Added and Used
	Recovery [][32]byte
}

func (c AddPasskey) Decide(t *Turn) (stored bool, err error) {
	if _, err := t.humanForFactor(c.User); err != nil {
		return false, err
	}
	p := c.Passkey
	if p.Name, err = passkeyName(p.Name); err != nil {
		return false, err
	}
	switch {
	case len(p.ID) == 0 || len(p.ID) > maxPasskeyID || len(p.Key) == 0 || len(p.Key) > maxPasskeyKey ||
		len(c.Recovery) > MaxRecoveryCodes:
		return false, ErrPasskey()
	case t.findPasskey(c.User, p.ID) != nil:
		return false, BadRequest("This device has a passkey of your account already.")
	case len(t.PasskeysOf(c.User)) >= MaxPasskeys:
		return false, BadRequest("Your account has too many passkeys. Remove one that you do not use any more.")
	}
	p.Added, p.Used = t.Now, 0
	f := &PasskeyAdded{User: c.User, Passkey: p}
	if stored = t.FactorOf(c.User) == nil && len(c.Recovery) > 0; stored {
		f.Recovery = c.Recovery
	}
	t.Record(f)
	t.NotifyUsers("A passkey was added to your account. If that was not you, tell an administrator at once.", c.User)
	return stored, nil
}

// UsePasskey records that a user has proved a passkey. The server sends it after it has checked the signature.
type UsePasskey struct {
	User  UserID
	ID    []byte
	Asked int64 // see Passkey
	Count uint32
	Flags byte
}

func (c UsePasskey) Decide(t *Turn) (Done, error) {
	if _, err := t.humanForFactor(c.User); err != nil {
		return Done{}, err
	}
	p := t.findPasskey(c.User, c.ID)
	if p == nil || c.Asked <= p.Asked || c.Count <= p.Count && c.Count+p.Count > 0 {
		return Done{}, ErrPasskey()
	}
	t.Record(&PasskeyUsed{User: c.User, ID: c.ID, At: t.Now, Asked: c.Asked, Count: c.Count, Flags: c.Flags})
	return Done{}, nil
}

// RenamePasskey asks to change the name of a passkey. The server sends it for the user.
type RenamePasskey struct {
	User UserID
	ID   []byte
	Name string
}

func (c RenamePasskey) Decide(t *Turn) (Done, error) {
	if _, err := t.humanForFactor(c.User); err != nil {
		return Done{}, err
	}
	p := t.findPasskey(c.User, c.ID)
	if p == nil {
		return Done{}, errNoPasskey()
	}
	name, err := passkeyName(c.Name)
	if err != nil {
		return Done{}, err
	}
	if name != p.Name {
		t.Record(&PasskeyRenamed{User: c.User, ID: c.ID, Name: name})
	}
	return Done{}, nil
}

// RemovePasskey asks to remove a passkey. The server sends it for the user, after the password. With the last second
// factor, the recovery codes end, too.
type RemovePasskey struct {
	User UserID
	ID   []byte
}

func (c RemovePasskey) Decide(t *Turn) (Done, error) {
	if _, err := t.humanForFactor(c.User); err != nil {
		return Done{}, err
	}
	if t.findPasskey(c.User, c.ID) == nil {
		return Done{}, errNoPasskey()
	}
	t.Record(&PasskeyRemoved{User: c.User, ID: c.ID})
	t.NotifyUsers("A passkey of your account was removed. If that was not you, tell an administrator at once.", c.User)
	return Done{}, nil
}

// RemoveFactorApp asks to turn off the codes of an app for a user. The server sends it after a code. Passkeys remain,
// with the recovery codes.
type RemoveFactorApp struct{ User UserID }

func (c RemoveFactorApp) Decide(t *Turn) (Done, error) {
	if _, err := t.humanForFactor(c.User); err != nil {
		return Done{}, err
	}
	if len(t.PasskeysOf(c.User)) == 0 {
		return RemoveFactor(c).Decide(t)
	}
	if f := t.FactorOf(c.User); f == nil || f.Secret == "" {
		return Done{}, Missing("This account has no second factor.")
	}
	t.Record(&FactorAppRemoved{User: c.User})
	return Done{}, nil
}

// PasskeyAdded says that a user has a new passkey.
type PasskeyAdded struct {
	User     UserID
	Passkey  Passkey
	Recovery [][32]byte // of a user that had no second factor; else empty
}

func (f *PasskeyAdded) apply(r *Realm) {
	l := r.small.passkeys.ensure(f.User)
	l.List = append(slices.Clone(l.List), f.Passkey)
	if len(f.Recovery) > 0 {
		r.small.factors.put(f.User, &Factor{Since: f.Passkey.Added, Recovery: f.Recovery})
	}
}

func (*PasskeyAdded) notices(*Realm) []Notice { return nil }

// PasskeyUsed says that a user has proved a passkey.
type PasskeyUsed struct {
	User      UserID
	ID        []byte
	At, Asked int64 // Unix seconds, and milliseconds; see Passkey
	Count     uint32
	Flags     byte
}

func (f *PasskeyUsed) apply(r *Realm) {
	r.changePasskey(f.User, f.ID, func(p *Passkey) {
		p.Used, p.Asked, p.Count, p.Flags = f.At, f.Asked, f.Count, f.Flags
	})
}

func (*PasskeyUsed) notices(*Realm) []Notice { return nil }

// PasskeyRenamed says that a passkey has another name.
type PasskeyRenamed struct {
	User UserID
	ID   []byte
	Name string
}

func (f *PasskeyRenamed) apply(r *Realm) {
	r.changePasskey(f.User, f.ID, func(p *Passkey) { p.Name = f.Name })
}

func (*PasskeyRenamed) notices(*Realm) []Notice { return nil }

// changePasskey changes a passkey of a user in a copy of the list.
func (r *Realm) changePasskey(u UserID, id []byte, change func(*Passkey)) {
	l := r.small.passkeys.change(u)
	l.List = slices.Clone(l.List)
	change(&l.List[indexOfPasskey(l.List, id)])
}

// PasskeyRemoved says that a user has a passkey no more.
type PasskeyRemoved struct {
	User UserID
	ID   []byte
}

func (f *PasskeyRemoved) apply(r *Realm) {
	l := r.small.passkeys.change(f.User)
	l.List = slices.DeleteFunc(slices.Clone(l.List), func(p Passkey) bool { return bytes.Equal(p.ID, f.ID) })
	if len(l.List) > 0 {
		return
	}
	r.small.passkeys.remove(f.User)
	if x := r.FactorOf(f.User); x != nil && x.Secret == "" {
		r.small.factors.remove(f.User)
	}
}

func (*PasskeyRemoved) notices(*Realm) []Notice { return nil }

// FactorAppRemoved says that a user with passkeys has no app for codes any more.
type FactorAppRemoved struct{ User UserID }

func (f *FactorAppRemoved) apply(r *Realm)        { r.small.factors.change(f.User).Secret = "" }
func (*FactorAppRemoved) notices(*Realm) []Notice { return nil }

// removeFactors removes all second factors of a user.
func (r *Realm) removeFactors(u UserID) {
	if r.small.factors.find(u) != nil {
		r.small.factors.remove(u)
	}
	if r.small.passkeys.find(u) != nil {
		r.small.passkeys.remove(u)
	}
}
