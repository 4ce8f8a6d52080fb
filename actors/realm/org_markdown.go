package realm

// MarkdownConfig is what the organization adds to the markdown of every text: it changes seldom, so renderers keep it prepared
// under its number.
type MarkdownConfig struct {
	Version      Seq
	CodeLanguage string // of fenced code that names none
	InlineImages bool
	LinkPreviews bool
	Linkifiers   []LinkifierRule // in the order they apply
	Emoji        []OrgEmoji      // active ones
	AlertWords   []string        // of anybody, folded, each once
	Emoticons    map[UserID]bool // whose :) are to become emoji
}

// LinkifierRule makes links of what a pattern matches.
type LinkifierRule struct{ Pattern, Template string }

// OrgEmoji is an emoji of the organization.
type OrgEmoji struct {
	ID          int64
	Name, File  string
	Deactivated bool
}

// TopicLink is a link that a topic contains.
type TopicLink struct{ Text, URL string }

// markdownNeutral is a fact that cannot change the dialect; every other one might. Facts that come in great numbers say so, the
// rest need not care.
type markdownNeutral interface{ keepsMarkdownConfig() }

func (*Ticked) keepsMarkdownConfig()           {}
func (*QueuesCaughtUp) keepsMarkdownConfig()   {}
func (*QueueOpened) keepsMarkdownConfig()      {}
func (*QueueClosed) keepsMarkdownConfig()      {}
func (*MessageSent) keepsMarkdownConfig()      {}
func (*TopicPolicySet) keepsMarkdownConfig()   {}
func (*Subscribed) keepsMarkdownConfig()       {}
func (*Unsubscribed) keepsMarkdownConfig()     {}
func (*TopicPoliciesSet) keepsMarkdownConfig() {}
func (*LeftBehind) keepsMarkdownConfig()       {}
func (*SubscriptionSet) keepsMarkdownConfig()  {}
func (*SubscriptionsSet) keepsMarkdownConfig() {}
func (*HistoryGiven) keepsMarkdownConfig()     {}

// noteApplied notes that a fact has been applied.
func (r *Realm) noteApplied(f Fact) {
	if _, ok := f.(markdownNeutral); !ok {
		r.index.markdownConfigSeq = r.seq
	}
}

// MarkdownConfigVersion is the number of the newest fact that may have changed the dialect.
func (r *Realm) MarkdownConfigVersion() Seq { return r.index.markdownConfigSeq }

// MarkdownConfig copies the organization's dialect out of the realm.
func (r *Realm) MarkdownConfig() MarkdownConfig {
	d := MarkdownConfig{Version: r.index.markdownConfigSeq, CodeLanguage: r.OrgText("default_code_block_language"), InlineImages: r.OrgBool("inline_image_preview"),
		LinkPreviews: r.OrgBool("inline_url_embed_preview"), Linkifiers: r.linkifierRules(), Emoji: r.activeOrgEmoji(), AlertWords: r.allAlertWords(), Emoticons: map[UserID]bool{}}
	for id, u := range r.users.all() {
		if u.Settings["translate_emoticons"] == true {
			d.Emoticons[id] = true
		}
	}
	return d
}
