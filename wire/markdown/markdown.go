package markdown

import (
	"errors"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// maxSource is the length of the longest rendered text, in code points: that of the longest message.
	maxSource = 10_000
	// maxGrowth bounds the HTML, in bytes: this many times the longest source.
	maxGrowth = 100
	// maxTime bounds one rendering. Only math and highlighting can take that long.
	maxTime = 5 * time.Second
)

// ErrUnrenderable means that a text exceeds a limit of rendering.
//
//lint:ignore ST1005 clients show this text: the protocol defines it.
var ErrUnrenderable = errors.New("Unable to render message")

// User is a user that a mention refers to.
type User struct {
	ID       int64
	FullName string
	Active   bool
}

// Group is a user group that a mention refers to. DisplayName, if set, is shown instead of Name.
type Group struct {
	ID                int64
	Name, DisplayName string
	Active, System    bool
}

// Channel is a channel that the acting user can link.
type Channel struct {
	ID       int64
	Name     string
	Readable bool // its topics and messages can be linked
}

// CustomEmoji is an active emoji of the organization. Source, if set, is its address; otherwise File is the file name
// of its image.
type CustomEmoji struct {
	ID     int64
	File   string
	Source string
}

// UploadMeta describes an uploaded file. Thumbnailed means that its thumbnails can be fetched.
type UploadMeta struct {
	ContentType   string
	Width, Height int
	Thumbnailed   bool
	Animated      bool
}

// Lookup resolves the references of a text. Its methods have no side effects.
type Lookup interface {
	// UserByName ignores case; if several users have the name it returns one of them.
	UserByName(name string) (User, bool)
	UserByID(id int64) (User, bool)
	// GroupByName finds system groups by their internal name.
	GroupByName(name string) (Group, bool)
	// Channel returns only channels that the acting user can link.
	Channel(name string) (Channel, bool)
	// Topic returns the latest message of a topic that the acting user can access.
	Topic(channel int64, topic string) (latest int64, ok bool)
	// Emoji returns active emoji of the organization.
	Emoji(name string) (CustomEmoji, bool)
	// Upload describes the uploaded file with a path id.
	Upload(pathID string) (UploadMeta, bool)
}

// EmptyLookup is a Lookup without any objects.
type EmptyLookup struct{}

func (EmptyLookup) UserByName(string) (User, bool)    { return User{}, false }
func (EmptyLookup) UserByID(int64) (User, bool)       { return User{}, false }
func (EmptyLookup) GroupByName(string) (Group, bool)  { return Group{}, false }
func (EmptyLookup) Channel(string) (Channel, bool)    { return Channel{}, false }
func (EmptyLookup) Topic(int64, string) (int64, bool) { return 0, false }
func (EmptyLookup) Emoji(string) (CustomEmoji, bool)  { return CustomEmoji{}, false }
func (EmptyLookup) Upload(string) (UploadMeta, bool)  { return UploadMeta{}, false }

// Options configure a rendering.
type Options struct {
	RealmURL            string // absolute, without a final slash: links into the organization become relative
	RealmID             string // part of the paths of emoji images
	EmptyTopicName      string // shown for the topic with the empty name
	DefaultCodeLanguage string // of fenced code without a language
	Emoticons           bool   // translate :) and the like
	InlineImages        bool   // show linked images and videos
	NoExternalImages    bool   // but none of other sites
	// LinkPreviews lists pages to fetch in Result.PreviewURLs and shows those in Previews.
	LinkPreviews bool
	ImageProxy   func(url string) string
	Linkifiers   []Linkifier
	Previews     map[string]Preview // fetched pages by address
	NoPreviews   bool               // no previews of images, videos or pages, for descriptions
	NoMath       bool               // show math as source
	Silent       bool               // no mention notifies, for descriptions
	Now          time.Time          // completes times without a date
}

const defaultEmptyTopic = "general chat"

func (o *Options) emptyTopic() string {
	if o.EmptyTopicName != "" {
		return o.EmptyTopicName
	}
	return defaultEmptyTopic
}

// Result is a rendered text and its effects. Mentions are only those that notify.
type Result struct {
	HTML                             string
	MentionedUsers                   []int64
	MentionedGroups                  []int64
	ChannelWildcard, TopicWildcard   bool
	HasLink, HasImage, HasAttachment bool // HasLink: any link, also to a channel or message
	IsMe                             bool
	Attachments                      []string // path ids of uploads in the text
	PreviewURLs                      []string // pages whose previews could be fetched
}

// renderer is the state of one rendering.
type renderer struct {
	nodePool
	lookup        Lookup
	options       *Options
	result        Result
	placeholders  []*node // finished elements, represented by placeholders in the source text
	indentedCodes []*node
	root          *node
	state         parseState
	depth         int
	started       time.Time // start of the first slow part
	failed        bool
	wordsOnly     bool            // parse fences only to drop code, for alert words
	previewOf     map[*node]*node // the paragraph that each preview follows
}

// Render converts text to HTML.
func Render(text string, lookup Lookup, o *Options) (Result, error) {
	if len(text) > maxSource && utf8.RuneCountInString(text) > maxSource {
		return Result{}, ErrUnrenderable
	}
	r := renderer{lookup: lookup, options: o}
	text = valid(text)
	r.root = r.element(tagRoot)
	r.attachments(text)
	if !blank(text) {
		r.render(text)
	}
	out := r.root.html(make([]byte, 0, len(text)+len(text)/2+128))
	if r.failed || len(out) > maxSource*maxGrowth {
		return Result{}, ErrUnrenderable
	}
	r.result.HTML = strings.TrimSpace(string(out))
	r.result.HasLink = HasLink(r.result.HTML)
	r.result.IsMe = strings.HasPrefix(text, "/me ") && strings.HasPrefix(r.result.HTML, "<p>") &&
		strings.HasSuffix(r.result.HTML, "</p>")
	if o.Silent {
		r.result.MentionedUsers, r.result.MentionedGroups = nil, nil
		r.result.ChannelWildcard, r.result.TopicWildcard = false, false
	}
	return r.result, nil
}

// HasLink reports whether a rendered text has a link. Text is escaped, so only elements begin with the character <.
func HasLink(rendered string) bool { return strings.Contains(rendered, "<a ") }

func valid(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	return strings.ToValidUTF8(text, "\ufffd")
}

func (r *renderer) render(text string) {
	if single := oneParagraph(text); single != "" {
		p := r.element(tagP)
		p.append(r.textNode(kindSource, single))
		r.root.append(p)
	} else {
		text = r.replaceFences(normalize(separateLists(text)))
		r.parseText(r.root, text+"\n\n")
		r.groupSpoilers(r.root)
		r.highlightIndented()
	}
	r.inlineTree(r.root)
	if r.result.HasLink && !r.options.NoPreviews { // so far, only links to other addresses
		r.previews()
	}
}

// oneParagraph returns the text of the paragraph if text is a single line without block syntax, like most messages.
func oneParagraph(text string) string {
	c := text[0]
	if !isAlpha(c) && c != '@' && c != ':' && c < utf8.RuneSelf {
		return ""
	}
	if first, _ := utf8.DecodeRuneInString(text); isBlank(first) {
		return ""
	}
	for i := 0; i < len(text); i++ {
		if text[i] < ' ' {
			return ""
		}
	}
	return text
}

// outOfTime reports whether the slow parts of this rendering have used maxTime.
func (r *renderer) outOfTime() bool {
	if r.started.IsZero() {
		r.started = time.Now()
	}
	return time.Since(r.started) > maxTime
}
