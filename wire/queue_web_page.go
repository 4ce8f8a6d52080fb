package wire

import (
	"maps"
	"strings"

	"parley/actors/realm"
	"parley/wire/form"
)

// WebPageForm is a request for the page of the web app.
type WebPageForm struct {
	// Language is the language of the address or of a visitor's browser. LanguageInPath says that it is from the
	// address: then it counts even if the user prefers another one.
	Language       string
	LanguageInPath bool
	// Channel and Topic limit the page to a channel, or a topic of it; "" for all.
	Channel, Topic string
	// Deferred leaves the state out: the page registers on its own.
	Deferred bool
	// LanguageCookie is the name of the cookie in which the page stores the language of a visitor.
	LanguageCookie string
	// Languages is the JSON list of the page's languages. Translations returns those of a language, as a JSON object,
	// and the language's code, which is that of English if the page does not have the language.
	Languages    []byte
	Translations func(language string) (code string, translations []byte)
}

// WebPage is the data of the page of the web app.
type WebPage struct {
	Organization string
	Description  string // of the organization, without Markdown rendered
	Language     string // code
	ColorScheme  int    // protocol
	Spectators   bool   // visitors without an account can read some channels
	Params       []byte // JSON

	descriptionHTML string
}

// historyDaysOfWebApp is for how many days the web app shows when a user was last online.
const historyDaysOfWebApp = 365

// webCapabilities are the capabilities of the web app.
var webCapabilities = capsForm{NotificationNull: true, BulkDeletion: true, AvatarOptional: true, ChannelTyping: true,
	SettingsObject: true, LinkifierTemplate: true, UserListIncomplete: true, DeactivatedGroups: true,
	ArchivedChannels: true, EmptyTopic: true, SimplifiedPresence: true}

// narrowedPage is a page that is limited to a channel, or a topic of it.
type narrowedPage struct {
	channel, topic string
	newest         realm.MessageID
}

// OpenWebPage returns the page of the web app with the state of the caller, whose event queue it opens. Visitors
// without an account get it only if the organization has channels for them. Otherwise they have to log in: the error is
// that of a request without credentials.
func OpenWebPage(c *Call, f WebPageForm) (p WebPage, err error) {
	var narrow *narrowedPage
	if p, err = Read(c, func(v realm.View) (WebPage, error) {
		page := webPageOf(v, f)
		if c.Account == nil && !page.Spectators {
			return p, realm.ErrNotLoggedIn()
		}
		narrow = f.narrow(v)
		return page, nil
	}); err != nil {
		return p, err
	}
	var translations []byte
	p.Language, translations = f.Translations(p.Language)
	params := pageParams{Language: p.Language, Translations: translations, Languages: f.Languages,
		Description: p.descriptionHTML, NoEmail: c.Tools.Emails == nil, Spectator: c.Account == nil,
		PresenceDays: historyDaysOfWebApp, NoQueue: c.Account == nil || f.Deferred}
	if c.Account == nil {
		params.LanguageCookie, params.ReadTime = f.LanguageCookie, nowWithFraction(c)
	}
	if !params.NoQueue {
		if params.State, err = webState(c, narrow); err != nil {
			return p, err
		}
	}
	if narrow != nil {
		narrow.addTo(&params)
	}
	p.Params = encode(params)
	return p, nil
}

// HasSpectators reports whether visitors without an account can read a channel.
func HasSpectators(v realm.View) (yes bool) {
	if v.SpectatorsAllowed() {
		v.EachChannel(func(c *realm.Channel) { yes = yes || c.WebPublic && !c.Archived })
	}
	return yes
}

// webPageOf returns the page without its parameters.
func webPageOf(v realm.View, f WebPageForm) WebPage {
	o := v.Org()
	p := WebPage{Organization: o.Name, Description: o.Description, Language: f.Language, ColorScheme: 1,
		Spectators: HasSpectators(v), descriptionHTML: o.DescriptionHTML}
	if me := v.Me(); me != nil {
		p.ColorScheme = int(me.IntSetting("color_scheme"))
		if !f.LanguageInPath {
			p.Language = me.TextSetting("default_language")
		}
	} else if p.Language == "" {
		p.Language = v.OrgText("default_language")
	}
	return p
}

// narrow returns the channel to which the page is limited, nil if it is not, or if the caller cannot read that channel.
func (f *WebPageForm) narrow(v realm.View) *narrowedPage {
	if f.Channel == "" || v.Me() == nil {
		return nil
	}
	c := v.FindChannelByName(f.Channel)
	if c == nil || !v.MayReadChannel(c) {
		return nil
	}
	n := narrowedPage{channel: c.Name, topic: f.Topic, newest: v.NewestVisibleIn(c.ID)}
	if n.newest == 0 {
		n.newest = -1
	}
	return &n
}

