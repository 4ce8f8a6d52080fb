package realm

import "parley/actors/realm/ids"

// Programs before this file counted only links to other sites as links of a message, not links to channels, topics and
// messages. The server reads the stored texts once and marks the messages that have such links.

// MarkLinks asks to count some messages as messages with a link. Only the server itself asks for it.
type MarkLinks struct {
	Texts []BodyRef // texts with a link
	UpTo  MessageID // every text up to this message was read; MaxMessageID: all texts
}

func (c MarkLinks) Decide(t *Turn) (Done, error) {
	if !t.System {
		return Done{}, errPermission()
	}
	f := &LinksMarked{UpTo: c.UpTo}
	for _, ref := range c.Texts {
		m := t.message(ref.Message)
		// A newer text was rendered by a program that counts all links.
		if m != nil && m.bits&bitLink == 0 && t.extraOrEmpty(ref.Message).Version == ref.Version {
			f.Messages.Add(int64(ref.Message))
		}
	}
	if !f.Messages.Empty() || f.UpTo > t.Org().LinksChecked {
		t.Record(f)
	}
	return Done{}, nil
}

// LinksMarked says that messages count as messages with a link.
type LinksMarked struct {
	Messages ids.Set
	UpTo     MessageID // see Organization.LinksChecked
}

func (f *LinksMarked) apply(r *Realm) {
	f.Messages.Each(func(id int64) bool {
		r.changeMessage(MessageID(id)).bits |= bitLink
		r.index.addMessage(&r.index.links, MessageID(id))
		return true
	})
	o := r.org.change(0)
	o.LinksChecked = max(o.LinksChecked, f.UpTo)
}

func (*LinksMarked) notices(*Realm) []Notice { return nil }
