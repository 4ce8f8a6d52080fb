package wire

import (
	"slices"

	"parley/actors/realm"
	"parley/wire/form"
)

var botEndpoints = []Endpoint{
	Custom("GET", "/bots", getBots),
	Custom("POST", "/bots", createBot).TakesFile(fileField{imageTypes, MaxAvatarBytes}),
	Custom("PATCH", "/bots/{bot_id}", changeBot).TakesFile(fileField{imageTypes, MaxAvatarBytes}),
	CommandFromForm("DELETE", "/bots/{bot_id}", func(f botIDForm) realm.DeactivateUser {
		return realm.DeactivateUser{User: f.Bot, Bot: true}
	}, emptyAnswer),
	Custom("GET", "/bots/{bot_id}/api_key", func(c *Call, f botIDForm) (*botKeyAnswer, error) {
		return botAPIKey(c, f.Bot, false)
	}),
	Custom("POST", "/bots/{bot_id}/api_key/regenerate", func(c *Call, f botIDForm) (*botKeyAnswer, error) {
		return botAPIKey(c, f.Bot, true)
	}),
}

var botEvents = []EventKind{
	EventOneOf(botChanged).sends(formOf[botAddedEvent](), formOf[botUpdatedEvent]()),
	Event(func(e *realm.BotOwnerChanged, _ *Recipient) *botDeletedEvent {
		out := &botDeletedEvent{}
		out.Bot.ID = e.ID
		return out
	}),
}

type botsAnswer struct {
	Bots []ownBotJSON `json:"bots"`
}

type createdBotAnswer struct {
	botDefaults
	ID     realm.UserID `json:"user_id"`
	Email  string       `json:"email"`
	Avatar string       `json:"avatar_url"`
	Key    string       `json:"api_key"`
}

// changedBotAnswer is a bot after a change. The fields of a service are of every bot, as in the protocol.
type changedBotAnswer struct {
	botDefaults
	Name      string            `json:"full_name"`
	Avatar    string            `json:"avatar_url"`
	Owner     *string           `json:"bot_owner,omitzero"`
	Interface int               `json:"service_interface"`
	URL       string            `json:"service_payload_url" zero:"null"`
	Config    map[string]string `json:"config_data" zero:"null"`
}

type botKeyAnswer struct {
	Key string `json:"api_key"`
}

type botAddedEvent struct {
	_   struct{} `const:"type=realm_bot op=add"`
	Bot botJSON  `json:"bot"`
}

// botUpdatedEvent has the changed fields.
type botUpdatedEvent struct {
	_   struct{} `const:"type=realm_bot op=update"`
	Bot struct {
		ID        realm.UserID     `json:"user_id"`
		Sending   *orNull[string]  `json:"default_sending_stream,omitzero"`
		Register  *orNull[string]  `json:"default_events_register_stream,omitzero"`
		AllPublic *bool            `json:"default_all_public_streams,omitzero"`
		Services  []botServiceJSON `json:"services,omitzero"`
	} `json:"bot"`
}

type botDeletedEvent struct {
	_   struct{} `const:"type=realm_bot op=delete"`
	Bot struct {
		ID realm.UserID `json:"user_id"`
	} `json:"bot"`
}

// botDefaults are the settings of a bot that asks for no others, with the names of channels.
type botDefaults struct {
	Sending   *string `json:"default_sending_stream"`
	Register  *string `json:"default_events_register_stream"`
	AllPublic bool    `json:"default_all_public_streams"`
}

// botJSON is the details of a bot that its owner and administrators can see.
type botJSON struct {
	ID realm.UserID `json:"user_id"`
	botDefaults
	Services []botServiceJSON `json:"services"`
}

// ownBotJSON is a bot in the list of its owner.
type ownBotJSON struct {
	botJSON
	Email  string `json:"username"`
	Name   string `json:"full_name"`
	Avatar string `json:"avatar_url"`
	Key    string `json:"api_key"`
}

// botServiceJSON is the service of an outgoing webhook, of an embedded bot, or of an incoming webhook with a secret.
type botServiceJSON struct {
	either[outgoingService, configuredService]
}

type outgoingService struct {
	URL       string `json:"base_url"`
	Interface int    `json:"interface"`
	Token     string `json:"token"`
}

type configuredService struct {
	Name   string            `json:"service_name"`
	Config map[string]string `json:"config_data"`
}

func botChanged(e *realm.BotChanged, _ *Recipient) any {
	bot := newBot(e.ID, e.Details, func(c realm.ChannelID) *string {
		if c == e.Details.Sending {
			return nameOrNull(e.Sending)
		}
		return nameOrNull(e.Register)
	})
	if e.New {
		return &botAddedEvent{Bot: bot}
	}
	changed := func(name string) bool { return e.Only == nil || slices.Contains(e.Only, name) }
	out := &botUpdatedEvent{}
	out.Bot.ID = e.ID
	if changed("default_sending_stream") {
		out.Bot.Sending = &orNull[string]{bot.Sending}
	}
	if changed("default_events_register_stream") {
		out.Bot.Register = &orNull[string]{bot.Register}
	}
	if changed("default_all_public_streams") {
		out.Bot.AllPublic = &bot.AllPublic
	}
	if changed("services") {
		out.Bot.Services = bot.Services
	}
	return out
}

