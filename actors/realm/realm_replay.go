package realm

import (
	"fmt"
	"slices"

	"parley/actors/realm/ids"
)

// priorState is the state before a fact, as far as notices needs it. apply saves it, because the change removes that
// state. It is not part of the fact: a fact is the same for every process that applies it.
type priorState struct {
	audiences     [][]UserID // as of before the change
	stars         removedStars
	files         []string // the files that deleted messages used, or that only one of two texts uses
	uploads       []removedUploadRef
	conversations ids.Set // of restored messages
	channels      ids.Set
	marks         []ArchivedMarks
}

// savePriorState returns the prior state of the fact that is being applied, for apply to fill.
func (r *Realm) savePriorState() *priorState {
	if r.prior == nil {
		r.prior = &priorState{}
	}
	return r.prior
}

// priorState returns what apply has saved; it is empty if apply saved nothing.
func (r *Realm) priorState() priorState {
	if r.prior == nil {
		return priorState{}
	}
	return *r.prior
}

// applyNext gives a fact the next number, applies it, and returns its notices.
func (r *Realm) applyNext(f Fact) []Notice {
	r.seq++
	r.countUsage(f)
	f.apply(r)
	r.recordApplied(f)
	notices := deliverable(f.notices(r))
	r.prior = nil
	return notices
}

// deliverable returns the notices without events for clients whose audience is empty. No queue will ever get such an
// event, and where it was stored until older events are acknowledged, its text would outlive an erasure.
func deliverable(notices []Notice) []Notice {
	noAudience := func(n Notice) bool { return len(n.To) == 0 && n.Event.EventType() != "" }
	if slices.ContainsFunc(notices, noAudience) {
		notices = slices.DeleteFunc(slices.Clone(notices), noAudience)
	}
	return notices
}

// Replay applies a fact that was read from the journal, at the present clock. It returns the same notices as when the
// fact was recorded.
func (r *Realm) Replay(f Fact) Publication {
	notices := r.applyNext(f)
	return Publication{Seq: r.seq, Notices: notices}
}

// ReplayAt is Replay with the clock reading and the rule level of the fact's batch. Both are 0 for facts from before
// batches had them; they are applied at the present clock and at FirstLevel.
func (r *Realm) ReplayAt(f Fact, now int64, level uint16) Publication {
	clock, before := r.index.clock, r.level
	if now != 0 {
		r.index.clock = now
	}
	r.level = max(level, FirstLevel)
	t := r.Replay(f)
	r.index.clock, r.level = max(clock, r.index.clock), before
	return t
}

// Follow applies a batch that another realm with the same state has recorded. facts are the decoded facts of the batch.
// The result is the notices of each fact that has some: the same as those of the other realm. An error means that
// nothing was applied.
func (r *Realm) Follow(b Batch, facts []Fact) ([]Publication, error) {
	if err := r.CheckFollows(b); err != nil {
		return nil, err
	}
	var publications []Publication
	for _, f := range facts {
		if t := r.ReplayAt(f, b.Now, b.Level); len(t.Notices) > 0 {
			publications = append(publications, t)
		}
	}
	return publications, nil
}

// CheckFollows returns an error if a batch cannot be applied to the realm as it is now.
func (r *Realm) CheckFollows(b Batch) error {
	switch {
	case b.Realm != r.id:
		return fmt.Errorf("a batch of realm %d cannot be applied to realm %d", b.Realm, r.id)
	case b.After != r.seq:
		return fmt.Errorf("realm %d is at fact %d; the batch follows fact %d", r.id, r.seq, b.After)
	case b.Level > Level:
		return fmt.Errorf("the batch after fact %d of realm %d has the rule level %d, this program has %d: "+
			"install the version of the other nodes", b.After, r.id, b.Level, Level)
	}
	return nil
}
