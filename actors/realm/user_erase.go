package realm

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/actors/realm/ids"
)

// The operator deletes the data of one person permanently: the account stays as an empty "Deleted user", because
// messages of others refer to it. There can be much data, so the server does this in steps, a turn each. An Erasure row
// is the job. It remains afterwards and records the removed data.

// Erasure is the row of the deletion of one person's data.
type Erasure struct {
	At    int64 // when it began, Unix seconds
	Done  int64 // when everything was removed; 0: not yet
	Phase ErasurePhase
	Next  int64     // position in the phase
	Count []Counted // how many objects of each kind were removed, by ascending kind
}

// Counted is a number of objects of a kind.
type Counted struct {
	Kind string
	N    int
}

// withCounts returns a list with the numbers of another one added. It changes none of them.
func withCounts(list, more []Counted) []Counted {
	out := slices.Clone(list)
	for _, c := range more {
		i, found := slices.BinarySearchFunc(out, c.Kind, func(x Counted, kind string) int {
			return strings.Compare(x.Kind, kind)
		})
		if !found {
			out = slices.Insert(out, i, Counted{Kind: c.Kind})
		}
		out[i].N += c.N
	}
	return out
}

// ErasurePhase is the kind of data that an erasure removes at present. The numbers are stored.
type ErasurePhase uint8

const (
	erasingMessages  ErasurePhase = 0 // by a Purge
	erasingReactions ErasurePhase = 1 // Next: the last message checked
	erasingArchived  ErasurePhase = 2 // Next: the last row of the archive checked
	erasingFiles     ErasurePhase = 3
	erased           ErasurePhase = 4
)

// Limits of one step.
const (
	// maxErasureScan is how many messages with reactions, rows of the archive or files one step looks at.
	maxErasureScan = 1000
	// maxErasureFacts is how many reactions or files one step removes. Each has an event for others.
	maxErasureFacts = 100
)

// EraseUser asks, for the operator, to delete the data of a person permanently. A person that is under a legal hold is
// refused. The same command again has no effect.
type EraseUser struct{ User UserID }

func (c EraseUser) Decide(t *Turn) (Done, error) {
	u := t.Find(c.User)
	switch {
	case !t.System:
		return Done{}, errPermission()
	case u == nil || u.System:
		return Done{}, errNoUser()
	case u.IsBot():
		return Done{}, BadRequest("a bot has no data of its own: deactivate it")
	case t.small.erasures.find(u.ID) != nil:
		return Done{}, nil
	case t.isLastOwner(u):
		return Done{}, BadRequest("Cannot deactivate the only organization owner")
	}
	held := t.heldPlaces()
	if held.users.Has(int64(u.ID)) {
		return Done{}, BadRequest("the user is under a legal hold; parley retention hold list shows it")
	}
	f := &ErasureBegan{User: u.ID, At: t.Now, Count: t.countErasable(u)}
	if u.Active {
		if _, err := (DeactivateUser{User: u.ID}).Decide(t); err != nil {
			return Done{}, err
		}
	} else {
		t.endAccess(u)
	}
	email := fmt.Sprintf("deleted%d@user.invalid", u.ID) // RFC 2606: no mailbox has such an address
	t.dropEmailsOf(t.users.must(u.ID))                   // before the name and the address are replaced
	t.replaceInvitedAddress(u.Email, email)
	t.clearProfile(t.users.must(u.ID))
	if s := t.StatusOf(u.ID); s.Text != "" || s.EmojiName != "" {
		empty := ""
		t.Record(&StatusChanged{User: u.ID, Text: &empty, Emoji: &UserStatus{}})
	}
	t.Record(&UserChanged{ID: u.ID, Email: &email})
	t.startPurge(t.users.must(u.ID), DeactivationActions{Public: true, Private: true, Direct: true})
	t.Record(f)
	return Done{}, nil
}

// dropEmailsOf removes the waiting jobs of a person: all jobs for them, and all emails that have their address or name.
// An email to another user that names the person, such as an invitation by them, is not sent.
func (t *Turn) dropEmailsOf(u *User) {
	var jobs []int64
	for _, id := range t.small.outboxJobs.keys() {
		if job := t.small.outboxJobs.must(id); job.User == u.ID || job.Letter != nil && job.Letter.concerns(u) {
			jobs = append(jobs, id)
		}
	}
	t.FinishOutboxJobs(jobs)
}

