package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"parley/wire/peer"
)

// MaxTokens limits the tokens that are valid at a time.
const MaxTokens = 1000

// storedToken is a token as cores store it. A used token is stored for another lifetime, so that a second use gets the
// right error.
type storedToken struct {
	Hash    string    `json:"hash"` // SHA-256 of the secret
	Role    peer.Role `json:"role"`
	Expires int64     `json:"expires"`        // Unix seconds
	Used    int64     `json:"used,omitempty"` // Unix seconds; 0: not yet
	By      string    `json:"by,omitempty"`   // the node that used it
}

func hashSecret(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// NewToken returns a token with which one node can join in the next peer.TokenLifetime.
func (d *Directory) NewToken(role peer.Role, now time.Time) (string, error) {
	if err := role.Check(); err != nil {
		return "", err
	}
	if d.Role != peer.Core {
		return "", errors.New("only cores can make tokens: run the command with the data directory of a core")
	}
	a, err := d.authority()
	if err != nil {
		return "", err
	}
	t := peer.Token{Addresses: d.CoreAddresses(), Fingerprint: a.Fingerprint(), Secret: peer.NewSecret()}
	d.mu.Lock()
	defer d.mu.Unlock()
	forget := now.Add(-peer.TokenLifetime).Unix()
	d.Tokens = slices.DeleteFunc(d.Tokens, func(t storedToken) bool { return t.Expires < forget })
	if len(d.Tokens) >= MaxTokens {
		return "", fmt.Errorf("there are %d tokens already; they expire after an hour", MaxTokens)
	}
	d.Tokens = append(d.Tokens, storedToken{
		Hash: hashSecret(t.Secret), Role: role, Expires: now.Add(peer.TokenLifetime).Unix(),
	})
	return t.String(), d.save()
}

// Admit answers a join request: a node with a valid token may join. It returns after the use of the token is on disk.
func (d *Directory) Admit(r peer.JoinRequest, now time.Time) (a peer.JoinAnswer) {
	if err := d.admit(r, now, &a); err != nil {
		return peer.JoinAnswer{Error: err.Error()}
	}
	return a
}

func (d *Directory) admit(r peer.JoinRequest, now time.Time, a *peer.JoinAnswer) error {
	if err := errors.Join(peer.CheckVersion(r.Version), peer.CheckNodeID(r.Node)); err != nil {
		return err
	}
	if err := checkClock(r.Node, r.Clock, now); err != nil {
		return err
	}
	authority, err := d.authority()
	if err != nil {
		return err
	}
	key, err := authority.Key()
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	hash := hashSecret(r.Secret)
	i := slices.IndexFunc(d.Tokens, func(t storedToken) bool { return t.Hash == hash })
	if i < 0 {
		return errors.New("the token is not known to this cluster; parley cluster token prints a new one")
	}
	t := &d.Tokens[i]
	if t.Used != 0 {
		return fmt.Errorf("the token was used by node %s at %s; parley cluster token prints a new one", t.By,
			time.Unix(t.Used, 0).UTC().Format(time.RFC3339))
	}
	if now.Unix() >= t.Expires {
		return fmt.Errorf("the token expired at %s; parley cluster token prints a new one",
			time.Unix(t.Expires, 0).UTC().Format(time.RFC3339))
	}
	if slices.ContainsFunc(d.Members, func(m Member) bool { return m.Node == r.Node }) {
		return fmt.Errorf("the cluster has, or had, a node %s: choose another --node", r.Node)
	}
	if t.Role == peer.Core {
		if err := checkAddress(r.Address); err != nil {
			return err
		}
	}
	certificate, err := authority.Issue(r.Request, r.Node, t.Role)
	if err != nil {
		return err
	}
	t.Used, t.By = now.Unix(), r.Node
	d.Members = append(d.Members, Member{Node: r.Node, Role: t.Role, Address: r.Address, Joined: now.Unix()})
	if err := d.save(); err != nil {
		return err
	}
	*a = peer.JoinAnswer{Certificate: certificate, Authority: authority.Certificate(), Role: t.Role}
	if t := *a; t.Role == peer.Core {
		a.AuthorityKey = key
		if a.Members, err = json.Marshal(d.Members); err != nil {
			return err
		}
	}
	for _, m := range d.Members {
		if m.Role == peer.Core && m.Removed == 0 {
			a.Addresses = append(a.Addresses, m.Address)
		}
	}
	return nil
}

// MaxClockDifference is how far the clocks of two nodes may differ. An edge uses the clock of its core, so clients do
// not notice a difference; but a larger one means a wrong setup, and makes the logs of the nodes hard to compare.
const MaxClockDifference = 2 * time.Hour

// checkClock returns an error if the clock of a node, in Unix milliseconds, is too far off.
func checkClock(node string, clock int64, now time.Time) error {
	d := time.UnixMilli(clock).Sub(now).Round(time.Second)
	if d.Abs() > MaxClockDifference {
		return fmt.Errorf("the clock of node %s differs by %v from that of the core, more than %v: set it, "+
			"for example with NTP", node, d, MaxClockDifference)
	}
	return nil
}
