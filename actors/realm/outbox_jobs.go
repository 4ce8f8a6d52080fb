package realm

import (
	"slices"

	"parley/actors/realm/ids"
)

// What leaves the server (letters, calls of bots' services, notifications of phones) is an errand: a row that a fact of
// the same turn makes and that another fact removes when it is done or given up. So nothing that was promised is lost
// when the process ends; it is begun again by the next one. An errand may therefore be done twice, never not at all.

// OutboxJobKind is where an errand leads; the numbers are kept for ever.
type OutboxJobKind uint8

const (
	OutboxEmail         OutboxJobKind = 1 // a mail
	OutboxWebhook       OutboxJobKind = 2 // a bot's service hears of a message
	OutboxPush          OutboxJobKind = 3 // somebody's devices show a message
	OutboxPushRemoval   OutboxJobKind = 4 // somebody's devices show messages no longer
	OutboxMissedMessage OutboxJobKind = 5 // somebody hears by mail of a message, if he does not read it in time
	// OutboxRegistration: the service that passes notifications on for us hears of somebody's devices.
	OutboxRegistration OutboxJobKind = 6
	OutboxPreview      OutboxJobKind = 7 // a message is to show what the pages say that it links to
)

// OutboxJob is the row of something that is to leave the server.
type OutboxJob struct {
	ID      int64
	Kind    OutboxJobKind
	At      int64
	Letter  *Email    // of a letter
	User    UserID    // the bot; or whose devices
	Message MessageID // that is told of
	Why     string    // a push's trigger, in the protocol's words
	Told    Seq       // number of the message's fact
	Group   GroupID   // by which he is mentioned; 0: by name
	Gone    []MessageID
	// DeviceRegistration is what a service is to hear of somebody's devices.
	Registration *DeviceRegistration
	Version      uint16 // of the text whose links are to be shown
}

// Email is a mail the server sends.
type Email struct {
	To, Subject string
	Paragraphs  []string // normalizeNumber text; one that is an address of the web is a link
	Link        int64    // 0: none; else the paragraph LinkPlaceholder is replaced by the link the server's secret makes of it
	// Address: LinkPlaceholder is replaced by the link that confirms this change.
	Address *EmailChange
}

// LinkPlaceholder stands in a letter for a link that must not be kept.
const LinkPlaceholder = "{link}"

// Limits of what waits to leave an organization. Beyond them new errands are dropped and logged: what is behind so far
// will hardly be of use, and memory must not grow with somebody else's outage.
const (
	MaxEmails             = 10_000 // a few hundred bytes each
	MaxWebhookCalls       = 1000
	maxWebhookCallsPerBot = 100
	MaxPushes             = 20_000 // about a hundred bytes each
	MaxMissedMessages     = 20_000 // about a hundred bytes each
	MaxPreviews           = 1000
	// maxPreviewsPerUser is how many of one user's messages wait for pages: they are fetched one message after the other.
	maxPreviewsPerUser = 50
	// maxMissedPerUser is how many messages wait to be mailed to one user: who missed so many looks for himself.
	maxMissedPerUser = 50
	// maxShownPerUser is how many of one user's messages are remembered as shown on his devices, the newest: what is older he
	// hasKey cleared away himself.
	maxShownPerUser = 1000
	// maxPushRemovals is how many messages one notification takes back: Apple's are at most 4 kB (protocol).
	maxPushRemovals = 200
)

// outboxLimits is how many errands of a kind may wait, and how many of them one user's; 0: any number.
var outboxLimits = map[OutboxJobKind]struct{ all, each int }{
	OutboxEmail: {MaxEmails, 0}, OutboxWebhook: {MaxWebhookCalls, maxWebhookCallsPerBot}, OutboxPush: {MaxPushes, 0}, OutboxPushRemoval: {MaxPushes, 0},
	OutboxMissedMessage: {MaxMissedMessages, 0}, OutboxRegistration: {MaxDeviceRegistrations, maxDeviceRegistrationsPerUser},
	OutboxPreview: {MaxPreviews, maxPreviewsPerUser},
}

// outboxKey is errands of one kind, or with a user only his.
type outboxKey struct {
	kind OutboxJobKind
	user UserID
}