// replaceInvitedAddress replaces an address in the invitations to it. Their links stop working. A fact of a lower rule
// level does it: it removes an invitation and adds it again.
func (t *Turn) replaceInvitedAddress(from, to string) {
	f := &InvitesSent{}
	for _, id := range t.small.invites.keys() {
		i := *t.small.invites.must(id)
		if !strings.EqualFold(i.Email, from) {
			continue
		}
		i.Email, i.Tokens = to, nil
		if i.State == InviteActive {
			i.State = InviteRevoked
		}
		f.Forgotten, f.Invites = append(f.Forgotten, id), append(f.Invites, i)
	}
	if len(f.Invites) > 0 {
		t.Record(f)
	}
}

// concerns reports whether an email is for a user, or contains their address or name.
func (e *Email) concerns(u *User) bool {
	if a := e.Address; a != nil && a.User == u.ID {
		return true
	}
	if c := e.Confirm; c != nil && (c.User == u.ID || strings.EqualFold(c.Email, u.Email)) {
		return true
	}
	if s := e.Unsubscribe; s != nil && s.User == u.ID {
		return true
	}
	if a := e.Reply; a != nil && a.User == u.ID {
		return true
	}
	text := fold(strings.Join(append([]string{e.To, e.Subject}, e.Paragraphs...), "\n"))
	return containsWords(text, fold(u.Email)) || containsWords(text, fold(u.Name))
}

// containsWords reports whether a text contains words with no letter or digit directly before or after them: "Ann" is
// in "Ann's" but not in "planned". It is false for no words.
func containsWords(text, words string) bool {
	inWord := func(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) }
	for at := 0; words != ""; {
		i := strings.Index(text[at:], words)
		if i < 0 {
			return false
		}
		start, end := at+i, at+i+len(words)
		before, _ := utf8.DecodeLastRuneInString(text[:start])
		after, size := utf8.DecodeRuneInString(text[end:])
		if !inWord(before) && !(size > 0 && inWord(after)) {
			return true
		}
		_, first := utf8.DecodeRuneInString(text[start:])
		at = start + first
	}
	return false
}

// countErasable counts the objects of a person that an erasure removes at once.
func (t *Turn) countErasable(u *User) (count []Counted) {
	note := func(kind string, n int) {
		if n > 0 {
			count = withCounts(count, []Counted{{kind, n}})
		}
	}
	note("accounts", 1)
	note("messages", t.SentCount(u.ID))
	note("profile values", len(u.Profile))
	note("settings", len(u.Settings))
	note("browser sessions", len(t.StoredBrowserSessions(u.ID)))
	note("API keys", len(u.Keys)+len(u.KeyInfo))
	note("connected logins", len(t.IdentitiesOf(u.ID)))
	if t.HasFactor(u.ID) {
		note("second factors", 1)
	}
	note("devices", len(t.DevicesOf(u.ID))+len(t.PushTokensOf(u.ID)))
	note("drafts", t.small.drafts.count(u.ID))
	note("scheduled messages", t.small.scheduled.count(u.ID))
	note("reminders", t.small.reminders.count(u.ID))
	note("snippets", t.small.snippets.count(u.ID))
	note("alert words", len(t.AlertWordsOf(u.ID)))
	note("muted users", len(t.MutedBy(u.ID)))
	note("topic policies", len(t.TopicPoliciesOf(u.ID)))
	if m := t.marks.find(u.ID); m != nil {
		note("stars", m.Starred.Len())
	}
	if u.Avatar == "U" {
		note("pictures", 1)
	}
	return count
}

// ErasureBegan removes everything private of a person but messages, reactions and files.
type ErasureBegan struct {
	User  UserID
	At    int64
	Count []Counted
}

func (f *ErasureBegan) apply(r *Realm) {
	r.small.erasures.put(f.User, &Erasure{At: f.At, Count: f.Count})
	u := r.users.change(f.User)
	u.Settings, u.Timezone, u.Password, u.Keys, u.KeyInfo = map[string]any{}, "", "", nil, nil
	u.Profile, u.ProfileHTML, u.AvatarFile, u.MayChangeEmails, u.MayCreateUsers = Profile{}, Profile{}, "", false, false
	u.KeyEpoch++
	r.index.indexUserSettings(u)
	r.erasePersonalRows(f.User)
	r.eraseAudit(f.User)
}

