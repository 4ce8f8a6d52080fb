package realm

import (
	"cmp"
	"slices"

	"parley/actors/realm/ids"
)

// A legal hold keeps messages in the archive for as long as it exists, whether a user or the retention policy deleted
// them. Users cannot see it.

// LegalHold is the row of one hold: on the messages of a user, which includes direct messages to them, or of a channel.
type LegalHold struct {
	User    UserID    // 0: none
	Channel ChannelID // 0: none
	Reason  string    // for the operator
	At      int64
}

// MaxHolds limits the legal holds of an organization: all are read before messages are purged.
const MaxHolds = 1000

// maxHoldReason limits the length of the reason in code points.
const maxHoldReason = 1000

// heldPlaces are the users and channels that have a legal hold.
type heldPlaces struct{ users, channels ids.Set }

// heldPlaces returns the users and channels that have a legal hold.
func (r *Realm) heldPlaces() (p heldPlaces) {
	for _, h := range r.small.holds.all() {
		if h.User != 0 {
			p.users.Add(int64(h.User))
		} else {
			p.channels.Add(int64(h.Channel))
		}
	}
	return p
}

// onHold reports whether a legal hold is on an archived message. extra may be nil. A message that was moved is held by
// its first channel, too.
func (r *Realm) onHold(held heldPlaces, m *message, extra *MessageExtra) bool {
	if held.users.Has(int64(m.sender)) {
		return true
	}
	if m.channel != 0 {
		return held.channels.Has(int64(m.channel)) || extra != nil && held.channels.Has(int64(extra.SentTo))
	}
	return !held.users.Empty() && slices.ContainsFunc(r.conversations.must(m.conversation).Members,
		func(u UserID) bool { return held.users.Has(int64(u)) })
}

// AddHold asks, for the operator, to put a legal hold on a user or a channel. The answer is its id.
type AddHold struct {
	User    UserID
	Channel ChannelID
	Reason  string
}

func (c AddHold) Decide(t *Turn) (int64, error) {
	switch {
	case !t.System:
		return 0, errPermission()
	case (c.User == 0) == (c.Channel == 0):
		return 0, BadRequest("a legal hold is on a user or on a channel")
	case c.User != 0 && t.users.find(c.User) == nil:
		return 0, BadRequest("no user %d", c.User)
	case c.Channel != 0 && t.channels.find(c.Channel) == nil:
		return 0, BadRequest("no channel %d", c.Channel)
	case t.small.holds.size() >= MaxHolds:
		return 0, BadRequest("there are %d legal holds already", MaxHolds)
	}
	id := t.nextID("hold")
	hold := LegalHold{User: c.User, Channel: c.Channel, Reason: firstRunes(c.Reason, maxHoldReason), At: t.Now}
	t.Record(&HoldAdded{id, hold})
	return id, nil
}

// HoldAdded puts a legal hold on a user or a channel.
type HoldAdded struct {
	ID   int64
	Hold LegalHold
}

func (f *HoldAdded) apply(r *Realm) {
	h := f.Hold
	r.reserveID("hold", f.ID)
	r.small.holds.put(f.ID, &h)
}

func (*HoldAdded) notices(*Realm) []Notice { return nil }

// RemoveHold asks, for the operator, to end a legal hold. Archived messages whose time is over are purged soon after.
type RemoveHold struct{ ID int64 }

func (c RemoveHold) Decide(t *Turn) (Done, error) {
	if !t.System {
		return Done{}, errPermission()
	}
	if t.small.holds.find(c.ID) == nil {
		return Done{}, BadRequest("no legal hold %d; parley retention hold list shows them", c.ID)
	}
	t.Record(&HoldRemoved{c.ID})
	return Done{}, nil
}

// HoldRemoved ends a legal hold.
type HoldRemoved struct{ ID int64 }

func (f *HoldRemoved) apply(r *Realm) {
	r.small.holds.remove(f.ID)
	r.purgeProgress = purgeProgress{} // the messages may be due now
}

func (*HoldRemoved) notices(*Realm) []Notice { return nil }

// HoldInfo is a legal hold with its id.
type HoldInfo struct {
	ID int64
	LegalHold
}

// Holds returns the legal holds by ascending id, for the operator.
func (v View) Holds() (out []HoldInfo) {
	for _, id := range v.small.holds.keys() {
		out = append(out, HoldInfo{id, *v.small.holds.must(id)})
	}
	return out
}

// ArchiveInfo describes an archive, for the operator.
type ArchiveInfo struct {
	Name      string
	Reason    ArchiveReason
	Channel   ChannelID
	By        UserID
	At        int64
	Until     int64 // its first messages are purged then, unless a legal hold is on them; 0: not known here
	Messages  int
	Restoring bool
}

// Archives returns the archives by name, which is by day, for the operator.
func (v View) Archives() (out []ArchiveInfo) {
	for name, a := range v.small.archives.all() {
		x := ArchiveInfo{Name: name, Reason: a.Reason, Channel: a.Channel, By: a.By, At: a.At,
			Until: a.At + v.archiveTime, Messages: a.Messages, Restoring: a.RestoreBelow != 0}
		if v.retentionPaused {
			x.Until = 0
		}
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b ArchiveInfo) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// ArchivedCount returns how many messages are in the archive.
func (r *Realm) ArchivedCount() int { return r.small.archiveIndex.messages }
