package wire

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
)

// sealCipher returns the cipher for texts with a purpose. Its key follows from the server's secret, so every core of a
// cluster has it, and no edge.
func (t *Tools) sealCipher(purpose string) cipher.AEAD {
	key := sha256.Sum256([]byte(t.Sign("key that seals " + purpose)))
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic("BUG: key of sealed texts: " + err.Error())
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		panic("BUG: make AES-GCM: " + err.Error())
	}
	return gcm
}

// Seal encrypts a text so that only servers with the same secret can read it, for the same purpose. The result is in
// base64 for addresses.
func (t *Tools) Seal(purpose string, text []byte) string {
	gcm := t.sealCipher(purpose)
	nonce := make([]byte, gcm.NonceSize())
	rand.Read(nonce)
	return base64.RawURLEncoding.EncodeToString(gcm.Seal(nonce, nonce, text, []byte(purpose)))
}

// Unseal returns the text that Seal has encrypted; false if it was changed or sealed for another purpose.
func (t *Tools) Unseal(purpose, sealed string) ([]byte, bool) {
	b, err := base64.RawURLEncoding.DecodeString(sealed)
	gcm := t.sealCipher(purpose)
	if err != nil || len(b) < gcm.NonceSize() {
		return nil, false
	}
	text, err := gcm.Open(nil, b[:gcm.NonceSize()], b[gcm.NonceSize():], []byte(purpose))
	return text, err == nil
}
