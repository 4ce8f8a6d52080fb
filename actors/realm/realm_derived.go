package realm

import (
	"fmt"
	"maps"
	"slices"

	"parley/actors/realm/ids"
)

// Derived returns the data that the realm derives from its rows, by name. Two realms with the same rows must agree on
// it: whatever apply does to an index, rebuildIndexes must do too. It is for tests. TestDerivedListsEveryIndex fails if
// a new index is not listed here.
func (r *Realm) Derived() map[string]any {
	out := map[string]any{}
	add := func(of string, fields map[string]any) {
		for name, value := range fields {
			if value = plainSets(value); value != nil {
				out[of+name] = value
			}
		}
	}
	add("index ", r.index.derived())
	add("small tables ", r.small.derived())
	for id, c := range r.index.channels {
		of := fmt.Sprintf("channel %d ", id)
		add(of, c.derived())
		for name, t := range c.topics {
			add(fmt.Sprintf("%stopic %q ", of, name), t.derived())
		}
	}
	for id, c := range r.index.conversations {
		add(fmt.Sprintf("conversation %d ", id), c.derived())
	}
	for u, l := range r.subscriptions.all() {
		out[fmt.Sprintf("colors used by %d", u)] = l.usedColors()
	}
	return out
}

// derived returns the indexes by name of their field, in a form that does not depend on the order of changes.
func (x *indexes) derived() map[string]any {
	topics := map[string][]uint32{} // channels that have a topic of the name
	for name, list := range x.topicsByName {
		for _, t := range list {
			topics[name] = append(topics[name], t.channel)
		}
		slices.Sort(topics[name])
	}
	conversations := map[UserID][]DirectConversationID{}
	for u, list := range x.conversationsOf {
		conversations[u] = slices.Sorted(slices.Values(list))
	}
	mentions := map[string]any{}
	for _, list := range x.bulkMentions {
		for _, c := range list {
			mentions[fmt.Sprint(c.users)] = ids.IDs[int64](c.messages)
		}
	}
	preferences := map[string]any{}
	for key, users := range x.topicPreferences {
		for policy, set := range users {
			if !set.Empty() {
				preferences[fmt.Sprint(key, " policy ", policy)] = ids.IDs[UserID](set)
			}
		}
	}
	return map[string]any{
		"userByEmail": x.userByEmail, "usersByName": x.usersByName, "usersByAlertWord": x.usersByAlertWord,
		"mutersOf": x.mutersOf, "bots": x.bots, "emailsAllChannels": x.emailsAllChannels,
		"presenceHidden": x.presenceHidden, "autoReadsResolved": x.autoReadsResolved,
		"autoReadsUnfollowed": x.autoReadsUnfollowed,
		"channelByName":       x.channelByName, "channels": slices.Sorted(maps.Keys(x.channels)),
		"topicIDs": x.topicIDs, "topicSpellings": x.topicSpellings, "topicsByName": topics,
		"resolvedTopics": slices.Sorted(slices.Values(x.resolvedTopics)), "topicPreferences": preferences,
		"conversations":         slices.Sorted(maps.Keys(x.conversations)),
		"conversationByMembers": x.conversationByMembers, "conversationsOf": conversations, "mailTokens": x.mailTokens,
		"bySender": x.bySender, "directMessages": x.directMessages, "mentioned": x.mentioned, "bulkMentions": mentions,
		"alerted": x.alerted, "channelWildcards": x.channelWildcards,
		"links": x.links, "images": x.images, "attachments": x.attachments, "reacted": x.reacted,
		"remindersOf":  x.remindersOf,
		"uploadByPath": x.uploadByPath, "uploadsWithHash": x.uploadsWithHash,
		"messagesWithFile": x.messagesWithFile, "uploadBytes": x.uploadBytes,
		"uploadBytesOf": x.uploadBytesOf,
		"clientIDs":     x.clientIDs, "usersWithQueues": x.usersWithQueues, "queueCount": x.queueCount,
		"allPublicQueues": x.allPublicQueues,
	}
}

