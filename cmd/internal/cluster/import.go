package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley/actors/realm"
	"parley/snapshot"
	"parley/snapshot/codec"
	"parley/wire/httpd"
	"parley/wire/peer"
)

// ImportPart is how many bytes of texts or rows one step of an import contains: much less than a log entry may have, so
// that the entries of other organizations do not wait long. A single text or row may be larger.
const ImportPart = 128 << 10

// maxImportedKeys limits the API keys of an organization that is imported into a cluster: the leader gets the hashes of
// all in one message, to compare them at the moment when the organization becomes visible. They take 34 bytes each.
const maxImportedKeys = peer.MaxMessage / 2 / 34

// Steps of an import, in order. The core with the archive reads and renders it; the leader appends the steps to the
// replicated log.
const (
	importReserve byte = 1 + iota // subdomain, wanted, free -> realm, epoch
	importState                   // realm -> last
	importClear                   // realm, epoch
	importTexts                   // batch: texts, without facts
	importRows                    // realm, epoch, chunk, rows
	importFinish                  // realm, epoch, subdomain, at, chunks, keys
)

type (
	importCall struct {
		Step      byte
		Realm     realm.ID
		Epoch     uint64
		Subdomain string
		Wanted    realm.ID // the number that an interrupted import has; 0: none
		Free      bool     // Wanted is only a wish: no import has claimed it yet
		Batch     []byte   // codec.EncodeBatch
		Chunk     uint32
		Rows      []byte // snapshot.ChunkRows
		At        realm.Seq
		Chunks    uint32
		Keys      [][32]byte // hashes of the API keys; at most maxImportedKeys
	}
	importAnswer struct {
		Realm realm.ID
		Epoch uint64
		Last  realm.Seq
	}
)

// errImportLevel is the reason why a cluster with nodes of an older release refuses imports.
func errImportLevel(level uint16) error {
	return fmt.Errorf("an import needs rule level %d, but the cluster is at level %d: upgrade all nodes, then run "+
		"parley cluster level", realm.ImportLevel, level)
}

// importStep executes a step of an import at the leader.
func (c *Leader) importStep(x *importCall) (a importAnswer, err error) {
	term := c.Node.Term()
	if !c.isLeader.Load() {
		return a, errNotLeader
	}
	if level := c.Node.Level(); level < realm.ImportLevel {
		return a, errImportLevel(level)
	}
	op := snapshot.ImportOp{Realm: x.Realm, Epoch: x.Epoch}
	switch x.Step {
	case importReserve:
		reserve := c.Orgs.ReserveRealm
		if x.Free {
			reserve = c.Orgs.ReserveFreeRealm
		}
		if a.Realm, err = reserve(x.Subdomain, x.Wanted); err != nil {
			return a, err
		}
		claimed, err := c.Node.Journal().Claim(a.Realm, realm.AnyEpoch)
		a.Epoch = claimed.Epoch
		return a, err
	case importState:
		_, a.Last, err = c.Node.Journal().Bounds(x.Realm)
		return a, err
	case importClear:
		op.Kind = snapshot.ImportClear
	case importTexts:
		b, err := codec.DecodeBatch(x.Batch)
		if err == nil && len(b.Facts) > 0 {
			err = errors.New("a step of an import has facts")
		}
		if err != nil {
			return a, err
		}
		return a, c.Node.Journal().Append([]realm.Batch{b})[0]
	case importRows:
		op.Kind, op.Chunk, op.Rows = snapshot.ImportRows, x.Chunk, x.Rows
	case importFinish:
		op.Kind, op.At, op.Chunks, op.Term = snapshot.ImportFinish, x.At, x.Chunks, term
		return a, c.Orgs.CommitImported(x.Subdomain, x.Realm, x.Keys, func() error { return c.Node.Import(&op) })
	default:
		return a, fmt.Errorf("step %d of an import is unknown: run the same release on all nodes", x.Step)
	}
	return a, c.Node.Import(&op)
}

// answerImport answers a callImport.
func (c *Leader) answerImport(_ *edgeLink, x *importCall) (*importAnswer, error) {
	a, err := c.importStep(x)
	if errors.Is(err, realm.ErrMoved) || errors.Is(err, errNotLeader) {
		err = notOwnerError{err}
	}
	return &a, err
}

