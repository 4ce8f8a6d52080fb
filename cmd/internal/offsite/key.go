package offsite

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"filippo.io/age"
)

// Key encrypts and opens backups. Its file has one or more identities of age, as age-keygen writes them. The first one
// encrypts; all of them open.
type Key struct {
	identities []age.Identity
	recipient  age.Recipient
	secrets    [][]byte // of each identity, for the names of objects and the signatures of lists
	overhead   int64    // bytes by which age makes an empty file longer
}

// The size of age's chunks and of the tag after each, by its specification.
const (
	ageChunk = 64 << 10
	ageTag   = 16
)

// CreateKey writes a new key to a file that must not exist, and returns its public half.
func CreateKey(file string) (public string, err error) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		return "", err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", fmt.Errorf("create the key: %w", err)
	}
	public = identity.Recipient().String()
	_, err = fmt.Fprintf(f, "# created: %s\n# public key: %s\n%s\n", time.Now().UTC().Format(time.RFC3339), public,
		identity)
	return public, errors.Join(err, f.Sync(), f.Close())
}

// ReadKey reads a key from a file.
func ReadKey(file string) (*Key, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	defer f.Close()
	k := &Key{}
	if k.identities, err = age.ParseIdentities(f); err != nil {
		return nil, fmt.Errorf("key: %s must be a file as age-keygen writes it, with a line AGE-SECRET-KEY-1...: %w",
			file, err)
	}
	for _, i := range k.identities {
		text := ""
		switch i := i.(type) {
		case *age.X25519Identity:
			text = i.String()
			k.encryptFor(i.Recipient())
		case *age.HybridIdentity:
			text = i.String()
			k.encryptFor(i.Recipient())
		default:
			return nil, fmt.Errorf("key: %s has a kind of key that this program does not know", file)
		}
		k.secrets = append(k.secrets, sign([]byte(text), "parley backup"))
	}
	var empty bytes.Buffer
	w, err := age.Encrypt(&empty, k.recipient)
	if err == nil {
		err = w.Close()
	}
	k.overhead = int64(empty.Len())
	return k, err
}

// encryptFor sets the recipient, if there is none yet.
func (k *Key) encryptFor(r age.Recipient) {
	if k.recipient == nil {
		k.recipient = r
	}
}

func sign(secret []byte, text ...string) []byte {
	h := hmac.New(sha256.New, secret)
	for _, t := range text {
		io.WriteString(h, t)
	}
	return h.Sum(nil)
}

// objectKey returns the key of the object with a content of a SHA-256. It does not reveal the content.
func (k *Key) objectKey(hash string) string {
	name := hex.EncodeToString(sign(k.secrets[0], "object ", hash))
	return objectPrefix + name[:2] + "/" + name
}

// encryptedSize returns the bytes that age makes of a file.
func (k *Key) encryptedSize(size int64) int64 {
	chunks := max(1, (size+ageChunk-1)/ageChunk)
	return k.overhead + size + (chunks-1)*ageTag
}

// sealList signs and encrypts a list.
func (k *Key) sealList(list []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := age.Encrypt(&out, k.recipient)
	if err == nil {
		_, err = w.Write(append(sign(k.secrets[0], "list ", string(list)), list...))
	}
	if err != nil {
		return nil, err
	}
	err = w.Close()
	return out.Bytes(), err
}

var (
	// ErrWrongKey is wrapped by the error of an object that was encrypted for another key.
	ErrWrongKey = errors.New("it was encrypted with another key")
	// ErrDamaged is wrapped by the error of an object that is not as it was sent.
	ErrDamaged = errors.New("it was cut, damaged or replaced")
)

// open returns the decrypted content.
func (k *Key) open(r io.Reader) (io.Reader, error) {
	plain, err := age.Decrypt(r, k.identities...)
	var none *age.NoIdentityMatchError
	if errors.As(err, &none) {
		return nil, ErrWrongKey
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return plain, nil
}

// openList decrypts a list and checks its signature.
func (k *Key) openList(sealed io.Reader) ([]byte, error) {
	plain, err := k.open(sealed)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(plain, maxListBytes))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if len(text) < sha256.Size {
		return nil, ErrDamaged
	}
	for _, secret := range k.secrets {
		if hmac.Equal(text[:sha256.Size], sign(secret, "list ", string(text[sha256.Size:]))) {
			return text[sha256.Size:], nil
		}
	}
	return nil, fmt.Errorf("%w: its signature is not of this key", ErrDamaged)
}
