package offsite

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"time"
)

const (
	objectPrefix = "objects/"
	listPrefix   = "backups/"
	listTime     = "20060102T150405Z"
	// listFormat is the format of a list. A program refuses later ones.
	listFormat = 1
	// maxListBytes limits a list, in bytes: 2,000,000 files.
	maxListBytes = 512 << 20
)

// List is the list of the files of a backup.
type List struct {
	Format  int       `json:"format"`
	Source  string    `json:"source"` // name of the data directory, or of the cluster
	Begun   time.Time `json:"begun"`  // everything that was acknowledged before is in the backup
	Program string    `json:"program"`
	Place   string    `json:"place,omitempty"` // bucket of the uploaded files; "": the data directory
	Warning string    `json:"warning,omitempty"`
	Files   []File    `json:"files"`
}

// File is a file of a backup.
type File struct {
	Name   string `json:"name"` // as in a backup in one file
	Size   int64  `json:"size"` // bytes
	Hash   string `json:"hash,omitempty"`
	Stamp  string `json:"stamp,omitempty"`  // a file with the same name, size and stamp has the same content
	Object string `json:"object,omitempty"` // "": Data is the content
	Data   []byte `json:"data,omitempty"`
}

// encode returns the compressed list.
func (l *List) encode() ([]byte, error) {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	err := errors.Join(json.NewEncoder(z).Encode(l), z.Close())
	return out.Bytes(), err
}

func decodeList(text []byte) (*List, error) {
	z, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	l := &List{}
	if err := json.NewDecoder(io.LimitReader(z, maxListBytes)).Decode(l); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if l.Format > listFormat {
		return nil, fmt.Errorf("it was made by parley %s, whose backups this program does not know", l.Program)
	}
	return l, nil
}

// Backup is the name of a backup in the bucket.
type Backup struct {
	Name  string
	Begun time.Time // the second
}

// newBackup returns a new name. Names of the same second are in order of their time: the first three digits of the
// suffix are the milliseconds, the others are random.
func newBackup(begun time.Time) Backup {
	begun = begun.UTC()
	name := fmt.Sprintf("%s-%03x%05x", begun.Format(listTime), begun.Nanosecond()/1e6, rand.N(1<<20))
	return Backup{name, begun.Truncate(time.Second)}
}

var listName = regexp.MustCompile(`^` + listPrefix + `(\d{8}T\d{6}Z)-[0-9a-f]{8}$`)

// parseName returns the backup with the key of a list.
func parseName(key string) (b Backup, ok bool) {
	m := listName.FindStringSubmatch(key)
	if m == nil {
		return b, false
	}
	begun, err := time.Parse(listTime, m[1])
	return Backup{key[len(listPrefix):], begun}, err == nil
}