func (*ErasureBegan) notices(*Realm) []Notice { return nil }
func (f *ErasureBegan) Accounts() []UserID    { return []UserID{f.User} }

// erasePersonalRows removes the rows that only the person could see.
func (r *Realm) erasePersonalRows(u UserID) {
	n := &r.small
	eraseOwned(&n.drafts, u)
	eraseOwned(&n.scheduled, u)
	for _, x := range n.reminders.list(u) {
		r.removeReminder(x.ID)
	}
	eraseOwned(&n.snippets, u)
	r.unindexAlertWords(u)
	n.alertWords.remove(u)
	for _, m := range r.MutedBy(u) {
		openSet(r.index.mutersOf, m.User).Remove(int64(u))
	}
	n.mutedUsers.remove(u)
	r.eraseIdentities(u)
	n.scimUsers.remove(u)
	r.removeFactors(u)
	n.navigationViews.remove(u)
	n.deliveredScheduled.remove(u)
	n.onboarding.remove(u)
	n.ownExports.remove(u)
	n.shownNotifications.remove(u)
	n.usage.reads.remove(u)
	n.assistantTokens.remove(u)
	delete(n.staleNotifications, u)
	if l := r.topicPolicies.find(u); l != nil {
		for _, p := range l.List {
			r.index.setTopicPolicy(topicKey{p.Channel, fold(p.Topic)}, ids.SetOf(u), TopicInherits)
		}
		r.topicPolicies.remove(u)
	}
	if r.marks.find(u) != nil {
		m := r.marks.change(u)
		m.Starred, m.Collapsed = ids.Set{}, ids.Set{}
	}
}

// eraseOwned removes the rows of a user.
func eraseOwned[V any, P interface {
	*V
	owner() UserID
}](o *ownedTable[V, P], u UserID) {
	if s := o.byOwner[u]; s != nil {
		for _, id := range ids.IDs[int64](*s) {
			o.remove(id)
		}
	}
}

// erasureDue returns a turn that runs one step of an erasure, or nil without one.
func erasureDue(r *Realm, _ int64) func(*Turn) (any, error) {
	for _, u := range r.small.erasures.keys() {
		if r.small.erasures.must(u).Phase != erased {
			return func(t *Turn) (any, error) { t.stepErasure(u); return nil, nil }
		}
	}
	return nil
}

// StepErasure is a command of the operator: it runs one step of an erasure now. The answer is the erasure after it.
type StepErasure struct{ User UserID }

func (c StepErasure) Decide(t *Turn) (Erasure, error) {
	if !t.System {
		return Erasure{}, errPermission()
	}
	e := t.small.erasures.find(c.User)
	if e == nil {
		return Erasure{}, errNoUser()
	}
	if e.Phase != erased {
		t.stepErasure(c.User)
	}
	return t.ErasureOf(c.User), nil
}

// ErasureOf returns the erasure of a user's data; the zero value if there is none.
func (r *Realm) ErasureOf(u UserID) Erasure {
	e := r.small.erasures.find(u)
	if e == nil {
		return Erasure{}
	}
	return *e
}

// stepErasure removes the next objects of a person.
func (t *Turn) stepErasure(u UserID) {
	e := t.small.erasures.must(u)
	f := &ErasureStepped{User: u, Phase: e.Phase, Next: e.Next}
	more := false
	switch e.Phase {
	case erasingMessages:
		more = t.eraseMessages(u)
	case erasingReactions:
		more = t.eraseReactions(u, f)
	case erasingArchived:
		more = t.eraseArchived(u, f)
	case erasingFiles:
		more = t.eraseFiles(u, f)
	}
	if !more {
		f.Phase, f.Next = e.Phase+1, 0
	}
	if f.Phase == erased {
		f.Done = t.Now
	}
	t.Record(f)
}

// eraseMessages runs a step of the person's purges. It reports whether there are more.
func (t *Turn) eraseMessages(u UserID) bool {
	for _, id := range t.small.purges.keys() {
		if t.small.purges.must(id).User == u {
			t.stepPurge(id)
			return true
		}
	}
	return false
}

