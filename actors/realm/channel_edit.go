package realm

import (
	"slices"
	"strings"

	"parley/actors/realm/ids"
)

// EditChannel asks to change properties of a channel. Fields that are nil or not set do not change.
type EditChannel struct {
	Channel                              ChannelID
	Name, Description                    *string
	Private, WebPublic, History, Default *bool
	Unarchive                            bool
	SetRetention                         bool
	Retention                            *int64 // days; nil: as the organization; -1: no limit
	SetFolder                            bool
	Folder                               int64 // 0: none
	TopicsPolicy                         string
	Groups                               []GroupChange
}

// channelEdit is the state of an EditChannel while it is checked: the facts that it will record.
type channelEdit struct {
	channel *Channel
	me      *User
	privacy *ChannelPrivacySet
	facts   []Fact
}

func (c EditChannel) Decide(t *Turn) (Done, error) {
	ch, err := t.AdministeredChannel(c.Channel)
	if err != nil {
		return Done{}, err
	}
	e := channelEdit{channel: ch, me: t.Me()}
	// The order decides which of several refusals the caller gets. checkPrivacy comes before checkDefault and
	// checkGroups: these read the privacy that the channel will have.
	for _, check := range []func(*Turn, *channelEdit) error{
		c.checkUnarchive, c.checkPrivacy, c.checkDefault, c.checkRetention, c.checkDescription, c.checkRename,
		c.checkFolder, c.checkTopicsPolicy, c.checkGroups,
	} {
		if err := check(t, &e); err != nil {
			return Done{}, err
		}
	}
	for _, f := range e.facts {
		t.recordChannelChange(ch, f)
	}
	return Done{}, nil
}

func errDefaultChannels() *Refusal {
	return BadRequest("You do not have permission to change default channels.")
}

// checkUnarchive refuses to unarchive an active channel, or a private one without subscribers: no user could read it.
func (c EditChannel) checkUnarchive(t *Turn, edit *channelEdit) error {
	if !c.Unarchive {
		return nil
	}
	if !edit.channel.Archived {
		return BadRequest("Channel is not currently deactivated")
	}
	if edit.channel.Private && t.SubscriberCount(edit.channel.ID) == 0 {
		return BadRequest("Channel is private and have no subscribers")
	}
	edit.facts = append(edit.facts, &ChannelUnarchived{Channel: edit.channel.ID})
	return nil
}

// checkPrivacy checks a change of privacy. The order: content access, then whether the result is possible, then the
// permission to open the channel to the web. Changing private without history sets the history to the usual value for
// the new privacy.
func (c EditChannel) checkPrivacy(t *Turn, edit *channelEdit) error {
	if c.Private == nil && c.WebPublic == nil && c.History == nil {
		return nil
	}
	if !t.System && !t.hasContentAccess(edit.me, edit.channel) {
		return errContentAccess()
	}
	f := &ChannelPrivacySet{Channel: edit.channel.ID, Private: valueOr(c.Private, edit.channel.Private),
		WebPublic: valueOr(c.WebPublic, edit.channel.WebPublic), History: edit.channel.History}
	if c.Private != nil {
		f.History = !f.Private
	}
	f.History = valueOr(c.History, f.History)
	if err := checkPrivacyCombination(f.Private, f.WebPublic, f.History); err != nil {
		return err
	}
	if f.Private && valueOr(c.Default, edit.channel.Default) {
		return BadRequest("A default channel cannot be private.")
	}
	if !f.Private && ChannelID(t.OrgInt("moderation_request_channel_id")) == edit.channel.ID {
		return BadRequest("Moderation request channel must be private.")
	}
	if f.WebPublic && !edit.channel.WebPublic {
		if err := t.mayMakeWebPublic(edit.me); err != nil {
			return err
		}
	}
	if f.Private && !f.History {
		v := t.ChannelSetting(edit.channel, "can_create_topic_group")
		for _, g := range c.Groups {
			if g.Name == "can_create_topic_group" {
				v = g.New.normalized()
			}
		}
		if v.Group != groupEveryone {
			return errTopicCreation()
		}
	}
	if f.Private != edit.channel.Private || f.WebPublic != edit.channel.WebPublic || f.History != edit.channel.History {
		edit.privacy = f
		edit.facts = append(edit.facts, f)
	}
	return nil
}

