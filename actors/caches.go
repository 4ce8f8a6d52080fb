package actors

import (
	"parley/actors/realm"
	"parley/actors/stream"
)

// caches are what this node knows of a realm outside the actor of the realm: accounts, texts, the search index, and the
// state in the realm's handle; see replica.Caches.
type caches struct {
	srv    *Server
	handle *realmHandle
}

// Stored feeds the search index; see replica.Caches. On a node that follows, the events of these facts are not
// published yet.
func (c caches) Stored(seq realm.Seq, texts []realm.TextWrite) {
	c.srv.search.Feed(c.handle.id, seq, texts)
}

// Publish passes one committed batch to the caches of this node.
func (c caches) Publish(r *realm.Realm, b *stream.Committed) {
	c.handle.markdownConfigSeq.Store(uint64(b.MarkdownConfig))
	c.handle.setClosed(c.srv, b.Closed)
	c.publishTexts(b.Batch.Texts)
	for _, f := range b.Facts {
		if x, ok := f.(realm.CredentialChange); ok {
			for _, u := range x.Accounts() {
				c.srv.updateAccount(r, u)
			}
			if x, ok := f.(*realm.UserChanged); ok && x.Owner != nil {
				c.srv.accounts.updateCharged(r, x.ID)
			}
		}
	}
}

// publishTexts puts new texts into the cache and removes erased ones. A text must not be in the cache earlier: if its
// fact is not stored, another text can get the same message number.
func (c caches) publishTexts(list []realm.TextWrite) {
	for _, t := range list {
		if t.Body != nil {
			c.srv.texts.put(c.handle.id, t.Ref, *t.Body)
			continue
		}
		c.srv.texts.drop(c.handle.id, t.Ref)
		c.srv.damaged.remove(textKey{c.handle.id, t.Ref})
	}
}
