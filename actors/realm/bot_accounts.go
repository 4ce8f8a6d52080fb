package realm

import (
	"slices"
	"strings"
)

// BotDetails is the row of the fields that only bots have.
type BotDetails struct {
	Sending   ChannelID // default channel to send to; 0: none
	Register  ChannelID // default channel to receive events of; 0: none
	AllPublic bool      // its queues receive messages of all public channels unless they ask for less
	Services  []Service
}

// Service is the external service of an outgoing-webhook bot, the internal one of an embedded bot, or the one whose
// requests an incoming-webhook bot receives.
type Service struct {
	Name      string
	URL       string
	Interface int    // 1 generic, 2 Slack-like
	Token     string // sent with each call, so that the service can recognize this server
	Config    map[string]string
}

// BotOf returns a bot's details, or empty ones.
func (r *Realm) BotOf(u UserID) BotDetails {
	if b := r.small.bots.find(u); b != nil {
		return *b
	}
	return BotDetails{}
}

// CreateBot asks for a bot that the caller owns.
type CreateBot struct {
	Name, Email, ShortName string
	Type                   BotType
	URL, ServiceName       string
	Interface              int
	Config                 map[string]string
	Sending, Register      string // names of channels, "" for none
	AllPublic              bool
	Avatar                 string // a picture that was saved; "" for the generated one
}

// BotMade answers CreateBot.
type BotMade struct {
	ID  UserID
	Key string
}

func (c CreateBot) Decide(t *Turn) (BotMade, error) {
	if err := t.CheckNewBot(c.Name); err != nil {
		return BotMade{}, err
	}
	if err := t.MayCreateBot(c.Type); err != nil {
		return BotMade{}, err
	}
	me := t.Me()
	if !validBotAddress(c.ShortName, c.Email) {
		return BotMade{}, BadRequest("Bad name or username")
	}
	if t.FindByEmail(c.Email) != nil {
		return BotMade{}, BadRequest("Email is already in use.")
	}
	if t.nameTaken(c.Name, 0) {
		return BotMade{}, BadRequest("Name is already in use.")
	}
	details, err := t.newBotDetails(c)
	if err != nil {
		return BotMade{}, err
	}
	if err := t.checkNewBot(me.ID); err != nil {
		return BotMade{}, err
	}
	u := User{ID: t.Org().NextUser, Email: c.Email, Name: strings.TrimSpace(c.Name), Role: Member, Bot: c.Type,
		BotOwner: me.ID, Active: true, Joined: t.Now, Avatar: t.OrgText("default_avatar_source"), AvatarVersion: 1,
		Settings: map[string]any{}}
	if c.Avatar != "" {
		u.Avatar, u.AvatarFile = "U", c.Avatar
	}
	t.Record(&UserJoined{User: u})
	t.Record(&BotChanged{ID: u.ID, Details: details, New: true})
	return BotMade{u.ID, t.issueKey(t.users.must(u.ID), false)}, nil
}

// CheckNewBot returns the refusals that come before all others: of callers that can never create bots, and of the full
// name.
func (v View) CheckNewBot(name string) error {
	me, err := v.RequireHuman()
	switch {
	case err != nil:
		return err
	case me.IsGuest():
		return errGuestsNotAllowed()
	}
	return v.checkName(name, 0)
}

// MayCreateBot refuses callers that are not allowed to create bots of a type.
func (v View) MayCreateBot(kind BotType) error {
	me, err := v.RequireHuman()
	switch {
	case err != nil:
		return err
	case me.IsGuest():
		return errGuestsNotAllowed()
	case kind < GenericBot || kind > EmbeddedBot:
		return BadRequest("Invalid bot type")
	case !v.mayCreateBot(me, kind):
		return errPermission()
	}
	return nil
}