// notOwnerError is the error of a step that may succeed at the next leader.
type notOwnerError struct{ error }

func (notOwnerError) LinkCode() uint32 { return httpd.CodeNotOwner }
func (e notOwnerError) Unwrap() error  { return e.error }

const (
	// importTimeout is how long a step waits for a leader that executes it: a few elections.
	importTimeout       = 20 * time.Second
	importRetryInterval = 200 * time.Millisecond
)

// Importer sends the steps of an import from the core that reads the archive to the leader. If the leader changes, a
// step waits for the next leader.
type Importer struct {
	Ctx      context.Context
	Leader   *Leader   // of this node
	Follower *Follower // its link to the leader
}

// step executes a step at the leader. If the answer is lost, it repeats the step; steps are idempotent.
func (i *Importer) step(x *importCall) (a importAnswer, err error) {
	ctx, cancel := context.WithTimeout(i.Ctx, importTimeout)
	defer cancel()
	for {
		var final bool
		if a, final, err = i.try(ctx, x); err == nil || final {
			return a, err
		}
		select {
		case <-time.After(importRetryInterval):
		case <-ctx.Done():
			if i.Ctx.Err() != nil {
				return a, i.Ctx.Err()
			}
			return a, fmt.Errorf("no leader of the cluster has executed the step of the import within %v: %w",
				importTimeout, err)
		}
	}
}

// try executes a step once. final reports whether another attempt would have the same result.
func (i *Importer) try(ctx context.Context, x *importCall) (a importAnswer, final bool, err error) {
	if i.Leader.IsLeader() {
		a, err = i.Leader.importStep(x)
		return a, !errors.Is(err, realm.ErrMoved) && !errors.Is(err, errNotLeader), err
	}
	link, err := i.Follower.waitForLink(ctx, false)
	if err != nil {
		return a, false, errors.New("no leader can be reached")
	}
	answer, err := link.CallOnce(ctx, encode(callImport, x))
	if err == nil {
		return a, true, decode(answer, &a)
	}
	var answered *peer.CallError
	return a, errors.As(err, &answered) && answered.Code != httpd.CodeNotOwner, err
}

// Reserve claims the number of a new organization; see actors.Server.ReserveRealm, and with free ReserveFreeRealm.
func (i *Importer) Reserve(subdomain string, wanted realm.ID, free bool) (realm.ID, uint64, error) {
	a, err := i.step(&importCall{Step: importReserve, Subdomain: subdomain, Wanted: wanted, Free: free})
	return a.Realm, a.Epoch, err
}

// Last returns the number of the last fact of an organization; 0 if its import is not complete.
func (i *Importer) Last(id realm.ID) (realm.Seq, error) {
	a, err := i.step(&importCall{Step: importState, Realm: id})
	return a.Last, err
}

// Clear deletes the texts and rows of an earlier import under a number.
func (i *Importer) Clear(id realm.ID, epoch uint64) error {
	_, err := i.step(&importCall{Step: importClear, Realm: id, Epoch: epoch})
	return err
}

// AddTexts stores texts.
func (i *Importer) AddTexts(b realm.Batch) error {
	_, err := i.step(&importCall{Step: importTexts, Batch: codec.EncodeBatch(&b)})
	return err
}

// AddRows stages a chunk of rows.
func (i *Importer) AddRows(id realm.ID, epoch uint64, chunk uint32, rows []byte) error {
	_, err := i.step(&importCall{Step: importRows, Realm: id, Epoch: epoch, Chunk: chunk, Rows: rows})
	return err
}

// Finish makes the organization visible on all nodes, unless another one has one of its API keys.
func (i *Importer) Finish(
	subdomain string, id realm.ID, epoch uint64, at realm.Seq, chunks uint32, keys [][32]byte,
) error {
	if len(keys) > maxImportedKeys {
		return fmt.Errorf("the export has %d API keys, a cluster takes up to %d at once: revoke those of the export "+
			"with --new-keys", len(keys), maxImportedKeys)
	}
	_, err := i.step(&importCall{Step: importFinish, Subdomain: subdomain, Realm: id, Epoch: epoch, At: at,
		Chunks: chunks, Keys: keys})
	return err
}
