// Package markdown turns the text of messages, topics and descriptions into what clients show.
//
// Render is pure: the same text, Lookup and Options give the same HTML, and any number of goroutines may render at once.
// HTML is written from a tree that can hold nothing but the elements and attributes listed in tree.go; addresses are checked
// against a list of schemes. Work and memory grow linearly with the text; what exceeds a limit is ErrUnrenderable, which callers
// report as "Unable to render message". Rendering happens before the realm's turn: Scan says what a text may refer to, the realm
// answers once, and a Lookup over that answer serves the rendering.
package markdown

import (
	"errors"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// maxSource is the length of the longest text that is rendered, in code points: that of the longest message.
	maxSource = 10_000
	// maxGrowth is how many times the longest text its HTML may be long, in bytes.
	maxGrowth = 100
	// maxTime bounds one rendering. Only math and highlighting can come near it.
	maxTime = 5 * time.Second
)

//lint:ignore ST1005 clients see this text as it is: the protocol words it.

// ErrUnrenderable says that a text exceeds a limit of rendering.
var ErrUnrenderable = errors.New("Unable to render message")

// User is somebody a mention may mean.
type User struct {
	ID       int64
	FullName string
	Active   bool
}

// Group is a user group a mention may mean. DisplayName, if set, is shown in place of Name.
type Group struct {
	ID                int64
	Name, DisplayName string
	Active, System    bool
}

// Channel is a channel the acting user may link.
type Channel struct {
	ID       int64
	Name     string
	Readable bool // only then its topics and messages can be linked
}

// CustomEmoji is an active emoji of the organization. Source, if set, is its address; otherwise File is the name of its image.
type CustomEmoji struct {
	ID     int64
	File   string
	Source string
}

// UploadMeta is what is known of an uploaded file. Thumbnailed says that thumbnails are ready to be fetched.
type UploadMeta struct {
	ContentType   string
	Width, Height int
	Thumbnailed   bool
	Animated      bool
}

// Lookup answers what a text refers to. Its methods are pure.
type Lookup interface {
	// UserByName ignores case; of several users with the name it returns any.
	UserByName(name string) (User, bool)
	UserByID(id int64) (User, bool)
	// GroupByName knows system groups by their internal name.
	GroupByName(name string) (Group, bool)
	// Channel returns only channels the acting user may link.
	Channel(name string) (Channel, bool)
	// Topic returns the latest message of a topic that the acting user can access.
	Topic(channel int64, topic string) (latest int64, ok bool)
	// Emoji returns active emoji of the organization.
	Emoji(name string) (CustomEmoji, bool)
	// Upload describes the uploaded file with a path id.
	Upload(pathID string) (UploadMeta, bool)
}

// Nothing is a Lookup that knows nothing.
type Nothing struct{}

func (Nothing) UserByName(string) (User, bool)    { return User{}, false }
func (Nothing) UserByID(int64) (User, bool)       { return User{}, false }
func (Nothing) GroupByName(string) (Group, bool)  { return Group{}, false }
func (Nothing) Channel(string) (Channel, bool)    { return Channel{}, false }
func (Nothing) Topic(int64, string) (int64, bool) { return 0, false }
func (Nothing) Emoji(string) (CustomEmoji, bool)  { return CustomEmoji{}, false }
func (Nothing) Upload(string) (UploadMeta, bool)  { return UploadMeta{}, false }

// Options say how a text is rendered.
type Options struct {
	RealmURL            string // absolute, without a slash at the end: links into the organization become relative
	RealmID             string // the organization's part of paths of emoji images
	EmptyTopicName      string // shown for the topic without a name
	DefaultCodeLanguage string // of fenced code that names none
	Emoticons           bool   // translate :) and the like
	InlineImages        bool   // show linked images and videos
	LinkPreviews        bool   // list in Result.PreviewURLs which pages are to be fetched, and show those in Previews
	ImageProxy          func(url string) string
	Linkifiers          []Linkifier
	Previews            map[string]Preview // pages that have been fetched, by address
	NoPreviews          bool               // no images, videos or pages at all: descriptions
	NoMath              bool               // show math as source
	Silent              bool               // mention nobody: descriptions
	Now                 time.Time          // completes times that name no date
}

const defaultEmptyTopic = "general chat"

func (o *Options) emptyTopic() string {
	if o.EmptyTopicName != "" {
		return o.EmptyTopicName
	}
	return defaultEmptyTopic
}

// Result is a rendered text and what it does. Mentions are those that notify.
type Result struct {
	HTML                             string
	MentionedUsers                   []int64
	MentionedGroups                  []int64
	ChannelWildcard, TopicWildcard   bool
	HasLink, HasImage, HasAttachment bool
	IsMe                             bool
	Attachments                      []string // path ids of uploads the text names
	PreviewURLs                      []string // pages whose previews could be fetched
}

// renderer is one rendering.
type renderer struct {
	grove
	look          Lookup
	o             *Options
	result        Result
	marked        []*node // finished elements that stand in source text as marks
	indentedCodes []*node
	root          *node
	state         parseState
	depth         int
	started       time.Time // when the first slow part began
	failed        bool
	wordsOnly     bool            // fences are read for their words: code is dropped
	previewOf     map[*node]*node // the paragraph each preview stands behind
}

// Render turns text into HTML.
func Render(text string, look Lookup, o *Options) (Result, error) {
	if len(text) > maxSource && utf8.RuneCountInString(text) > maxSource {
		return Result{}, ErrUnrenderable
	}
	r := renderer{look: look, o: o}
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
	r.result.IsMe = strings.HasPrefix(text, "/me ") && strings.HasPrefix(r.result.HTML, "<p>") &&
		strings.HasSuffix(r.result.HTML, "</p>")
	if o.Silent {
		r.result.MentionedUsers, r.result.MentionedGroups = nil, nil
		r.result.ChannelWildcard, r.result.TopicWildcard = false, false
	}
	return r.result, nil
}

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
		text = r.takeFences(normalize(separateLists(text)))
		r.parseText(r.root, text+"\n\n")
		r.groupSpoilers(r.root)
		r.highlightIndented()
	}
	r.inlineTree(r.root)
	if r.result.HasLink && !r.o.NoPreviews {
		r.previews()
	}
}

// oneParagraph returns the text of a paragraph if text is plainly a single line of one, as most messages are.
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

// outOfTime says that the slow parts of this rendering have used up what they may.
func (r *renderer) outOfTime() bool {
	if r.started.IsZero() {
		r.started = time.Now()
	}
	return time.Since(r.started) > maxTime
}