// mayCreateBot reports whether u is allowed to create bots of a type. Users without the general permission may still be
// allowed to create incoming webhooks, which can only send.
func (r *Realm) mayCreateBot(u *User, kind BotType) bool {
	return r.HasPermission(u, "can_create_bots_group") ||
		kind == IncomingWebhook && r.HasPermission(u, "can_create_write_only_bots_group")
}

// nameTaken reports whether an active account other than except has exactly this name. A bot's name must be unique.
func (r *Realm) nameTaken(name string, except UserID) bool {
	name = strings.TrimSpace(name)
	return slices.ContainsFunc(r.activeUsers(), func(u *User) bool { return u.ID != except && u.Name == name })
}

// newBotDetails checks the parts of a new bot that are not in its account, and returns them.
func (t *Turn) newBotDetails(c CreateBot) (details BotDetails, err error) {
	details.AllPublic = c.AllPublic
	if details.Sending, err = t.botChannelByName(c.Sending); err != nil {
		return details, err
	}
	if details.Register, err = t.botChannelByName(c.Register); err != nil {
		return details, err
	}
	switch c.Type {
	case OutgoingWebhook:
		if c.Interface != 1 && c.Interface != 2 {
			return details, BadRequest("Invalid interface type")
		}
		details.Services = []Service{{Name: c.ShortName, URL: c.URL, Interface: c.Interface, Token: t.Token(32)}}
	case EmbeddedBot:
		return details, BadRequest("Embedded bots are not enabled.")
	case IncomingWebhook:
		if len(c.Config) > 0 {
			details.Services = []Service{{Name: c.ServiceName, Config: c.Config}}
		}
	}
	return details, checkBotConfig(c.Config)
}

const (
	// maxBotConfig bounds the entries of a bot's configuration. Services have one or two.
	maxBotConfig = 20
	// maxBotConfigText bounds a key and a value in it, in bytes. Secrets of services have up to 100.
	maxBotConfigText = 1000
)

// checkBotConfig checks the size of a bot's configuration.
func checkBotConfig(config map[string]string) error {
	if len(config) > maxBotConfig {
		return BadRequest("config_data has too many entries (limit: %d)", maxBotConfig)
	}
	for key, value := range config {
		if len(key) > maxBotConfigText || len(value) > maxBotConfigText {
			return BadRequest("config_data is too long (limit: %d bytes)", maxBotConfigText)
		}
	}
	return nil
}

// botChannelByName returns the id of a channel that the caller can read, by its name; 0 for "".
func (t *Turn) botChannelByName(name string) (ChannelID, error) {
	if name == "" {
		return 0, nil
	}
	c := t.FindChannelByName(name)
	if c == nil || !t.MayReadChannel(c) {
		return 0, BadRequest("Invalid channel name '%s'", name)
	}
	return c.ID, nil
}

// ManagedBot returns a bot that the caller is allowed to change: the caller is its owner or an administrator, and the
// bot does not outrank the caller.
func (v View) ManagedBot(id UserID) (*User, error) {
	u := v.Find(id)
	if u == nil || !u.IsBot() || u.System {
		return nil, BadRequest("No such bot")
	}
	if me := v.Me(); !v.System && (me == nil || u.BotOwner != me.ID && !me.IsAdmin()) {
		return nil, errPermission()
	}
	return u, v.checkRank(u)
}

// IssueBotKey asks for the API key of a bot that the caller manages. With Renew it is a new key, and all older keys
// stop working.
type IssueBotKey struct {
	Bot   UserID
	Renew bool
}

func (c IssueBotKey) Decide(t *Turn) (string, error) {
	u, err := t.ManagedBot(c.Bot)
	if err != nil {
		return "", err
	}
	return t.issueKey(u, c.Renew), nil
}

// EditBot asks to change a bot. Fields that are nil or empty do not change.
type EditBot struct {
	Bot               UserID
	Name, Email       *string
	ShortName         string // the part of Email that the caller chose
	Owner             *UserID
	Role              *Role
	URL               *string
	Interface         *int
	Config            map[string]string
	Sending, Register *string
	AllPublic         *bool
	Avatar            string // a picture that was saved; "" keeps the present one
}

