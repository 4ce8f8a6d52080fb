package realm

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// maxDrafts is the limit of one user's drafts. A registration returns at most as many (protocol).
const maxDrafts = 1000

// Draft is the row of a message that a user has begun to write.
type Draft struct {
	ID      int64
	User    UserID
	Type    string  // "", stream or private
	To      []int64 // one channel, or the other participants
	Topic   string
	Content string
	Edited  int64
}

// JustNow is the time of a draft's last edit if the client does not send one. The turn replaces it with its own time.
const JustNow = math.MinInt64

func (d *Draft) owner() UserID { return d.User }

// DraftsOf returns a user's drafts, oldest edit first.
func (r *Realm) DraftsOf(u UserID) []Draft {
	list := r.small.drafts.list(u)
	slices.SortStableFunc(list, func(a, b Draft) int { return cmp.Compare(a.Edited, b.Edited) })
	return list
}

// size returns the bytes of the draft's texts, and of its recipients.
func (d *Draft) size() int { return len(d.Content) + len(d.Topic) + registeredIDBytes*len(d.To) }

// draftBytes returns the size of all drafts of a user.
func (r *Realm) draftBytes(u UserID) (n int) {
	for _, d := range r.small.drafts.list(u) {
		n += d.size()
	}
	return n
}

// DraftSyncUser returns the caller, and refuses callers that have turned off the synchronization of drafts.
func (v View) DraftSyncUser() (*User, error) {
	me := v.Me()
	if me == nil {
		return nil, errNotMember()
	}
	if !me.BoolSetting("enable_drafts_synchronization") {
		return nil, BadRequest("User has disabled synchronizing drafts.")
	}
	return me, nil
}

// checkDraft checks a draft and returns it in the form in which it is stored.
func (v View) checkDraft(me *User, d Draft) (Draft, error) {
	content, err := NormalizeContent(d.Content)
	if err != nil {
		return d, err
	}
	d.User, d.Content = me.ID, content
	if d.Edited == JustNow {
		d.Edited = v.Now
	}
	if d.Edited < 0 {
		return d, BadRequest("Timestamp must not be negative.")
	}
	switch d.Type {
	case "stream":
		if strings.ContainsRune(d.Topic, 0) {
			return d, BadRequest("Topic must not contain null bytes")
		}
		if d.Topic = strings.TrimSpace(d.Topic); runeCount(d.Topic) > MaxTopic {
			d.Topic = firstRunes(d.Topic, MaxTopic-3) + "..."
		}
		if d.Topic == EmptyTopicName { // clients that do not know the empty topic show this name for it
			d.Topic = ""
		}
		if len(d.To) != 1 {
			return d, BadRequest("Must specify exactly 1 channel ID for channel messages")
		}
		if c := v.channels.find(ChannelID(d.To[0])); c == nil || c.Archived || !v.hasContentAccess(me, c) {
			return d, errInvalidChannel()
		}
	case "private":
		d.Topic = ""
		var others []int64
		for _, id := range d.To {
			u := v.Find(UserID(id))
			if u == nil || !v.maySeeUser(me, u) {
				return d, BadRequest("Invalid user ID %d", id)
			}
			if !u.Active {
				return d, errNoLongerActive(u)
			}
			if u.ID != me.ID {
				others = append(others, id)
			}
		}
		slices.Sort(others)
		if d.To = slices.Compact(others); len(d.To) == 0 {
			d.To = []int64{}
		}
	default:
		d.To, d.Topic = []int64{}, ""
	}
	return d, nil
}

// AddDrafts asks to store drafts. It answers their ids.
type AddDrafts struct{ Drafts []Draft }

func (c AddDrafts) Decide(t *Turn) ([]int64, error) {
	ids := []int64{}
	me, err := t.DraftSyncUser()
	if err != nil {
		return nil, err
	}
	if t.sumCharged(me.ID, t.small.drafts.count)+len(c.Drafts) > maxDrafts {
		return nil, BadRequest("Too many drafts (limit: %d)", maxDrafts)
	}
	f := &DraftsAdded{User: me.ID}
	size := t.sumCharged(me.ID, t.draftBytes)
	for i, d := range c.Drafts {
		if d, err = t.checkDraft(me, d); err != nil {
			return nil, err
		}
		if size += d.size(); size > MaxOwnTexts {
			return nil, checkOwnTexts("drafts", size)
		}
		d.ID = t.nextID("draft") + int64(i)
		f.Drafts, ids = append(f.Drafts, d), append(ids, d.ID)
	}
	if len(ids) > 0 {
		t.Record(f)
	}
	return ids, nil
}

// DraftsAdded adds drafts of a user.
type DraftsAdded struct {
	User   UserID
	Drafts []Draft
}

func (*DraftsAdded) EventType() string { return "drafts" }

func (f *DraftsAdded) apply(r *Realm) {
	for _, d := range f.Drafts {
		r.reserveID("draft", d.ID)
		r.small.drafts.put(d.ID, &d)
	}
}

func (f *DraftsAdded) notices(r *Realm) []Notice {
	return []Notice{{To: r.usersAudience(f.User), Event: f}}
}

func errNoDraft() *Refusal { return Missing("Draft does not exist") }

// ChangeDraft asks to replace a draft.
type ChangeDraft struct {
	ID    int64
	Draft Draft
}

func (c ChangeDraft) Decide(t *Turn) (Done, error) {
	me, err := t.DraftSyncUser()
	if err != nil {
		return Done{}, err
	}
	if t.small.drafts.findOwned(me.ID, c.ID) == nil {
		return Done{}, errNoDraft()
	}
	d, err := t.checkDraft(me, c.Draft)
	if err != nil {
		return Done{}, err
	}
	d.ID = c.ID
	old := t.small.drafts.findOwned(me.ID, c.ID)
	if err := checkOwnTexts("drafts", t.sumCharged(me.ID, t.draftBytes)-old.size()+d.size()); err != nil {
		return Done{}, err
	}
	t.Record(&DraftChanged{d})
	return Done{}, nil
}

// DraftChanged replaces a draft.
type DraftChanged struct{ Draft Draft }

func (*DraftChanged) EventType() string { return "drafts" }

func (f *DraftChanged) apply(r *Realm) { d := f.Draft; r.small.drafts.put(d.ID, &d) }

func (f *DraftChanged) notices(r *Realm) []Notice {
	return []Notice{{To: r.usersAudience(f.Draft.User), Event: f}}
}

// RemoveDraft asks to remove a draft.
type RemoveDraft struct{ ID int64 }

func (c RemoveDraft) Decide(t *Turn) (Done, error) {
	me, err := t.DraftSyncUser()
	if err != nil {
		return Done{}, err
	}
	if t.small.drafts.findOwned(me.ID, c.ID) == nil {
		return Done{}, errNoDraft()
	}
	t.Record(&DraftRemoved{me.ID, c.ID})
	return Done{}, nil
}

// DraftRemoved removes a draft.
type DraftRemoved struct {
	User UserID
	ID   int64
}

func (*DraftRemoved) EventType() string { return "drafts" }

func (f *DraftRemoved) apply(r *Realm) { r.small.drafts.remove(f.ID) }

func (f *DraftRemoved) notices(r *Realm) []Notice {
	return []Notice{{To: r.usersAudience(f.User), Event: f}}
}

// removeDrafts removes a user's drafts when the user turns off their synchronization. No event is sent (protocol).
func (r *Realm) removeDrafts(u UserID) {
	for _, d := range r.small.drafts.list(u) {
		r.small.drafts.remove(d.ID)
	}
}