// outboxCount is how many errands wait. It is derived.
type outboxCount struct {
	count map[outboxKey]int
	// missed is the errands of messages that may have to be mailed to somebody, oldest first.
	missed map[UserID][]int64
}

func (n *outboxCount) add(e *OutboxJob, by int) {
	for _, of := range e.countKeys() {
		if n.count[of] += by; n.count[of] == 0 {
			delete(n.count, of)
		}
	}
	switch {
	case e.Kind == OutboxMissedMessage && by > 0:
		n.missed[e.User] = append(n.missed[e.User], e.ID)
	case e.Kind == OutboxMissedMessage:
		n.missed[e.User] = slices.DeleteFunc(n.missed[e.User], func(id int64) bool { return id == e.ID })
		if len(n.missed[e.User]) == 0 {
			delete(n.missed, e.User)
		}
	}
}

// countKeys is what an errand counts among.
func (e *OutboxJob) countKeys() []outboxKey {
	if outboxLimits[e.Kind].each == 0 {
		return []outboxKey{{kind: e.Kind}}
	}
	return []outboxKey{{kind: e.Kind}, {e.Kind, e.User}}
}

// hasRoom reports whether one more errand of a kind may wait, beside those that are still to be added.
func (n *outboxCount) hasRoom(kind OutboxJobKind, u UserID, more map[outboxKey]int) bool {
	all, each, limit := outboxKey{kind: kind}, outboxKey{kind, u}, outboxLimits[kind]
	return n.count[all]+more[all] < limit.all && (limit.each == 0 || n.count[each]+more[each] < limit.each)
}

// OutboxJobs is every errand that waits, oldest first.
func (v View) OutboxJobs() []OutboxJob {
	out := make([]OutboxJob, 0, v.small.outboxJobs.size())
	for _, id := range v.small.outboxJobs.keys() {
		out = append(out, *v.small.outboxJobs.find(id))
	}
	return out
}

// OutboxJob is one that waits, or nil.
func (v View) OutboxJob(id int64) *OutboxJob { return v.small.outboxJobs.find(id) }

// SendEmails has letters sent.
func (t *Turn) SendEmails(letters ...Email) {
	var list []OutboxJob
	for _, l := range letters {
		list = append(list, OutboxJob{Kind: OutboxEmail, Letter: &l})
	}
	t.addOutboxJobs(list)
}

// addOutboxJobs records what is to leave the server, as far as there is room.
func (t *Turn) addOutboxJobs(list []OutboxJob) {
	if len(list) == 0 {
		return
	}
	more := map[outboxKey]int{}
	f := &OutboxJobsAdded{}
	for _, e := range list {
		if !t.small.outboxCount.hasRoom(e.Kind, e.User, more) {
			f.Dropped++
			continue
		}
		for _, of := range e.countKeys() {
			more[of]++
		}
		e.ID, e.At = t.nextID("errand")+int64(len(f.List)), t.Now
		f.List = append(f.List, e)
	}
	t.Record(f)
}

// OutboxJobsAdded records jobs that leave the server: emails, push notifications, webhooks. No client gets an event: the
// realm actor hands the jobs to the outbox when the fact is on disk.
type OutboxJobsAdded struct {
	List    []OutboxJob
	Dropped int // how many more there was no room for
}

func (f *OutboxJobsAdded) apply(r *Realm) {
	for _, e := range f.List {
		r.reserveID("errand", e.ID)
		r.small.outboxJobs.put(e.ID, &e)
		r.small.outboxCount.add(&e, 1)
	}
}

func (*OutboxJobsAdded) tell(*Realm) []Notice { return nil }
func (*OutboxJobsAdded) keepsMarkdownConfig() {}

// FinishOutboxJobs is the server's: these are done, or given up. Of the pushes among them, ShownNotifications are on devices now.
type FinishOutboxJobs struct{ IDs, Shown []int64 }

func (c FinishOutboxJobs) Decide(t *Turn) (Done, error) {
	if !t.System {
		return Done{}, errPermission()
	}
	t.FinishOutboxJobs(c.IDs, c.Shown...)
	return Done{}, nil
}

// FinishOutboxJobs records that errands are done; one that is gone already is passed over.
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

// OutboxJobsFinished says errands are done with.
type OutboxJobsFinished struct {
	IDs   []int64
	Shown []int64 // of them, the messages that are on their users' devices now
}

