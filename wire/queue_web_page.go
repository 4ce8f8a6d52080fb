package wire

import (
	"encoding/json"
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

// unusedByWebApp are the fields of a registration that the web app does not read: it has the channels of "streams" in
// three other lists.
var unusedByWebApp = []string{"streams"}

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
	params := pageParams(c)
	params["request_language"], params["translation_data"] = p.Language, rawJSON(translations)
	params["language_list"] = rawJSON(f.Languages)
	params["realm_rendered_description"] = p.descriptionHTML
	if c.Account == nil {
		params["language_cookie_name"], params["furthest_read_time"] = f.LanguageCookie, nowWithFraction(c)
	}
	withState := c.Account != nil && !f.Deferred
	params["no_event_queue"] = !withState
	if withState {
		state, err := webState(c, narrow)
		if err != nil {
			return p, err
		}
		params["state_data"] = state
	}
	if narrow != nil {
		narrow.addTo(params)
	}
	p.Params = encode(params)
	return p, nil
}

// hasSpectators reports whether visitors without an account can read a channel.
func hasSpectators(v realm.View) (yes bool) {
	if v.SpectatorsAllowed() {
		v.EachChannel(func(c *realm.Channel) { yes = yes || c.WebPublic && !c.Archived })
	}
	return yes
}

// webPageOf returns the page without its parameters.
func webPageOf(v realm.View, f WebPageForm) WebPage {
	o := v.Org()
	p := WebPage{Organization: o.Name, Description: o.Description, Language: f.Language, ColorScheme: 1,
		Spectators: hasSpectators(v), descriptionHTML: o.DescriptionHTML}
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
func (n *narrowedPage) addTo(params obj) {
	params["narrow_stream"] = n.channel
	if n.topic != "" {
		params["narrow_topic"] = n.topic
	}
	var list []any
	for _, t := range n.terms() {
		list = append(list, obj{"operator": t[0], "operand": t[1]})
	}
	params["narrow"] = list
}

// pageParams returns the parameters that are the same for every user, for bundles of all versions: each ignores those
// that it does not know.
func pageParams(c *Call) obj {
	return obj{
		"page_type":               "home",
		"development_environment": false,
		"test_suite":              false,
		"insecure_desktop_app":    false,
		"warn_no_email":           c.Tools.Emails == nil,
		"two_fa_enabled":          false,
		"two_fa_enabled_user":     false,
		"login_page":              "/login/",
		"corporate_enabled":       false,
		"embedded_bots_enabled":   false,

		"promote_sponsoring_zulip": false,
		"furthest_read_time":       nil,
		"apps_page_url":            "https://zulip.com/apps/",
		"show_webathena":           false,
		"show_try_zulip_modal":     false,
		"is_spectator":             c.Account == nil,
		"state_data":               nil,

		"presence_history_limit_days_for_web_app": historyDaysOfWebApp,
		"non_workplace_pricing_eligible":          false,
		"is_cloud_realm_with_discounted_plan":     false,
	}
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
	for _, name := range unusedByWebApp {
		delete(a, name)
	}
	if narrow != nil {
		a["max_message_id"] = narrow.newest
		a["user_settings"] = withoutNotifications(a["user_settings"])
	}
	if parts := SuccessFragments(a, nil); parts != nil {
		return parts, nil
	}
	return rawJSON(Success(a, nil)), nil
}

// withoutNotifications returns the preferences of a user for a narrowed page, which must not notify: the user has
// another page for that.
func withoutNotifications(settings any) any {
	encoded, ok := settings.(rawJSON)
	if !ok {
		return settings
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(encoded, &all); err != nil {
		panic("BUG: preferences are no JSON: " + err.Error())
	}
	all["enable_desktop_notifications"] = json.RawMessage("false")
	return all
}

// LanguageCode returns the code of the web app for the code of a setting or a cookie: lower case, with hyphens.
func LanguageCode(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "-")) }
