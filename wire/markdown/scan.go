package markdown

import "strings"

// Refs are the references of a text. They can include more than the rendered text shows, but never less.
type Refs struct {
	Users    []UserRef
	Groups   []string
	Channels []ChannelRef
	Emoji    []string // names between colons
	Wildcard bool     // it may contain a wildcard mention
	Uploads  []string // path ids
}

// UserRef refers to a user. ID is 0 without an id; a reference with id and name matches a user with both.
type UserRef struct {
	Name string
	ID   int64
}

// ChannelRef refers to a channel, and to a topic and message in it.
type ChannelRef struct {
	Name     string
	Topic    string
	HasTopic bool
	Message  string
}

// Empty reports whether rendering needs no lookup.
func (r Refs) Empty() bool {
	return len(r.Users) == 0 && len(r.Groups) == 0 && len(r.Channels) == 0 && len(r.Emoji) == 0 && !r.Wildcard &&
		len(r.Uploads) == 0
}

// Scan returns all references of a text.
func Scan(text string) (refs Refs) {
	text = valid(text)
	if strings.ContainsAny(text, "\r\t\x00\x02\x03") {
		text = normalize(text)
	}
	f := triggersOf(text)
	if f&triggerAt != 0 {
		for m, ok := findMention(text, 0, 2, anywhere); ok; m, ok = findMention(text, m.start+1, 2, anywhere) {
			refs.user(m.name)
		}
		for m, ok := findMention(text, 0, 1, anywhere); ok; m, ok = findMention(text, m.start+1, 1, anywhere) {
			refs.Groups = append(refs.Groups, m.name)
		}
	}
	if f&triggerHash != 0 {
		for c, ok := nextChannelRef(text, 0, anywhere); ok; c, ok = nextChannelRef(text, c.start+1, anywhere) {
			refs.channel(c.name)
		}
	}
	if f&triggerColon != 0 {
		// All pairs of colons count: earlier passes may remove some before emoji are parsed.
		for start, end := nextEmojiName(text, 0); start >= 0; start, end = nextEmojiName(text, end-1) {
			refs.Emoji = append(refs.Emoji, text[start+1:end-1])
		}
	}
	if strings.Contains(text, "/user_uploads/") {
		r := renderer{}
		r.attachments(text)
		refs.Uploads = r.result.Attachments
	}
	return refs
}

func (r *Refs) user(name string) {
	if name == topicWildcard {
		r.Wildcard = true
		return
	}
	for _, w := range channelWildcards {
		if name == w {
			r.Wildcard = true
			return
		}
	}
	ref := UserRef{}
	var id int64
	if ref.Name, id = splitUserRef(name); id > 0 {
		ref.ID = id
	}
	r.Users = append(r.Users, ref)
}

func (r *Refs) channel(ref string) {
	name, topic, ok := strings.Cut(ref, ">")
	if !ok {
		r.Channels = append(r.Channels, ChannelRef{Name: ref})
		return
	}
	c := ChannelRef{Name: name, Topic: topic, HasTopic: true}
	if at := strings.LastIndexByte(topic, '@'); at >= 0 && isNumber(topic[at+1:]) {
		c.Topic, c.Message = topic[:at], topic[at+1:]
	}
	// The whole text may also be the name of a channel.
	r.Channels = append(r.Channels, c, ChannelRef{Name: ref})
}
