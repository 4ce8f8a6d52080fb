package realm

import (
	"slices"

	"parley/actors/realm/ids"
)

// Whoever deactivates an account may have what it wrote deleted too. That can be a great many messages, so they go in
// steps of the server's own. A purge is what remains to be done.

// Purge is the row of one account's purge.
type Purge struct {
	User                    UserID
	Public, Private, Direct bool
	Below                   MessageID // messages from here on have been looked at
	By                      UserID    // who asked for it
}

// Limits of one step of a purge, for its turn to stay short: each deleting fact looks at every user who marked messages.
const (
	maxPurgeScan          = 2000 // messages looked at
	maxPurgeConversations = 1    // conversations that messages are deleted from
)

// DeletedName is what an account is called whose profile was deleted (protocol).
const DeletedName = "Deleted user"

// DeactivationActions is what else is to be deleted with an account.
type DeactivationActions struct{ Profile, Public, Private, Direct bool }

func (t *Turn) startPurge(u *User, a DeactivationActions) {
	if a.Profile {
		t.clearProfile(u)
	}
	if (a.Public || a.Private || a.Direct) && t.index.bySender[u.ID] != nil {
		t.Record(&PurgeBegan{ID: t.nextID("purge"), Purge: Purge{User: u.ID, Public: a.Public, Private: a.Private, Direct: a.Direct, Below: t.Org().NextMessage, By: t.User}})
	}
}

func (t *Turn) clearProfile(u *User) {
	name, old := DeletedName, u.Name
	if old != name {
		t.Record(&UserChanged{ID: u.ID, Name: &name, OldName: old})
	}
	if u.AvatarFile != "" || u.Avatar == "U" {
		t.Record(&AvatarChanged{User: u.ID, Source: "J", Version: u.AvatarVersion + 1})
	}
	var fields []int64
	for id := range u.Profile {
		fields = append(fields, id)
	}
	slices.Sort(fields)
	for _, id := range fields {
		t.Record(&ProfileChanged{User: u.ID, Field: id})
	}
}

// PurgeBegan says an account's messages are to be deleted.
type PurgeBegan struct {
	ID    int64
	Purge Purge
}

func (f *PurgeBegan) apply(r *Realm) {
	p := f.Purge
	r.reserveID("purge", f.ID)
	r.small.purges.put(f.ID, &p)
}

func (*PurgeBegan) tell(*Realm) []Notice { return nil }
func (*PurgeBegan) keepsMarkdownConfig() {}

func purgeDue(r *Realm, _ int64) func(*Turn) (any, error) {
	return oldestJobStep(&r.small.purges, (*Turn).stepPurge)
}

// stepPurge deletes some of the newest messages that are left: at most so many, of at most so many conversations.
func (t *Turn) stepPurge(id int64) {
	p := *t.small.purges.must(id)
	type place struct {
		channel uint32
		talk    DirectConversationID
		topic   TopicID
	}
	var order []place
	found := map[place][]MessageID{}
	below, n := p.Below, 0
	var sent ids.Set
	if s := t.index.bySender[p.User]; s != nil {
		sent = *s
	}
	for at := sent.Rank(int64(p.Below)-1) - 1; at >= 0; at-- {
		next := MessageID(sent.At(at))
		if m := t.message(next); t.purgeIncludes(&p, m) {
			k := place{m.channel, m.conversation, m.topic}
			if len(found[k]) == 0 && len(order) == maxPurgeConversations || len(found[k]) == maxHiddenPerFact {
				break
			}
			if len(found[k]) == 0 {
				order = append(order, k)
			}
			found[k] = append(found[k], next)
		}
		if below, n = next, n+1; n == maxPurgeScan {
			break
		}
	}
	for _, k := range order {
		ids := found[k]
		slices.Reverse(ids)
		t.deleteMessages(ids, p.By)
	}
	if n == 0 {
		below = 0
	}
	t.Record(&PurgeStepped{id, below})
}

// purgeIncludes reports whether a purge is for messages like this one.
func (t *Turn) purgeIncludes(p *Purge, m *message) bool {
	if m.channel == 0 {
		return p.Direct
	}
	if t.channels.must(ChannelID(m.channel)).Private {
		return p.Private
	}
	return p.Public
}

// PurgeStepped says how far a purge has come; 0 is its end.
type PurgeStepped struct {
	ID    int64
	Below MessageID
}

func (f *PurgeStepped) apply(r *Realm) {
	if f.Below == 0 {
		r.small.purges.remove(f.ID)
		return
	}
	r.small.purges.change(f.ID).Below = f.Below
}

func (*PurgeStepped) tell(*Realm) []Notice { return nil }
func (*PurgeStepped) keepsMarkdownConfig() {}
