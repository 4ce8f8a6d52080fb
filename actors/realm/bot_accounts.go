package realm

import (
	"slices"
	"strings"
)

// BotDetails is the row of what bots have beyond other accounts.
type BotDetails struct {
	Sending   ChannelID // default channel to send to; 0: none
	Register  ChannelID // default channel to listen to; 0: none
	AllPublic bool      // listens to all public channels unless it says otherwise
	Services  []Service
}

// Service is what an outgoing-webhook or embedded bot stands for.
type Service struct {
	Name      string
	URL       string
	Interface int    // 1 generic, 2 Slack-like
	Token     string // the server proves with it that it is the caller
	Config    map[string]string
}

// BotOf is a bot's details.
func (r *Realm) BotOf(u UserID) BotDetails {
	if b := r.small.bots.find(u); b != nil {
		return *b
	}
	return BotDetails{}
}

// CreateBot asks for a bot of the caller's.
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
	if err := t.MayCreateBot(c.Type); err != nil {
		return BotMade{}, err
	}
	me := t.Me()
	if !validBotAddress(c.ShortName, c.Email) {
		return BotMade{}, BadRequest("Bad name or username")
	}
	if err := t.checkName(c.Name, 0); err != nil {
		return BotMade{}, err
	}
	if t.FindByEmail(c.Email) != nil {
		return BotMade{}, BadRequest("Email is already in use.")
	}
	if t.nameTaken(c.Name, 0) {
		return BotMade{}, BadRequest("Name is already in use.")
	}
	d, err := t.newBotDetails(c)
	if err != nil {
		return BotMade{}, err
	}
	u := User{ID: t.Org().NextUser, Email: c.Email, Name: strings.TrimSpace(c.Name), Role: Member, Bot: c.Type, BotOwner: me.ID, Active: true, Joined: t.Now,
		Avatar: t.OrgText("default_avatar_source"), AvatarVersion: 1, Settings: map[string]any{}}
	if c.Avatar != "" {
		u.Avatar, u.AvatarFile = "U", c.Avatar
	}
	t.Record(&UserJoined{User: u})
	t.Record(&BotChanged{ID: u.ID, Details: d, New: true})
	return BotMade{u.ID, t.issueKey(t.users.must(u.ID), false)}, nil
}

// MayCreateBot refuses callers who may have no bot of a type.
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

func (r *Realm) mayCreateBot(u *User, kind BotType) bool {
	return r.HasPermission(u, "can_create_bots_group") || kind == IncomingWebhook && r.HasPermission(u, "can_create_write_only_bots_group")
}

// nameTaken reports whether an active account has exactly that name, which a bot may not share with anybody.
func (r *Realm) nameTaken(name string, except UserID) bool {
	name = strings.TrimSpace(name)
	return slices.ContainsFunc(r.activeUsers(), func(u *User) bool { return u.ID != except && u.Name == name })
}

func (t *Turn) newBotDetails(c CreateBot) (d BotDetails, err error) {
	d.AllPublic = c.AllPublic
	if d.Sending, err = t.botChannelByName(c.Sending); err != nil {
		return d, err
	}
	if d.Register, err = t.botChannelByName(c.Register); err != nil {
		return d, err
	}
	switch c.Type {
	case OutgoingWebhook:
		if c.Interface != 1 && c.Interface != 2 {
			return d, BadRequest("Invalid interface type")
		}
		d.Services = []Service{{Name: c.ShortName, URL: c.URL, Interface: c.Interface, Token: t.Token(32)}}
	case EmbeddedBot:
		return d, BadRequest("Embedded bots are not enabled.")
	}
	return d, nil
}

// botChannelByName is a channel a bot is given by name; its owner must be able to read it.
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

// ManagedBot is a bot the caller may change: its owner, or an administrator.
func (v View) ManagedBot(id UserID) (*User, error) {
	u := v.Find(id)
	if u == nil || !u.IsBot() || u.System {
		return nil, BadRequest("No such bot")
	}
	if me := v.Me(); !v.System && (me == nil || u.BotOwner != me.ID && !me.IsAdmin()) {
		return nil, errPermission()
	}
	return u, nil
}