func (t *Turn) eraseReactions(u UserID, f *ErasureStepped) (more bool) {
	scanned, facts := 0, 0
	for at := t.index.reacted.Rank(f.Next); at < t.index.reacted.Len(); {
		id := MessageID(t.index.reacted.At(at))
		var own []Reaction
		for _, x := range t.extras.must(id).Reactions {
			if x.User == u {
				own = append(own, x)
			}
		}
		for _, x := range own {
			t.Record(&ReactionRemoved{Message: id, Reaction: x})
		}
		f.count("reactions", len(own))
		f.Next = int64(id)
		facts += len(own)
		if scanned++; scanned == maxErasureScan || facts >= maxErasureFacts {
			return true
		}
		at = t.index.reacted.Rank(f.Next) // the message has left the set if it has no reactions any more
	}
	return false
}

// eraseArchived purges the person's deleted messages before their time, except those under a legal hold.
func (t *Turn) eraseArchived(u UserID, f *ErasureStepped) (more bool) {
	held := t.heldPlaces()
	for range maxErasureScan {
		number, ok := t.small.archived.keyAfter(f.Next)
		if !ok {
			return false
		}
		row := t.small.archived.must(number)
		if messages := t.purgeable(number, row, held, u); !messages.Empty() {
			f.count("messages and texts of edits, for good", messages.Len())
			t.purgeArchived(number, messages)
			return true // the rest of the row is next
		}
		f.Next = number
	}
	return true
}

func (t *Turn) eraseFiles(u UserID, f *ErasureStepped) (more bool) {
	var own []int64
	for id, x := range t.small.uploads.all() {
		if x.Owner == u {
			own = append(own, id)
		}
	}
	slices.Sort(own)
	for i, id := range own {
		if i == maxErasureFacts {
			return true
		}
		t.Record(&UploadDeleted{ID: id, Owner: u})
		f.count("files", 1)
	}
	return false
}

// ErasureStepped says how far an erasure is. The objects it names were removed by facts of the same turn.
type ErasureStepped struct {
	User  UserID
	Phase ErasurePhase
	Next  int64
	Count []Counted // objects removed in this step, by ascending kind
	Done  int64     // when everything was removed; 0: not yet
}

func (f *ErasureStepped) count(kind string, n int) {
	if n > 0 {
		f.Count = withCounts(f.Count, []Counted{{kind, n}})
	}
}

func (f *ErasureStepped) apply(r *Realm) {
	e := r.small.erasures.change(f.User)
	e.Phase, e.Next, e.Done = f.Phase, f.Next, f.Done
	e.Count = withCounts(e.Count, f.Count)
}

func (*ErasureStepped) notices(*Realm) []Notice { return nil }

// RemainingData counts the data of a person that an erasure does not remove, by reason.
type RemainingData struct {
	HeldMessages     int // in the archive, under a legal hold of a channel or of another user
	RestoredMessages int // in an archive that is being restored
	SharedFiles      int // archived files that deleted messages of others use, too
}

// RemainingDataOf counts the data of a person that remain after an erasure.
func (v View) RemainingDataOf(u UserID) (k RemainingData) {
	held := v.heldPlaces()
	for number, row := range v.small.archived.all() {
		if row.SentBy(u) == 0 {
			continue
		}
		restoring := v.small.archives.must(row.Archive).RestoreBelow > number
		row.Messages.Each(func(id int64) bool {
			m := row.message(id)
			switch {
			case UserID(m.sender) != u:
			case restoring:
				k.RestoredMessages++
			case v.onHold(held, &m, row.extra(id)):
				k.HeldMessages++
			}
			return true
		})
	}
	for _, x := range v.small.archivedUploads.all() {
		if x.Owner == u {
			k.SharedFiles++
		}
	}
	return k
}

// SentCount returns how many messages of a user there are.
func (v View) SentCount(u UserID) int {
	if s := v.index.bySender[u]; s != nil {
		return s.Len()
	}
	return 0
}

// PurgedRange returns the range of the purged texts whose bytes the disk may still have. It is empty if there are none.
func (v View) PurgedRange() ErasedTexts {
	if p := v.small.purgedTexts.find(purgedMessages); p != nil {
		return ErasedTexts{purgedMessages, *p}
	}
	return ErasedTexts{Row: purgedMessages, PurgedTexts: PurgedTexts{From: 1}}
}
