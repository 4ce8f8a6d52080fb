package imports

import (
	"io"
	"os"
)

// Source is one organization of an archive.
type Source interface {
	// Suffix is the end of the subdomain, such as the name of a Mattermost team. It is "" if the format has one
	// organization in each archive, or if the operator chose this one: its subdomain is then the operator's.
	Suffix() string
	// Read passes every record to the sink, in the order of the stages.
	Read(Sink) error
	// Open opens the content of a file of a record. An error that wraps fs.ErrNotExist says that the export does not
	// have it: the engine reports the file as dropped.
	Open(path string) (io.ReadCloser, error)
}

// Sink takes the records of a source. Its methods are called by one goroutine.
type Sink interface {
	// Put takes a record. The sink does not use it after returning, so the source may change it.
	Put(Record) error
	// Drop counts objects that the format leaves out: n of a kind, such as "messages", with the reason.
	Drop(kind, reason string, n int)
	// DropAt counts one value, row or file that the format leaves out, with its place in the archive, such as
	// "general/2023-11-14.json, index 3, thread_ts".
	DropAt(kind, reason, place string)
	// Size reports the number of bytes that Read reads in total, and how many it has read, for the estimate of the
	// remaining time.
	Size(read, total int64)
}

// Options are the choices of the operator, and the functions of the engine that formats call.
type Options struct {
	Team string // Mattermost: only this team
	Main string // name of the file that the operator gave, if it is not an archive but a file beside its data
	// Packed is the size of the archive in bytes; 0: it is a folder.
	Packed int64
	Host   string // of the organization, for the addresses of bots
	// Threads says that threads of Slack and posts of Teams become topics of their own. Without it, they stay in the
	// topic of the channel.
	Threads bool
	// Token gets files and user lists from the exporting server; "": nothing is fetched.
	Token string
	// FilesIn opens downloaded files by their name or id; nil: there are none.
	FilesIn func(name string) (io.ReadCloser, error)
	// Fetch gets an address of the exporting server; nil: nothing is fetched.
	Fetch func(address, token string) (io.ReadCloser, error)
	// Temporary returns an empty file that the system removes when it is closed.
	Temporary func() (*os.File, error)
	// Sorter returns an empty sorter that keeps its items on disk when they exceed its share of the memory.
	Sorter func() Sorter
}

// Sorter sorts items by their keys with bounded memory. Items with equal keys keep their order.
type Sorter interface {
	Add(key, item []byte) error
	// Sorted calls fn with each item in order. It can be called several times; Add can then no longer be called. The
	// slices are valid until fn returns.
	Sorted(fn func(key, item []byte) error) error
	Close() error
}
