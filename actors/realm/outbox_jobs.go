package realm

import (
	"slices"

	"parley/actors/realm/ids"
)

// Everything that leaves the server (emails, outgoing webhooks, push notifications, link previews) is an outbox job. A
// fact of the turn that causes the job adds its row. A later fact removes the row when the job is done or given up. So
// no job is lost when the process ends: the next process starts it again. A job may therefore run twice, but it runs at
// least once.

// OutboxJobKind is the kind of an outbox job. The numbers are in stored rows and never change.
type OutboxJobKind uint8

const (
	OutboxEmail         OutboxJobKind = 1 // send an email
	OutboxWebhook       OutboxJobKind = 2 // send a message to the service of a bot
	OutboxPush          OutboxJobKind = 3 // show a message on a user's devices
	OutboxPushRemoval   OutboxJobKind = 4 // remove messages from a user's devices
	OutboxMissedMessage OutboxJobKind = 5 // email a message to a user that does not read it in time
	// OutboxRegistration sends the push bouncer a change of a user's devices.
	OutboxRegistration OutboxJobKind = 6
	OutboxPreview      OutboxJobKind = 7  // fetch the pages a message links to, and show their previews
	OutboxDigest       OutboxJobKind = 8  // email a user their unread messages of the last week
	OutboxWelcome      OutboxJobKind = 9  // email the user of a new account
	OutboxReminder     OutboxJobKind = 10 // email a further link of an invitation
)

// OutboxJob is the row of an outbox job. Its kind decides which fields are set.
type OutboxJob struct {
	ID      int64
	Kind    OutboxJobKind
	At      int64
	Letter  *Email    // of OutboxEmail
	User    UserID    // the bot; or the user whose devices are meant
	Message MessageID // the message that is sent or shown
	Why     string    // trigger of a notification, in the protocol's words
	Told    Seq       // number of the message's fact
	Group   GroupID   // the group that mentions the user; 0: mentioned by name
	Gone    []MessageID
	// Registration is the change of a user's devices for the push bouncer.
	Registration *DeviceRegistration
	Version      uint16 // of the text whose links are previewed
	Invite       int64  // of OutboxReminder
	Link         int64  // number from which the token of the invitation's link is derived
}

// Email is an email that the server sends.
type Email struct {
	To, Subject string
	Paragraphs  []string // plain text; a paragraph that is a URL becomes a link
	// Link is the number of an invitation link that replaces LinkPlaceholder; 0: none. The link is made with the
	// server's secret when the email is sent.
	Link int64
	// Address: a link that confirms this change of address replaces LinkPlaceholder.
	Address *EmailChange
	// Confirm: the link with this meaning replaces LinkPlaceholder.
	Confirm *EmailedLink
	// Unsubscribe: the email ends with a link that switches emails of its kind off.
	Unsubscribe *Unsubscription
	// Reply: a reply to the email becomes a message of the user. The address is made when the email is sent.
	Reply *EmailReply
}

// AboutMessages reports whether the email tells of messages. Others are about the account of their reader.
func (e *Email) AboutMessages() bool {
	u := e.Unsubscribe
	return u != nil && (u.Topic == MissedMessageEmails || u.Topic == DigestEmails)
}

// Letterhead is what an email says of its organization, and the language in which it is written.
type Letterhead struct {
	Org      string
	Language string // code of a language, as in the setting default_language
}

// LetterheadFor returns the letterhead of emails to a user; nil: to a person without an account, in the language of
// the organization.
func (v View) LetterheadFor(u *User) Letterhead {
	h := Letterhead{Org: v.Org().Name, Language: v.OrgText("default_language")}
	if u != nil {
		h.Language = u.TextSetting("default_language")
	}
	return h
}

// LinkPlaceholder is the place in a stored email of a link that must not be stored.
const LinkPlaceholder = "{link}"

