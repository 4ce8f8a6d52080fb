package wire

import (
	"strings"

	"parley/actors/realm"
	"parley/wire/markdown"
)

// contentOf is what a rendering found out, in the realm's terms.
func contentOf(r markdown.Result) realm.Content {
	x := realm.Content{ChannelWildcard: r.ChannelWildcard, TopicWildcard: r.TopicWildcard, Link: r.HasLink, Image: r.HasImage,
		Attachment: r.HasAttachment, Me: r.IsMe, Attachments: r.Attachments, Previews: r.PreviewURLs}
	for _, u := range r.MentionedUsers {
		x.Users = append(x.Users, realm.UserID(u))
	}
	for _, g := range r.MentionedGroups {
		x.Groups = append(x.Groups, realm.GroupID(g))
	}
	return x
}

// plain shows a text that cannot be rendered: harmless, and all of it.
func plain(text string) string {
	text = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(text)
	return "<p>" + strings.ReplaceAll(text, "\n", "<br>\n") + "</p>"
}