// validBotAddress reports whether a bot's short name has only the allowed characters and its email address is valid.
func validBotAddress(short, email string) bool {
	return short != "" && strings.Trim(fold(short), "abcdefghijklmnopqrstuvwxyz0123456789-_.") == "" &&
		ValidEmail(email)
}

func (c EditBot) Decide(t *Turn) (Done, error) {
	u, err := t.ManagedBot(c.Bot)
	if err != nil {
		return Done{}, err
	}
	var facts []Fact
	for _, changes := range []func(*Turn, *User) ([]Fact, error){
		c.nameFacts, c.emailFacts, c.roleFacts, c.detailsFacts, c.ownerFacts,
	} {
		more, err := changes(t, u)
		if err != nil {
			return Done{}, err
		}
		facts = append(facts, more...)
	}
	if c.Avatar != "" {
		facts = append(facts, &AvatarChanged{User: u.ID, Source: "U", File: c.Avatar, Version: u.AvatarVersion + 1})
	}
	for _, f := range facts {
		t.recordWithVisibility(f) // a new role may show or hide users
	}
	return Done{}, nil
}

// nameFacts returns the facts that rename the bot.
func (c EditBot) nameFacts(t *Turn, u *User) ([]Fact, error) {
	if c.Name == nil || strings.TrimSpace(*c.Name) == u.Name {
		return nil, nil
	}
	if err := t.checkName(*c.Name, u.ID); err != nil {
		return nil, err
	}
	if t.nameTaken(*c.Name, u.ID) {
		return nil, BadRequest("Name is already in use.")
	}
	name := strings.TrimSpace(*c.Name)
	return []Fact{&UserChanged{ID: u.ID, Name: &name, OldName: u.Name}}, nil
}

// emailFacts returns the facts that change the bot's email address.
func (c EditBot) emailFacts(t *Turn, u *User) ([]Fact, error) {
	if c.Email == nil || strings.EqualFold(*c.Email, u.Email) {
		return nil, nil
	}
	if !validBotAddress(c.ShortName, *c.Email) {
		return nil, BadRequest("Bad name or username")
	}
	if t.FindByEmail(*c.Email) != nil {
		return nil, BadRequest("Email is already in use.")
	}
	return []Fact{&UserChanged{ID: u.ID, Email: c.Email}}, nil
}

// roleFacts returns the facts that change the bot's role. Only administrators are allowed to do this, not the owner.
func (c EditBot) roleFacts(t *Turn, u *User) ([]Fact, error) {
	if c.Role == nil || *c.Role == u.Role {
		return nil, nil
	}
	if me := t.Me(); !me.IsAdmin() {
		return nil, errPermission()
	}
	if err := t.checkRoleChange(u, *c.Role); err != nil {
		return nil, err
	}
	return t.planRoleChange(u, *c.Role), nil
}

// detailsFacts returns the facts that change the bot's channels and the service behind it.
func (c EditBot) detailsFacts(t *Turn, u *User) (facts []Fact, err error) {
	details := t.BotOf(u.ID)
	before := details
	details.Services = slices.Clone(details.Services)
	if c.Sending != nil {
		if details.Sending, err = t.botChannelByName(*c.Sending); err != nil {
			return nil, err
		}
	}
	if c.Register != nil {
		if details.Register, err = t.botChannelByName(*c.Register); err != nil {
			return nil, err
		}
	}
	if c.AllPublic != nil {
		details.AllPublic = *c.AllPublic
	}
	var properties []string
	changed := func(property string, differs bool) {
		if differs {
			properties = append(properties, property)
		}
	}
	service := false
	if err := checkBotConfig(c.Config); err != nil {
		return nil, err
	}
	if u.Bot == IncomingWebhook && len(details.Services) == 0 && len(c.Config) > 0 {
		details.Services = []Service{{}}
	}
	if len(details.Services) > 0 {
		if c.URL != nil {
			details.Services[0].URL, service = *c.URL, true
		}
		if c.Interface != nil {
			if *c.Interface != 1 && *c.Interface != 2 {
				return nil, BadRequest("Invalid interface type")
			}
			details.Services[0].Interface, service = *c.Interface, true
		}
		if c.Config != nil {
			details.Services[0].Config, service = c.Config, true
		}
	}
	changed("default_sending_stream", before.Sending != details.Sending)
	changed("default_events_register_stream", before.Register != details.Register)
	changed("default_all_public_streams", before.AllPublic != details.AllPublic)
	changed("services", service)
	if len(properties) > 0 {
		facts = append(facts, &BotChanged{ID: u.ID, Details: details, Only: properties})
	}
	return facts, nil
}

