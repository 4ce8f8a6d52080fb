package actors

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"math/big"

	"parley/actors/realm"
)

// apiKey derives a user's API key from the server's secret. It can be made again, but not guessed.
func (srv *Server) apiKey(id realm.ID, u realm.UserID, epoch int64) string {
	return deriveToken(srv.secret, fmt.Sprintf("api key %d %d %d", id, u, epoch))
}

// LinkToken returns the last part of an organization's invitation link with that number.
func (srv *Server) LinkToken(id realm.ID, link int64) string {
	return LinkToken(srv.secret, id, link)
}

// LinkToken returns what Server.LinkToken returns on a server with that secret.
func LinkToken(secret []byte, id realm.ID, link int64) string {
	return deriveToken(secret, fmt.Sprintf("invitation link %d %d", id, link))
}

// deriveToken returns 32 characters that follow from the server's secret and from the purpose.
func deriveToken(secret []byte, purpose string) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(purpose))
	n := new(big.Int).SetBytes(mac.Sum(nil))
	b, base, digit := make([]byte, 32), big.NewInt(int64(len(tokenAlphabet))), new(big.Int)
	for i := range b {
		n.DivMod(n, base, digit)
		b[i] = tokenAlphabet[digit.Int64()]
	}
	return string(b)
}

// HashKey returns the one-way form of an API key or token. Keys are long and random, so a plain hash is enough, and a
// lookup by hash is possible.
func HashKey(secret string) [32]byte { return sha256.Sum256([]byte(secret)) }

const tokenAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// Token returns random characters of [A-Za-z0-9].
func Token(length int) string {
	b := make([]byte, length)
	for i := range b {
		n, err := rand.Int(rand.Reader, big.NewInt(int64(len(tokenAlphabet))))
		if err != nil {
			panic("BUG: no randomness: " + err.Error())
		}
		b[i] = tokenAlphabet[n.Int64()]
	}
	return string(b)
}
