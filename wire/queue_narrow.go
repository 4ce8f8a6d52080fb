package wire

import (
	"slices"
	"strings"

	"parley/actors/realm"
)

// narrowMatches reports whether a queue's narrow includes a message. Unknown operands match every message.
func narrowMatches(e *realm.MessageArrived, flags realm.Flags, narrow [][2]string, site Site) bool {
	m := &e.Message
	for _, t := range narrow {
		ok := true
		switch t[0] {
		case "channel", "stream":
			ok = m.Channel != 0 && strings.EqualFold(m.ChannelName, t[1])
		case "topic":
			ok = m.Channel != 0 && (strings.EqualFold(m.Topic, t[1]) ||
				m.Topic == "" && strings.EqualFold(realm.EmptyTopicName, t[1]))
		case "sender":
			ok = strings.EqualFold(apiEmail(m.Sender, site), t[1])
		case "mentions":
			ok = slices.ContainsFunc(e.Mentioned, func(u realm.UserID) bool { return u.String() == t[1] })
		case "is":
			switch t[1] {
			case "dm", "private":
				ok = m.Channel == 0
			case "starred":
				ok = flags&realm.FlagStarred != 0
			case "unread":
				ok = flags&realm.FlagRead == 0
			case "mentioned", "alerted":
				ok = flags&realm.FlagMentioned != 0
			case "resolved":
				ok = m.Channel != 0 && strings.HasPrefix(m.Topic, "✔ ")
			}
		}
		if !ok {
			return false
		}
	}
	return true
}