type botIDForm struct {
	Bot realm.UserID `path:"bot_id"`
}

// nameOrNull returns a name, nil (JSON null) if it is empty.
func nameOrNull(name string) *string {
	if name == "" {
		return nil
	}
	return &name
}

// newBot returns the details of a bot. names returns the name of a channel, nil if it must not be shown.
func newBot(id realm.UserID, d realm.BotDetails, names func(realm.ChannelID) *string) botJSON {
	return botJSON{id, newBotDefaults(d, names), each(d.Services, newBotService)}
}

func newBotDefaults(d realm.BotDetails, names func(realm.ChannelID) *string) (out botDefaults) {
	out.AllPublic = d.AllPublic
	if d.Sending != 0 {
		out.Sending = names(d.Sending)
	}
	if d.Register != 0 {
		out.Register = names(d.Register)
	}
	return out
}

func newBotService(s realm.Service) (out botServiceJSON) {
	if out.value = (outgoingService{s.URL, s.Interface, s.Token}); s.URL == "" {
		out.value = configuredService{s.Name, s.Config}
	}
	return out
}

// visibleBots returns the bots whose details the caller can see: administrators see all bots, other users their own.
func visibleBots(v realm.View, onlyOwn bool) []botJSON {
	list := []botJSON{}
	me := v.Me()
	if me == nil {
		return list
	}
	v.EachBot(func(u *realm.User) {
		if u.BotOwner == me.ID || me.IsAdmin() && !onlyOwn {
			list = append(list, newBot(u.ID, v.BotOf(u.ID), channelNameLookup(v)))
		}
	})
	return list
}

// channelNameLookup returns a function from a channel id to its name, nil for a channel that does not exist or that
// the caller must not know of.
func channelNameLookup(v realm.View) func(realm.ChannelID) *string {
	return func(id realm.ChannelID) *string {
		if c := v.FindChannel(id); c != nil && v.MaySeeChannel(c) {
			return ptr(c.Name)
		}
		return nil
	}
}

// getBots lists the caller's own active bots with their API keys. Bots that outrank the caller are left out.
func getBots(c *Call, _ noParameters) (*botsAnswer, error) {
	out, err := Read(c, func(v realm.View) (*botsAnswer, error) {
		me, err := v.RequireHuman()
		if err != nil {
			return nil, err
		}
		if me.IsGuest() {
			return nil, realm.BadRequest("Not allowed for guest users")
		}
		out := &botsAnswer{}
		v.EachBot(func(u *realm.User) {
			if _, err := v.ManagedBot(u.ID); err == nil && u.Active && u.BotOwner == me.ID {
				out.Bots = append(out.Bots, ownBotJSON{botJSON: newBot(u.ID, v.BotOf(u.ID), channelNameLookup(v)),
					Email: u.Email, Name: u.Name, Avatar: ownAvatarURL(v.UserInfo(u.ID), c.Site)})
			}
		})
		return out, nil
	})
	if err != nil {
		return nil, err
	}
	for i := range out.Bots {
		b := &out.Bots[i]
		if b.Key, err = Execute(c, realm.IssueBotKey{Bot: b.ID}); err != nil {
			return nil, err
		}
	}
	return out, nil
}

type createBotForm struct {
	Name        string            `form:"full_name,required,strip"`
	ShortName   string            `form:"short_name,required,strip"`
	Type        realm.BotType     `form:"bot_type,default=1"`
	URL         string            `form:"payload_url,json"`
	Interface   int               `form:"interface_type,default=1"`
	ServiceName string            `form:"service_name"`
	Config      map[string]string `form:"config_data"`
	Sending     string            `form:"default_sending_stream"`
	Register    string            `form:"default_events_register_stream"`
	AllPublic   bool              `form:"default_all_public_streams"`
}

func createBot(c *Call, f createBotForm) (*createdBotAnswer, error) {
	if err := checkPermission(c, func(v realm.View) error { return v.CheckNewBot(f.Name) }); err != nil {
		return nil, err
	}
	if f.Type == realm.OutgoingWebhook && !realm.IsWebURL(f.URL, true) {
		return nil, form.Invalid("Not a URL").Named("payload_url")
	}
	cmd := realm.CreateBot{
		Name:        f.Name,
		ShortName:   f.ShortName,
		Email:       botEmail(f.ShortName, c.Site),
		Type:        f.Type,
		URL:         f.URL,
		ServiceName: f.ServiceName,
		Interface:   f.Interface,
		Config:      f.Config,
		Sending:     f.Sending,
		Register:    f.Register,
		AllPublic:   f.AllPublic,
	}
	permitted := func(v realm.View) error { return v.MayCreateBot(f.Type) }
	b, err := withBotAvatar(c, permitted, func(file string) (realm.BotMade, error) {
		cmd.Avatar = file
		return Execute(c, cmd)
	})
	if err != nil {
		return nil, err
	}
	return Read(c, func(v realm.View) (*createdBotAnswer, error) {
		return &createdBotAnswer{newBotDefaults(v.BotOf(b.ID), channelNameLookup(v)), b.ID, v.Find(b.ID).Email,
			ownAvatarURL(v.UserInfo(b.ID), c.Site), b.Key}, nil
	})
}