func errContentAccess() *Refusal { return BadRequest("Channel content access is required.") }

// errTopicCreation refuses to limit the creation of topics in a channel with protected history. Users there cannot see
// all topics, so the refusal would reveal that an older topic does not exist.
func errTopicCreation() *Refusal {
	return BadRequest("Everyone must be allowed to create topics in a private channel with protected history.")
}

// valueOr returns the new value if there is one, else the old value.
func valueOr[T any](new *T, old T) T {
	if new != nil {
		return *new
	}
	return old
}

// checkPrivacyCombination refuses the combinations that the protocol does not have.
func checkPrivacyCombination(private, web, history bool) error {
	if web && (private || !history) || !private && !history {
		return BadRequest("Invalid parameters")
	}
	return nil
}

// mayMakeWebPublic refuses users that are not allowed to make channels web-public. It does not depend on
// enable_spectator_access, which only decides whether visitors can read such channels.
func (v View) mayMakeWebPublic(me *User) error {
	if !v.System && !v.HasPermission(me, "can_create_web_public_channel_group") {
		return errPermission()
	}
	return nil
}

// checkDefault checks a change of whether the channel is a default channel. Only administrators are allowed to, and
// never for a private channel.
func (c EditChannel) checkDefault(t *Turn, edit *channelEdit) error {
	if c.Default == nil {
		return nil
	}
	if !t.System && !edit.me.IsAdmin() {
		return errDefaultChannels()
	}
	private := edit.channel.Private
	if edit.privacy != nil {
		private = edit.privacy.Private
	}
	if *c.Default && private {
		return BadRequest("A default channel cannot be private.")
	}
	if *c.Default != edit.channel.Default {
		edit.facts = append(edit.facts, t.defaultChannelFact(edit.channel.ID, *c.Default))
	}
	return nil
}

// checkRetention checks a change of the retention time. Only owners are allowed to.
func (c EditChannel) checkRetention(t *Turn, edit *channelEdit) error {
	if !c.SetRetention {
		return nil
	}
	if !t.System && edit.me.Role != Owner {
		return errNotOwner()
	}
	if !equalPointers(c.Retention, edit.channel.Retention) {
		edit.facts = append(edit.facts, &ChannelChanged{Channel: edit.channel.ID, Property: "message_retention_days",
			Number: c.Retention})
	}
	return nil
}

