package snapshot

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"parley/actors/realm"
	"parley/snapshot/codec"
)

// Digest identifies the state of an organization: equal digests mean equal rows at the same number.
type Digest struct {
	Realm realm.ID
	Seq   realm.Seq
	Rows  int
	Sum   [sha256.Size]byte // exclusive or of the SHA-256 of all rows, so their order does not matter
}

func (d Digest) String() string {
	return fmt.Sprintf("realm %d at %d: %d rows, digest %x", d.Realm, d.Seq, d.Rows, d.Sum[:])
}

// StateDigest returns the digest of all rows of r. Message texts are not rows; `log check` verifies them.
func StateDigest(r *realm.Realm) Digest {
	d := Digest{Realm: r.ID(), Seq: r.Seq()}
	r.EachRow(func(table uint16, key, row any) {
		k, v := codec.EncodeKey(key), codec.EncodeRow(row)
		h := sha256.New()
		var head [10]byte
		binary.BigEndian.PutUint16(head[:], table)
		binary.BigEndian.PutUint64(head[2:], uint64(len(k)))
		h.Write(head[:])
		h.Write(k)
		h.Write(v)
		var sum [sha256.Size]byte
		for i, b := range h.Sum(sum[:0]) {
			d.Sum[i] ^= b
		}
		d.Rows++
	})
	return d
}
