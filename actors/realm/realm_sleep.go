package realm

import (
	"crypto/sha256"
	"math"
)

// Asleep is the record of an organization that is not in memory: enough to find it, and to load it in time.
// It is no part of the organization's state. It is valid as long as the organization has the same epoch and facts.
type Asleep struct {
	Epoch    uint64
	Seq      Seq
	StringID string
	Name     string
	People   int // active accounts of people
	Closed   bool
	// Due is when the organization needs its next turn without a request, in Unix seconds; NeverDue: without a fact it
	// needs none.
	Due int64
	// QueueIdle is the shortest lifetime of its event queues, in seconds; 0: it has none.
	QueueIdle int64
	// Keys has a Digest of each API key, Emails of the address of each active person, Addresses of the token of each
	// email address of a channel, Files of each stored file that a row refers to.
	Keys, Emails, Addresses, Files Digests
	// LinksUnchecked says that messages may be older than the program that counts links; see Organization.LinksChecked.
	LinksUnchecked bool
	Archived       int64 // messages in the archive
	Usage          UsageNumbers
	ArchiveTime    int64 // seconds for which they can be restored; a setting of the server, on which Due depends
}

// Digest identifies a string among those of one server.
type Digest [16]byte

// Digests is a set of digests, one after the other.
type Digests []byte

// add adds a digest.
func (d *Digests) add(x Digest) { *d = append(*d, x[:]...) }

// Has reports whether a digest is in the set.
func (d Digests) Has(x Digest) bool {
	for ; len(d) >= len(x); d = d[len(x):] {
		if Digest(d[:len(x)]) == x {
			return true
		}
	}
	return false
}

// Each calls fn with every digest.
func (d Digests) Each(fn func(Digest)) {
	for ; len(d) >= len(Digest{}); d = d[len(Digest{}):] {
		fn(Digest(d[:len(Digest{})]))
	}
}

// DigestOf returns the digest of a string. Equal digests of different strings are so improbable that no check follows.
func DigestOf(s string) Digest {
	sum := sha256.Sum256([]byte(s))
	return Digest(sum[:len(Digest{})])
}

// KeyDigest returns the digest of an API key with a hash.
func KeyDigest(hash [32]byte) Digest { return Digest(hash[:len(Digest{})]) }

// FileDigest returns the digest of a stored file; see RowFile.
func FileDigest(kind, name string) Digest { return DigestOf(kind + " " + name) }

// NeverDue is a time that does not come.
const NeverDue = math.MaxInt64

// MaxSleepingAccounts is how many accounts, also deactivated ones, an organization can have and be unloaded. Loading
// ten thousand takes about a second, which is more than the first request to an organization should wait.
const MaxSleepingAccounts = 2000

// Sleep returns what must be known of an organization that is removed from memory. It reports false if the organization
// must stay: it has work that does not wait for the clock, or is too large to be loaded again quickly.
func (r *Realm) Sleep(now int64) (Asleep, bool) {
	a := Asleep{Seq: r.Seq(), Due: r.NextDue(now)}
	if !r.Founded() || a.Due <= now || r.users.size() > MaxSleepingAccounts || r.hasOwnerWork() {
		return a, false
	}
	a.StringID, a.Name, a.Closed = r.Org().StringID, r.Org().Name, r.Closed()
	a.Archived, a.Usage = int64(r.ArchivedCount()), r.Usage()
	a.ArchiveTime = r.archiveTime
	a.LinksUnchecked = r.Org().LinksChecked != MaxMessageID
	r.EachQueue(func(q *Queue) {
		if a.QueueIdle == 0 || q.Idle < a.QueueIdle {
			a.QueueIdle = max(1, q.Idle)
		}
	})
	r.EachUser(func(u *User) {
		for _, k := range u.Keys {
			a.Keys.add(KeyDigest(k))
		}
		for i := range u.KeyInfo {
			a.Keys.add(KeyDigest(u.KeyInfo[i].Hash))
		}
		if u.Active && !u.IsBot() && !u.System {
			a.People++
			a.Emails.add(DigestOf(FoldEmail(u.Email)))
		}
	})
	for token := range r.small.mailAddresses.all() {
		a.Addresses.add(DigestOf(token))
	}
	r.eachFile(func(kind, name string) { a.Files.add(FileDigest(kind, name)) })
	return a, true
}

// hasOwnerWork reports whether work outside the organization waits for its owner: outbox jobs, exports, calls, and
// the bytes of erased texts.
func (r *Realm) hasOwnerWork() bool {
	if r.small.outboxJobs.size() > 0 || r.small.purgedTexts.find(purgedMessages) != nil {
		return true
	}
	for _, e := range r.small.exports.all() {
		if e.Pending() {
			return true
		}
	}
	for _, x := range r.small.ownExports.all() {
		if x.pending() != nil {
			return true
		}
	}
	return r.small.calls.size() > 0
}

