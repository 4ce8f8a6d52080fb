package wire

import (
	"strings"
	"time"

	"parley/actors/realm"
	"parley/wire/markdown"
)

// lookup answers what a text refers to straight from a view; it lives as long as the view.
type lookup struct {
	v     realm.View
	names map[string]realm.UserID // made when the first name is looked up
}

// LookupIn is what texts written by the caller may refer to. Use it inside the view only.
func LookupIn(v realm.View) markdown.Lookup { return &lookup{v: v} }

func (l *lookup) UserByName(name string) (markdown.User, bool) {
	if l.names == nil {
		l.names = map[string]realm.UserID{}
		l.v.EachUser(func(u *realm.User) {
			key := strings.ToLower(u.Name)
			if old := l.v.Find(l.names[key]); old == nil || !old.Active {
				l.names[key] = u.ID
			}
		})
	}
	return l.UserByID(int64(l.names[strings.ToLower(name)]))
}

func (l *lookup) UserByID(id int64) (markdown.User, bool) {
	u := l.v.Find(realm.UserID(id))
	if u == nil {
		return markdown.User{}, false
	}
	return markdown.User{ID: id, FullName: u.Name, Active: u.Active}, true
}

func (l *lookup) GroupByName(name string) (g markdown.Group, ok bool) {
	l.v.EachGroup(func(x *realm.Group) {
		if !ok && strings.EqualFold(x.Name, name) {
			g, ok = markdown.Group{ID: int64(x.ID), Name: x.Name, DisplayName: realm.GroupDisplayName(x), Active: !x.Deactivated, System: x.System}, true
		}
	})
	return g, ok
}

func (l *lookup) Channel(name string) (markdown.Channel, bool) {
	c := l.v.FindChannelByName(name)
	if c == nil || !l.v.MaySeeChannel(c) {
		return markdown.Channel{}, false
	}
	return markdown.Channel{ID: int64(c.ID), Name: c.Name}, true
}

func (l *lookup) Topic(channel int64, topic string) (int64, bool) {
	c := l.v.FindChannel(realm.ChannelID(channel))
	if c == nil || !l.v.MayReadChannel(c) {
		return 0, false
	}
	id, ok := l.v.LastInTopic(c.ID, topic)
	return int64(id), ok
}

func (l *lookup) Emoji(string) (markdown.CustomEmoji, bool) { return markdown.CustomEmoji{}, false }

func (l *lookup) Upload(string) (markdown.UploadMeta, bool) { return markdown.UploadMeta{}, false }

// RenderInTurn renders what a system bot says. It may name everything; math and previews would take too long in a turn.
func RenderInTurn(text string, v realm.View) (realm.Body, realm.Content) {
	v.Caller = realm.Caller{System: true}
	r, err := markdown.Render(text, LookupIn(v), &markdown.Options{NoMath: true, NoPreviews: true, Now: time.Unix(v.Now, 0).UTC()})
	if err != nil {
		return realm.Body{Text: text, HTML: plain(text)}, realm.Content{}
	}
	return realm.Body{Text: text, HTML: r.HTML}, contentOf(r)
}

// contentOf is what a rendering found out, in the realm's terms.
func contentOf(r markdown.Result) realm.Content {
	x := realm.Content{ChannelWildcard: r.ChannelWildcard, TopicWildcard: r.TopicWildcard, Link: r.HasLink, Image: r.HasImage,
		Attachment: r.HasAttachment, Me: r.IsMe, Attachments: r.Attachments}
	for _, u := range r.MentionedUsers {
		x.Users = append(x.Users, realm.UserID(u))
	}
	for _, g := range r.MentionedGroups {
		x.Groups = append(x.Groups, realm.GroupID(g))
	}
	return x
}

// Describe renders the description of a channel or folder, as the caller wrote it.
func Describe(text string, v realm.View) string {
	r, err := markdown.Render(text, LookupIn(v), &markdown.Options{NoMath: true, NoPreviews: true, Silent: true, Now: time.Unix(v.Now, 0).UTC()})
	if err != nil {
		return plain(text)
	}
	return r.HTML
}

// plain shows a text that cannot be rendered: harmless, and all of it.
func plain(text string) string {
	text = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(text)
	return "<p>" + strings.ReplaceAll(text, "\n", "<br>\n") + "</p>"
}
