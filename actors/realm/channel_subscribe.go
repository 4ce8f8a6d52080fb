package realm

import (
	"slices"
	"strings"

	"parley/actors/realm/ids"
)

// Subscribe asks to subscribe the caller or other users to channels. It creates the channels that do not exist.
type Subscribe struct {
	Channels     []ChannelToJoin
	Principals   []Principal // empty: the caller
	New          NewChannel  // the settings of channels to create; their names come from Channels
	AllOrNothing bool        // refuse everything if the caller may not join one of the channels
	Announce     bool
	Notify       bool // notify users who were subscribed by someone else
	MaxPerTurn   int  // subscriptions made per turn, 0: no limit; see SubscribeResult.Job
}

// ChannelToJoin is one channel to join or create.
type ChannelToJoin struct {
	Name, Color                  string
	Description, DescriptionHTML string
}

// Principal is a user given by id or by email address.
type Principal struct {
	ID    UserID
	Email string
	RawID string // the id as the client wrote it, if no user can have it
}

// SubscribeResult answers Subscribe.
type SubscribeResult struct {
	Subscribed, Already       map[UserID][]string
	Unauthorized              []string
	AllOrNothing, NotifyAsked bool // copied from the request
	Notified                  bool
	Created                   []ChannelID
	Joiners                   []ChannelJoiners // replaces Subscribed and Already if the request takes several turns
	Job                       int64            // the job that does the rest, 0: everything is done
}

// maxChannelsPerRequest is how many channels one request may join or leave: each causes a fact and its events.
const maxChannelsPerRequest = 1000

// MaxSubscriptionsPerRequest is how many subscriptions one request may make or end: users times channels. At 1 ms per
// thousand, the maximum takes 0.2 s of the organization's turns, interleaved with other requests.
const MaxSubscriptionsPerRequest = 200_000

// checkSubscriptionCount refuses requests with more subscriptions than Limits.JoinsPerCall.
func (r *Realm) checkSubscriptionCount(users, channels int) error {
	if users*channels > r.limits.JoinsPerCall {
		return BadRequest("Too many subscriptions in one request (limit: %d)", r.limits.JoinsPerCall)
	}
	return nil
}

// findPrincipals returns the users that a request acts for, each once. Each must exist, be visible to the caller and be
// active.
func (v View) findPrincipals(list []Principal) ([]*User, error) {
	if len(list) == 0 {
		return []*User{v.Me()}, nil
	}
	out := make([]*User, 0, len(list))
	var seen ids.Set
	for _, p := range list {
		u := v.Find(p.ID)
		if p.ID == 0 {
			u = v.FindByShownEmail(p.Email)
		}
		if u == nil || u.System || !v.MaySeeUser(u) {
			return nil, errNoUser()
		}
		if !u.Active {
			return nil, errDeactivated()
		}
		if seen.Add(int64(u.ID)) {
			out = append(out, u)
		}
	}
	return out, nil
}

// channelJoin is one channel of a request. It exists, or plan is the channel to create.
type channelJoin struct {
	existing, plan *Channel
	color          string
}

// subscribePlan is a checked Subscribe.
type subscribePlan struct {
	me       *User
	users    []*User
	others   bool // users contains someone other than the caller
	joins    []channelJoin
	existing ids.Set // ids of the channels in joins that exist
	denied   []string
}

