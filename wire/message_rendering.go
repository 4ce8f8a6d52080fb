package wire

import (
	"errors"
	"maps"
	"strings"
	"sync"
	"time"

	"parley/actors/realm"
	"parley/wire/markdown"
)

// Renderer renders Markdown to HTML with each organization's configuration. The zero value is ready to use. It is
// safe for concurrent use. References in a text are resolved in one view of the realm; rendering itself runs outside
// the realm.
type Renderer struct {
	// ProxyPicture returns the address at which clients load a picture of another site; nil: they load it there. It is
	// set before the first rendering.
	ProxyPicture func(address string) string

	configs sync.Map // realm.ID -> *markdownConfig
}

// markdownConfig is the compiled Markdown configuration of an organization. It is immutable.
type markdownConfig struct {
	version    realm.Seq
	options    markdown.Options
	emoji      map[string]markdown.CustomEmoji
	emoticons  map[realm.UserID]bool
	alertWords []string // alert words of all users
	alerts     *markdown.AlertMatcher
	compiled   map[realm.LinkifierRule]markdown.Linkifier
}

func (r *Renderer) cachedConfig(id realm.ID) *markdownConfig {
	if d, ok := r.configs.Load(id); ok {
		return d.(*markdownConfig)
	}
	return &markdownConfig{}
}

// ForgetRealm drops the cached configuration of a realm.
func (r *Renderer) ForgetRealm(id realm.ID) { r.configs.Delete(id) }

// configInView returns the configuration at the time of a view.
func (r *Renderer) configInView(v realm.View, site Site) *markdownConfig {
	old := r.cachedConfig(v.Realm.ID())
	if old.version == v.MarkdownConfigVersion() && old.version != 0 {
		return old
	}
	return r.compile(v.Realm.ID(), v.MarkdownConfig(), site)
}

// currentConfig returns the current configuration. It reads the realm only if the configuration has changed.
func (r *Renderer) currentConfig(c *Call) (*markdownConfig, error) {
	if old := r.cachedConfig(c.Realm); old.version != 0 && old.version >= c.Server.MarkdownConfigSeq(c.Realm) {
		return old, nil
	}
	d, err := Read(c, func(v realm.View) (realm.MarkdownConfig, error) { return v.MarkdownConfig(), nil })
	if err != nil {
		return nil, err
	}
	return r.compile(c.Realm, d, c.Site), nil
}

// compile compiles a configuration, reusing compiled linkifiers, and caches it unless a newer one is cached.
func (r *Renderer) compile(id realm.ID, d realm.MarkdownConfig, site Site) *markdownConfig {
	old := r.cachedConfig(id)
	n := &markdownConfig{version: d.Version, emoji: map[string]markdown.CustomEmoji{}, emoticons: d.Emoticons,
		compiled: map[realm.LinkifierRule]markdown.Linkifier{}}
	n.options = markdown.Options{
		RealmURL:            site.URL,
		RealmID:             realmPath(site),
		EmptyTopicName:      realm.EmptyTopicName,
		DefaultCodeLanguage: d.CodeLanguage,
		InlineImages:        d.InlineImages,
		NoExternalImages:    !d.ExternalPictures,
		LinkPreviews:        d.LinkPreviews,
		ImageProxy:          r.ProxyPicture,
	}
	for _, rule := range d.Linkifiers {
		l, ok := old.compiled[rule]
		if !ok {
			var err error
			if l, err = markdown.CompileLinkifier(rule.Pattern, rule.Template); err != nil {
				continue // checked when it was added; if it no longer compiles it is skipped
			}
		}
		n.compiled[rule] = l
		n.options.Linkifiers = append(n.options.Linkifiers, l)
	}
	for _, e := range d.Emoji {
		n.emoji[e.Name] = markdown.CustomEmoji{ID: e.ID, File: e.File}
	}
	n.alertWords, n.alerts = d.AlertWords, markdown.NewAlertMatcher(d.AlertWords)
	if old.version <= n.version {
		r.configs.Store(id, n)
	}
	return n
}