// derived returns the data derived from the small tables. For tables with owners it is the index by owner.
func (n *smallTables) derived() map[string]any {
	return map[string]any{
		"drafts": n.drafts.byOwner, "scheduled": n.scheduled.byOwner, "reminders": n.reminders.byOwner,
		"snippets": n.snippets.byOwner, "devicesOf": n.devicesOf, "pushReachable": n.pushReachable,
		"outboxCount":   map[string]any{"count": n.outboxCount.count, "missed": n.outboxCount.missed},
		"inviteByToken": n.inviteByToken, "auditLast": n.auditLast, "usage": n.usage.last,
		"identityOwners": n.ownersByIdentity(),
		"archiveIndex": map[string]any{"messages": n.archiveIndex.messages, "uploads": n.archiveIndex.uploads,
			"withFile": plainSets(n.archiveIndex.withFile), "withHash": n.archiveIndex.withHash,
			"fileBytes": n.archiveIndex.fileBytes, "restoring": n.archiveIndex.restoring},
	}
}

func (x *channelIndex) derived() map[string]any {
	return map[string]any{
		"subscribers": x.subscribers, "active": x.active, "receiving": x.receiving, "wantsEmail": x.wantsEmail,
		"ids": x.ids, "sent": x.sent, "topics": slices.Sorted(maps.Keys(x.topics)), "topicList": len(x.topicList),
	}
}

func (x *topicIndex) derived() map[string]any {
	return map[string]any{"channel": x.channel, "ids": x.ids, "participants": x.participants}
}

func (x *conversationIndex) derived() map[string]any { return map[string]any{"ids": x.ids} }

// notDerived are the fields that two realms with the same rows may have different, with the reason.
var notDerived = map[string]string{
	"indexes.clock":                          "is given, not derived",
	"indexes.markdownConfigSeq":              "loading counts as a change of the configuration",
	"indexes.groupDisplayVersion":            "counts changes since the start",
	"indexes.activityCheckDay":               "is the day of a check, not stored",
	"indexes.reminderHour":                   "is the hour of a check, not stored",
	"indexes.queueAudiences":                 "is a cache",
	"indexes.bulk":                           "is set only while indexes are rebuilt",
	"smallTables.staleNotifications":         "contains all candidates after loading",
	"channelIndex.everSubscribed":            "may contain further users",
	"channelIndex.openings":                  "may contain closed spans",
	"channelIndex.connectedSubscribers":      "is a cache",
	"channelIndex.connectedSubscribersValid": "belongs to a cache",
	"channelIndex.traffic":                   "is a cache",
	"channelIndex.trafficDay":                "belongs to a cache",
	"channelIndex.infoChanges":               "counts changes since the start",
	"channelIndex.groups":                    "is a cache",
	"channelIndex.groupsVersion":             "belongs to a cache",
	"channelIndex.activeChanges":             "counts changes since the start",
	"channelIndex.json":                      "is a cache",
	"topicIndex.position":                    "depends on the order of changes",
}

// plainSets returns a value with sets as lists of ids and without empty sets, which may or may not exist. It returns
// nil for an empty set or map.
func plainSets(value any) any {
	switch v := value.(type) {
	case ids.Set:
		if v.Empty() {
			return nil
		}
		return ids.IDs[int64](v)
	case map[UserID]*ids.Set:
		return listsByKey(v)
	case map[string]*ids.Set:
		return listsByKey(v)
	}
	return value
}

// listsByKey returns sets as lists of ids, without the empty sets.
func listsByKey[K comparable](sets map[K]*ids.Set) any {
	out := map[K][]int64{}
	for k, s := range sets {
		if !s.Empty() {
			out[k] = ids.IDs[int64](*s)
		}
	}
	return out
}
