package realm

import "reflect"

// MarkdownConfig has the settings of the organization that change how Markdown is rendered. It changes rarely, so
// renderers cache their tables under its Version.
type MarkdownConfig struct {
	Version      Seq
	CodeLanguage string // for fenced code that names no language
	InlineImages bool
	LinkPreviews bool
	// ExternalPictures says whether pictures of other sites are shown, if InlineImages is set.
	ExternalPictures bool
	Linkifiers       []LinkifierRule // in the order in which they apply
	Emoji            []OrgEmoji      // active ones
	AlertWords       []string        // of all users; case-folded, without duplicates
	Emoticons        map[UserID]bool // users whose emoticons such as :) become emoji
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

// markdownNeutral has the facts that cannot change the Markdown configuration, in the order of facts.go. Every other
// fact is assumed to change it. So only frequent facts need a place here: without it they would make renderers rebuild
// their caches too often.
var markdownNeutral = typeSet(
	(*Ticked)(nil), (*Subscribed)(nil), (*Unsubscribed)(nil), (*MessageSent)(nil), (*QueueOpened)(nil),
	(*QueueClosed)(nil), (*TopicPolicySet)(nil), (*QueuesCaughtUp)(nil), (*PeopleSeen)(nil), (*PurgeBegan)(nil),
	(*PurgeStepped)(nil), (*TopicPoliciesSet)(nil), (*LeftBehind)(nil), (*SubscriptionSet)(nil), (*HistoryGiven)(nil),
	(*ChannelVisibilityChanged)(nil), (*ChannelsQuieted)(nil), (*JoinedChannels)(nil), (*LeftChannels)(nil),
	(*ValuesShown)(nil), (*JobStarted)(nil), (*JobAdvanced)(nil), (*ChannelsShown)(nil), (*ReactionAdded)(nil),
	(*ReactionRemoved)(nil), (*SubmessageAdded)(nil), (*MessageUpdated)(nil), (*MessagesHidden)(nil),
	(*HistoryBegins)(nil), (*MessagesDeleted)(nil), (*LinksMarked)(nil), (*DraftsAdded)(nil), (*DraftChanged)(nil),
	(*DraftRemoved)(nil), (*MessageScheduled)(nil), (*ScheduledChanged)(nil), (*ScheduledGone)(nil),
	(*ReminderAdded)(nil), (*ReminderGone)(nil), (*SnippetAdded)(nil), (*SnippetChanged)(nil), (*SnippetRemoved)(nil),
	(*NavigationViewAdded)(nil), (*NavigationViewChanged)(nil), (*NavigationViewRemoved)(nil),
	(*FullMembersGrew)(nil), (*SubscriptionsSet)(nil), (*PushTokensChanged)(nil), (*DeviceAdded)(nil),
	(*DeviceRemoved)(nil), (*DeviceChanged)(nil), (*OutboxJobsAdded)(nil), (*OutboxJobsFinished)(nil),
	(*ShownCleared)(nil), (*PushSecretMade)(nil), (*PushRightsChanged)(nil), (*MessagesArchived)(nil),
	(*MessagesRestored)(nil), (*MessagesPurged)(nil), (*RestoreBegan)(nil), (*HoldAdded)(nil), (*HoldRemoved)(nil),
	(*TextsCompacted)(nil), (*UploadSaved)(nil), (*UploadDeleted)(nil), (*ThumbnailStateChanged)(nil),
	(*JobStopped)(nil), (*BrowserSessionOpened)(nil), (*BrowserSessionRenewed)(nil), (*BrowserSessionsEnded)(nil),
	(*AllBrowserSessionsEnded)(nil), (*ErasureStepped)(nil), (*Audited)(nil), (*AuditDaysSet)(nil),
	(*IdentityLinked)(nil), (*IdentityUnlinked)(nil), (*FactorSet)(nil), (*FactorUsed)(nil), (*FactorRemoved)(nil),
	(*IdentityChanged)(nil), (*HelpSessionOpened)(nil), (*PasskeyAdded)(nil), (*PasskeyUsed)(nil),
	(*PasskeyRenamed)(nil), (*PasskeyRemoved)(nil), (*FactorAppRemoved)(nil), (*ScimTokenAdded)(nil),
	(*ScimTokenRevoked)(nil), (*ScimUserSet)(nil), (*ScimGroupSet)(nil),
)

// typeSet returns the types of facts.
func typeSet(facts ...Fact) map[reflect.Type]struct{} {
	set := make(map[reflect.Type]struct{}, len(facts))
	for _, f := range facts {
		set[reflect.TypeOf(f)] = struct{}{}
	}
	return set
}

// recordApplied records that the last fact may have changed the Markdown configuration.
func (r *Realm) recordApplied(f Fact) {
	if _, ok := markdownNeutral[reflect.TypeOf(f)]; !ok {
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
		LinkPreviews: r.PlaceOpen(PlaceLinkPreviews),

		ExternalPictures: r.PlaceOpen(PlaceExternalPictures),

		Linkifiers: r.linkifierRules(),
		Emoji:      r.activeOrgEmoji(),
		AlertWords: r.allAlertWords(),
		Emoticons:  map[UserID]bool{},
	}
	for id, u := range r.users.all() {
		if u.Settings["translate_emoticons"] == true {
			d.Emoticons[id] = true
		}
	}
	return d
}
