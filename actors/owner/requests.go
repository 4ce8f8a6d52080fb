package owner

import (
	"errors"
	"fmt"

	"parley/actors/realm"
)

// MaxRecentRequests is how many request ids of one organization are in memory: twice the commands that can be in
// progress, so every id whose facts are not on disk yet is among them. An id takes about 100 bytes.
const MaxRecentRequests = 2 * MaxInFlight

// MaxInFlight is how many commands and views of one realm may be in progress. Further ones are rejected as busy. At
// 50,000 turns a second a full mailbox is a fifth of a second of work.
const MaxInFlight = 10000

// recentRequests are the newest request ids that a realm has recorded facts for, with their last facts.
type recentRequests struct {
	seqs  map[string]realm.Seq
	order []string // a ring, when it has MaxRecentRequests ids
	next  int      // index in order of the oldest one
}

func (r *recentRequests) add(id string, seq realm.Seq) {
	if r.seqs == nil {
		r.seqs = map[string]realm.Seq{}
	}
	r.seqs[id] = seq
	if len(r.order) < MaxRecentRequests {
		r.order = append(r.order, id)
		return
	}
	delete(r.seqs, r.order[r.next])
	r.order[r.next] = id
	r.next = (r.next + 1) % len(r.order)
}

// errBadRequestID refuses a request id that the journal could not store.
var errBadRequestID = errors.New("the id of a request is too long")

// checkRequest returns an error if the request with an id has been carried out, or may have been. Without this check
// the journal would refuse the facts of the second run, which ends the ownership of the realm.
func (t *Turns) checkRequest(id string) error {
	if len(id) > realm.MaxRequestID {
		return errBadRequestID
	}
	seq, found := t.requests.seqs[id]
	if !found {
		var err error
		if seq, found, err = t.env.Disk.FindRequest(t.realm.ID(), id); err != nil {
			return fmt.Errorf("look up request %q: %w", id, err)
		}
	}
	if found {
		t.env.RequestsRepeated.Add(1)
		return &realm.RepeatedRequest{ID: id, Seq: seq}
	}
	return nil
}
