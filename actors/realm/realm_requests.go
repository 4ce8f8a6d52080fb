package realm

import "fmt"

// RepeatedRequest is the error of a command whose request has recorded its facts already, so it is not run again.
type RepeatedRequest struct {
	ID  string
	Seq Seq // the last fact
}

func (e *RepeatedRequest) Error() string {
	return fmt.Sprintf("request %q was carried out already, up to fact %d", e.ID, e.Seq)
}

// ErrNotOwner is the answer to a command on a node that does not own the organization.
var ErrNotOwner error = Refuse(Busy, "SERVER_OVERLOADED",
	"The organization is owned by another server; try again in a few seconds.")

// HasRecorded reports whether the turn has recorded a fact.
func (t *Turn) HasRecorded() bool { return len(t.facts) > 0 }
