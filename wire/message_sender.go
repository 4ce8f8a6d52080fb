package wire

import (
	"strings"

	"parley/actors/realm"
	"parley/wire/markdown"
)

// VisibleSender is the sender of a message as one reader can see them. Emails and push notifications show it.
type VisibleSender struct {
	Name   string
	Email  string // as in the API: the real address or a placeholder
	Avatar string // absolute URL of the picture
}

// VisibleSenderOf returns the sender of m as the reader can see them. It returns a placeholder if m is in a channel
// and the sender is hidden from the reader. Users in a direct conversation always see each other.
func VisibleSenderOf(v realm.View, reader realm.UserID, m realm.MessageInfo, s Site) VisibleSender {
	out := VisibleSender{m.Sender.Name, apiEmail(m.Sender, s), ownAvatarURL(m.Sender, s)}
	if m.Channel != 0 && !v.ViewAs(realm.Caller{User: reader}, v.Now).MaySeeUser(v.Find(m.Sender.ID)) {
		out = VisibleSender{unknownName, dummyEmail(m.Sender.ID, s), unknownAvatar}
	}
	if strings.HasPrefix(out.Avatar, "/") {
		out.Avatar = s.URL + out.Avatar
	}
	return out
}

// MessageExcerpt returns the beginning of a message as plain text. A text longer than limit code points is cut and
// ends with an ellipsis.
func MessageExcerpt(body realm.Body, limit int) string {
	text := strings.TrimSpace(markdown.PlainText(body.HTML))
	if r := []rune(text); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return text
}
