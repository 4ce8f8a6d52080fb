package markdown

import "strings"

// Refs are the things a text may refer to. It can name more than the rendered text will show, never less.
type Refs struct {
	Users    []UserRef
	Groups   []string
	Channels []ChannelRef
	Emoji    []string // names between colons
	Wildcard bool     // it may mention everyone
	Uploads  []string // path ids
}

// UserRef names a user. ID is 0 without an id; a reference with an id and a name fits a user with both.
type UserRef struct {
	Name string
	ID   int64
}

// ChannelRef names a channel, and a topic and message of it.
type ChannelRef struct {
	Name     string
	Topic    string
	HasTopic bool
	Message  string
}

// Empty says that rendering needs no answers.
func (r Refs) Empty() bool {
	return len(r.Users) == 0 && len(r.Groups) == 0 && len(r.Channels) == 0 && len(r.Emoji) == 0 && !r.Wildcard &&
		len(r.Uploads) == 0
}

// Scan finds what a text may refer to.
func Scan(text string) (refs Refs) {
	text = valid(text)
	if strings.ContainsAny(text, "\r\t\x00\x02\x03") {
		text = normalize(text)
	}
	f := signsOf(text)
	if f&signAt != 0 {
		for m, ok := findMention(text, 0, 2, anywhere); ok; m, ok = findMention(text, m.start+1, 2, anywhere) {
			refs.user(m.name)
		}
		for m, ok := findMention(text, 0, 1, anywhere); ok; m, ok = findMention(text, m.start+1, 1, anywhere) {
			refs.Groups = append(refs.Groups, m.name)
		}
	}
	if f&signHash != 0 {
		for c, ok := nextChannelRef(text, 0, anywhere); ok; c, ok = nextChannelRef(text, c.start+1, anywhere) {
			refs.channel(c.name)
		}
	}
	if f&signColon != 0 {
		// Every reading of the colons counts: some may be taken by something else before emoji are looked for.
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
	// All of it may also be a channel's name.
	r.Channels = append(r.Channels, c, ChannelRef{Name: ref})
}