func (c Subscribe) Decide(t *Turn) (SubscribeResult, error) {
	plan, err := c.check(t)
	if err != nil {
		return SubscribeResult{}, err
	}
	a := SubscribeResult{
		Subscribed: make(map[UserID][]string, len(plan.users)), Already: map[UserID][]string{},
		Unauthorized: plan.denied, AllOrNothing: c.AllOrNothing, NotifyAsked: c.Notify,
	}
	a.Notified = c.Notify && len(plan.users) <= MaxNewSubscriptionMessages
	var created []*Channel
	for i, x := range plan.joins {
		if x.plan != nil {
			t.Record(&ChannelCreated{Channel: *x.plan})
			plan.joins[i].existing = t.channels.must(x.plan.ID)
			created = append(created, plan.joins[i].existing)
			a.Created = append(a.Created, x.plan.ID)
		}
	}
	if c.needsSeveralTurns(plan) {
		job := c.newJob(plan, a.Created)
		a.Joiners = t.channelJoiners(plan, job.Rest)
		if a.Notified {
			job.Invited = make([]ids.Set, len(plan.joins))
			for i, x := range a.Joiners {
				if plan.joins[i].plan == nil {
					job.Invited[i] = x.Joins
				}
			}
		}
		a.Job = t.startJob(job)
		return a, nil
	}
	invited := a.addJoins(plan, t.recordJoins(plan))
	t.postCreationNotices(created, c.Announce)
	if a.Notified {
		t.notifySubscribed(invited, plan.users)
	}
	return a, nil
}

// needsSeveralTurns reports whether the request must be split over several turns.
func (c Subscribe) needsSeveralTurns(plan *subscribePlan) bool {
	return needsSeveralTurns(len(plan.users), len(plan.joins), c.MaxPerTurn)
}

// newJob returns the job that does the rest of the request. All its channels exist by now.
func (c Subscribe) newJob(plan *subscribePlan, created []ChannelID) Job {
	job := Job{Kind: JoinJob, AtOnce: c.MaxPerTurn, Rest: plan.userSet(), Created: created, Announce: c.Announce}
	for _, x := range plan.joins {
		job.Channels, job.Colors = append(job.Channels, x.existing.ID), append(job.Colors, x.color)
	}
	return job
}

// channelJoiners returns, for each channel, the users that will be subscribed and those that already are.
func (t *Turn) channelJoiners(plan *subscribePlan, users ids.Set) (out []ChannelJoiners) {
	for _, x := range plan.joins {
		ch := x.existing
		in := t.index.channels[ch.ID].subscribers
		out = append(out, ChannelJoiners{ch.Name, ids.Difference(users, in), ids.Intersection(users, in)})
	}
	return out
}

// userSet returns the ids of the users.
func (p *subscribePlan) userSet() ids.Set {
	list := make([]uint32, len(p.users))
	for i, u := range p.users {
		list[i] = uint32(u.ID)
	}
	return ids.SetOfUnsorted(list)
}

// postCreationNotices lets the notification bot write the first message of new channels and, with announce, announce
// them.
func (t *Turn) postCreationNotices(created []*Channel, announce bool) {
	for _, ch := range created {
		t.postChannelCreated(ch)
	}
	if announce {
		t.announceNewChannels(created)
	}
}

// recordJoins records that the users join the channels, and returns the new subscribers of each channel. It takes the
// channels in ascending order, because that is the order in which colors are assigned.
func (t *Turn) recordJoins(plan *subscribePlan) map[ChannelID][]UserID {
	joins := slices.Clone(plan.joins)
	slices.SortFunc(joins, func(a, b channelJoin) int { return int(a.existing.ID - b.existing.ID) })
	var used map[UserID]uint64
	if len(joins) > 1 {
		used = map[UserID]uint64{}
	}
	facts := make([]Subscribed, 0, len(joins))
	joined := make(map[ChannelID][]UserID, len(joins))
	for _, x := range joins {
		if f := t.planJoin(x.existing, plan.users, x.color, used); f != nil {
			facts = append(facts, *f)
			joined[x.existing.ID] = f.Users
		}
	}
	t.recordSubscribed(facts)
	return joined
}

// addJoins fills in Subscribed and Already. It returns, for each new subscriber, the channels that existed before the
// request, if users are to be notified.
func (a *SubscribeResult) addJoins(plan *subscribePlan, joined map[ChannelID][]UserID) map[UserID][]*Channel {
	invited := map[UserID][]*Channel{}
	for _, x := range plan.joins {
		ch := x.existing
		for _, u := range plan.users {
			if !containsSorted(joined[ch.ID], u.ID) {
				a.Already[u.ID] = append(a.Already[u.ID], ch.Name)
				continue
			}
			a.Subscribed[u.ID] = append(a.Subscribed[u.ID], ch.Name)
			if x.plan == nil && a.NotifyAsked {
				invited[u.ID] = append(invited[u.ID], ch)
			}
		}
	}
	return invited
}

