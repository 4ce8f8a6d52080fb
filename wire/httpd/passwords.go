package httpd

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"parley/actors/admission"
	"parley/actors/realm"
	"parley/wire"
)

// Costs of Argon2id: the second choice of OWASP, 19 MiB and two passes, about 20 ms for a login.
const (
	argonMemory  = 19 << 10 // KiB
	argonTime    = 2
	argonThreads = 1
	argonKey     = 32
)

// maxPasswordsHashing is the number of passwords hashed at a time, 19 MiB each. maxPasswordsWaiting is the number
// of requests that may wait for it.
const (
	maxPasswordsHashing = 2
	maxPasswordsWaiting = 64
	// MaxPasswords is the sum of both.
	MaxPasswords = maxPasswordsHashing + maxPasswordsWaiting
)

// Passwords hashes and checks passwords, a bounded number at a time. It is safe for concurrent use.
type Passwords struct {
	hashing chan struct{}
	waiting chan struct{}
	shares  *admission.Shares // of MaxPasswords
}

// NewPasswords returns a Passwords with free places. several reports whether the server has several organizations; see
// admission.Shares.
func NewPasswords(several func() bool) *Passwords {
	return &Passwords{hashing: make(chan struct{}, maxPasswordsHashing), waiting: make(chan struct{}, MaxPasswords),
		shares: admission.NewShares(MaxPasswords, several)}
}

// acquire waits until a password of an organization may be hashed. The caller calls release.
func (p *Passwords) acquire(id realm.ID) error {
	busy := realm.Refuse(realm.TooMany, "RATE_LIMIT_HIT", "API usage exceeded rate limit").With("retry-after", 1.0)
	if !p.shares.Take(organizationName(id), 1) {
		return busy
	}
	select {
	case p.waiting <- struct{}{}:
	default:
		p.shares.Give(organizationName(id), 1)
		return busy
	}
	p.hashing <- struct{}{}
	return nil
}

// Waiting returns the number of passwords that are being hashed or wait for it.
func (p *Passwords) Waiting() int64 { return int64(len(p.waiting)) }

func (p *Passwords) release(id realm.ID) {
	<-p.hashing
	<-p.waiting
	p.shares.Give(organizationName(id), 1)
}

var b64 = base64.RawStdEncoding

// Hash returns the Argon2id hash of a new password in PHC form, or wire.ErrWeakPassword. Everything that sets a
// password calls it, so no weak one is ever stored. It returns a refusal if too many passwords wait, of all
// organizations or of this one.
func (p *Passwords) Hash(id realm.ID, password string) (string, error) {
	if n := utf8.RuneCountInString(password); n < wire.MinPasswordLength || n > wire.MaxPasswordLength {
		return "", wire.ErrWeakPassword
	}
	if err := p.acquire(id); err != nil { // the estimate can take as long as the hash
		return "", err
	}
	defer p.release(id)
	if guessesOf(password) < wire.MinPasswordGuesses {
		return "", wire.ErrWeakPassword
	}
	salt := make([]byte, 16)
	if _, err := rand.Read(salt); err != nil {
		return "", fmt.Errorf("read random bytes: %w", err)
	}
	sum := argon2.IDKey([]byte(password), salt, argonTime, argonMemory, argonThreads, argonKey)
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemory, argonTime, argonThreads,
		b64.EncodeToString(salt), b64.EncodeToString(sum)), nil
}

var errMalformedHash = errors.New("stored password hash is malformed")

// Check reports whether a password matches a hash. An empty hash, for an unknown account or one without password,
// is replaced by a fixed one. So the response time does not tell whether the account exists.
func (p *Passwords) Check(id realm.ID, password, hash string) (bool, error) {
	if err := p.acquire(id); err != nil {
		return false, err
	}
	defer p.release(id)
	exists := hash != ""
	if !exists {
		hash = "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	}
	parts := strings.Split(hash, "$")
	var memory, time uint32
	var threads uint8
	if len(parts) != 6 || parts[1] != "argon2id" {
		return false, errMalformedHash
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &memory, &time, &threads); err != nil {
		return false, errMalformedHash
	}
	salt, err1 := b64.DecodeString(parts[4])
	want, err2 := b64.DecodeString(parts[5])
	if err1 != nil || err2 != nil {
		return false, errMalformedHash
	}
	got := argon2.IDKey([]byte(password), salt, time, memory, threads, uint32(len(want)))
	return subtle.ConstantTimeCompare(got, want) == 1 && exists, nil
}