// ownerFacts returns the facts that give the bot to another user. A bot cannot own bots. The new owner must not outrank
// the caller: a bot may send wherever its owner may, and the caller may know the bot's key.
func (c EditBot) ownerFacts(t *Turn, u *User) ([]Fact, error) {
	if c.Owner == nil || *c.Owner == u.BotOwner {
		return nil, nil
	}
	owner := t.Find(*c.Owner)
	switch {
	case owner == nil || owner.System:
		return nil, BadRequest("Failed to change owner, no such user")
	case !owner.Active:
		return nil, BadRequest("Failed to change owner, user is deactivated")
	case owner.IsBot():
		return nil, BadRequest("Failed to change owner, bots can't own other bots")
	case !t.System && owner.Role < t.Me().Role:
		return nil, errPermission()
	}
	if err := t.checkBotCount(owner.ID); err != nil && !t.System {
		return nil, err
	}
	return []Fact{
		&UserChanged{ID: u.ID, Owner: c.Owner},
		&BotOwnerChanged{ID: u.ID, From: u.BotOwner, To: *c.Owner},
	}, nil
}

// BotChanged replaces a bot's details. It is the event realm_bot/add or realm_bot/update too.
type BotChanged struct {
	ID      UserID
	Details BotDetails
	New     bool
	// The names of the channels in Details. notices fills them in.
	Sending, Register string
	Only              []string // the changed properties, with the protocol's names; nil: all of them
}

func (f *BotChanged) apply(r *Realm) { d := f.Details; r.small.bots.put(f.ID, &d) }
func (f *BotChanged) notices(r *Realm) []Notice {
	owner := r.users.find(r.users.must(f.ID).BotOwner)
	e := r.botEvent(f.ID, owner, f.New)
	e.Only = f.Only
	all := r.botEvent(f.ID, nil, f.New)
	all.Only = f.Only
	if owner == nil || owner.IsAdmin() || e.Sending == all.Sending && e.Register == all.Register {
		return []Notice{{To: r.botAudience(r.users.must(f.ID).BotOwner), Event: all}}
	}
	return []Notice{
		{To: withoutUsers(r.botAudience(owner.ID), []UserID{owner.ID}), Event: all},
		{To: r.usersAudience(owner.ID), Event: e},
	}
}

// botEvent returns the event with the present details of a bot. It names the channels that the receiver may know of;
// nil stands for administrators, who may know of all.
func (r *Realm) botEvent(id UserID, receiver *User, fresh bool) *BotChanged {
	e := &BotChanged{ID: id, Details: r.BotOf(id), New: fresh}
	name := func(id ChannelID) string {
		c := r.channels.find(id)
		if c == nil || receiver != nil && !r.hasMetadataAccess(receiver, c) {
			return ""
		}
		return c.Name
	}
	e.Sending, e.Register = name(e.Details.Sending), name(e.Details.Register)
	return e
}
func (*BotChanged) EventType() string { return "realm_bot" }

// BotOwnerChanged notifies a bot's old owner that the bot was deleted, and the new owner that it was added. It changes
// no state: a UserChanged with the new owner comes before it.
type BotOwnerChanged struct{ ID, From, To UserID }