// Limits of outbox jobs of an organization. Above them new jobs are dropped and logged, because memory must not grow
// while an external service is down.
const (
	MaxEmails             = 10_000 // a few hundred bytes each
	MaxWebhookCalls       = 1000
	maxWebhookCallsPerBot = 100
	// maxWebhookCallsPerOwner limits the calls of all bots of one user. It is larger than the limit of a bot, so that
	// one service that is down does not stop the user's other bots.
	maxWebhookCallsPerOwner = 250
	MaxPushes               = 20_000 // about 100 bytes each
	MaxMissedMessages       = 20_000 // about 100 bytes each
	MaxPreviews             = 1000
	// maxPreviewsPerUser limits one user's waiting previews. Their pages are fetched one message after another.
	maxPreviewsPerUser = 50
	// maxMissedPerUser limits the messages that wait to be emailed to one user. A user that missed more will look at
	// the messages themselves.
	maxMissedPerUser = 50
	// maxShownPerUser limits the messages of one user that are stored as shown on devices. Older ones are dropped: the
	// user has probably dismissed their notifications.
	maxShownPerUser = 1000
	// maxPushRemovals is the number of messages that one notification removes. Apple's notifications are limited to 4
	// kB (protocol).
	maxPushRemovals = 200
)

// outboxLimit limits the waiting jobs of one kind. 0: no limit.
type outboxLimit struct {
	org  int // of the whole organization
	user int // of one user, or of one bot
	// all is the limit of one user together with the user's bots.
	all int
}

// outboxLimits has the limit of each kind.
var outboxLimits = map[OutboxJobKind]outboxLimit{
	OutboxEmail:         {org: MaxEmails},
	OutboxWebhook:       {org: MaxWebhookCalls, user: maxWebhookCallsPerBot, all: maxWebhookCallsPerOwner},
	OutboxPush:          {org: MaxPushes},
	OutboxPushRemoval:   {org: MaxPushes},
	OutboxMissedMessage: {org: MaxMissedMessages},
	OutboxRegistration: {org: MaxDeviceRegistrations, user: maxDeviceRegistrationsPerUser,
		all: maxDeviceRegistrationsPerUser},
	OutboxPreview:  {org: MaxPreviews, user: maxPreviewsPerUser, all: maxPreviewsPerUser},
	OutboxDigest:   {org: MaxDigests},
	OutboxWelcome:  {org: MaxEmails},
	OutboxReminder: {org: MaxEmails},
}

// outboxKey is what jobs are counted by: their kind, or their kind and user.
type outboxKey struct {
	kind OutboxJobKind
	user UserID
}

// outboxCount counts the waiting jobs. It is derived data.
type outboxCount struct {
	count map[outboxKey]int
	// missed has the jobs of each user whose messages may have to be emailed, oldest first.
	missed map[UserID][]int64
}

// add counts a job that is added (change 1) or removed (change -1).
func (c *outboxCount) add(job *OutboxJob, change int) {
	for _, key := range job.countKeys() {
		if c.count[key] += change; c.count[key] == 0 {
			delete(c.count, key)
		}
	}
	switch {
	case job.Kind == OutboxMissedMessage && change > 0:
		c.missed[job.User] = append(c.missed[job.User], job.ID)
	case job.Kind == OutboxMissedMessage:
		c.missed[job.User] = slices.DeleteFunc(c.missed[job.User], func(id int64) bool { return id == job.ID })
		if len(c.missed[job.User]) == 0 {
			delete(c.missed, job.User)
		}
	}
}

// countKeys returns the keys under which a job is counted.
func (j *OutboxJob) countKeys() []outboxKey {
	if outboxLimits[j.Kind].user == 0 {
		return []outboxKey{{kind: j.Kind}}
	}
	return []outboxKey{{kind: j.Kind}, {j.Kind, j.User}}
}

