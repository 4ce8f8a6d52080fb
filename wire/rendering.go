package wire

import (
	"errors"
	"strings"
	"sync"
	"time"

	"parley/actors/realm"
	"parley/wire/markdown"
)

// Renderer turns texts into HTML as each organization's dialect has it. The zero value is ready; any number of
// goroutines may use it. What a text refers to is looked up in one view of the realm; rendering happens outside it.
type Renderer struct {
	dialects sync.Map // realm.ID -> *dialect
}

// dialect is an organization's dialect, prepared: immutable.
type dialect struct {
	version   realm.Seq
	options   markdown.Options
	emoji     map[string]markdown.CustomEmoji
	emoticons map[realm.UserID]bool
	words     []string // anybody is to be alerted of
	alerts    *markdown.AlertMatcher
	compiled  map[realm.LinkifierRule]markdown.Linkifier
}

func (r *Renderer) known(id realm.ID) *dialect {
	if d, ok := r.dialects.Load(id); ok {
		return d.(*dialect)
	}
	return &dialect{}
}

// dialectIn is the dialect as it stands in a view.
func (r *Renderer) dialectIn(v realm.View, site Site) *dialect {
	old := r.known(v.Realm.ID())
	if old.version == v.DialectVersion() && old.version != 0 {
		return old
	}
	return r.prepare(v.Realm.ID(), v.Dialect(), site)
}

// dialectOf is the dialect as it stands now; only a changed one asks the realm.
func (r *Renderer) dialectOf(c *Call) (*dialect, error) {
	if old := r.known(c.Realm); old.version != 0 && old.version >= c.House.Dialect(c.Realm) {
		return old, nil
	}
	d, err := Look(c, func(v realm.View) (realm.Dialect, error) { return v.Dialect(), nil })
	if err != nil {
		return nil, err
	}
	return r.prepare(c.Realm, d, c.Site), nil
}

func (r *Renderer) prepare(id realm.ID, d realm.Dialect, site Site) *dialect {
	old := r.known(id)
	n := &dialect{version: d.Version, emoji: map[string]markdown.CustomEmoji{}, emoticons: d.Emoticons, compiled: map[realm.LinkifierRule]markdown.Linkifier{}}
	n.options = markdown.Options{RealmURL: site.URL, RealmID: realmPath(site), EmptyTopicName: realm.EmptyTopicName, DefaultCodeLanguage: d.CodeLanguage,
		InlineImages: d.InlineImages, LinkPreviews: d.LinkPreviews}
	for _, rule := range d.Linkifiers {
		l, ok := old.compiled[rule]
		if !ok {
			var err error
			if l, err = markdown.CompileLinkifier(rule.Pattern, rule.Template); err != nil {
				continue // it was checked when it was added; one that no longer compiles links nothing
			}
		}
		n.compiled[rule] = l
		n.options.Linkifiers = append(n.options.Linkifiers, l)
	}
	for _, e := range d.Emoji {
		n.emoji[e.Name] = markdown.CustomEmoji{ID: e.ID, File: e.File}
	}
	n.words, n.alerts = d.AlertWords, markdown.NewAlertMatcher(d.AlertWords)
	if old.version <= n.version {
		r.dialects.Store(id, n)
	}
	return n
}

// render turns the text of a message into its body and finds out what it does, with the caller's permissions.
func render(c *Call, text string) (realm.Body, realm.Content, error) {
	return c.Tools.Renderer.message(c, text, c.Caller.User)
}

func (r *Renderer) message(c *Call, text string, author realm.UserID) (realm.Body, realm.Content, error) {
	d, err := r.dialectOf(c)
	if err != nil {
		return realm.Body{}, realm.Content{}, err
	}
	refs := markdown.Scan(text)
	known := &references{dialect: d}
	if len(refs.Users)+len(refs.Groups)+len(refs.Channels)+len(refs.Uploads) > 0 {
		if known, err = Look(c, func(v realm.View) (*references, error) { return resolve(v, refs, d), nil }); err != nil {
			return realm.Body{}, realm.Content{}, err
		}
	}
	return d.render(text, known, author)
}

// errLater: the realm would have to be asked.
var errLater = errors.New("not to be rendered at once")

// atOnce is message for who must not wait: it renders what refers to nothing, in a dialect that is prepared.
func (r *Renderer) atOnce(c *Call, text string) (realm.Body, realm.Content, error) {
	d := r.known(c.Realm)
	if d.version == 0 || d.version < c.House.Dialect(c.Realm) {
		return realm.Body{}, realm.Content{}, errLater
	}
	if refs := markdown.Scan(text); len(refs.Users)+len(refs.Groups)+len(refs.Channels)+len(refs.Uploads) > 0 {
		return realm.Body{}, realm.Content{}, errLater
	}
	return d.render(text, &references{dialect: d}, c.Caller.User)
}

func (d *dialect) render(text string, known *references, author realm.UserID) (realm.Body, realm.Content, error) {
	o := d.options
	o.Emoticons = d.emoticons[author]
	o.Now = time.Now()
	x, err := markdown.Render(text, known, &o)
	if err != nil {
		return realm.Body{}, realm.Content{}, realm.Bad("Unable to render message")
	}
	return realm.Body{Text: text, HTML: x.HTML}, d.content(text, x), nil
}

