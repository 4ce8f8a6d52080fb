package realm

// Dialect is what the organization adds to the markdown of every text: it changes seldom, so renderers keep it prepared
// under its number.
type Dialect struct {
	Version      Seq
	CodeLanguage string // of fenced code that names none
	InlineImages bool
	LinkPreviews bool
	Linkifiers   []LinkifierRule // in the order they apply
	Emoji        []OwnEmoji      // active ones
	AlertWords   []string        // of anybody, folded, each once
	Emoticons    map[UserID]bool // whose :) are to become emoji
}

// LinkifierRule makes links of what a pattern matches.
type LinkifierRule struct{ Pattern, Template string }

// OwnEmoji is an emoji of the organization.
type OwnEmoji struct {
	ID          int64
	Name, File  string
	Deactivated bool
}

// TopicLink is a link that a topic contains.
type TopicLink struct{ Text, URL string }

// calm is a fact that cannot change the dialect; every other one might. Facts that come in great numbers say so, the
// rest need not care.
type calm interface{ calm() }

func (*Ticked) calm()           {}
func (*QueuesCaughtUp) calm()   {}
func (*QueueOpened) calm()      {}
func (*QueueClosed) calm()      {}
func (*MessageSent) calm()      {}
func (*TopicPolicySet) calm()   {}
func (*Subscribed) calm()       {}
func (*Unsubscribed) calm()     {}
func (*TopicPoliciesSet) calm() {}
func (*LeftBehind) calm()       {}
func (*SubscriptionSet) calm()  {}
func (*SubscriptionsSet) calm() {}
func (*HistoryGiven) calm()     {}

// took notes that a fact has been applied.
func (r *Realm) took(f Fact) {
	if _, ok := f.(calm); !ok {
		r.by.dialect = r.seq
	}
}

// DialectVersion is the number of the newest fact that may have changed the dialect.
func (r *Realm) DialectVersion() Seq { return r.by.dialect }

// Dialect copies the organization's dialect out of the realm.
func (r *Realm) Dialect() Dialect {
	d := Dialect{Version: r.by.dialect, CodeLanguage: r.OrgText("default_code_block_language"), InlineImages: r.OrgBool("inline_image_preview"),
		LinkPreviews: r.OrgBool("inline_url_embed_preview"), Linkifiers: r.linkifierRules(), Emoji: r.ownEmoji(), AlertWords: r.everyAlertWord(), Emoticons: map[UserID]bool{}}
	for id, u := range r.users.all() {
		if u.Settings["translate_emoticons"] == true {
			d.Emoticons[id] = true
		}
	}
	return d
}
