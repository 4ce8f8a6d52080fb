package realm

import (
	"cmp"
	"slices"

	"parley/actors/realm/ids"
)

// Some requests are too large for one turn: very many users join or leave channels, a user joins very many channels, or
// a long topic is deleted. Such a request becomes a job: a sequence of turns, with other requests in between.
//
// The first turn checks everything; a refusal refuses the whole request. It creates the channels and records the rest
// as a job: a row like any other, so once it is on disk the job will be finished. Each later turn does one step, with
// its own facts and events, and records the progress together with them. Between two steps, some users have joined and
// others have not, as if several requests had asked for them.
//
// The server runs the steps one after the other. Each step waits behind the requests that arrived before it. After a
// restart the server continues with the remaining steps. The caller is answered after the last step. So either
// everything is done, or, if the first turn did not reach the disk, nothing. Success means that all is done or certain
// to be done. Channels that were archived and messages that were moved or deleted in the meantime are skipped.
//
// Each step checks the caller's account, credentials and permissions again. If one of them was withdrawn, the job
// stops: the rest is not done, and the caller's request is refused.
//
// A message with very many possible recipients of notifications becomes a job, too. Two other kinds of work proceed in
// steps in the same way, from rows of their own. channel_leave.go marks the messages of channels that were left as
// read. user_purge.go deletes accounts with their messages; that waits for the clock, because no caller waits for it.

// Job is the row of the rest of one large request.
type Job struct {
	Kind   JobKind
	By     UserID // the caller
	AtOnce int    // subscriptions made or ended, or users examined, per turn
	// Rest is the users that still have to join, leave or be notified. For other kinds it is the messages still to be
	// deleted, or the indexes of Settings still to be set.
	Rest     ids.Set
	Channels []ChannelID
	Colors   []string    // of new subscriptions as requested, one for each channel
	Created  []ChannelID // the new ones; their first message is sent when all users have joined
	Announce bool        // announce the created channels
	Topic    string      // of the messages to be deleted
	Message  MessageID   // to notify of
	Told     Seq         // sequence number of the message's fact
	Groups   []GroupID   // mentioned by the message
	// Next is how many of Channels, in the order in which they are processed, the users of the next step have already
	// joined or left. Notifications of users who were subscribed are a step of their own, after all channels.
	Next     int
	Invited  []ids.Set         // for each of Channels, the users to notify of their subscription; nil: none
	Settings []SubscriptionSet // to set
	Key      [32]byte          // hash of the API key of the request, or zero
	Session  [32]byte          // hash of the secret of its browser session, or zero
}

// JobKind is the kind of a job. The numbers are stored and never reused.
type JobKind uint8

const (
	JoinJob   JobKind = 1
	LeaveJob  JobKind = 2
	DeleteJob JobKind = 3
	// NotifyJob finds the users that get an email or push notification for a message. It has no caller.
	NotifyJob   JobKind = 4
	PropertyJob JobKind = 5
)

// MaxSubscriptionsPerTurn is how many subscriptions one turn of a larger request makes: a thousand take about 1 ms, if
// there are few channels.
const MaxSubscriptionsPerTurn = 1000

// maxChannelsPerTurn is how many channels one turn of a larger request joins or leaves. Each takes about 3 µs, even if
// few users join, and more if the channel has many subscribers.
const maxChannelsPerTurn = 150

// needsSeveralTurns reports whether a request for so many users and channels must be split. perTurn is how many
// subscriptions one turn may make, 0: no limit.
func needsSeveralTurns(users, channels, perTurn int) bool {
	return perTurn != 0 && (users*channels > perTurn || channels > maxChannelsPerTurn)
}

// Limits of waiting jobs of one organization; each row takes some kilobytes.
const (
	MaxJobs       = 100 // requests
	MaxNotifyJobs = 100 // messages with very many possible recipients of notifications
)

// countJobs returns the number of waiting jobs of a kind.
func (r *Realm) countJobs(kind JobKind) (n int) {
	for _, j := range r.small.jobs.all() {
		if j.Kind == kind {
			n++
		}
	}
	return n
}

// checkJobLimit refuses a request if too many jobs are waiting.
func (t *Turn) checkJobLimit() error {
	if t.small.jobs.size()-t.countJobs(NotifyJob) >= MaxJobs {
		return Refuse(Busy, "BAD_REQUEST", "Too many large requests are being carried out; try again.")
	}
	return nil
}

// startJob records a job for the caller and returns its id.
func (t *Turn) startJob(j Job) int64 {
	id := t.nextID("work")
	j.By, j.Key, j.Session = t.User, t.Key, t.Session
	t.Record(&JobStarted{id, j})
	return id
}

// JobStopped reports whether a job of this process ended because its caller's rights were withdrawn. It remembers the
// newest MaxJobs of them.
func (r *Realm) JobStopped(id int64) bool { return slices.Contains(r.stoppedJobs, id) }

// JobRemains reports whether a job is not finished.
func (r *Realm) JobRemains(id int64) bool { return r.small.jobs.find(id) != nil }

