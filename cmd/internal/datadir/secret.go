package datadir

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"parley/actors"
	"parley/snapshot"
)

// SearchDir returns the folder of the full-text indexes in a data directory.
func SearchDir(data string) string { return filepath.Join(data, "search") }

// MeaningDir returns the folder of the vectors for search by meaning in a data directory.
func MeaningDir(data string) string { return filepath.Join(data, "meaning") }

// UploadsDir returns the folder of uploaded files, pictures and data exports in a data directory.
func UploadsDir(data string) string { return filepath.Join(data, "uploads") }

// SecretFile is the name of a file in the data directory. API keys are derived from its content. A backup does not
// contain it: after a restore without it, keys in use stay valid, and logins get new keys.
const SecretFile = "secret"

// minSecretBytes is the length below which a secret file counts as damaged and is replaced.
const minSecretBytes = 32

// LoadSecret reads the server's secret, or creates it at the first start.
func LoadSecret(data string) ([]byte, error) {
	path := filepath.Join(data, SecretFile)
	secret, err := os.ReadFile(path)
	if err == nil && len(secret) >= minSecretBytes {
		return secret, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read the server's secret: %w", err)
	}
	secret = []byte(actors.Token(64))
	if err := os.WriteFile(path, secret, 0o600); err != nil {
		return nil, fmt.Errorf("write the server's secret: %w", err)
	}
	return secret, nil
}

// StartError adds advice to an error of opening a data directory, unless the error contains its own advice.
func StartError(data string, err error) error {
	var damage *snapshot.DamageError
	switch {
	case errors.Is(err, snapshot.ErrFull), snapshot.IsFull(err):
		return fmt.Errorf("%w; nothing is lost: make space on the file system of %s and start again", err, data)
	case errors.As(err, &damage): // it names the place and the command to run
	case errors.Is(err, snapshot.ErrInUse), errors.Is(err, snapshot.ErrFailed):
	default:
		return fmt.Errorf("%w; if the disk may be damaged, run parley log check %s", err, data)
	}
	return err
}

// NewSigner returns a function that signs text with the server's secret (HMAC-SHA256, in hexadecimal).
func NewSigner(secret []byte) func(string) string {
	return func(text string) string {
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte("signed " + text))
		return hex.EncodeToString(mac.Sum(nil))
	}
}

// NewSignatureChecker returns a function that reports whether a signature is the one that NewSigner makes of text.
func NewSignatureChecker(secret []byte) func(text, signature string) bool {
	sign := NewSigner(secret)
	return func(text, signature string) bool { return hmac.Equal([]byte(sign(text)), []byte(signature)) }
}
