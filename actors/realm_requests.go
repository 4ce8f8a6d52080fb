package actors

import (
	"errors"
	"fmt"

	"parley/actors/realm"
)

// MaxRecentRequests is how many request ids of one organization are in memory: more than the commands that can be in
// progress, so every id whose facts are not on disk yet is among them. An id takes about 100 bytes.
const MaxRecentRequests = 2 * MaxInFlight

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
func (a *realmActor) checkRequest(id string) error {
	if len(id) > realm.MaxRequestID {
		return errBadRequestID
	}
	seq, found := a.requests.seqs[id]
	if !found {
		var err error
		if seq, found, err = a.srv.disk.FindRequest(a.realm.ID(), id); err != nil {
			return fmt.Errorf("look up request %q: %w", id, err)
		}
	}
	if found {
		a.srv.Metrics.RequestsRepeated.Add(1)
		return &realm.RepeatedRequest{ID: id, Seq: seq}
	}
	return nil
}

// FindRequest returns the last fact that a request caused, if it has recorded any. It waits until the fact is on disk.
func (srv *Server) FindRequest(id realm.ID, request string) (realm.Seq, bool, error) {
	caller := realm.Caller{System: true, Client: "Internal", Request: request}
	_, err := srv.Turn(id, caller, func(*realm.Turn) (any, error) { return nil, nil })
	var repeated *realm.RepeatedRequest
	if errors.As(err, &repeated) {
		return repeated.Seq, true, nil
	}
	return 0, false, err
}

// MaxFactsOfSend is how many facts before the last one of a turn are searched for the message that it has sent.
const MaxFactsOfSend = 64

// SentMessage returns the message that a user has sent in a turn, by the last fact of the turn. It returns false if the
// journal does not have the fact any more.
func (srv *Server) SentMessage(id realm.ID, u realm.UserID, last realm.Seq) (m realm.MessageID, found bool, err error) {
	errEnd := errors.New("end")
	for _, n := range []realm.Seq{MaxFactsOfSend, MaxFactsOfSend / 8, 1} { // fewer, if not all are in the journal
		err = srv.disk.Tail(id, last-min(n, last), func(r realm.Record) error {
			if r.Seq > last {
				return errEnd
			}
			if f, is := r.Fact.(*realm.MessageSent); is && f.Sender == u {
				m, found = f.ID, true
			}
			return nil
		})
		if err == nil || errors.Is(err, errEnd) {
			return m, found, nil
		}
		if !errors.Is(err, realm.ErrBehind) {
			return 0, false, err
		}
	}
	return 0, false, nil
}
