package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"parley/actors/presence"
	"parley/actors/realm"
	"parley/snapshot"
	"parley/snapshot/codec"
	"parley/wire/peer"
)

// replicaSource is the actors.ReplicaSource of an edge: it reads from the leader over the link. Its methods wait while
// there is no link.
type replicaSource struct {
	edge  *Follower
	bytes *atomic.Int64 // see openReplica
}

// LoadReplica loads the rows of the core's last snapshot.
func (s replicaSource) LoadReplica(id realm.ID, r *realm.Realm, table *presence.Table) (realm.Seq, error) {
	link, err := s.edge.waitForLink(s.edge.ctx, false)
	if err != nil {
		return 0, err
	}
	s.bytes.Store(0)
	return snapshot.LoadRows(func(fn func(realm.EncodedRow) error) (at realm.Seq, err error) {
		complete := false
		err = link.Call(s.edge.ctx, encode(callRows, id), func(data []byte) error {
			var part rowsPart
			if err := decode(data, &part); err != nil {
				return err
			}
			s.bytes.Add(int64(len(data)))
			for _, row := range part.Rows {
				if err := fn(row); err != nil {
					return err
				}
			}
			at, complete = part.At, part.Last
			return nil
		})
		if err == nil && !complete {
			err = errors.New("the core did not send all rows")
		}
		return at, err
	}, r, table)
}

// Follow follows a realm. When a link breaks, it continues over the next one.
func (s replicaSource) Follow(id realm.ID, after realm.Seq, fn func(realm.Batch) error, done func(error)) func() {
	ctx, stop := context.WithCancel(s.edge.ctx)
	go func() {
		for {
			err := s.followLink(ctx, id, &after, fn)
			if err != nil {
				stop()
				done(err)
				return
			}
			select { // the link broke
			case <-time.After(redialInterval):
			case <-ctx.Done():
			}
		}
	}()
	return stop
}

// followLink follows a realm until the link breaks, and then returns nil. It returns an error if following must end.
func (s replicaSource) followLink(ctx context.Context, id realm.ID, after *realm.Seq,
	fn func(realm.Batch) error) error {
	link, err := s.edge.waitForLink(ctx, false)
	if err != nil {
		return err
	}
	var failed error
	err = link.Call(ctx, encode(callFollow, &followCall{id, *after, *after == 0}), func(data []byte) error {
		b, err := codec.DecodeBatch(data)
		if err == nil && (b.Realm != id || b.After != *after) {
			err = fmt.Errorf("the core sent facts after %d of realm %d, not after %d of realm %d", b.After, b.Realm,
				*after, id)
		}
		if err == nil {
			err = fn(b)
		}
		if failed = err; err == nil {
			*after = b.Last()
			for _, f := range b.Facts {
				s.bytes.Add(int64(len(f)))
			}
		}
		return err
	})
	var answered *peer.CallError
	switch {
	case failed != nil:
		return failed
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &answered) && answered.Code == codeBehind:
		return fmt.Errorf("%w: %w", realm.ErrBehind, err)
	case errors.As(err, &answered):
		s.edge.Log.Warn("following a realm failed", "realm", id, "err", err)
	}
	return nil
}

// Decode decodes a fact of a batch.
func (replicaSource) Decode(fact []byte) (realm.Fact, error) { return codec.DecodeFact(fact) }

// Texts asks the core for the texts of a page of messages, with one call for each maxTexts of them.
func (s replicaSource) Texts(id realm.ID, refs []realm.BodyRef, fn func(realm.BodyRef, realm.Body)) error {
	for part := range slices.Chunk(refs, maxTexts) {
		link, err := s.edge.waitForLink(s.edge.ctx, false)
		if err != nil {
			return err
		}
		s.edge.Counters.TextCalls.Add(1)
		err = link.Call(s.edge.ctx, encode(callTexts, &textsCall{id, part}), func(data []byte) error {
			var x textsPart
			if err := decode(data, &x); err != nil {
				return err
			}
			for i := range min(len(x.Refs), len(x.Bodies)) {
				fn(x.Refs[i], x.Bodies[i])
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Text asks the core for a text. It waits for a link without a time limit, because an event or an answer would be wrong
// without the text.
func (s replicaSource) Text(id realm.ID, ref realm.BodyRef) (realm.Body, bool, error) {
	for {
		link, err := s.edge.waitForLink(s.edge.ctx, false)
		if err != nil {
			return realm.Body{}, false, err
		}
		s.edge.Counters.TextCalls.Add(1)
		answer, err := link.CallOnce(s.edge.ctx, encode(callText, &textCall{id, ref}))
		var answered *peer.CallError
		if err == nil {
			var a textAnswer
			err = decode(answer, &a)
			return a.Body, a.Found, err
		}
		if errors.As(err, &answered) {
			return realm.Body{}, false, err
		}
		select {
		case <-time.After(redialInterval):
		case <-s.edge.ctx.Done():
			return realm.Body{}, false, err
		}
	}
}