// render renders the text of a message with the caller's permissions. It returns the body and the mentions, links and
// other content of the text.
func render(c *Call, text string) (realm.Body, realm.ContentInfo, error) {
	return c.Tools.Renderer.renderMessage(c, text, c.Caller.User)
}

func (r *Renderer) renderMessage(c *Call, text string, author realm.UserID) (realm.Body, realm.ContentInfo, error) {
	d, err := r.currentConfig(c)
	if err != nil {
		return realm.Body{}, realm.ContentInfo{}, err
	}
	refs := markdown.Scan(text)
	known := &references{markdownConfig: d}
	if len(refs.Users)+len(refs.Groups)+len(refs.Channels)+len(refs.Uploads) > 0 {
		if known, err = Read(c, func(v realm.View) (*references, error) {
			return resolveReferences(v, refs, d), nil
		}); err != nil {
			return realm.Body{}, realm.ContentInfo{}, err
		}
	}
	return d.render(text, known, author)
}

// errMustWait means that rendering needs to read the realm.
var errMustWait = errors.New("rendering must wait for the realm")

// renderWithoutWaiting is renderMessage for callers that must not wait. It renders texts without references if the
// configuration is cached, else it returns errMustWait.
func (r *Renderer) renderWithoutWaiting(c *Call, text string) (realm.Body, realm.ContentInfo, error) {
	d := r.cachedConfig(c.Realm)
	if d.version == 0 || d.version < c.Server.MarkdownConfigSeq(c.Realm) {
		return realm.Body{}, realm.ContentInfo{}, errMustWait
	}
	if refs := markdown.Scan(text); len(refs.Users)+len(refs.Groups)+len(refs.Channels)+len(refs.Uploads) > 0 {
		return realm.Body{}, realm.ContentInfo{}, errMustWait
	}
	return d.render(text, &references{markdownConfig: d}, c.Caller.User)
}

func (d *markdownConfig) render(
	text string, known *references, author realm.UserID,
) (realm.Body, realm.ContentInfo, error) {
	o := d.options
	o.Emoticons = d.emoticons[author]
	o.Now = time.Now()
	x, err := markdown.Render(text, known, &o)
	if err != nil {
		return realm.Body{}, realm.ContentInfo{}, realm.BadRequest("Unable to render message")
	}
	return realm.Body{Text: text, HTML: x.HTML}, d.content(text, x), nil
}

func (d *markdownConfig) content(text string, x markdown.Result) realm.ContentInfo {
	c := contentFromResult(x)
	for _, i := range d.alerts.Find(text) {
		c.AlertWords = append(c.AlertWords, d.alertWords[i])
	}
	return c
}

// describe renders text that is not a message: it mentions no users and shows no previews.
func (d *markdownConfig) describe(text string, known *references) string {
	o := d.options
	o.Silent, o.NoPreviews = true, true
	x, err := markdown.Render(text, known, &o)
	if err != nil {
		return escapeAsHTML(text)
	}
	return x.HTML
}

// RenderInTurn renders a message of the server itself within a turn, with access to all references. It renders no
// math, which would take too long in a turn.
func (r *Renderer) RenderInTurn(text string, v realm.View, site Site) (realm.Body, realm.ContentInfo) {
	v.Caller = realm.Caller{System: true}
	d := r.configInView(v, site)
	o := *d
	o.options.NoMath, o.options.NoPreviews = true, true
	b, x, err := o.render(text, resolveReferences(v, markdown.Scan(text), d), 0)
	if err != nil {
		return realm.Body{Text: text, HTML: escapeAsHTML(text)}, realm.ContentInfo{}
	}
	return b, x
}

// ImportedText is a text of an organization that is being imported.
type ImportedText struct {
	Text   string
	Author realm.UserID
	// Newest returns the newest message of a topic when the text was sent, 0 if there was none.
	Newest func(channel realm.ChannelID, topic string) realm.MessageID
	// AsActive says that deactivated users, groups and emoji were active when the text was sent.
	AsActive bool
	// Mentions are users whom the text mentions by a name that may not be theirs now, because it changed or because the
	// account is deleted.
	Mentions []ImportedMention
}

