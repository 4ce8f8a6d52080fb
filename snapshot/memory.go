package snapshot

import "github.com/cockroachdb/pebble/v2/vfs"

// OpenMemory opens a new, empty store in memory, for tests. It is the same code on another file system.
func OpenMemory() *Store {
	s, err := Open("memory", Options{FS: vfs.NewMem(), Cache: 1 << 20, MemTable: 1 << 20})
	if err != nil {
		panic("BUG: a new store in memory does not open: " + err.Error())
	}
	return s
}