// EditBot asks to change a bot; nil fields stay.
type EditBot struct {
	Bot               UserID
	Name, Email       *string
	ShortName         string // what Email is made of
	Owner             *UserID
	Role              *Role
	URL               *string
	Interface         *int
	Config            map[string]string
	Sending, Register *string
	AllPublic         *bool
	Avatar            string // a picture that was saved; "" leaves the one there is
}

func validBotAddress(short, email string) bool {
	return short != "" && strings.Trim(fold(short), "abcdefghijklmnopqrstuvwxyz0123456789-_.") == "" && ValidEmail(email)
}

func (c EditBot) Decide(t *Turn) (Done, error) {
	u, err := t.ManagedBot(c.Bot)
	if err != nil {
		return Done{}, err
	}
	var facts []Fact
	for _, part := range []func(EditBot, *Turn, *User) ([]Fact, error){EditBot.nameFacts, EditBot.emailFacts, EditBot.roleFacts, EditBot.detailsFacts, EditBot.ownerFacts} {
		more, err := part(c, t, u)
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

// detailsFacts changes where the bot sends, what it hears of and the service behind it.
func (c EditBot) detailsFacts(t *Turn, u *User) (facts []Fact, err error) {
	d := t.BotOf(u.ID)
	before := d
	d.Services = slices.Clone(d.Services)
	if c.Sending != nil {
		if d.Sending, err = t.botChannelByName(*c.Sending); err != nil {
			return nil, err
		}
	}
	if c.Register != nil {
		if d.Register, err = t.botChannelByName(*c.Register); err != nil {
			return nil, err
		}
	}
	if c.AllPublic != nil {
		d.AllPublic = *c.AllPublic
	}
	var only []string
	changed := func(property string, is bool) {
		if is {
			only = append(only, property)
		}
	}
	service := false
	if len(d.Services) > 0 {
		if c.URL != nil {
			d.Services[0].URL, service = *c.URL, true
		}
		if c.Interface != nil {
			if *c.Interface != 1 && *c.Interface != 2 {
				return nil, BadRequest("Invalid interface type")
			}
			d.Services[0].Interface, service = *c.Interface, true
		}
		if c.Config != nil {
			d.Services[0].Config, service = c.Config, true
		}
	}
	changed("default_sending_stream", before.Sending != d.Sending)
	changed("default_events_register_stream", before.Register != d.Register)
	changed("default_all_public_streams", before.AllPublic != d.AllPublic)
	changed("services", service)
	if len(only) > 0 {
		facts = append(facts, &BotChanged{ID: u.ID, Details: d, Only: only})
	}
	return facts, nil
}

func (c EditBot) ownerFacts(t *Turn, u *User) ([]Fact, error) {
	if c.Owner == nil || *c.Owner == u.BotOwner {
		return nil, nil
	}
	o := t.Find(*c.Owner)
	switch {
	case o == nil || o.System:
		return nil, BadRequest("Failed to change owner, no such user")
	case !o.Active:
		return nil, BadRequest("Failed to change owner, user is deactivated")
	case o.IsBot():
		return nil, BadRequest("Failed to change owner, bots can't own other bots")
	}
	return []Fact{&UserChanged{ID: u.ID, Owner: c.Owner}, &BotOwnerChanged{ID: u.ID, From: u.BotOwner, To: *c.Owner}}, nil
}

// BotChanged says a bot's details are these now; it is the event realm_bot, add or update.
type BotChanged struct {
	ID      UserID
	Details BotDetails
	New     bool
	// The names of the channels in Details, filled in when told.
	Sending, Register string
	Only              []string // what changed, as the protocol calls it; nil: everything
}

func (f *BotChanged) apply(r *Realm) { d := f.Details; r.small.bots.put(f.ID, &d) }
func (f *BotChanged) tell(r *Realm) []Notice {
	e := r.botEvent(f.ID, f.New)
	e.Only = f.Only
	return []Notice{{To: r.botAudience(r.users.must(f.ID).BotOwner), Event: e}}
}

// botEvent is what a bot's watchers are told of it now.
func (r *Realm) botEvent(id UserID, fresh bool) *BotChanged {
	e := &BotChanged{ID: id, Details: r.BotOf(id), New: fresh}
	if c := r.channels.find(e.Details.Sending); c != nil {
		e.Sending = c.Name
	}
	if c := r.channels.find(e.Details.Register); c != nil {
		e.Register = c.Name
	}
	return e
}
func (*BotChanged) EventType() string { return "realm_bot" }

// botAudience is who hears of a bot: its owner and the administrators.
func (r *Realm) botAudience(owner UserID) []UserID {
	return r.matchingAudience(func(u *User) bool { return u.IsAdmin() || u.ID == owner })
}

// BotOwnerChanged says a bot has another owner; the old one hears that it is gone, the new one that it is there.
type BotOwnerChanged struct{ ID, From, To UserID }

func (f *BotOwnerChanged) apply(*Realm) {}
func (f *BotOwnerChanged) tell(r *Realm) (out []Notice) {
	admin := func(id UserID) bool { u := r.users.find(id); return u != nil && u.IsAdmin() }
	if to := r.usersAudience(f.From); len(to) > 0 && !admin(f.From) {
		out = append(out, Notice{To: to, Event: f})
	}
	if to := r.usersAudience(f.To); len(to) > 0 && !admin(f.To) {
		out = append(out, Notice{To: to, Event: r.botEvent(f.ID, true)})
	}
	return out
}
func (*BotOwnerChanged) EventType() string { return "realm_bot" }

// maxBotStorage is how many code points all keys and values of one bot's storage may have together (specification).
const maxBotStorage = 10_000_000

// BotStorage is the row of what one bot keeps.
type BotStorage struct{ Values map[string]string }

// callingBot refuses everyone but bots.
func (v View) callingBot() (*User, error) {
	me := v.Me()
	if me == nil || !me.IsBot() {
		return nil, Refuse(Forbidden, "PERMISSION_DENIED", "Must be a bot user")
	}
	return me, nil
}

// BotStorageValues is what the calling bot keeps, or of it the given keys.
func (v View) BotStorageValues(keys []string) (map[string]string, error) {
	me, err := v.callingBot()
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	s := v.small.botStorage.find(me.ID)
	if keys == nil {
		if s != nil {
			out = cloneMap(s.Values)
		}
		return out, nil
	}
	for _, k := range keys {
		if s == nil || !hasKey(s.Values, k) {
			return nil, BadRequest("Key does not exist.")
		}
		out[k] = s.Values[k]
	}
	return out, nil
}

func hasKey(m map[string]string, k string) bool { _, ok := m[k]; return ok }

// ChangeBotStorage asks to keep values, or to forget keys (all of them when Keys is nil).
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
	s := t.small.botStorage.find(me.ID)
	if s == nil {
		s = &BotStorage{}
	}
	if c.Forget {
		for _, k := range c.Keys {
			if !hasKey(s.Values, k) {
				return Done{}, BadRequest("Key does not exist.")
			}
		}
		t.Record(&BotStored{ID: me.ID, Forgotten: c.Keys, All: c.Keys == nil})
		return Done{}, nil
	}
	size := 0
	for k, v := range s.Values {
		if !hasKey(c.Values, k) {
			size += runeCount(k) + runeCount(v)
		}
	}
	for k, v := range c.Values {
		size += runeCount(k) + runeCount(v)
	}
	if size > maxBotStorage {
		return Done{}, BadRequest("Request exceeds storage limit by %d characters. The limit is %d characters.", size-maxBotStorage, maxBotStorage)
	}
	if len(c.Values) > 0 {
		t.Record(&BotStored{ID: me.ID, Values: c.Values})
	}
	return Done{}, nil
}

// BotStored says a bot keeps values, or forgets them. Nobody hears of it.
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
	s := r.small.botStorage.ensure(f.ID)
	values := cloneMap(s.Values)
	for k, v := range f.Values {
		values[k] = v
	}
	for _, k := range f.Forgotten {
		delete(values, k)
	}
	s.Values = values
}

func (f *BotStored) tell(*Realm) []Notice { return nil }