// ImportedMention is a mention of a user by their name when the text was sent.
type ImportedMention struct {
	User realm.UserID
	Name string
	ID   int64 // the id of the user on the server of the archive, as in @**Name|ID**
}

// RenderImported renders a text as if its author had sent it, with the permissions of the view's caller. Several
// goroutines may call it with the same view.
func (r *Renderer) RenderImported(t ImportedText, v realm.View, site Site) (realm.Body, realm.ContentInfo, error) {
	d := r.configInView(v, site)
	refs := markdown.Scan(t.Text)
	k := resolveReferences(v, refs, d)
	if t.Newest != nil {
		for _, ref := range firstReferences(refs.Channels) {
			if c, known := k.channels[fold(ref.Name)]; known && ref.HasTopic && c.Readable {
				if id := t.Newest(realm.ChannelID(c.ID), ref.Topic); id != 0 {
					k.topics[topicRef{c.ID, fold(ref.Topic)}] = int64(id)
				}
			}
		}
	}
	k.nameMentions(v, refs.Users, t.Mentions)
	if t.AsActive {
		k.activate(v)
	}
	return d.render(t.Text, k, t.Author)
}

// nameMentions lets the references to users find those of the mentions by their names in the text.
func (k *references) nameMentions(v realm.View, refs []markdown.UserRef, mentions []ImportedMention) {
	for _, ref := range firstReferences(refs) {
		for _, m := range mentions {
			u := v.Find(m.User)
			if u == nil || !v.MaySeeUser(u) {
				continue
			}
			named := markdown.User{ID: int64(u.ID), FullName: m.Name, Active: u.Active}
			switch sameName := fold(ref.Name) == fold(m.Name); {
			case ref.ID == m.ID && (sameName || ref.Name == ""):
				k.byID[ref.ID] = named
			case ref.ID == 0 && sameName:
				k.byName[fold(ref.Name)] = named
			}
		}
	}
}

// activate makes the deactivated users, groups and emoji of the references active.
func (k *references) activate(v realm.View) {
	for name, u := range k.byName {
		u.Active = true
		k.byName[name] = u
	}
	for id, u := range k.byID {
		u.Active = true
		k.byID[id] = u
	}
	for name, g := range k.groups {
		g.Active = true
		k.groups[name] = g
	}
	known := *k.markdownConfig
	known.emoji = maps.Clone(known.emoji)
	for _, e := range v.CustomEmojis() {
		if _, active := known.emoji[e.Name]; !active {
			known.emoji[e.Name] = markdown.CustomEmoji{ID: e.ID, File: e.File()}
		}
	}
	k.markdownConfig = &known
}

// RenderDescription renders a description within a turn.
func (r *Renderer) RenderDescription(text string, v realm.View, site Site) string {
	d := r.configInView(v, site)
	return d.describe(text, resolveReferences(v, markdown.Scan(text), d))
}

// TopicLinks returns the links of a topic with the configuration at the time of a view.
func (r *Renderer) TopicLinks(topic string, v realm.View, site Site) []realm.TopicLink {
	return r.configInView(v, site).links(topic)
}

// topicLinksOf returns the links of a topic with the current configuration; none if the realm is too busy to answer.
func topicLinksOf(c *Call, topic string) []realm.TopicLink {
	d, err := c.Tools.Renderer.currentConfig(c)
	if err != nil || topic == "" {
		return nil
	}
	return d.links(topic)
}

func (d *markdownConfig) links(topic string) []realm.TopicLink {
	var out []realm.TopicLink
	for _, l := range markdown.TopicLinks(topic, &d.options) {
		out = append(out, realm.TopicLink{Text: l.Text, URL: l.URL})
	}
	return out
}

