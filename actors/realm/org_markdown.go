package realm

// MarkdownConfig has the settings of the organization that change how Markdown is rendered. It changes rarely, so
// renderers cache their tables under its Version.
type MarkdownConfig struct {
	Version      Seq
	CodeLanguage string // for fenced code that names no language
	InlineImages bool
	LinkPreviews bool
	Linkifiers   []LinkifierRule // in the order in which they apply
	Emoji        []OrgEmoji      // active ones
	AlertWords   []string        // of all users; case-folded, without duplicates
	Emoticons    map[UserID]bool // users whose emoticons such as :) become emoji
}

// LinkifierRule makes links of text that matches a pattern.
type LinkifierRule struct{ Pattern, Template string }

// OrgEmoji is a custom emoji as the renderer needs it.
type OrgEmoji struct {
	ID          int64
	Name, File  string
	Deactivated bool
}

// TopicLink is a link in the name of a topic.
type TopicLink struct{ Text, URL string }

// markdownNeutral is a fact that cannot change the Markdown configuration. Every other fact is assumed to change it. So
// only facts that are frequent need this marker: without it they would make renderers rebuild their caches too often.
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

// recordApplied records that the last fact may have changed the Markdown configuration.
func (r *Realm) recordApplied(f Fact) {
	if _, ok := f.(markdownNeutral); !ok {
		r.index.markdownConfigSeq = r.seq
	}
}

// MarkdownConfigVersion returns the number of the newest fact that may have changed the Markdown configuration.
func (r *Realm) MarkdownConfigVersion() Seq { return r.index.markdownConfigSeq }

// MarkdownConfig returns a copy of the organization's Markdown configuration.
func (r *Realm) MarkdownConfig() MarkdownConfig {
	d := MarkdownConfig{
		Version:      r.index.markdownConfigSeq,
		CodeLanguage: r.OrgText("default_code_block_language"),
		InlineImages: r.OrgBool("inline_image_preview"),
		LinkPreviews: r.OrgBool("inline_url_embed_preview"),
		Linkifiers:   r.linkifierRules(),
		Emoji:        r.activeOrgEmoji(),
		AlertWords:   r.allAlertWords(),
		Emoticons:    map[UserID]bool{},
	}
	for id, u := range r.users.all() {
		if u.Settings["translate_emoticons"] == true {
			d.Emoticons[id] = true
		}
	}
	return d
}
