package actors

import (
	"slices"

	"parley/actors/realm"
	"parley/actors/stream"
)

// feedSearch passes the texts of committed output to the search index, in one step, before the answers and events that
// depend on them are sent.
func (a *replica) feedSearch(list []pendingOutput) {
	var texts []realm.TextWrite
	hasFacts := false
	for i := range list {
		c := list[i].committed
		if c == nil {
			continue
		}
		hasFacts = true
		if len(texts) == 0 { // usually there is only one batch with texts: it is not copied
			texts = slices.Clip(c.Batch.Texts)
		} else {
			texts = append(texts, c.Batch.Texts...)
		}
	}
	if hasFacts {
		a.srv.search.Feed(a.realm.ID(), a.durable, texts)
	}
}

// publish passes one committed batch to everything that follows the realm, except to the sessions: they get it together
// with the answer to the caller. It returns the outbox jobs that the batch adds.
func (a *realmActor) publish(c *stream.Committed) (jobs []*realm.OutboxJobsAdded) {
	a.replica.publish(c)
	for _, f := range c.Facts {
		a.srv.Metrics.countArchive(f)
		switch f := f.(type) {
		case *realm.OutboxJobsAdded:
			jobs = append(jobs, f)
		case *realm.TextsCompacted:
			if erased := a.srv.onErased.Load(); erased != nil && a.standby {
				(*erased)(a.realm.ID())
			}
		}
	}
	a.owned.Publish(c, !a.standby)
	return jobs
}

// publish passes one committed batch to the caches of this node.
func (a *replica) publish(c *stream.Committed) {
	a.publishTexts(c.Batch.Texts)
	for _, f := range c.Facts {
		if x, ok := f.(realm.CredentialChange); ok {
			for _, u := range x.Accounts() {
				a.srv.updateAccount(a.realm, u)
			}
			if x, ok := f.(*realm.UserChanged); ok && x.Owner != nil {
				a.srv.accounts.updateCharged(a.realm, x.ID)
			}
		}
	}
}

// publishTexts puts new texts into the cache and removes erased ones. A text must not be in the cache earlier: if its
// fact is not stored, another text can get the same message number.
func (a *replica) publishTexts(list []realm.TextWrite) {
	for _, t := range list {
		if t.Body != nil {
			a.srv.texts.put(a.realm.ID(), t.Ref, *t.Body)
			continue
		}
		a.srv.texts.drop(a.realm.ID(), t.Ref)
		a.srv.damaged.remove(textKey{a.realm.ID(), t.Ref})
	}
}