// eachFile calls fn with each file that rows refer to, and with those of exports that are being written. It may call it
// several times with the same one.
func (r *Realm) eachFile(fn func(kind, name string)) {
	each := func(row any) {
		for _, f := range RowFiles(row) {
			fn(f.Kind, *f.Name)
		}
	}
	for _, u := range r.users.all() {
		each(u)
	}
	each(r.Org())
	for _, e := range r.small.emoji.all() {
		each(e)
	}
	for _, u := range r.small.uploads.all() {
		each(u)
	}
	for _, u := range r.small.archivedUploads.all() {
		each(u)
	}
	for _, e := range r.small.exports.all() {
		if e.Failed == 0 && e.Deleted == 0 {
			fn(ArchiveFile, e.Name)
		}
	}
	for _, x := range r.small.ownExports.all() {
		each(x)
	}
}

// NextDue returns the earliest time, in Unix seconds, at which Due can return a turn if no fact is added before. It is
// now if a turn is waiting, and NeverDue if none will come. It may be too early, but not too late: TestNextDue.
func (r *Realm) NextDue(now int64) int64 {
	next := int64(NeverDue)
	// The bytes of old versions of messages are erased by the owner, who needs the organization in memory.
	if p := r.small.purgedTexts.find(droppedVersions); p != nil {
		next = p.Since + droppedVersionsDelay
	}
	eachDueWork(func(x dueWork) bool {
		next = min(next, x.earliest(r, now))
		return next > now
	})
	return max(next, now)
}

// nextScheduled returns when the first scheduled message is to be sent.
func nextScheduled(r *Realm, _ int64) int64 {
	next := int64(NeverDue)
	for _, s := range r.small.scheduled.all() {
		if !s.Failed {
			next = min(next, s.At)
		}
	}
	return next
}

// nextReminder returns when the first reminder is to be sent.
func nextReminder(r *Realm, _ int64) int64 {
	next := int64(NeverDue)
	for _, x := range r.small.reminders.all() {
		next = min(next, x.At)
	}
	return next
}

// nextInviteReminder returns when the first person is to be reminded of an invitation.
func nextInviteReminder(r *Realm, now int64) int64 {
	next := int64(NeverDue)
	if r.Level() < mailLevel || r.Org().Deactivated {
		return next
	}
	for _, i := range r.small.invites.all() {
		if at := max(now, i.Expires-reminderLead); i.needsReminder(at) {
			next = min(next, at)
		}
	}
	if next < NeverDue && r.index.reminderHour == next/secondsPerHour {
		next = (r.index.reminderHour + 1) * secondsPerHour
	}
	return next
}

// nextDigest returns when the next digests are to be made.
func nextDigest(r *Realm, now int64) int64 {
	if !r.hasDigests() {
		return NeverDue
	}
	if r.digestState().Next != 0 {
		return now
	}
	for day := now / secondsPerDay; ; day++ {
		if at := max(now, day*secondsPerDay+digestHour*secondsPerHour); r.isDigestTime(at) {
			return at
		}
	}
}

// nextFullMember returns when the waiting period of the next account is over.
func nextFullMember(r *Realm, now int64) int64 {
	days := r.OrgInt("waiting_period_threshold")
	if days == 0 {
		return NeverDue
	}
	at := r.Org().FullAt
	if at == 0 {
		return now
	}
	next := int64(NeverDue)
	for _, u := range r.users.all() {
		if u.Active && !u.System && u.Role == Member && !u.wasOldEnough(at, days) {
			next = min(next, u.Joined+days*secondsPerDay)
		}
	}
	return next
}

// nextInactiveChannel returns when the next channel is no longer recently active.
func nextInactiveChannel(r *Realm, _ int64) int64 {
	next := int64(NeverDue)
	r.EachChannel(func(c *Channel) {
		if !c.Quiet && !c.Archived {
			next = min(next, c.LastActive+recentActivityPeriod+1)
		}
	})
	return next
}

// nextRetention returns when the first message is to be deleted by a retention policy.
func nextRetention(r *Realm, _ int64) int64 {
	next := int64(NeverDue)
	if r.retentionPaused {
		return next
	}
	oldest := func(c ChannelID, messages interface{ Min() (int64, bool) }) {
		if days := r.retentionDays(c); days >= 0 {
			if first, ok := messages.Min(); ok {
				next = min(next, int64(r.message(MessageID(first)).time)+days*secondsPerDay)
			}
		}
	}
	for c, ix := range r.index.channels {
		if ix != nil && r.channels.find(c) != nil {
			oldest(c, &ix.ids)
		}
	}
	if r.retentionDays(0) >= 0 {
		for _, ix := range r.index.conversations {
			if ix != nil {
				oldest(0, &ix.ids)
			}
		}
	}
	return next
}

// nextArchivePurge returns when the archive is to be looked through: when its oldest messages are to be deleted, or if
// they are kept for a legal hold, after the usual interval.
func nextArchivePurge(r *Realm, now int64) int64 {
	number, ok := r.small.archived.keyAfter(0)
	if !ok || r.retentionPaused {
		return NeverDue
	}
	if due := r.small.archived.must(number).At + r.archiveTime; due > now {
		return due
	}
	return max(now, r.purgeProgress.next)
}