// equalPointers reports whether two pointers are both nil or point to equal values.
func equalPointers[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

// cleanDescription checks a description and returns it on one line.
func cleanDescription(text string) (string, error) {
	text = strings.TrimSpace(strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ").Replace(text))
	if runeCount(text) > MaxDescription {
		return "", BadRequest("description is too long (limit: %d characters)", MaxDescription)
	}
	return text, nil
}

// checkDescription checks a change of the description and renders it.
func (c EditChannel) checkDescription(t *Turn, edit *channelEdit) error {
	if c.Description == nil {
		return nil
	}
	text, err := cleanDescription(*c.Description)
	if err == nil && text != edit.channel.Description {
		f := &ChannelChanged{Channel: edit.channel.ID, Property: "description", Text: text, HTML: t.Describe(text)}
		edit.facts = append(edit.facts, f)
		err = t.checkRegistrationSize(2 * (len(f.Text) + len(f.HTML) -
			len(edit.channel.Description) - len(edit.channel.DescriptionHTML)))
	}
	return err
}

// checkRename checks a change of the name. It adds a fact for each bot whose events contain the name.
func (c EditChannel) checkRename(t *Turn, edit *channelEdit) error {
	if c.Name == nil {
		return nil
	}
	name, err := checkChannelName(*c.Name)
	if err != nil {
		return err
	}
	if name == edit.channel.Name {
		return BadRequest("Channel already has that name.")
	}
	if taken := t.FindChannelByName(name); taken != nil && taken.ID != edit.channel.ID {
		return BadRequest("Channel name is already in use.")
	}
	edit.facts = append(edit.facts, &ChannelChanged{Channel: edit.channel.ID, Property: "name", Text: name})
	for _, id := range t.small.bots.keys() { // events about bots contain the names of their channels
		var only []string
		d := t.BotOf(id)
		if d.Sending == edit.channel.ID {
			only = append(only, "default_sending_stream")
		}
		if d.Register == edit.channel.ID {
			only = append(only, "default_events_register_stream")
		}
		if len(only) > 0 {
			edit.facts = append(edit.facts, &BotChanged{ID: id, Details: d, Only: only})
		}
	}
	return nil
}

// checkFolder checks a move to another folder.
func (c EditChannel) checkFolder(t *Turn, edit *channelEdit) error {
	if !c.SetFolder {
		return nil
	}
	if err := t.checkFolderUsable(c.Folder); err != nil {
		return err
	}
	if c.Folder != edit.channel.Folder {
		f := &ChannelChanged{Channel: edit.channel.ID, Property: "folder_id"}
		if c.Folder != 0 {
			f.Number = &c.Folder
		}
		edit.facts = append(edit.facts, f)
	}
	return nil
}

// checkTopicsPolicy checks a change of the topics that the channel allows. Only the empty topic can be allowed only if
// no other topic exists.
func (c EditChannel) checkTopicsPolicy(t *Turn, edit *channelEdit) error {
	if c.TopicsPolicy == "" {
		return nil
	}
	if err := t.maySetTopicsPolicy(edit.me); err != nil {
		return err
	}
	if c.TopicsPolicy == edit.channel.TopicsPolicy {
		return nil
	}
	if c.TopicsPolicy == "empty_topic_only" {
		for name := range t.index.channels[edit.channel.ID].topics {
			if name != "" {
				return BadRequest(
					"To enable this configuration, all messages in this channel must be in the general chat topic.")
			}
		}
	}
	edit.facts = append(edit.facts, &ChannelChanged{Channel: edit.channel.ID, Property: "topics_policy",
		Text: c.TopicsPolicy})
	return nil
}

// maySetTopicsPolicy refuses users that are not allowed to change the topics policy of channels.
func (v View) maySetTopicsPolicy(me *User) error {
	if v.System || me.IsAdmin() || v.HasPermission(me, "can_set_topics_policy_group") {
		return nil
	}
	return errPermission()
}

// checkGroupChanges checks changes of permission settings and returns the new values, in the order of the changes. now
// returns the present value of a setting.
func (v View) checkGroupChanges(
	me *User, changes []GroupChange, now func(name string) GroupValue,
) ([]GroupValue, error) {
	var out []GroupValue
	for _, g := range changes {
		rule := findGroupRule(ChannelRules, g.Name)
		if strings.HasPrefix(g.Name, "can_delete_") && !v.System && !me.IsAdmin() &&
			!v.HasPermission(me, "can_set_delete_message_policy_group") {
			return nil, errPermission()
		}
		value, err := v.checkGroupChange(rule, now(g.Name), g)
		if err != nil {
			return nil, err
		}
		out = append(out, value)
	}
	return out, nil
}

// checkGroups checks changes of permission settings. Settings that give access to content can be changed only by users
// with content access.
func (c EditChannel) checkGroups(t *Turn, edit *channelEdit) error {
	now := func(name string) GroupValue { return t.ChannelSetting(edit.channel, name) }
	values, err := t.checkGroupChanges(edit.me, c.Groups, now)
	if err != nil {
		return err
	}
	private, history := edit.channel.Private, edit.channel.History
	if edit.privacy != nil {
		private, history = edit.privacy.Private, edit.privacy.History
	}
	for i, g := range c.Groups {
		if (g.Name == "can_add_subscribers_group" || g.Name == "can_subscribe_group") && !t.System &&
			!t.hasContentAccess(edit.me, edit.channel) {
			return errContentAccess()
		}
		if g.Name == "can_create_topic_group" && private && !history && values[i].Group != groupEveryone {
			return errTopicCreation()
		}
		if !values[i].equal(now(g.Name)) {
			edit.facts = append(edit.facts, &ChannelChanged{Channel: edit.channel.ID, Property: g.Name,
				Group: values[i]})
		}
	}
	return nil
}

// recordChannelChange records a change of a channel with the users that could see it before. Then it posts the
// notification message about it.
func (t *Turn) recordChannelChange(c *Channel, f Fact) {
	before := *c
	before.Settings = cloneMap(c.Settings)
	switch f := f.(type) {
	case *ChannelChanged:
		f.Old = c.Name
		if f.Property == "can_send_message_group" {
			f.Was = t.ChannelSetting(c, f.Property)
		}
		if c.Private && slices.Contains(channelVisibilitySettings, f.Property) {
			f.Narrowed, f.Before = true, ids.SetOf(t.channelAudience(c)...)
		}
	case *ChannelPrivacySet:
		f.Name, f.Before = c.Name, ids.SetOf(t.channelAudience(c)...)
	case *ChannelUnarchived:
		f.Name = c.Name
	}
	t.Record(f)
	t.postChannelChange(&before, t.channels.must(c.ID), f)
}

// ChannelChanged gives one property of a channel a new value. It is the event stream/update too.
type ChannelChanged struct {
	Channel  ChannelID
	Old      string // the channel's name before
	Property string // the protocol's name
	Text     string // name, description, topics_policy
	HTML     string // of a description
	Number   *int64 // message_retention_days, folder_id; nil is null
	Group    GroupValue
	Narrowed bool       // the change may show or hide the channel; then Before is set
	Before   ids.Set    // connected users that could see the channel before
	Archived bool       // set by notices
	Was      GroupValue // the value before, of can_send_message_group only
}

func (*ChannelChanged) EventType() string { return "stream" }

func (f *ChannelChanged) apply(r *Realm) {
	c := r.channels.change(f.Channel)
	r.invalidateChannelJSON(c.ID)
	switch f.Property {
	case "name":
		delete(r.index.channelByName, fold(c.Name))
		c.Name = f.Text
		r.index.channelByName[fold(c.Name)] = c.ID
	case "description":
		c.Description, c.DescriptionHTML = f.Text, f.HTML
	case "topics_policy":
		c.TopicsPolicy = f.Text
	case "message_retention_days":
		c.Retention = f.Number
		r.restartExpirySearch()
	case "folder_id":
		c.Folder = 0
		if f.Number != nil {
			c.Folder = *f.Number
		}
	default:
		if c.Settings == nil {
			c.Settings = GroupValues{}
		}
		c.Settings[f.Property] = f.Group
	}
}

func (f *ChannelChanged) notices(r *Realm) []Notice {
	c := r.channels.must(f.Channel)
	e := *f
	e.Before, e.Archived, e.Group = ids.Set{}, c.Archived, r.WithoutDeactivated(f.Group)
	if !f.Narrowed {
		return []Notice{{To: r.channelAudience(c), Event: &e}}
	}
	return r.channelVisibilityNotices(c, f.Before, &e)
}

// ChannelPrivacySet changes which users can find and read a channel. It is the event stream/update of invite_only too.
type ChannelPrivacySet struct {
	Channel                     ChannelID
	Name                        string
	Private, WebPublic, History bool
	Before                      ids.Set // connected users that could see the channel before
	Archived                    bool    // set by notices
}

func (*ChannelPrivacySet) EventType() string { return "stream" }

func (f *ChannelPrivacySet) apply(r *Realm) {
	c := r.channels.change(f.Channel)
	r.invalidateChannelJSON(c.ID)
	c.Private, c.WebPublic, c.History = f.Private, f.WebPublic, f.History
}

func (f *ChannelPrivacySet) notices(r *Realm) []Notice {
	e := *f
	e.Before, e.Archived = ids.Set{}, r.channels.must(f.Channel).Archived
	return r.channelVisibilityNotices(r.channels.must(f.Channel), f.Before, &e)
}
