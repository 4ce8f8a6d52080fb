package markdown

import (
	"slices"
	"strconv"
	"strings"
)

// mention is one @**name** or @*name* in a source text.
type mention struct {
	start, end int
	name       string
	silent     bool
}

// nextMention returns the first mention at i or later with the given number of stars.
func nextMention(text string, i, stars int) (mention, bool) {
	return findMention(text, i, stars, opensMention)
}

// anywhere accepts every position, for callers that do not know the preceding text yet.
func anywhere(string, int) bool { return true }

func findMention(text string, i, stars int, opens func(string, int) bool) (mention, bool) {
	for ; i < len(text); i++ {
		n := strings.IndexByte(text[i:], '@')
		if n < 0 {
			break
		}
		i += n
		m := mention{start: i}
		j := i + 1
		if j < len(text) && text[j] == '_' {
			m.silent = true
			j++
		}
		if !strings.HasPrefix(text[j:], "**"[:stars]) || !opens(text, i) {
			continue
		}
		j += stars
		n = strings.IndexByte(text[j:], '*')
		if n < 0 {
			break // no stars are left to close a mention
		}
		if n == 0 || !strings.HasPrefix(text[j+n:], "**"[:stars]) {
			continue
		}
		m.name, m.end = text[j:j+n], j+n+stars
		return m, true
	}
	return mention{}, false
}

// silenceMentions makes the mentions in quoted text silent.
func silenceMentions(text string) string {
	if strings.IndexByte(text, '@') < 0 {
		return text
	}
	for stars := 2; stars >= 1; stars-- {
		e := rewriter{src: text}
		for m, ok := nextMention(text, 0, stars); ok; m, ok = nextMention(text, m.end, stars) {
			if !m.silent {
				e.replace(m.start, m.start+1, "@_")
			}
		}
		text = e.finish()
	}
	return text
}

// channelWildcards and topicWildcard are the words for all members; a user with such a name needs an id.
var channelWildcards = []string{"all", "everyone", "stream", "channel"}

const topicWildcard = "topic"

// mentions replaces @**name**, @**name|id**, @**|id** and their silent forms.
func (r *renderer) mentions(text string) string {
	e := rewriter{src: text}
	for m, ok := nextMention(text, 0, 2); ok; m, ok = nextMention(text, m.end, 2) {
		if n := r.userMention(m); n != nil {
			e.replace(m.start, m.end, r.placeholder(n))
		}
	}
	return e.finish()
}

// mayName reports whether s can be a name: one line, without elements.
func mayName(s string) bool { return !strings.ContainsAny(s, "\n\x02") }

func (r *renderer) userMention(m mention) *node {
	if !mayName(m.name) {
		return nil
	}
	if m.name == topicWildcard || slices.Contains(channelWildcards, m.name) {
		return r.wildcard(m)
	}
	name, id := splitUserRef(m.name)
	if name == "" && id < 0 {
		return nil
	}
	var u User
	var ok bool
	if id >= 0 {
		u, ok = r.lookup.UserByID(id)
		ok = ok && (name == "" || name == u.FullName)
	} else {
		u, ok = r.lookup.UserByName(name)
	}
	if !ok {
		return nil
	}
	class, shown := "user-mention", "@"+u.FullName
	if m.silent || !u.Active {
		class, shown = "user-mention silent", u.FullName
	} else {
		r.result.MentionedUsers = addOnce(r.result.MentionedUsers, u.ID)
	}
	return r.atom(tagSpan, shown, attr{"class", class}, attr{"data-user-id", strconv.FormatInt(u.ID, 10)})
}

func (r *renderer) wildcard(m mention) *node {
	class, shown := "", "@"+m.name
	if m.silent {
		class, shown = " silent", m.name
	}
	if m.name == topicWildcard {
		r.result.TopicWildcard = r.result.TopicWildcard || !m.silent
		return r.atom(tagSpan, shown, attr{"class", "topic-mention" + class})
	}
	r.result.ChannelWildcard = r.result.ChannelWildcard || !m.silent
	return r.atom(tagSpan, shown, attr{"class", "user-mention channel-wildcard-mention" + class},
		attr{"data-user-id", "*"})
}

// splitUserRef splits name|id; id is -1 if it is missing. A name may itself contain a bar.
func splitUserRef(s string) (name string, id int64) {
	i := strings.LastIndexByte(s, '|')
	if i < 0 || i+1 == len(s) {
		return s, -1
	}
	for j := i + 1; j < len(s); j++ {
		if !isDigit(s[j]) {
			return s, -1
		}
	}
	id, err := strconv.ParseInt(s[i+1:], 10, 64)
	if err != nil {
		return "", -1
	}
	return s[:i], id
}

