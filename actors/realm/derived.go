package realm

import (
	"fmt"
	"slices"
)

// Derived is what the realm derived from its rows, in a form that two realms with the same rows must agree on. It is
// for tests and checks: whatever apply does to an index, index must rebuild.
func (r *Realm) Derived() map[string]any {
	out := map[string]any{}
	set := func(name string, s Set) {
		if !s.Empty() {
			out[name] = IDs[int64](s)
		}
	}
	for id, ix := range r.by.channel {
		set(fmt.Sprintf("channel %d subscribers", id), ix.subscribers)
		set(fmt.Sprintf("channel %d active", id), ix.active)
		set(fmt.Sprintf("channel %d open", id), ix.open)
		set(fmt.Sprintf("channel %d mailed", id), ix.mailed)
		set(fmt.Sprintf("channel %d ids", id), ix.ids)
		set(fmt.Sprintf("channel %d sent", id), ix.sent)
		out[fmt.Sprintf("channel %d lists topics", id)] = len(ix.list)
		for name, t := range ix.topics {
			set(fmt.Sprintf("channel %d topic %q", id, name), t.ids)
			out[fmt.Sprintf("channel %d topic %q participants", id, name)] = t.participants
		}
	}
	for name, list := range r.by.called {
		var channels Set
		for _, t := range list {
			channels.Add(int64(t.channel))
		}
		set(fmt.Sprintf("channels with topic %q", name), channels)
	}
	for id, t := range r.by.talk {
		set(fmt.Sprintf("talk %d", id), t.ids)
	}
	for _, list := range r.by.crowds {
		for _, c := range list {
			set(fmt.Sprintf("mentioned %v", c.users), c.messages)
		}
	}
	for u, l := range r.by.talksOf {
		l = slices.Clone(l)
		slices.Sort(l)
		out[fmt.Sprintf("talks of %d", u)] = l
	}
	for name, m := range map[string]map[UserID]*Set{"sent": r.by.sender, "direct": r.by.direct, "mentioned": r.by.mentioned, "alerted": r.by.alerted} {
		for u, s := range m {
			set(fmt.Sprintf("%s %d", name, u), *s)
		}
	}
	for name, s := range map[string]Set{"wildcard": r.by.wildcard, "links": r.by.links, "images": r.by.images, "attachments": r.by.attachments, "reacted": r.by.reacted, "listening": r.by.listening, "bots": r.by.bots, "mailed": r.by.mailed, "away": r.by.away, "reads resolved": r.by.readsResolved, "reads unfollowed": r.by.readsUnfollowed} {
		set(name, s)
	}
	for u, l := range r.subs.all() {
		out[fmt.Sprintf("colours of %d", u)] = l.colors()
	}
	out["resolved"] = slices.Sorted(slices.Values(r.by.resolved))
	out["invitations"], out["devices"] = r.nouns.inviteOf, r.nouns.devicesOf
	out["waiting errands"], out["missed"] = r.nouns.waiting.number, r.nouns.waiting.missed
	set("reachable", r.nouns.reachable)
	for k, x := range r.by.policies {
		for policy, users := range x {
			set(fmt.Sprintf("policy %d of %v", policy, k), users)
		}
	}
	out["mail tokens"] = r.by.mailToken
	out["names"], out["emails"], out["queues"], out["public"] = r.by.channelName, r.by.email, r.by.queuesOf, r.by.allPublic
	return out
}