// withBotAvatar calls change with the stored avatar of the request, or with "" if the request has none. It checks the
// permission first, because decoding a picture is expensive.
func withBotAvatar[A any](
	c *Call, permitted func(realm.View) error, change func(file string) (A, error),
) (a A, err error) {
	if err := checkPermission(c, permitted); err != nil {
		return a, err
	}
	files, err := c.Files()
	if err != nil {
		return a, err
	}
	if len(files) == 0 {
		return change("")
	}
	return withSavedAvatar(c, missingFile, tooManyFiles, change)
}

// botEmail returns the email address of a bot: its short name at the organization's host.
func botEmail(short string, s Site) string { return short + "-bot@" + s.Host }

type editBotForm struct {
	Bot       realm.UserID           `path:"bot_id"`
	Name      form.Opt[string]       `form:"full_name,strip"`
	ShortName form.Opt[string]       `form:"short_name,strip"`
	Owner     form.Opt[realm.UserID] `form:"bot_owner_id"`
	Role      form.Opt[realm.Role]   `form:"role,in=100|200|300|400|600"`
	URL       form.Opt[string]       `form:"service_payload_url,json"`
	Interface form.Opt[int]          `form:"service_interface"`
	Config    map[string]string      `form:"config_data"`
	Sending   form.Opt[string]       `form:"default_sending_stream"`
	Register  form.Opt[string]       `form:"default_events_register_stream"`
	AllPublic form.Opt[bool]         `form:"default_all_public_streams"`
}

func editBot(c *Call, f editBotForm) (realm.EditBot, error) {
	cmd := realm.EditBot{
		Bot:       f.Bot,
		Config:    f.Config,
		Name:      pointerIfSet(f.Name),
		Owner:     pointerIfSet(f.Owner),
		Role:      pointerIfSet(f.Role),
		URL:       pointerIfSet(f.URL),
		Interface: pointerIfSet(f.Interface),
		Sending:   pointerIfSet(f.Sending),
		Register:  pointerIfSet(f.Register),
		AllPublic: pointerIfSet(f.AllPublic),
	}
	if f.URL.Set && !realm.IsWebURL(f.URL.Value, true) {
		return cmd, form.Invalid("Not a URL").Named("service_payload_url")
	}
	if f.ShortName.Set {
		email := botEmail(f.ShortName.Value, c.Site)
		cmd.Email, cmd.ShortName = &email, f.ShortName.Value
	}
	return cmd, nil
}

// genericInterface is the format in which services get messages unless another one is set.
const genericInterface = 1

// changeBot runs editBot and answers with the bot as it is after the change.
func changeBot(c *Call, f editBotForm) (*changedBotAnswer, error) {
	cmd, err := editBot(c, f)
	if err == nil {
		permitted := func(v realm.View) error {
			_, err := v.ManagedBot(f.Bot)
			return err
		}
		_, err = withBotAvatar(c, permitted, func(file string) (realm.Done, error) {
			cmd.Avatar = file
			return Execute(c, cmd)
		})
	}
	if err != nil {
		return nil, err
	}
	return Read(c, func(v realm.View) (*changedBotAnswer, error) {
		u, d := v.Find(f.Bot), v.BotOf(f.Bot)
		a := &changedBotAnswer{botDefaults: newBotDefaults(d, channelNameLookup(v)), Name: u.Name,
			Avatar: ownAvatarURL(v.UserInfo(u.ID), c.Site), Interface: genericInterface}
		if o := v.Find(u.BotOwner); o != nil {
			a.Owner = ptr(apiEmail(v.UserInfo(o.ID), c.Site))
		}
		if len(d.Services) > 0 {
			s := d.Services[0]
			a.Interface, a.URL = max(s.Interface, genericInterface), s.URL
			if len(s.Config) > 0 {
				a.Config = s.Config
			}
		}
		return a, nil
	})
}

// botAPIKey returns the API key of a bot that the caller manages. renew makes a new key and invalidates the old one.
func botAPIKey(c *Call, bot realm.UserID, renew bool) (*botKeyAnswer, error) {
	key, err := Execute(c, realm.IssueBotKey{Bot: bot, Renew: renew})
	return &botKeyAnswer{key}, err
}
