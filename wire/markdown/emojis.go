package markdown

import (
	"strings"
	"unicode/utf8"

	"parley/wire/markdown/emoji"
)

// emojiNames replaces :name: by the emoji.
func (r *renderer) emojiNames(text string) string {
	e := rewriter{src: text}
	for i := 0; ; {
		start, end := nextEmojiName(text, i)
		if start < 0 {
			return e.finish()
		}
		if n := r.namedEmoji(text[start+1 : end-1]); n != nil {
			e.replace(start, end, r.placeholder(n))
		}
		i = end
	}
}

// nextEmojiName returns the first :name: at i or later, known or not.
func nextEmojiName(text string, i int) (start, end int) {
	for i < len(text) {
		n := strings.IndexByte(text[i:], ':')
		if n < 0 {
			break
		}
		i += n
		p := i + 1
		for p < len(text) {
			c, n := rune(text[p]), 1
			if c >= utf8.RuneSelf {
				c, n = utf8.DecodeRuneInString(text[p:])
			}
			if !isWord(c) && c != '-' && c != '+' {
				break
			}
			p += n
		}
		if p > i+1 && p < len(text) && text[p] == ':' {
			return i, p + 1
		}
		i = p
	}
	return -1, -1
}

// extraEmoji is an emoji of every organization besides the Unicode ones; clients bring its image.
const (
	extraEmoji       = "zulip"
	extraEmojiSource = "/static/generated/emoji/images/emoji/unicode/zulip.png"
)

func (r *renderer) namedEmoji(name string) *node {
	if c, ok := r.lookup.Emoji(name); ok {
		src := c.Source
		if src == "" {
			src = "/user_avatars/" + r.options.RealmID + "/emoji/images/" + c.File
		}
		return r.emojiImage(name, src)
	}
	if name == extraEmoji {
		return r.emojiImage(name, extraEmojiSource)
	}
	if code, ok := emoji.CodeOf(name); ok {
		return r.emojiSpan(name, code)
	}
	return nil
}

func (r *renderer) emojiImage(name, src string) *node {
	return r.element(tagImg, attr{"alt", ":" + name + ":"}, attr{"class", "emoji"}, attr{"src", src},
		attr{"title", strings.ReplaceAll(name, "_", " ")})
}

func (r *renderer) emojiSpan(name, code string) *node {
	title := strings.ReplaceAll(name, "_", " ")
	return r.atom(tagSpan, ":"+name+":", attr{"aria-label", title}, attr{"class", "emoji emoji-" + code},
		attr{"role", "img"}, attr{"title", title})
}

// emoticons are the emoticons that are translated if the user wants it.
var emoticons = map[string]string{
	":)": "smile", "(:": "smile", ":(": "frown", "<3": "heart", ":|": "neutral", ":/": "confused", ";)": "wink",
	":D": "grinning",
	":o": "open_mouth", ":O": "open_mouth", ":p": "stuck_out_tongue", ":P": "stuck_out_tongue",
}

// besideEmoticon are the characters that can be next to an emoticon.
const besideEmoticon = ",.;?!()[] \"'\n\t"

func (r *renderer) emoticons(text string) string {
	e := rewriter{src: text}
	for i := 0; i+1 < len(text); i++ {
		if triggerOfByte[text[i]]&triggerSmile == 0 {
			continue
		}
		name, ok := emoticons[text[i:i+2]]
		if !ok || i > 0 && (strings.IndexByte(besideEmoticon, text[i-1]) < 0 || endsEntity(text[:i])) ||
			i+2 < len(text) && strings.IndexByte(besideEmoticon, text[i+2]) < 0 {
			continue
		}
		if code, ok := emoji.CodeOf(name); ok {
			e.replace(i, i+2, r.placeholder(r.emojiSpan(name, code)))
			i++
		}
	}
	return e.finish()
}

// emojiCharacters replaces emoji characters by emoji elements.
func (r *renderer) emojiCharacters(text string) string {
	e := rewriter{src: text}
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf && (c < '#' || c > '9' || c != '#' && c != '*' && c < '0') {
			i++
			continue
		}
		n, found := emoji.Next(text[i:])
		if found != nil {
			e.replace(i, i+n, r.placeholder(r.emojiSpan(found.Names[0], found.Code)))
		}
		if n == 0 {
			_, n = utf8.DecodeRuneInString(text[i:])
		}
		i += n
	}
	return e.finish()
}
