package replicated

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"
	"github.com/hashicorp/raft-wal/metrics"
	"github.com/hashicorp/raft-wal/verifier"
)

// comparedLog is the log of a node as Raft uses it. At every checkpoint it compares the entries since the previous
// checkpoint with those of the leader. raft-wal's verifier (0.4.1) does that: each node sums the entries that it
// writes, and the leader puts its sum into the checkpoint.
//
// The verifier does not subtract deleted entries from its sum. A leader that is cut off writes entries that no other
// node gets. It deletes them later, when it follows the next leader. If it then leads again, its next checkpoint would
// have a wrong sum. So comparedLog begins a new sum, with a new verifier, whenever the last entries are deleted. The
// first checkpoint of this node after that has no sum.
type comparedLog struct {
	*checkedLog
	report func(verifier.VerificationReport)

	number atomic.Int64 // of the verifier; reports of earlier ones are about entries that may be deleted

	mu        sync.Mutex // also held while entries are stored or deleted
	verifier  *verifier.LogStore
	truncated bool // the last entries were deleted after the last checkpoint
}

// newComparedLog returns the log with comparisons. report gets the result of each one.
func newComparedLog(w *checkedLog, report func(verifier.VerificationReport)) *comparedLog {
	c := &comparedLog{checkedLog: w, report: report}
	c.beginSum()
	return c
}

// beginSum begins a new sum with the next entry. The caller holds mu, or is the only user.
func (c *comparedLog) beginSum() {
	number := c.number.Add(1)
	// The verifier gets a log that it cannot close.
	c.verifier = verifier.NewLogStore(struct{ raft.LogStore }{c.checkedLog}, isCheckpoint,
		func(r verifier.VerificationReport) {
			if c.number.Load() == number {
				c.report(r)
			}
		}, &metrics.NoOpCollector{})
}

// StoreLog stores an entry.
func (c *comparedLog) StoreLog(l *raft.Log) error { return c.StoreLogs([]*raft.Log{l}) }

// StoreLogs stores entries. A checkpoint that this node has made gets its sum.
func (c *comparedLog) StoreLogs(logs []*raft.Log) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	truncated := c.truncated
	for _, l := range logs {
		if is, err := isCheckpoint(l); err != nil || !is {
			continue
		}
		if truncated && len(l.Extensions) == 0 {
			l.Extensions = noSum(l.Index)
		}
		truncated = false
	}
	if err := c.verifier.StoreLogs(logs); err != nil {
		return err
	}
	c.truncated = truncated
	return nil
}

// DeleteRange deletes the first or the last entries.
func (c *comparedLog) DeleteRange(from, to uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, err := c.LastIndex()
	if err != nil {
		return err
	}
	if to >= last { // also before a deletion that fails: then the next comparison has fewer entries
		err = c.verifier.Close()
		c.beginSum()
		c.truncated = true
	}
	return errors.Join(err, c.checkedLog.DeleteRange(from, to))
}

// Close ends the comparisons and closes the log.
func (c *comparedLog) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.number.Add(1)
	return errors.Join(c.verifier.Close(), c.checkedLog.Close())
}

// noSum returns the content of a checkpoint without a sum: the sum of no entries, from the checkpoint's own
// index to itself. A program with the verifier alone reads it so, too.
func noSum(index uint64) []byte {
	b := binary.LittleEndian.AppendUint64(nil, verifier.ExtensionMagicPrefix)
	b = binary.LittleEndian.AppendUint64(b, index)
	return binary.LittleEndian.AppendUint64(b, 0)
}

// isCheckpoint reports whether the logs are compared at an entry.
func isCheckpoint(l *raft.Log) (bool, error) {
	return l.Type == raft.LogCommand && len(l.Data) >= entryHead && l.Data[1] == kindCheckpoint, nil
}

// reportCompared counts the result of a comparison.
func (n *Node) reportCompared(r verifier.VerificationReport) {
	var differs verifier.ErrChecksumMismatch
	switch {
	case n.failed.get() != nil: // an entry that was read for the comparison was damaged
	case errors.As(r.Err, &differs):
		n.confirmDamage(r.Range.Start, r.Range.End, r.Err)
	case r.Err != nil || r.Range.Start >= r.Range.End:
		n.uncompared.Add(1)
		n.log.Debug("a part of the log was not compared", "from", r.Range.Start, "to", r.Range.End, "err", r.Err)
	default:
		n.verified.Add(1)
	}
}

// confirmDamage stops the node if one of its entries from start to end does not have the checksum with which this node
// wrote it. Otherwise the sum of the leader is wrong, and this node goes on: an older program, which did not begin a
// new sum when it deleted entries, has left such checkpoints in the log.
func (n *Node) confirmDamage(start, end uint64, why error) {
	for i := start; i <= end; i++ {
		var l raft.Log
		err := n.wal.GetLog(i, &l) // stops the node if the entry is damaged
		if err != nil || n.failed.get() != nil {
			break // also if the entry was deleted meanwhile
		}
	}
	if n.failed.get() != nil {
		return
	}
	n.differing.Add(1)
	n.log.Warn("the sum of a checkpoint in the replicated log is wrong; every entry of this core is intact",
		"entries", fmt.Sprintf("%d to %d", start, end), "err", why)
}