// groups replaces @*name* and its silent form.
func (r *renderer) groups(text string) string {
	e := rewriter{src: text}
	for m, ok := nextMention(text, 0, 1); ok; {
		var g Group
		found := false
		if mayName(m.name) {
			g, found = r.lookup.GroupByName(m.name)
		}
		if !found {
			m, ok = nextMention(text, m.start+1, 1)
			continue
		}
		name := g.Name
		if g.DisplayName != "" {
			name = g.DisplayName
		}
		class, shown := "user-group-mention", "@"+name
		if m.silent || !g.Active {
			class, shown = "user-group-mention silent", name
		} else {
			r.result.MentionedGroups = addOnce(r.result.MentionedGroups, g.ID)
		}
		e.replace(m.start, m.end, r.placeholder(r.atom(tagSpan, shown, attr{"class", class},
			attr{"data-user-group-id", strconv.FormatInt(g.ID, 10)})))
		m, ok = nextMention(text, m.end, 1)
	}
	return e.finish()
}

// atom returns an element with finished text.
func (r *renderer) atom(t tag, text string, attrs ...attr) *node {
	n := r.element(t, attrs...)
	n.append(r.textNode(kindText, text))
	return n
}

func addOnce(ids []int64, id int64) []int64 {
	if slices.Contains(ids, id) {
		return ids
	}
	return append(ids, id)
}

// channelLinks replaces #**channel**, #**channel>topic** and #**channel>topic@message**.
func (r *renderer) channelLinks(text string) string {
	e := rewriter{src: text}
	for i := 0; ; {
		c, ok := nextChannelRef(text, i, opensMention)
		if !ok {
			return e.finish()
		}
		if n := r.channelLink(c.name); n != nil {
			e.replace(c.start, c.end, r.placeholder(n))
			i = c.end
		} else {
			i = c.start + 1
		}
	}
}

// nextChannelRef returns the first #**text** at i or later.
func nextChannelRef(text string, i int, opens func(string, int) bool) (mention, bool) {
	for ; i < len(text); i++ {
		n := strings.Index(text[i:], "#**")
		if n < 0 {
			break
		}
		i += n
		n = strings.IndexByte(text[i+3:], '*')
		if n < 0 {
			break
		}
		end := i + 3 + n
		if n > 0 && strings.HasPrefix(text[end:], "**") && opens(text, i) {
			return mention{start: i, end: end + 2, name: text[i+3 : end]}, true
		}
	}
	return mention{}, false
}

func (r *renderer) channelLink(ref string) *node {
	if name, topic, ok := strings.Cut(ref, ">"); ok && name != "" && mayName(name) {
		if c, found := r.channelNamed(name); found && c.Readable {
			return r.topicLink(c, r.unmark(topic))
		}
	}
	if !mayName(ref) {
		return nil
	}
	c, found := r.channelNamed(ref)
	if !found {
		return nil
	}
	return r.atom(tagA, "#"+c.Name, attr{"class", "stream"}, attr{"data-stream-id", strconv.FormatInt(c.ID, 10)},
		attr{"href", "/#narrow/channel/" + channelSlug(c)})
}

// channelNamed returns the channel of exactly that name: letters have the same case (protocol).
func (r *renderer) channelNamed(name string) (Channel, bool) {
	c, found := r.lookup.Channel(name)
	return c, found && c.Name == name
}

// speechBalloon ends the text of a link to a message.
const speechBalloon = "💬"

func (r *renderer) topicLink(c Channel, topic string) *node {
	href := "/#narrow/channel/" + channelSlug(c) + "/topic/"
	before, after, isMessage := topic, "", false
	if at := strings.LastIndexByte(topic, '@'); at >= 0 && isNumber(topic[at+1:]) {
		before, after, isMessage = topic[:at], topic[at+1:], true
	}
	var a *node
	tail := ""
	if isMessage {
		a = r.element(tagA, attr{"class", "message-link"}, attr{"href", href + encodeHash(before) + "/near/" + after})
		tail = " @ " + speechBalloon
	} else {
		href += encodeHash(topic)
		if latest, ok := r.lookup.Topic(c.ID, topic); ok {
			href += "/with/" + strconv.FormatInt(latest, 10)
		}
		a = r.element(tagA, attr{"class", "stream-topic"}, attr{"data-stream-id", strconv.FormatInt(c.ID, 10)},
			attr{"href", href})
	}
	if before != "" {
		a.append(r.textNode(kindText, "#"+c.Name+" > "+before+tail))
		return a
	}
	a.append(r.textNode(kindText, "#"+c.Name+" > "))
	a.append(r.atom(tagEm, r.options.emptyTopic()))
	if tail != "" {
		a.append(r.textNode(kindText, tail))
	}
	return a
}

func isNumber(s string) bool {
	for i := 0; i < len(s); i++ {
		if !isDigit(s[i]) {
			return false
		}
	}
	return s != ""
}

// channelSlug returns the form of a channel in an address.
func channelSlug(c Channel) string {
	return encodeHash(strconv.FormatInt(c.ID, 10) + "-" + strings.ReplaceAll(c.Name, " ", "-"))
}

// encodeHash percent-encodes a part of an address after #, with dots instead of percent signs.
func encodeHash(s string) string {
	const hex = "0123456789ABCDEF"
	out := make([]byte, 0, len(s)+16)
	for i := 0; i < len(s); i++ {
		if c := s[i]; isAlnum(c) || c == '-' || c == '_' || c == '~' {
			out = append(out, c)
		} else {
			out = append(out, '.', hex[c>>4], hex[c&15])
		}
	}
	return string(out)
}