// references holds the resolved references of a text. It implements markdown.Lookup.
type references struct {
	*markdownConfig
	byName   map[string]markdown.User
	byID     map[int64]markdown.User
	groups   map[string]markdown.Group
	channels map[string]markdown.Channel
	topics   map[topicRef]int64
	uploads  map[string]markdown.UploadMeta
}

type topicRef struct {
	channel int64
	topic   string // in lower case
}

// maxReferences is how many users, groups, channels or files of one text are looked up, so that one message full of
// mentions cannot block the realm. Later references stay plain text.
const maxReferences = 1000

func firstReferences[T any](list []T) []T { return list[:min(len(list), maxReferences)] }

// resolveReferences looks up the references of a text with the permissions of the view's caller.
func resolveReferences(v realm.View, refs markdown.Refs, d *markdownConfig) *references {
	k := &references{
		markdownConfig: d,
		byName:         map[string]markdown.User{},
		byID:           map[int64]markdown.User{},
		groups:         map[string]markdown.Group{},
		channels:       map[string]markdown.Channel{},
		topics:         map[topicRef]int64{},
		uploads:        map[string]markdown.UploadMeta{},
	}
	for _, ref := range firstReferences(refs.Users) {
		if u := v.Find(realm.UserID(ref.ID)); u != nil && v.MaySeeUser(u) {
			k.byID[int64(u.ID)] = markdown.User{ID: int64(u.ID), FullName: u.Name, Active: u.Active}
		}
		if u := v.FindByName(ref.Name); u != nil && v.MaySeeUser(u) {
			k.byName[fold(ref.Name)] = markdown.User{ID: int64(u.ID), FullName: u.Name, Active: u.Active}
		}
	}
	for _, name := range firstReferences(refs.Groups) {
		if g := v.FindGroupByName(name); g != nil {
			k.groups[fold(name)] = markdown.Group{ID: int64(g.ID), Name: g.Name, DisplayName: realm.GroupDisplayName(g),
				Active: !g.Deactivated, System: g.System}
		}
	}
	for _, ref := range firstReferences(refs.Channels) {
		c := v.FindChannelByName(ref.Name)
		if c == nil || !v.MaySeeChannel(c) {
			continue
		}
		k.channels[fold(ref.Name)] = markdown.Channel{ID: int64(c.ID), Name: c.Name, Readable: v.MayReadChannel(c)}
		if ref.HasTopic {
			if last := v.LatestReadableIn(c, ref.Topic); last != 0 {
				k.topics[topicRef{int64(c.ID), fold(ref.Topic)}] = int64(last)
			}
		}
	}
	for _, path := range firstReferences(refs.Uploads) {
		if u, ok := v.RenderableUpload(path); ok {
			k.uploads[path] = markdown.UploadMeta{ContentType: u.Type, Width: u.Width, Height: u.Height,
				Thumbnailed: u.Thumbnailed, Animated: u.Animated}
		}
	}
	return k
}

func fold(s string) string { return strings.ToLower(s) }

func (k *references) UserByName(name string) (markdown.User, bool) {
	u, ok := k.byName[fold(name)]
	return u, ok
}

func (k *references) UserByID(id int64) (markdown.User, bool) {
	u, ok := k.byID[id]
	return u, ok
}

func (k *references) GroupByName(name string) (markdown.Group, bool) {
	g, ok := k.groups[fold(name)]
	return g, ok
}

func (k *references) Channel(name string) (markdown.Channel, bool) {
	c, ok := k.channels[fold(name)]
	return c, ok
}

func (k *references) Topic(channel int64, topic string) (int64, bool) {
	id, ok := k.topics[topicRef{channel, fold(topic)}]
	return id, ok
}

func (k *references) Emoji(name string) (markdown.CustomEmoji, bool) {
	e, ok := k.markdownConfig.emoji[name]
	return e, ok
}

func (k *references) Upload(path string) (markdown.UploadMeta, bool) {
	m, ok := k.uploads[path]
	return m, ok
}
