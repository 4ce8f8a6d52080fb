package actors

import (
	"errors"

	"parley/actors/realm"
)

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
