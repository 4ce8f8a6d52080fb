package wire

import (
	"maps"
	"slices"

	"parley/actors/realm"
	"parley/wire/form"
)

var botEndpoints = []Endpoint{
	Custom("GET", "/bots", getBots).Returns("{bots: [OwnBot]}"),
	Custom("POST", "/bots", createBot).
		Returns("{user_id: int, email: str, api_key: str, avatar_url: str, default_sending_stream: str?, " +
			"default_events_register_stream: str?, default_all_public_streams: bool}").
		TakesFile(fileField{imageTypes, MaxAvatarBytes}),
	Custom("PATCH", "/bots/{bot_id}", changeBot).
		Returns("{full_name: str, avatar_url: str, bot_owner?: str, default_sending_stream: str?, " +
			"default_events_register_stream: str?, default_all_public_streams: bool, service_interface: int, " +
			"service_payload_url: str?, config_data: {*: str}?}").TakesFile(fileField{imageTypes, MaxAvatarBytes}),
	CommandFromForm("DELETE", "/bots/{bot_id}", func(f botIDForm) realm.DeactivateUser {
		return realm.DeactivateUser{User: f.Bot, Bot: true}
	}, emptyAnswer),
	Custom("GET", "/bots/{bot_id}/api_key", func(c *Call, f botIDForm) (Answer, error) {
		return botAPIKey(c, f.Bot, false)
	}).Returns("{api_key: str}"),
	Custom("POST", "/bots/{bot_id}/api_key/regenerate", func(c *Call, f botIDForm) (Answer, error) {
		return botAPIKey(c, f.Bot, true)
	}).Returns("{api_key: str}"),
}

var botEvents = []EventKind{
	EventOneOf(func(e *realm.BotChanged, to *Recipient) any {
		op := "update"
		if e.New {
			op = "add"
		}
		bot := botObject(e.ID, e.Details, func(c realm.ChannelID) any {
			if c == e.Details.Sending {
				return nameOrNull(e.Sending)
			}
			return nameOrNull(e.Register)
		})
		if e.Only != nil {
			maps.DeleteFunc(bot, func(k string, _ any) bool { return k != "user_id" && !slices.Contains(e.Only, k) })
		}
		return obj{"type": "realm_bot", "op": op, "bot": bot}
	}),
	EventOneOf(func(e *realm.BotOwnerChanged, to *Recipient) any {
		return obj{"type": "realm_bot", "op": "delete", "bot": obj{"user_id": e.ID}}
	}),
}

type botIDForm struct {
	Bot realm.UserID `path:"bot_id"`
}

// nameOrNull returns the name, or nil (JSON null) if it is empty.
func nameOrNull(name string) any {
	if name == "" {
		return nil
	}
	return name
}

// botObject returns the details of a bot that its owner and administrators can see. names returns the name of a
// channel, or nil if it must not be shown.
func botObject(id realm.UserID, d realm.BotDetails, names func(realm.ChannelID) any) obj {
	channel := func(c realm.ChannelID) any {
		if c == 0 || names == nil {
			return nil
		}
		return names(c)
	}
	services := []any{}
	for _, s := range d.Services {
		o := obj{"base_url": s.URL, "interface": s.Interface, "token": s.Token}
		if s.URL == "" { // an embedded bot, or an incoming webhook with the secret of its service
			o = obj{"service_name": s.Name, "config_data": s.Config}
		}
		services = append(services, o)
	}
	return obj{"user_id": id, "default_sending_stream": channel(d.Sending),
		"default_events_register_stream": channel(d.Register), "default_all_public_streams": d.AllPublic,
		"services": services}
}

// botObjects returns the bots whose details the caller can see: administrators see all bots, other users their own.
func botObjects(v realm.View) []any {
	list := []any{}
	me := v.Me()
	if me == nil {
		return list
	}
	v.EachBot(func(u *realm.User) {
		if u.BotOwner == me.ID || me.IsAdmin() {
			list = append(list, botObject(u.ID, v.BotOf(u.ID), channelNameLookup(v)))
		}
	})
	return list
}

// channelNameLookup returns a function from a channel id to its name, nil for a channel that does not exist or that
// the caller must not know of.
func channelNameLookup(v realm.View) func(realm.ChannelID) any {
	return func(id realm.ChannelID) any {
		if c := v.FindChannel(id); c != nil && v.MaySeeChannel(c) {
			return c.Name
		}
		return nil
	}
}

// getBots lists the caller's own active bots with their API keys. Bots that outrank the caller are left out.
func getBots(c *Call, _ noParameters) (Answer, error) {
	list, err := Read(c, func(v realm.View) ([]obj, error) {
		me, err := v.RequireHuman()
		if err != nil {
			return nil, err
		}
		if me.IsGuest() {
			return nil, realm.BadRequest("Not allowed for guest users")
		}
		list := []obj{}
		v.EachBot(func(u *realm.User) {
			if _, err := v.ManagedBot(u.ID); err == nil && u.Active && u.BotOwner == me.ID {
				o := botObject(u.ID, v.BotOf(u.ID), channelNameLookup(v))
				o["username"], o["full_name"], o["avatar_url"] = u.Email, u.Name,
					avatarURL(v.UserInfo(u.ID), c.Site, false)
				list = append(list, o)
			}
		})
		return list, nil
	})
	if err != nil {
		return nil, err
	}
	for _, o := range list {
		key, err := botAPIKey(c, o["user_id"].(realm.UserID), false)
		if err != nil {
			return nil, err
		}
		o["api_key"] = key["api_key"]
	}
	return Answer{"bots": list}, nil
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

func createBot(c *Call, f createBotForm) (Answer, error) {
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
	return Read(c, func(v realm.View) (Answer, error) {
		d := v.BotOf(b.ID)
		a := Answer(botObject(b.ID, d, channelNameLookup(v)))
		delete(a, "services")
		a["api_key"], a["email"], a["avatar_url"] = b.Key, v.Find(b.ID).Email,
			avatarURL(v.UserInfo(b.ID), c.Site, false)
		return a, nil
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
func changeBot(c *Call, f editBotForm) (Answer, error) {
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
	return Read(c, func(v realm.View) (Answer, error) {
		u, d := v.Find(f.Bot), v.BotOf(f.Bot)
		a := Answer(botObject(u.ID, d, channelNameLookup(v)))
		delete(a, "services")
		delete(a, "user_id")
		a["full_name"], a["avatar_url"] = u.Name, avatarURL(v.UserInfo(u.ID), c.Site, false)
		if o := v.Find(u.BotOwner); o != nil {
			a["bot_owner"] = apiEmail(v.UserInfo(o.ID), c.Site)
		}
		// of every bot, as in the protocol
		a["service_interface"], a["service_payload_url"], a["config_data"] = genericInterface, nil, nil
		if len(d.Services) > 0 {
			s := d.Services[0]
			a["service_interface"], a["service_payload_url"] = max(s.Interface, genericInterface), nameOrNull(s.URL)
			if len(s.Config) > 0 {
				a["config_data"] = s.Config
			}
		}
		return a, nil
	})
}

// botAPIKey returns the API key of a bot that the caller manages. renew makes a new key and invalidates the old one.
func botAPIKey(c *Call, bot realm.UserID, renew bool) (Answer, error) {
	key, err := Execute(c, realm.IssueBotKey{Bot: bot, Renew: renew})
	return Answer{"api_key": key}, err
}
