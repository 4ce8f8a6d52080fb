package snapshot

import (
	"encoding/binary"
	"fmt"
)

// A key is the realm's id (big-endian), one byte for the space, and the name within the space. The letters and the
// formats of the names must never change.
const (
	spaceBodies  = 'b' // key as given
	spaceHead    = 'h' // epoch, snapshot state
	spaceJournal = 'j' // number, 8 bytes big-endian
	spaceMeta    = 'm' // only realm 0: key as given
	spaceRequest = 'q' // request id; the value is its number
	spaceRows    = 'r' // table, 2 bytes big-endian; key as given
	spaceStaged  = 's' // chunk number, 4 bytes big-endian; rows of a snapshot that are not applied yet
)

const (
	headEpoch    = 'e'
	headSnapshot = 's'
	headKept     = 'k' // which facts are kept behind the rows
	headTime     = 't' // when the last fact in the rows was recorded
	headAsleep   = 'w' // record of an organization that is not in memory
	headCommits  = 'c' // only realm 0
	headApplied  = 'a' // only realm 0: index of the last entry of a replicated log
	headOwned    = 'o' // only realm 0: epoch of the newest leadership of a cluster
)

const processRealm RealmID = 0

var commitsKey = headKey(processRealm, headCommits)

func spaceKey(realm RealmID, space byte) []byte {
	k := make([]byte, 5, 32)
	binary.BigEndian.PutUint32(k, uint32(realm))
	k[4] = space
	return k
}

// spaceEnd returns the first key after a space.
func spaceEnd(realm RealmID, space byte) []byte { return spaceKey(realm, space+1) }

func headKey(realm RealmID, name byte) []byte { return append(spaceKey(realm, spaceHead), name) }

const journalKeyLen = 13

func journalKey(realm RealmID, n Seq) []byte {
	return binary.BigEndian.AppendUint64(spaceKey(realm, spaceJournal), uint64(n))
}

func putJournalKey(k []byte, realm RealmID, n Seq) {
	binary.BigEndian.PutUint32(k, uint32(realm))
	k[4] = spaceJournal
	binary.BigEndian.PutUint64(k[5:], uint64(n))
}

func bodyKey(realm RealmID, key []byte) []byte {
	return append(spaceKey(realm, spaceBodies), key...)
}

func putBodyKey(dst []byte, realm RealmID, key []byte) {
	binary.BigEndian.PutUint32(dst, uint32(realm))
	dst[4] = spaceBodies
	copy(dst[5:], key)
}

func requestKey(realm RealmID, id string) []byte {
	return append(spaceKey(realm, spaceRequest), id...)
}

func stagedKey(realm RealmID, chunk uint32) []byte {
	return binary.BigEndian.AppendUint32(spaceKey(realm, spaceStaged), chunk)
}

func rowKey(realm RealmID, table uint16, key []byte) []byte {
	k := binary.BigEndian.AppendUint16(spaceKey(realm, spaceRows), table)
	return append(k, key...)
}

const rowKeyHead = 7

func putRowKey(dst []byte, realm RealmID, table uint16, key []byte) {
	binary.BigEndian.PutUint32(dst, uint32(realm))
	dst[4] = spaceRows
	binary.BigEndian.PutUint16(dst[5:], table)
	copy(dst[rowKeyHead:], key)
}

func metaKey(key string) []byte { return append(spaceKey(processRealm, spaceMeta), key...) }

func realmOf(key []byte) RealmID { return RealmID(binary.BigEndian.Uint32(key)) }

// describeKey returns the realm and the number in a key, and a description for error messages.
func describeKey(key []byte) (realm RealmID, n Seq, description string) {
	if len(key) < 5 {
		return 0, 0, fmt.Sprintf("key %x", key)
	}
	realm, rest := realmOf(key), key[5:]
	switch {
	case key[4] == spaceJournal && len(rest) == 8:
		n = Seq(binary.BigEndian.Uint64(rest))
		return realm, n, fmt.Sprintf("number %d", n)
	case key[4] == spaceRows && len(rest) >= 2:
		return realm, 0, fmt.Sprintf("row %x of table %d", rest[2:], binary.BigEndian.Uint16(rest))
	case key[4] == spaceBodies:
		return realm, 0, fmt.Sprintf("body %x", rest)
	case key[4] == spaceRequest:
		return realm, 0, fmt.Sprintf("request %q", rest)
	case key[4] == spaceMeta:
		return realm, 0, fmt.Sprintf("value %q", rest)
	case key[4] == spaceStaged:
		return realm, 0, fmt.Sprintf("staged rows %x", rest)
	case key[4] == spaceHead && len(rest) == 1 && rest[0] == headEpoch:
		return realm, 0, "epoch"
	case key[4] == spaceHead && len(rest) == 1 && rest[0] == headSnapshot:
		return realm, 0, "number of the rows"
	case key[4] == spaceHead && len(rest) == 1 && rest[0] == headCommits:
		return realm, 0, "count of commits"
	case key[4] == spaceHead && len(rest) == 1 && rest[0] == headApplied:
		return realm, 0, "index of the replicated log"
	case key[4] == spaceHead && len(rest) == 1 && rest[0] == headOwned:
		return realm, 0, "epoch of the leadership"
	case key[4] == spaceHead && len(rest) == 1 && rest[0] == headKept:
		return realm, 0, "list of kept facts"
	case key[4] == spaceHead && len(rest) == 1 && rest[0] == headTime:
		return realm, 0, "time of the rows"
	case key[4] == spaceHead && len(rest) == 1 && rest[0] == headAsleep:
		return realm, 0, "state of a sleeping organization"
	}
	return realm, 0, fmt.Sprintf("unknown key %x", key)
}