// terms returns the narrow of the page's event queue, as pairs of operator and operand.
func (n *narrowedPage) terms() [][2]string {
	terms := [][2]string{{"stream", n.channel}}
	if n.topic != "" {
		terms = append(terms, [2]string{"topic", n.topic})
	}
	return terms
}

// addTo adds the parameters of a narrowed page.
func (n *narrowedPage) addTo(params *pageParams) {
	params.Channel, params.Topic = n.channel, n.topic
	params.Narrow = each(n.terms(), func(t [2]string) pageTerm { return pageTerm{t[0], t[1]} })
}

// changeState lets a narrowed page begin at the newest message of its channel, without notifications: the user has
// another page for them.
func (n *narrowedPage) changeState(r *registration) {
	r.MaxMessage = ptr(int64(n.newest))
	settings := maps.Clone(r.UserSettings.Values.Settings)
	if settings == nil {
		settings = map[string]any{}
	}
	settings["enable_desktop_notifications"] = false
	r.UserSettings.preferences = newPreferences(settings)
}

// pageParams is the parameters of the page, for bundles of all versions: each ignores those that it does not know. The
// fields without a comment about their value are always false.
type pageParams struct {
	_               struct{}   `const:"page_type=home login_page=/login/ apps_page_url=https://zulip.com/apps/"`
	State           any        `json:"state_data"` // the registration; null: the page registers on its own, if at all
	NoQueue         bool       `json:"no_event_queue"`
	Spectator       bool       `json:"is_spectator"`                   // the visitor has no account
	ReadTime        float64    `json:"furthest_read_time" zero:"null"` // now, for spectators
	Language        string     `json:"request_language"`
	Languages       rawJSON    `json:"language_list"`
	LanguageCookie  string     `json:"language_cookie_name,omitzero"` // for spectators
	Translations    rawJSON    `json:"translation_data"`
	Description     string     `json:"realm_rendered_description"`
	Channel         string     `json:"narrow_stream,omitzero"` // of a narrowed page, as are the next two
	Topic           string     `json:"narrow_topic,omitzero"`
	Narrow          []pageTerm `json:"narrow,omitzero"`
	NoEmail         bool       `json:"warn_no_email"`
	PresenceDays    int        `json:"presence_history_limit_days_for_web_app"`
	Development     bool       `json:"development_environment"`
	Testing         bool       `json:"test_suite"`
	OldDesktopApp   bool       `json:"insecure_desktop_app"`
	TwoFactor       bool       `json:"two_fa_enabled"`
	TwoFactorUser   bool       `json:"two_fa_enabled_user"`
	Corporate       bool       `json:"corporate_enabled"`
	EmbeddedBots    bool       `json:"embedded_bots_enabled"`
	Sponsoring      bool       `json:"promote_sponsoring_zulip"`
	Webathena       bool       `json:"show_webathena"`
	TryModal        bool       `json:"show_try_zulip_modal"`
	EligiblePricing bool       `json:"non_workplace_pricing_eligible"`
	DiscountedPlan  bool       `json:"is_cloud_realm_with_discounted_plan"`
}

type pageTerm struct {
	Operator string `json:"operator"`
	Operand  string `json:"operand"`
}

// webState registers an event queue for the page and returns the answer.
func webState(c *Call, narrow *narrowedPage) (any, error) {
	f := registerForm{HistoryDays: historyDaysOfWebApp}
	f.Markdown, f.Slim, f.Subscribers = true, true, form.AllSubscribers
	f.Gravatar = form.Opt[bool]{Set: true, Value: true}
	f.Caps = &webCapabilities
	if narrow != nil {
		for _, t := range narrow.terms() {
			f.Narrow = append(f.Narrow, form.Term{Operator: t[0],
				Operand: form.Operand{Kind: form.OperandText, Text: t[1]}})
		}
	}
	a, err := register(c, f)
	if err != nil {
		return nil, err
	}
	a.Channels = encoded[[]channelJSON]{} // the page has them in three other lists
	if narrow != nil {
		narrow.changeState(a)
	}
	if parts := SuccessFragments(a, nil); parts != nil {
		return parts, nil
	}
	return rawJSON(Success(a, nil)), nil
}

// LanguageCode returns the code of the web app for the code of a setting or a cookie: lower case, with hyphens.
func LanguageCode(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "-")) }