func (f *OutboxJobsFinished) apply(r *Realm) {
	for _, id := range f.Shown {
		e := r.small.outboxJobs.must(id)
		s := r.small.shownNotifications.ensure(e.User)
		if s.Messages.Add(int64(e.Message)); s.Messages.Len() > maxShownPerUser {
			oldest, _ := s.Messages.Min()
			s.Messages.Remove(oldest)
		}
		r.small.staleNotifications[e.User] = struct{}{} // he may have read it meanwhile
	}
	for _, id := range f.IDs {
		r.small.outboxCount.add(r.small.outboxJobs.must(id), -1)
		r.small.outboxJobs.remove(id)
	}
}

func (*OutboxJobsFinished) tell(*Realm) []Notice { return nil }
func (*OutboxJobsFinished) keepsMarkdownConfig() {}

// maxNotifiedPerTurn is how many people one turn looks at who may be to be told of a message: 250 are about 1 ms.
const maxNotifiedPerTurn = 250

// addMessageOutboxJobs records what a message that was just sent sets off outside. Where very many may be to be told, that is work of
// the turns that follow. There is no more of it than would be dropped anyway once it is done.
func (t *Turn) addMessageOutboxJobs(f *MessageSent) {
	calls := slices.Concat(t.serviceJobs(f), t.previewJobs(f.ID, 0, t.users.must(f.Sender), f.Content))
	who := ids.Union(t.pushCandidates(f), t.missedEmailCandidates(f))
	if who.Len() <= maxNotifiedPerTurn {
		t.addOutboxJobs(slices.Concat(calls, t.notificationJobs(f, t.seq, ids.IDs[UserID](who))))
		return
	}
	t.addOutboxJobs(calls)
	if t.countJobs(NotifyJob) < MaxNotifyJobs {
		t.Record(&JobStarted{t.nextID("work"), Job{Kind: NotifyJob, AtOnce: maxNotifiedPerTurn, Rest: who, Message: f.ID, Told: t.seq, Groups: f.Content.Groups}})
	} else {
		t.Record(&OutboxJobsAdded{Dropped: who.Len()})
	}
}

// notificationJobs is the errands that tell people of a message whose fact has that number.
func (t *Turn) notificationJobs(f *MessageSent, told Seq, users []UserID) (out []OutboxJob) {
	mailed := t.sendsMissedEmails(f)
	for _, id := range users {
		u := t.users.must(id)
		if t.env.PushEnabled && t.HasPushDevice(id) {
			if why := t.notificationTrigger(u, f, pushSettings); why != "" {
				e := OutboxJob{Kind: OutboxPush, User: id, Message: f.ID, Why: why, Told: told}
				if why == triggerMention {
					e.Group = t.mentionedGroup(u, f)
				}
				out = append(out, e)
			}
		}
		if mailed && len(t.small.outboxCount.missed[id]) < maxMissedPerUser { // else the mail that waits says enough
			if why := t.notificationTrigger(u, f, emailSettings); why != "" {
				out = append(out, OutboxJob{Kind: OutboxMissedMessage, User: id, Message: f.ID, Why: why, Told: told})
			}
		}
	}
	return out
}

// stepNotify records the errands of some of those whom a message is to be told; who has read it since is told no more.
func (t *Turn) stepNotify(w *Job) ids.Set {
	users := w.nextUsers()
	m := t.message(w.Message)
	if m == nil {
		return w.Rest.Clone()
	}
	e := t.extraOrEmpty(w.Message)
	f := &MessageSent{ID: w.Message, Sender: UserID(m.sender), Channel: ChannelID(m.channel), Mentioned: e.Mentioned, GroupMentioned: e.GroupMentioned, TopicMentioned: e.TopicMentioned,
		Content: ContentInfo{ChannelWildcard: m.bits&bitChannelWildcard != 0, Groups: w.Groups}}
	if f.Channel != 0 {
		f.TopicName = t.topics.must(m.topic).Name
	}
	for _, u := range users {
		if t.hasRead(t.marks.find(u), int64(f.ID)) {
			f.ReadBy = append(f.ReadBy, u)
		}
	}
	t.addOutboxJobs(t.notificationJobs(f, w.Told, users))
	return ids.SetOf(users...)
}
