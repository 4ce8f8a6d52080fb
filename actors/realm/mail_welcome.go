package realm

import "slices"

const (
	// reminderLead is how long before the end of an invitation the reminder is sent, in seconds.
	reminderLead = 2 * secondsPerDay
	// minReminded is the shortest validity of invitations with a reminder, in seconds.
	minReminded = 2 * reminderLead
	// maxRemindersPerTurn is the number of invitations of one turn.
	maxRemindersPerTurn = 100
	// secondsPerHour is how often invitations are searched for those to remind of.
	secondsPerHour = 3600
)

// sendWelcomeEmail adds the job of the email for a new account of a person.
func (t *Turn) sendWelcomeEmail(id UserID) {
	if t.env.EmailEnabled && t.Level() >= mailLevel && t.OrgBool("send_welcome_emails") {
		t.addOutboxJobs([]OutboxJob{{Kind: OutboxWelcome, User: id}})
	}
}

// needsReminder reports whether an invitation by email ends soon, and its reminder was not sent.
func (i *Invite) needsReminder(now int64) bool {
	return i.canBeAccepted(now) && !i.Reminded && i.Expires != 0 && i.Expires-now <= reminderLead &&
		i.Expires-i.At >= minReminded
}

// inviteRemindersDue returns, once an hour, a turn that reminds people of their invitations; nil: there are none.
func inviteRemindersDue(r *Realm, now int64) func(*Turn) (any, error) {
	if r.index.reminderHour == now/secondsPerHour || !r.Founded() || r.Level() < mailLevel {
		return nil
	}
	var list []int64
	if !r.Org().Deactivated {
		for id, i := range r.small.invites.all() {
			if i.needsReminder(now) {
				list = append(list, id)
			}
		}
	}
	if len(list) == 0 {
		r.index.reminderHour = now / secondsPerHour
		return nil
	}
	slices.Sort(list)
	list = list[:min(len(list), maxRemindersPerTurn)]
	return func(t *Turn) (any, error) {
		t.remindOfInvites(list)
		return nil, nil
	}
}

// remindOfInvites sends each person a further link. Only hashes of the earlier links are stored.
func (t *Turn) remindOfInvites(list []int64) {
	if t.Level() < mailLevel {
		return
	}
	f := &InvitesReminded{IDs: list}
	var jobs []OutboxJob
	for _, id := range list {
		i := t.small.invites.must(id)
		link := emailLinkID(id, len(i.Tokens), t.Now)
		f.Hashes = append(f.Hashes, t.Hash(t.env.InviteLinkToken(link)))
		jobs = append(jobs, OutboxJob{Kind: OutboxReminder, Invite: id, Link: link})
	}
	t.Record(f)
	if t.env.EmailEnabled {
		t.addOutboxJobs(jobs)
	}
}

// InvitesReminded records that invitations got a further link, for their reminders.
type InvitesReminded struct {
	IDs    []int64
	Hashes [][32]byte
}

func (f *InvitesReminded) apply(r *Realm) {
	for n, id := range f.IDs {
		(&InviteResent{id, f.Hashes[n]}).apply(r)
		r.small.invites.change(id).Reminded = true
	}
}

func (*InvitesReminded) notices(*Realm) []Notice { return nil }

// ReminderOf returns the invitation that a job reminds of; false if it cannot be accepted any more.
func (v View) ReminderOf(job *OutboxJob) (InviteEmail, bool) {
	i := v.small.invites.find(job.Invite)
	if i == nil || !i.canBeAccepted(v.Now) {
		return InviteEmail{}, false
	}
	by := v.Find(i.By)
	if by == nil || !by.Active || v.checkInvitedRole(by, i.Role) != nil {
		return InviteEmail{}, false
	}
	return InviteEmail{Invite: *i, Inviter: by.Name, Letterhead: v.LetterheadFor(nil), Link: job.Link}, true
}
