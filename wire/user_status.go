package wire

import (
	"parley/actors/realm"
	"parley/wire/form"
)

var statusEndpoints = []Endpoint{
	Custom("POST", "/users/me/status", setOwnStatus),
	Get("/users/{user_id}/status", getStatus).Returns("{status: Status}"),
	Custom("POST", "/users/{user_id}/status", setStatus),
}

var statusEvents = []EventKind{Event(statusChanged)}

type statusForm struct {
	Text      form.Opt[string] `form:"status_text,strip,maxlen=60"`
	EmojiName form.Opt[string] `form:"emoji_name"`
	EmojiCode form.Opt[string] `form:"emoji_code"`
	EmojiType form.Opt[string] `form:"reaction_type"`
}

type ownStatusForm struct {
	Away *bool `form:"away"`
	statusForm
}

// command returns the change of a status. away says that the request also changes whether presence is shown. The caller
// has checked the permission. The order of the checks is part of the protocol: something is to change, and the name of
// an emoji is sent if one of its other fields is.
func (f *statusForm) command(c *Call, away bool) (realm.SetStatus, error) {
	var cmd realm.SetStatus
	switch {
	case !away && !f.Text.Set && !f.EmojiName.Set:
		return cmd, realm.BadRequest("Client did not pass any new values.")
	case !f.EmojiName.Set && f.EmojiCode.Value+f.EmojiType.Value != "":
		return cmd, realm.BadRequest("Client must pass emoji_name if they pass either emoji_code or reaction_type.")
	}
	if f.Text.Set {
		cmd.Text = &f.Text.Value
	}
	if f.EmojiName.Set {
		cmd.Emoji = &realm.Reaction{}
		if f.EmojiName.Value != "" {
			r, err := Read(c, func(v realm.View) (realm.Reaction, error) {
				return v.ResolveEmoji(addReaction(addReactionForm{Name: f.EmojiName.Value, Code: f.EmojiCode.Value,
					Type: f.EmojiType.Value}))
			})
			if err != nil {
				return cmd, err
			}
			cmd.Emoji = &r
		}
	}
	return cmd, nil
}

// setOwnStatus changes the status of the caller. Clients get the events in the order of the protocol: the setting, the
// presence, and one event with the whole change of the status.
func setOwnStatus(c *Call, f ownStatusForm) (Answer, error) {
	if err := checkPermission(c, func(v realm.View) error {
		_, err := v.RequireHuman()
		return err
	}); err != nil {
		return nil, err
	}
	cmd, err := f.command(c, f.Away != nil)
	if err != nil {
		return nil, err
	}
	if f.Away != nil { // the older way to disable and enable presence
		a, err := Execute(c, realm.ChangeSettings{Values: []realm.SettingValue{{Name: "presence_enabled",
			Value: !*f.Away}}})
		if err != nil {
			return nil, err
		}
		if err := updatePresence(c, a); err != nil {
			return nil, err
		}
		if a.PresenceOff || a.PresenceOn {
			cmd.Away = f.Away
		}
	}
	if cmd.Text == nil && cmd.Emoji == nil && cmd.Away == nil {
		return Answer{}, nil
	}
	_, err = Execute(c, cmd)
	return Answer{}, err
}

type setStatusForm struct {
	User realm.UserID `path:"user_id"`
	statusForm
}

func setStatus(c *Call, f setStatusForm) (Answer, error) {
	if err := checkPermission(c, func(v realm.View) error {
		_, err := v.RequireAdmin()
		return err
	}); err != nil {
		return nil, err
	}
	cmd, err := f.command(c, false)
	if err != nil {
		return nil, err
	}
	cmd.User = f.User
	_, err = Execute(c, cmd)
	return Answer{}, err
}

func getStatus(c *Call, v realm.View, f userIDForm) (Answer, error) {
	u := v.Find(f.User)
	if u == nil || !v.MaySeeUser(u) {
		return nil, realm.BadRequest("No such user")
	}
	return Answer{"status": statusObject(v.StatusOf(u.ID))}, nil
}

// statusObject returns only the fields that are set.
func statusObject(s realm.UserStatus) obj {
	o := obj{}
	if s.Away {
		o["away"] = true
	}
	if s.Text != "" {
		o["status_text"] = s.Text
	}
	if s.EmojiName != "" {
		o["emoji_name"], o["emoji_code"], o["reaction_type"] = s.EmojiName, s.EmojiCode, s.EmojiType
	}
	return o
}

func statusSection(s *initialState) {
	all := obj{}
	s.EachStatus(func(u realm.UserID, x realm.UserStatus) {
		if w := s.Find(u); w != nil && w.Active && s.MaySeeUser(w) {
			all[u.String()] = statusObject(x)
		}
	})
	s.answer["user_status"] = all
}

func statusChanged(e *realm.StatusChanged, to *Recipient) any {
	o := obj{"type": "user_status", "user_id": e.User}
	if e.Away != nil {
		o["away"] = *e.Away
	}
	if e.Text != nil {
		o["status_text"] = *e.Text
	}
	if e.Emoji != nil {
		o["emoji_name"], o["emoji_code"], o["reaction_type"] = e.Emoji.EmojiName, e.Emoji.EmojiCode, e.Emoji.EmojiType
		if e.Emoji.EmojiName == "" {
			o["reaction_type"] = "unicode_emoji" // also of a removed emoji (protocol)
		}
	}
	return o
}