// HasJobs reports whether there are jobs that do not wait for the clock.
func (r *Realm) HasJobs() bool {
	return r.small.jobs.size() > 0 || r.small.leaving.size() > 0 || r.restoringArchive() != ""
}

// jobsDue returns a turn with the next step of the oldest job, or nil if there is none.
func jobsDue(r *Realm, _ int64) func(*Turn) (any, error) {
	return oldestJobStep(&r.small.jobs, (*Turn).stepJob)
}

// oldestJobStep returns a turn that does one step of the oldest job in the table, or nil if there is none.
func oldestJobStep[J any](jobs *table[int64, J], step func(*Turn, int64)) func(*Turn) (any, error) {
	if jobs.size() == 0 {
		return nil
	}
	return func(t *Turn) (any, error) {
		first, _ := jobs.firstKey()
		step(t, first)
		return nil, nil
	}
}

// stepJob does one step of a job with the identity of its caller.
func (t *Turn) stepJob(id int64) {
	defer func(c Caller) { t.Caller = c }(t.Caller)
	j := *t.small.jobs.must(id)
	t.Caller.User, t.Caller.System = j.By, j.By == 0
	if !t.System && !t.mayContinue(&j) {
		t.Record(&JobStopped{id})
		return
	}
	var done ids.Set
	next := 0
	switch j.Kind {
	case JoinJob:
		done, next = t.stepJoin(&j)
	case LeaveJob:
		done, next = t.stepLeave(&j)
	case NotifyJob:
		done = t.stepNotify(&j)
	case DeleteJob:
		done = t.stepDelete(&j)
	case PropertyJob:
		done = t.stepSet(&j)
	}
	t.Record(&JobAdvanced{id, done, next})
	if t.JobRemains(id) {
		return
	}
	var created []*Channel
	for _, c := range j.Created {
		if ch := t.channels.must(c); !ch.Archived {
			created = append(created, ch)
		}
	}
	t.postCreationNotices(created, j.Announce)
}

// mayContinue reports whether the caller of a job still has everything that the next step needs: an active account in
// an active organization, the API key or browser session of the request, and the permissions that the first turn
// checked.
func (t *Turn) mayContinue(j *Job) bool {
	me := t.Me()
	if me == nil || !me.Active || t.Org().Deactivated ||
		t.CheckCredentials(Caller{User: j.By, Key: j.Key, Session: j.Session}, t.Now) != nil {
		return false
	}
	switch j.Kind {
	case JoinJob:
		return t.mayContinueJoin(me, j)
	case LeaveJob:
		others := false
		for _, u := range j.nextUsers() {
			others = others || u != me.ID && t.users.must(u).BotOwner != me.ID
		}
		places, _ := j.nextChannels(j.channelOrder())
		return !others || !slices.ContainsFunc(places, func(i int) bool {
			return !t.mayRemoveSubscribers(me, t.channels.must(j.Channels[i]))
		})
	case DeleteJob:
		ch, err := t.ReadableChannel(j.Channels[0])
		return err == nil && t.mayDeleteTopics(me, ch)
	}
	return true
}

// mayContinueJoin is mayContinue for joins.
func (t *Turn) mayContinueJoin(me *User, j *Job) bool {
	others := slices.ContainsFunc(j.nextUsers(), func(u UserID) bool { return u != me.ID })
	places, _ := j.nextChannels(j.joinOrder())
	return !slices.ContainsFunc(places, func(i int) bool {
		ch := t.channels.must(j.Channels[i])
		switch {
		case ch.Archived: // it is skipped
			return false
		case !slices.Contains(j.Created, ch.ID) && !t.hasContentAccess(me, ch):
			return true
		}
		return others && !t.mayAddSubscribers(me, ch)
	})
}

// joinOrder returns the indexes of Channels in the order of recordJoins.
func (j *Job) joinOrder() []int {
	places := j.channelOrder()
	slices.SortFunc(places, func(a, b int) int { return cmp.Compare(j.Channels[a], j.Channels[b]) })
	return places
}

// nextUsers returns the users of the next step.
func (j *Job) nextUsers() []UserID {
	n := min(j.Rest.Len(), max(1, j.AtOnce/max(1, len(j.Channels))))
	users := make([]UserID, 0, n)
	j.Rest.Each(func(u int64) bool {
		users = append(users, UserID(u))
		return len(users) < n
	})
	return users
}

// nextChannels returns the channels of the next step, as indexes of Channels, and the value of Next after it. order has
// the indexes in the order in which they are processed.
func (j *Job) nextChannels(order []int) (now []int, next int) {
	next = min(len(order), j.Next+maxChannelsPerTurn)
	return order[j.Next:next], next
}

// channelOrder returns the indexes of Channels, in the order of the request.
func (j *Job) channelOrder() []int {
	out := make([]int, len(j.Channels))
	for i := range out {
		out[i] = i
	}
	return out
}

