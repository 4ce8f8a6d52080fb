package realm

import (
	"fmt"
	"slices"

	"parley/actors/realm/ids"
)

// Derived is what the realm derived from its rows, in a form that two realms with the same rows must agree on. It is
// for tests and checks: whatever apply does to an index, index must rebuild.
func (r *Realm) Derived() map[string]any {
	out := map[string]any{}
	set := func(name string, s ids.Set) {
		if !s.Empty() {
			out[name] = ids.IDs[int64](s)
		}
	}
	for id, ix := range r.index.channels {
		set(fmt.Sprintf("channel %d subscribers", id), ix.subscribers)
		set(fmt.Sprintf("channel %d active", id), ix.active)
		set(fmt.Sprintf("channel %d open", id), ix.receiving)
		set(fmt.Sprintf("channel %d mailed", id), ix.wantsEmail)
		set(fmt.Sprintf("channel %d ids", id), ix.ids)
		set(fmt.Sprintf("channel %d sent", id), ix.sent)
		out[fmt.Sprintf("channel %d lists topics", id)] = len(ix.topicList)
		for name, t := range ix.topics {
			set(fmt.Sprintf("channel %d topic %q", id, name), t.ids)
			out[fmt.Sprintf("channel %d topic %q participants", id, name)] = t.participants
		}
	}
	for name, list := range r.index.topicsByName {
		var channels ids.Set
		for _, t := range list {
			channels.Add(int64(t.channel))
		}
		set(fmt.Sprintf("channels with topic %q", name), channels)
	}
	for id, t := range r.index.conversations {
		set(fmt.Sprintf("talk %d", id), t.ids)
	}
	for _, list := range r.index.crowds {
		for _, c := range list {
			set(fmt.Sprintf("mentioned %v", c.users), c.messages)
		}
	}
	for u, l := range r.index.conversationsOf {
		l = slices.Clone(l)
		slices.Sort(l)
		out[fmt.Sprintf("talks of %d", u)] = l
	}
	for name, m := range map[string]map[UserID]*ids.Set{"sent": r.index.bySender, "direct": r.index.directMessages, "mentioned": r.index.mentioned, "alerted": r.index.alerted} {
		for u, s := range m {
			set(fmt.Sprintf("%s %d", name, u), *s)
		}
	}
	for name, s := range map[string]ids.Set{"wildcard": r.index.channelWildcards, "links": r.index.links, "images": r.index.images, "attachments": r.index.attachments, "reacted": r.index.reacted, "listening": r.index.usersWithQueues, "bots": r.index.bots, "mailed": r.index.emailsAllChannels, "away": r.index.presenceHidden, "reads resolved": r.index.autoReadsResolved, "reads unfollowed": r.index.autoReadsUnfollowed} {
		set(name, s)
	}
	for u, l := range r.subscriptions.all() {
		out[fmt.Sprintf("colours of %d", u)] = l.usedColors()
	}
	out["resolved"] = slices.Sorted(slices.Values(r.index.resolvedTopics))
	out["invitations"], out["devices"] = r.small.inviteByToken, r.small.devicesOf
	out["waiting errands"], out["missed"] = r.small.outboxCount.count, r.small.outboxCount.missed
	set("reachable", r.small.pushReachable)
	for k, x := range r.index.topicPreferences {
		for policy, users := range x {
			set(fmt.Sprintf("policy %d of %v", policy, k), users)
		}
	}
	out["mail tokens"] = r.index.mailTokens
	out["names"], out["emails"], out["queues"], out["public"] = r.index.channelByName, r.index.userByEmail, r.index.queueCount, r.index.allPublicQueues
	return out
}