// check returns a refusal or the plan of what to record.
func (c Subscribe) check(t *Turn) (plan *subscribePlan, err error) {
	plan = &subscribePlan{me: t.Me(), denied: []string{}}
	if plan.me == nil {
		return nil, errNotMember()
	}
	if plan.me.IsGuest() {
		return nil, errGuestsNotAllowed()
	}
	if len(c.Channels) > maxChannelsPerRequest {
		return nil, BadRequest("Too many channels in one request (limit: %d)", maxChannelsPerRequest)
	}
	if err := t.checkSubscriptionCount(len(c.Principals), len(c.Channels)); err != nil {
		return nil, err
	}
	plan.users, err = t.findPrincipals(c.Principals)
	if err != nil {
		return nil, err
	}
	for _, u := range plan.users {
		plan.others = plan.others || u.ID != plan.me.ID
	}
	for _, x := range c.Channels {
		if err := c.checkChannel(t, plan, x); err != nil {
			return nil, err
		}
	}
	if c.AllOrNothing && len(plan.denied) > 0 {
		return nil, BadRequest("Unable to access channel (%s).", strings.Join(plan.denied, ", "))
	}
	if err := t.checkNewChannels(plan.newChannels(), len(plan.users)*len(plan.joins)); err != nil {
		return nil, err
	}
	for _, x := range plan.joins {
		ch := x.existing
		if ch == nil {
			ch = x.plan
		}
		if plan.others && !t.mayAddSubscribers(plan.me, ch) {
			return nil, errPermission()
		}
	}
	if c.needsSeveralTurns(plan) {
		return plan, t.checkJobLimit()
	}
	return plan, nil
}

// checkChannel adds one channel of the request to the plan. A channel that the caller may not join is added to denied.
// A channel that does not exist is planned, with the next free id, if the caller may create it.
func (c Subscribe) checkChannel(t *Turn, plan *subscribePlan, x ChannelToJoin) error {
	name, err := checkChannelName(x.Name)
	if err != nil {
		return err
	}
	if old := t.FindChannelByName(name); old != nil {
		archived := old.Archived && !t.allSubscribed(old.ID, plan)
		switch {
		case archived || !t.hasContentAccess(plan.me, old):
			plan.denied = append(plan.denied, old.Name)
		case plan.existing.Add(int64(old.ID)):
			plan.joins = append(plan.joins, channelJoin{existing: old, color: x.Color})
		}
		return nil
	}
	if slices.ContainsFunc(plan.joins, func(o channelJoin) bool {
		return o.plan != nil && fold(o.plan.Name) == fold(name)
	}) {
		return nil // the same new name twice is one channel
	}
	n := c.New
	n.Name, n.Description, n.DescriptionHTML = name, x.Description, x.DescriptionHTML
	p, err := t.planChannel(n)
	if err != nil {
		return err
	}
	for _, o := range plan.joins {
		if o.plan != nil {
			p.ID++
		}
	}
	plan.joins = append(plan.joins, channelJoin{plan: p, color: x.Color})
	return nil
}

// allSubscribed reports whether the caller and the users of the request are subscribed to a channel already.
func (t *Turn) allSubscribed(c ChannelID, plan *subscribePlan) bool {
	for _, u := range plan.users {
		if !t.Realm.Subscribed(u.ID, c) {
			return false
		}
	}
	return t.Realm.Subscribed(plan.me.ID, c)
}

// newChannels returns the channels to create.
func (p *subscribePlan) newChannels() (out []*Channel) {
	for _, x := range p.joins {
		if x.plan != nil {
			out = append(out, x.plan)
		}
	}
	return out
}