// hasOutboxCapacity reports whether the limits allow one more job of a kind. more counts jobs that will be added with
// it.
func (r *Realm) hasOutboxCapacity(kind OutboxJobKind, u UserID, more map[outboxKey]int) bool {
	c := &r.small.outboxCount
	count := func(key outboxKey) int { return c.count[key] + more[key] }
	limit, waiting := outboxLimits[kind], count(outboxKey{kind: kind})
	if waiting >= limit.org || limit.user > 0 && count(outboxKey{kind, u}) >= limit.user {
		return false
	}
	return limit.all == 0 || waiting < limit.all ||
		r.sumCharged(u, func(u UserID) int { return count(outboxKey{kind, u}) }) < limit.all
}

// OutboxJobs returns all waiting jobs, oldest first.
func (v View) OutboxJobs() []OutboxJob {
	out := make([]OutboxJob, 0, v.small.outboxJobs.size())
	for _, id := range v.small.outboxJobs.keys() {
		out = append(out, *v.small.outboxJobs.find(id))
	}
	return out
}

// OutboxJob returns a waiting job by id, or nil.
func (v View) OutboxJob(id int64) *OutboxJob { return v.small.outboxJobs.find(id) }

// SendEmails adds jobs that send emails.
func (t *Turn) SendEmails(letters ...Email) {
	var list []OutboxJob
	for _, l := range letters {
		list = append(list, OutboxJob{Kind: OutboxEmail, Letter: &l})
	}
	t.addOutboxJobs(list)
}

// addOutboxJobs records jobs, as far as the limits allow.
func (t *Turn) addOutboxJobs(jobs []OutboxJob) {
	if len(jobs) == 0 {
		return
	}
	added := map[outboxKey]int{}
	f := &OutboxJobsAdded{}
	for _, job := range jobs {
		if !t.hasOutboxCapacity(job.Kind, job.User, added) {
			f.Dropped++
			continue
		}
		for _, key := range job.countKeys() {
			added[key]++
		}
		job.ID, job.At = t.nextID("errand")+int64(len(f.List)), t.Now
		f.List = append(f.List, job)
	}
	t.Record(f)
}

// OutboxJobsAdded records jobs that leave the server: emails, push notifications, webhooks. No client gets an event:
// the realm actor hands the jobs to the outbox when the fact is on disk.
type OutboxJobsAdded struct {
	List    []OutboxJob
	Dropped int // jobs that were not added because of the limits
}

func (f *OutboxJobsAdded) apply(r *Realm) {
	for _, e := range f.List {
		r.reserveID("errand", e.ID)
		r.small.outboxJobs.put(e.ID, &e)
		r.small.outboxCount.add(&e, 1)
	}
}

func (*OutboxJobsAdded) notices(*Realm) []Notice { return nil }

// FinishOutboxJobs is a command of the server: the jobs are done or given up. Shown are the push jobs among them whose
// messages are on devices now.
type FinishOutboxJobs struct{ IDs, Shown []int64 }

func (c FinishOutboxJobs) Decide(t *Turn) (Done, error) {
	if !t.System {
		return Done{}, errPermission()
	}
	t.FinishOutboxJobs(c.IDs, c.Shown...)
	return Done{}, nil
}

// FinishOutboxJobs records that jobs are done. It ignores jobs that do not exist any more.
func (t *Turn) FinishOutboxJobs(ids []int64, shown ...int64) {
	f := &OutboxJobsFinished{}
	for _, id := range ids {
		if e := t.small.outboxJobs.find(id); e != nil {
			f.IDs = append(f.IDs, id)
			if e.Kind == OutboxPush && slices.Contains(shown, id) {
				f.Shown = append(f.Shown, id)
			}
		}
	}
	if len(f.IDs) > 0 {
		t.Record(f)
	}
}

// OutboxJobsFinished removes outbox jobs.
type OutboxJobsFinished struct {
	IDs   []int64
	Shown []int64 // jobs among them whose messages are on the user's devices now
}