// stepJoin subscribes the next users to the next channels, or notifies them once they joined all channels. It returns
// the users that are finished, or the new value of Next.
func (t *Turn) stepJoin(j *Job) (done ids.Set, next int) {
	users := j.nextUsers()
	plan := &subscribePlan{}
	for _, id := range users {
		if u := t.users.must(id); u.Active {
			plan.users = append(plan.users, u)
		}
	}
	if j.Next > 0 && j.Next == len(j.Channels) {
		t.notifySubscribed(j.invitedChannels(t, users), plan.users)
		return ids.SetOf(users...), 0
	}
	places, next := j.nextChannels(j.joinOrder())
	for _, i := range places {
		if ch := t.channels.must(j.Channels[i]); !ch.Archived {
			plan.joins = append(plan.joins, channelJoin{existing: ch, color: j.Colors[i]})
		}
	}
	t.recordJoins(plan)
	if next < len(j.Channels) || j.Invited != nil {
		return ids.Set{}, next
	}
	return ids.SetOf(users...), 0
}

// invitedChannels returns the channels that each of the users is notified of.
func (j *Job) invitedChannels(t *Turn, users []UserID) map[UserID][]*Channel {
	out := map[UserID][]*Channel{}
	for i, id := range j.Channels {
		for _, u := range users {
			if ch := t.channels.must(id); j.Invited[i].Has(int64(u)) && !ch.Archived {
				out[u] = append(out[u], ch)
			}
		}
	}
	return out
}

// stepLeave lets the next users leave the next channels. It returns the users that are finished, or the new value of
// Next.
func (t *Turn) stepLeave(j *Job) (done ids.Set, next int) {
	users := j.nextUsers()
	places, next := j.nextChannels(j.channelOrder())
	var channels []*Channel
	for _, i := range places {
		channels = append(channels, t.channels.must(j.Channels[i]))
	}
	t.leaveChannels(channels, users)
	if next < len(j.Channels) {
		return ids.Set{}, next
	}
	return ids.SetOf(users...), 0
}

// stepSet makes the next changes of settings. It skips channels that the user has left.
func (t *Turn) stepSet(j *Job) (done ids.Set) {
	var changes []SubscriptionSet
	j.Rest.Each(func(i int64) bool {
		if x := j.Settings[i]; t.Realm.Subscribed(x.User, x.Channel) {
			changes = append(changes, x)
		}
		done.Add(i)
		return done.Len() < j.AtOnce
	})
	t.recordProperties(j.By, changes)
	return done
}

// stepDelete deletes the newest messages that remain. It skips messages that were moved away. It returns all messages
// that need no further step.
func (t *Turn) stepDelete(j *Job) ids.Set {
	ix := t.index.channels[j.Channels[0]].topics[fold(j.Topic)]
	if ix == nil {
		return j.Rest.Clone()
	}
	messages := ids.IDs[MessageID](ids.Intersection(j.Rest, ix.ids))
	messages = messages[max(0, len(messages)-maxDeletedPerTurn):]
	if len(messages) == 0 {
		return j.Rest.Clone()
	}
	done := j.Rest.Between(int64(messages[0]), MaxMessageID)
	t.deleteMessages(messages, DeletedByUser, j.By)
	t.clearTopicPolicies(j.Channels[0], j.Topic)
	return done
}

// JobStarted says which work remains of a request. Each step has facts of its own.
type JobStarted struct {
	ID   int64
	Work Job
}

func (f *JobStarted) apply(r *Realm) {
	j := f.Work
	j.Rest = j.Rest.Clone()
	r.reserveID("work", f.ID)
	r.small.jobs.put(f.ID, &j)
}

func (*JobStarted) notices(*Realm) []Notice { return nil }

// JobAdvanced says for which users or messages a job is done.
type JobAdvanced struct {
	ID   int64
	Done ids.Set
	Next int // see Job
}

func (f *JobAdvanced) apply(r *Realm) {
	j := r.small.jobs.change(f.ID)
	j.Next = f.Next
	if j.Rest.Subtract(f.Done); j.Rest.Empty() {
		r.small.jobs.remove(f.ID)
	}
}

// JobStopped says that the rest of a job is not done, because the rights of its caller were withdrawn.
type JobStopped struct{ ID int64 }

func (f *JobStopped) apply(r *Realm) {
	r.small.jobs.remove(f.ID)
	r.stoppedJobs = append(r.stoppedJobs, f.ID)
	r.stoppedJobs = r.stoppedJobs[max(0, len(r.stoppedJobs)-MaxJobs):]
}

func (*JobStopped) notices(*Realm) []Notice { return nil }

func (*JobAdvanced) notices(*Realm) []Notice { return nil }

// ChannelJoiners is the users who join one channel, as sets. Naming each in the answer would take too long inside a
// turn.
type ChannelJoiners struct {
	Name           string
	Joins, Already ids.Set
}

// AddJoiners fills in Subscribed and Already from Joiners.
func (a *SubscribeResult) AddJoiners() {
	for _, x := range a.Joiners {
		for _, part := range []struct {
			users ids.Set
			named map[UserID][]string
		}{{x.Joins, a.Subscribed}, {x.Already, a.Already}} {
			part.users.Each(func(u int64) bool {
				part.named[UserID(u)] = append(part.named[UserID(u)], x.Name)
				return true
			})
		}
	}
}