// mayAddSubscribers reports whether u may subscribe other users to a channel that u can access.
func (r *Realm) mayAddSubscribers(u *User, c *Channel) bool {
	const setting = "can_add_subscribers_group" // the organization and channels have it
	return !u.IsGuest() && (u.IsAdmin() || r.HasPermission(u, setting) || r.mayAdminister(u, c) ||
		r.channelAllows(u, c, setting))
}

// CreateChannel asks to create one channel with its first subscribers.
type CreateChannel struct {
	New         NewChannel
	Subscribers []Principal
	Announce    bool
	Notify      bool
	MaxPerTurn  int // see Subscribe
}

// CreateChannelResult answers CreateChannel.
type CreateChannelResult struct {
	ID  ChannelID
	Job int64 // the job that subscribes the users, 0: all are subscribed
}

func (c CreateChannel) Decide(t *Turn) (CreateChannelResult, error) {
	if me := t.Me(); me != nil && me.IsGuest() {
		return CreateChannelResult{}, errGuestsNotAllowed()
	}
	name, err := checkChannelName(c.New.Name)
	if err != nil {
		return CreateChannelResult{}, err
	}
	if t.FindChannelByName(name) != nil {
		return CreateChannelResult{}, BadRequest("Channel '%s' already exists", name)
	}
	if len(c.Subscribers) == 0 {
		id, err := c.createEmpty(t)
		return CreateChannelResult{ID: id}, err
	}
	s := Subscribe{
		Channels: []ChannelToJoin{{Name: name, Description: c.New.Description}}, Principals: c.Subscribers,
		New: c.New, AllOrNothing: true, Announce: c.Announce, Notify: c.Notify, MaxPerTurn: c.MaxPerTurn,
	}
	a, err := s.Decide(t)
	if err != nil {
		return CreateChannelResult{}, err
	}
	return CreateChannelResult{a.Created[0], a.Job}, nil
}

// createEmpty creates a channel without subscribers.
func (c CreateChannel) createEmpty(t *Turn) (ChannelID, error) {
	ch, err := t.newChannel(c.New)
	if err != nil {
		return 0, err
	}
	t.postChannelCreated(ch)
	if c.Announce {
		t.announceNewChannels([]*Channel{ch})
	}
	return ch.ID, nil
}

// Unsubscribe asks to unsubscribe the caller or other users from channels.
type Unsubscribe struct {
	Names      []string
	Principals []Principal
	MaxPerTurn int // subscriptions ended per turn, 0: no limit; see UnsubscribeResult.Job
}

// UnsubscribeResult answers Unsubscribe. A channel is in Removed if at least one user left it, and in NotRemoved if at
// least one of the users was not subscribed to it: with several users it can be in both.
type UnsubscribeResult struct {
	Removed, NotRemoved []string
	Job                 int64 // the job that does the rest, 0: everything is done
}

func (c Unsubscribe) Decide(t *Turn) (UnsubscribeResult, error) {
	channels, users, err := c.check(t)
	if err != nil {
		return UnsubscribeResult{}, err
	}
	if !needsSeveralTurns(len(users), len(channels), c.MaxPerTurn) {
		return t.leaveChannels(channels, users), nil
	}
	if err := t.checkJobLimit(); err != nil {
		return UnsubscribeResult{}, err
	}
	a := UnsubscribeResult{Removed: []string{}, NotRemoved: []string{}}
	job := Job{Kind: LeaveJob, AtOnce: c.MaxPerTurn, Rest: ids.SetOf(users...)}
	for _, ch := range channels {
		job.Channels = append(job.Channels, ch.ID)
		a.add(ch, ids.Intersection(t.index.channels[ch.ID].subscribers, job.Rest).Len(), job.Rest.Len())
	}
	a.Job = t.startJob(job)
	return a, nil
}