func (f *BotOwnerChanged) apply(*Realm) {}
func (f *BotOwnerChanged) notices(r *Realm) (out []Notice) {
	admin := func(id UserID) bool { u := r.users.find(id); return u != nil && u.IsAdmin() }
	if to := r.usersAudience(f.From); len(to) > 0 && !admin(f.From) {
		out = append(out, Notice{To: to, Event: f})
	}
	if to := r.usersAudience(f.To); len(to) > 0 && !admin(f.To) {
		out = append(out, Notice{To: to, Event: r.botEvent(f.ID, r.users.find(f.To), true)})
	}
	return out
}
func (*BotOwnerChanged) EventType() string { return "realm_bot" }

// maxBotStorage is the limit of one bot's storage: the code points of all its keys and values together (protocol).
const maxBotStorage = 10_000_000

// BotStorage is the row of the values that one bot stores.
type BotStorage struct{ Values map[string]string }

// callingBot returns the caller if it is a bot, and refuses all others.
func (v View) callingBot() (*User, error) {
	me := v.Me()
	if me == nil || !me.IsBot() {
		return nil, Refuse(Forbidden, "PERMISSION_DENIED", "Must be a bot user")
	}
	return me, nil
}

// BotStorageValues returns the stored values of the calling bot: all of them if keys is nil, else those of these
// keys.
func (v View) BotStorageValues(keys []string) (map[string]string, error) {
	me, err := v.callingBot()
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	storage := v.small.botStorage.find(me.ID)
	if keys == nil {
		if storage != nil {
			out = cloneMap(storage.Values)
		}
		return out, nil
	}
	for _, k := range keys {
		if storage == nil || !hasKey(storage.Values, k) {
			return nil, BadRequest("Key does not exist.")
		}
		out[k] = storage.Values[k]
	}
	return out, nil
}

func hasKey(m map[string]string, k string) bool { _, ok := m[k]; return ok }

// ChangeBotStorage asks to store values, or, with Forget, to remove Keys. Keys nil removes all of them.
type ChangeBotStorage struct {
	Values map[string]string
	Forget bool
	Keys   []string
}

func (c ChangeBotStorage) Decide(t *Turn) (Done, error) {
	me, err := t.callingBot()
	if err != nil {
		return Done{}, err
	}
	storage := t.small.botStorage.find(me.ID)
	if storage == nil {
		storage = &BotStorage{}
	}
	if c.Forget {
		for _, k := range c.Keys {
			if !hasKey(storage.Values, k) {
				return Done{}, BadRequest("Key does not exist.")
			}
		}
		t.Record(&BotStored{ID: me.ID, Forgotten: c.Keys, All: c.Keys == nil})
		return Done{}, nil
	}
	size := 0
	for k, v := range storage.Values {
		if !hasKey(c.Values, k) {
			size += runeCount(k) + runeCount(v)
		}
	}
	for k, v := range c.Values {
		size += runeCount(k) + runeCount(v)
	}
	if size > maxBotStorage {
		return Done{}, BadRequest("Request exceeds storage limit by %d characters. The limit is %d characters.",
			size-maxBotStorage, maxBotStorage)
	}
	if len(c.Values) > 0 {
		t.Record(&BotStored{ID: me.ID, Values: c.Values})
	}
	return Done{}, nil
}

// BotStored records changes in a bot's storage. No client is notified.
type BotStored struct {
	ID        UserID
	Values    map[string]string
	Forgotten []string
	All       bool
}

func (f *BotStored) apply(r *Realm) {
	if f.All {
		r.small.botStorage.remove(f.ID)
		return
	}
	storage := r.small.botStorage.ensure(f.ID)
	values := cloneMap(storage.Values)
	for k, v := range f.Values {
		values[k] = v
	}
	for _, k := range f.Forgotten {
		delete(values, k)
	}
	storage.Values = values
}

func (f *BotStored) notices(*Realm) []Notice { return nil }
