package wire

import (
	"strings"

	"parley/actors/realm"
	"parley/wire/markdown"
)

// contentFromResult converts the findings of a rendering to the types of the realm.
func contentFromResult(r markdown.Result) realm.ContentInfo {
	x := realm.ContentInfo{
		ChannelWildcard: r.ChannelWildcard,
		TopicWildcard:   r.TopicWildcard,
		Link:            r.HasLink,
		Image:           r.HasImage,
		Attachment:      r.HasAttachment,
		Me:              r.IsMe,
		Attachments:     r.Attachments,
		Previews:        r.PreviewURLs,
	}
	for _, u := range r.MentionedUsers {
		x.Users = append(x.Users, realm.UserID(u))
	}
	for _, g := range r.MentionedGroups {
		x.Groups = append(x.Groups, realm.GroupID(g))
	}
	return x
}

// HasLink reports whether the text of a message has a link.
func HasLink(b realm.Body) bool { return markdown.HasLink(b.HTML) }

// escapeAsHTML shows a text that cannot be rendered: escaped and complete.
func escapeAsHTML(text string) string {
	text = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(text)
	return "<p>" + strings.ReplaceAll(text, "\n", "<br>\n") + "</p>"
}