func (d *dialect) content(text string, x markdown.Result) realm.Content {
	c := contentOf(x)
	for _, i := range d.alerts.Find(text) {
		c.AlertWords = append(c.AlertWords, d.words[i])
	}
	return c
}

// describe renders what is no message: it mentions nobody and shows no previews.
func (d *dialect) describe(text string, known *references) string {
	o := d.options
	o.Silent, o.NoPreviews = true, true
	x, err := markdown.Render(text, known, &o)
	if err != nil {
		return plain(text)
	}
	return x.HTML
}

// Inside renders within a turn, for what the server itself says: it may name everything; math would take too long there.
func (r *Renderer) Inside(text string, v realm.View, site Site) (realm.Body, realm.Content) {
	v.Caller = realm.Caller{System: true}
	d := r.dialectIn(v, site)
	o := *d
	o.options.NoMath, o.options.NoPreviews = true, true
	b, x, err := o.render(text, resolve(v, markdown.Scan(text), d), 0)
	if err != nil {
		return realm.Body{Text: text, HTML: plain(text)}, realm.Content{}
	}
	return b, x
}

// Describe renders a description within a turn.
func (r *Renderer) Describe(text string, v realm.View, site Site) string {
	d := r.dialectIn(v, site)
	return d.describe(text, resolve(v, markdown.Scan(text), d))
}

// Links is the links of a topic as the dialect stands in a view.
func (r *Renderer) Links(topic string, v realm.View, site Site) []realm.TopicLink {
	return r.dialectIn(v, site).links(topic)
}

// linksOf is the links of a topic as the dialect stands now; none if the realm is too busy to say.
func linksOf(c *Call, topic string) []realm.TopicLink {
	d, err := c.Tools.Renderer.dialectOf(c)
	if err != nil || topic == "" {
		return nil
	}
	return d.links(topic)
}

func (d *dialect) links(topic string) []realm.TopicLink {
	var out []realm.TopicLink
	for _, l := range markdown.TopicLinks(topic, &d.options) {
		out = append(out, realm.TopicLink{Text: l.Text, URL: l.URL})
	}
	return out
}

// references is what a text refers to, as the realm answered. It is a markdown.Lookup.
type references struct {
	*dialect
	byName   map[string]markdown.User
	byID     map[int64]markdown.User
	groups   map[string]markdown.Group
	channels map[string]markdown.Channel
	topics   map[topicRef]int64
	uploads  map[string]markdown.UploadMeta
}

type topicRef struct {
	channel int64
	topic   string // folded
}

// maxReferences is how many users, groups, channels or files of one text are looked up: the realm is not to be held by
// one message made of mentions. Later ones stay text.
const maxReferences = 1000

func upTo[T any](list []T) []T { return list[:min(len(list), maxReferences)] }

// resolve answers a text's references with the permissions of the view's caller.
func resolve(v realm.View, refs markdown.Refs, d *dialect) *references {
	k := &references{dialect: d, byName: map[string]markdown.User{}, byID: map[int64]markdown.User{}, groups: map[string]markdown.Group{},
		channels: map[string]markdown.Channel{}, topics: map[topicRef]int64{}, uploads: map[string]markdown.UploadMeta{}}
	for _, ref := range upTo(refs.Users) {
		if u := v.Find(realm.UserID(ref.ID)); u != nil && v.MaySee(u) {
			k.byID[int64(u.ID)] = markdown.User{ID: int64(u.ID), FullName: u.Name, Active: u.Active}
		}
		if u := v.FindByName(ref.Name); u != nil && v.MaySee(u) {
			k.byName[fold(ref.Name)] = markdown.User{ID: int64(u.ID), FullName: u.Name, Active: u.Active}
		}
	}
	for _, name := range upTo(refs.Groups) {
		if g := v.FindGroupByName(name); g != nil {
			k.groups[fold(name)] = markdown.Group{ID: int64(g.ID), Name: g.Name, DisplayName: realm.GroupDisplayName(g), Active: !g.Deactivated, System: g.System}
		}
	}
	for _, ref := range upTo(refs.Channels) {
		c := v.FindChannelByName(ref.Name)
		if c == nil || !v.MaySeeChannel(c) {
			continue
		}
		k.channels[fold(ref.Name)] = markdown.Channel{ID: int64(c.ID), Name: c.Name, Readable: v.MayReadChannel(c)}
		if ref.HasTopic {
			if last := v.LatestIn(c, ref.Topic); last != 0 {
				k.topics[topicRef{int64(c.ID), fold(ref.Topic)}] = int64(last)
			}
		}
	}
	for _, path := range upTo(refs.Uploads) {
		if u, ok := v.UploadAt(path); ok {
			k.uploads[path] = markdown.UploadMeta{ContentType: u.Type, Width: u.Width, Height: u.Height, Thumbnailed: u.Thumbnailed, Animated: u.Animated}
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
	e, ok := k.dialect.emoji[name]
	return e, ok
}

func (k *references) Upload(path string) (markdown.UploadMeta, bool) {
	m, ok := k.uploads[path]
	return m, ok
}