// leaveChannels records that the users leave the channels.
func (t *Turn) leaveChannels(channels []*Channel, users []UserID) UnsubscribeResult {
	a := UnsubscribeResult{Removed: []string{}, NotRemoved: []string{}}
	facts := make([]Unsubscribed, 0, len(channels))
	asked := ids.SetOf(users...).Len()
	for _, ch := range channels {
		left := 0
		if f := t.planLeave(ch, users, len(facts)); f != nil {
			facts = append(facts, *f)
			left = len(f.Users)
		}
		a.add(ch, left, asked)
	}
	t.recordUnsubscribed(facts)
	jobs := make([]int64, len(facts))
	for i := range facts {
		jobs[i] = facts[i].Job
	}
	t.beginLeaving(jobs...)
	return a
}

// add adds a channel that some of the users left.
func (r *UnsubscribeResult) add(ch *Channel, left, asked int) {
	if left > 0 {
		r.Removed = append(r.Removed, ch.Name)
	}
	if left < asked {
		r.NotRemoved = append(r.NotRemoved, ch.Name)
	}
}

// check returns a refusal, or the channels and users of the request. The caller may always remove their own bots.
func (c Unsubscribe) check(t *Turn) (channels []*Channel, list []UserID, err error) {
	me := t.Me()
	if me == nil {
		return nil, nil, errNotMember()
	}
	if len(c.Names) > maxChannelsPerRequest {
		return nil, nil, BadRequest("Too many channels in one request (limit: %d)", maxChannelsPerRequest)
	}
	if err := t.checkSubscriptionCount(len(c.Principals), len(c.Names)); err != nil {
		return nil, nil, err
	}
	users, err := t.findPrincipals(c.Principals)
	if err != nil {
		return nil, nil, err
	}
	var unknown []string
	var known ids.Set
	for _, n := range c.Names {
		ch := t.FindChannelByName(n)
		if ch == nil || !t.hasMetadataAccess(me, ch) {
			unknown = append(unknown, n)
		} else if known.Add(int64(ch.ID)) {
			channels = append(channels, ch)
		}
	}
	if len(unknown) > 0 {
		return nil, nil, BadRequest("Channel(s) (%s) do not exist", strings.Join(unknown, ", "))
	}
	others := false
	for _, u := range users {
		list = append(list, u.ID)
		others = others || u.ID != me.ID && u.BotOwner != me.ID
	}
	for _, ch := range channels {
		if others && !t.mayRemoveSubscribers(me, ch) {
			return nil, nil, errPermission()
		}
	}
	return channels, list, nil
}

// mayRemoveSubscribers reports whether u may unsubscribe other users from a channel that u may know of.
func (r *Realm) mayRemoveSubscribers(u *User, c *Channel) bool {
	return r.mayAdminister(u, c) || r.channelAllows(u, c, "can_remove_subscribers_group")
}

// Resubscribe asks to leave some channels and join others in one step, for the caller.
type Resubscribe struct {
	Add    []ChannelToJoin
	Delete []string
}

// ResubscribeResult answers Resubscribe.
type ResubscribeResult struct {
	SubscribeResult
	UnsubscribeResult
}

func (c Resubscribe) Decide(t *Turn) (ResubscribeResult, error) {
	if len(c.Add) == 0 && len(c.Delete) == 0 {
		return ResubscribeResult{}, BadRequest(`Nothing to do. Specify at least one of "add" or "delete".`)
	}
	a := ResubscribeResult{
		SubscribeResult:   SubscribeResult{Subscribed: map[UserID][]string{}, Already: map[UserID][]string{}},
		UnsubscribeResult: UnsubscribeResult{Removed: []string{}, NotRemoved: []string{}},
	}
	channels, ids, err := Unsubscribe{Names: c.Delete}.check(t)
	if err == nil && len(c.Add) > 0 {
		// A refusal comes before its first fact.
		a.SubscribeResult, err = Subscribe{Channels: c.Add, AllOrNothing: true}.Decide(t)
	}
	if err != nil {
		return a, err
	}
	a.UnsubscribeResult = t.leaveChannels(channels, ids)
	return a, nil
}
