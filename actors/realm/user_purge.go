package realm

import (
	"slices"

	"parley/actors/realm/ids"
)

// A deactivation may also delete the messages of the account. There can be many, so the server does this in steps, a
// turn each. A Purge row is the job.

// Purge is the row of one job: which messages of an account are still to be deleted.
type Purge struct {
	User                    UserID
	Public, Private, Direct bool
	Below                   MessageID // messages from this id on have been checked
	By                      UserID    // user that asked for it
}

// Limits of one step. They keep its turn short, because each fact that deletes messages looks at all users with
// marks.
const (
	maxPurgeScan          = 2000 // messages to check
	maxPurgeConversations = 1    // conversations to delete messages from
)

// DeletedName is the name of an account whose profile was deleted (protocol).
const DeletedName = "Deleted user"

// DeactivationActions says what else to delete when an account is deactivated.
type DeactivationActions struct{ Profile, Public, Private, Direct bool }

// startPurge clears the profile at once and adds the job for the messages.
func (t *Turn) startPurge(u *User, a DeactivationActions) {
	if a.Profile {
		t.clearProfile(u)
	}
	if (a.Public || a.Private || a.Direct) && t.index.bySender[u.ID] != nil {
		p := Purge{User: u.ID, Public: a.Public, Private: a.Private, Direct: a.Direct,
			Below: t.Org().NextMessage, By: t.User}
		t.Record(&PurgeBegan{ID: t.nextID("purge"), Purge: p})
	}
}

// clearProfile removes a user's name, avatar and custom profile values. The account then counts as deleted: it cannot
// be reactivated.
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
	if !u.Deleted {
		t.Record(&UserChanged{ID: u.ID, Deleted: true})
	}
}

// PurgeBegan says that messages of an account are to be deleted.
type PurgeBegan struct {
	ID    int64
	Purge Purge
}

func (f *PurgeBegan) apply(r *Realm) {
	p := f.Purge
	r.reserveID("purge", f.ID)
	r.small.purges.put(f.ID, &p)
}

func (*PurgeBegan) notices(*Realm) []Notice { return nil }

// purgeDue returns a turn that runs one step of the oldest purge, or nil without one.
func purgeDue(r *Realm, _ int64) func(*Turn) (any, error) {
	return oldestJobStep(&r.small.purges, (*Turn).stepPurge)
}

// stepPurge deletes the newest remaining messages. It checks at most maxPurgeScan messages and deletes from at most
// maxPurgeConversations conversations.
func (t *Turn) stepPurge(id int64) {
	p := *t.small.purges.must(id)
	if !t.mayContinuePurge(&p) {
		t.Record(&PurgeStepped{id, 0})
		return
	}
	type place struct {
		channel uint32
		direct  DirectConversationID
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
		slices.Reverse(found[k])
		t.deleteMessages(found[k], DeletedByUser, p.By)
	}
	if n == 0 {
		below = 0
	}
	t.Record(&PurgeStepped{id, below})
}

// mayContinuePurge reports whether the user that asked for a purge still has the right to it: users that delete their
// own account, owners of bots, and administrators that the account does not outrank.
func (t *Turn) mayContinuePurge(p *Purge) bool {
	by, u := t.users.find(p.By), t.users.must(p.User)
	if by == nil || by.ID == u.ID { // the server itself, or the deleted account
		return true
	}
	return by.Active && (by.IsAdmin() || u.BotOwner == by.ID) && !u.outranks(by)
}

// purgeIncludes reports whether a purge deletes messages in this kind of conversation.
func (t *Turn) purgeIncludes(p *Purge, m *message) bool {
	if m.channel == 0 {
		return p.Direct
	}
	if t.channels.must(ChannelID(m.channel)).Private {
		return p.Private
	}
	return p.Public
}

// PurgeStepped says how far a purge is; Below 0 ends it.
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

func (*PurgeStepped) notices(*Realm) []Notice { return nil }