func (f *OutboxJobsFinished) apply(r *Realm) {
	for _, id := range f.Shown {
		e := r.small.outboxJobs.must(id)
		s := r.small.shownNotifications.ensure(e.User)
		if s.Messages.Add(int64(e.Message)); s.Messages.Len() > maxShownPerUser {
			oldest, _ := s.Messages.Min()
			s.Messages.Remove(oldest)
		}
		r.small.staleNotifications[e.User] = struct{}{} // the user may have read it in the meantime
	}
	for _, id := range f.IDs {
		r.small.outboxCount.add(r.small.outboxJobs.must(id), -1)
		r.small.outboxJobs.remove(id)
	}
}

func (*OutboxJobsFinished) notices(*Realm) []Notice { return nil }

// maxNotifiedPerTurn is the number of users that one turn checks for notifications of a message: 250 take about 1 ms.
const maxNotifiedPerTurn = 250

// addMessageOutboxJobs records the outbox jobs of a message that was just sent. If very many users may have to be
// notified, a job of several turns does it. The number of such jobs is limited; above the limit the notifications are
// dropped, as they would be if the outbox were full.
func (t *Turn) addMessageOutboxJobs(f *MessageSent) {
	calls := slices.Concat(t.serviceJobs(f), t.previewJobs(f.ID, 0, t.users.must(f.Sender), f.Content))
	users := ids.Union(t.pushCandidates(f), t.missedEmailCandidates(f))
	if users.Len() <= maxNotifiedPerTurn {
		t.addOutboxJobs(slices.Concat(calls, t.notificationJobs(f, t.seq, ids.IDs[UserID](users))))
		return
	}
	t.addOutboxJobs(calls)
	if t.countJobs(NotifyJob) < MaxNotifyJobs {
		t.Record(&JobStarted{t.nextID("work"), Job{Kind: NotifyJob, AtOnce: maxNotifiedPerTurn, Rest: users,
			Message: f.ID, Told: t.seq, Groups: f.Content.Groups}})
	} else {
		t.Record(&OutboxJobsAdded{Dropped: users.Len()})
	}
}

// notificationJobs returns the jobs that notify users of a message. seq is the number of the message's fact.
func (t *Turn) notificationJobs(f *MessageSent, seq Seq, users []UserID) (out []OutboxJob) {
	byEmail := t.sendsMissedEmails(f)
	for _, id := range users {
		u := t.users.must(id)
		if t.env.PushEnabled && t.HasPushDevice(id) {
			if trigger := t.notificationTrigger(u, f, pushSettings); trigger != "" {
				e := OutboxJob{Kind: OutboxPush, User: id, Message: f.ID, Why: trigger, Told: seq}
				if trigger == triggerMention {
					e.Group = t.mentionedGroup(u, f)
				}
				out = append(out, e)
			}
		}
		// more waiting emails would not help the user
		if byEmail && len(t.small.outboxCount.missed[id]) < maxMissedPerUser {
			if trigger := t.notificationTrigger(u, f, emailSettings); trigger != "" {
				out = append(out, OutboxJob{Kind: OutboxMissedMessage, User: id, Message: f.ID, Why: trigger,
					Told: seq})
			}
		}
	}
	return out
}

// stepNotify adds the notification jobs of the next users of a job, and returns these users. Users that have read the
// message since are not notified.
func (t *Turn) stepNotify(job *Job) ids.Set {
	users := job.nextUsers()
	m := t.message(job.Message)
	if m == nil {
		return job.Rest.Clone()
	}
	e := t.extraOrEmpty(job.Message)
	f := &MessageSent{ID: job.Message, Sender: UserID(m.sender), Channel: ChannelID(m.channel), Mentioned: e.Mentioned,
		GroupMentioned: e.GroupMentioned, TopicMentioned: e.TopicMentioned,
		Content: ContentInfo{ChannelWildcard: m.bits&bitChannelWildcard != 0, Groups: job.Groups}}
	if f.Channel != 0 {
		f.TopicName = t.topics.must(m.topic).Name
	}
	for _, u := range users {
		if t.hasRead(t.marks.find(u), int64(f.ID)) {
			f.ReadBy = append(f.ReadBy, u)
		}
	}
	t.addOutboxJobs(t.notificationJobs(f, job.Told, users))
	return ids.SetOf(users...)
}
