package wire

import (
	"parley/actors/realm"
	"parley/wire/form"
)

var statusEndpoints = []Endpoint{
	Custom("POST", "/users/me/status", setOwnStatus),
	Get("/users/{user_id}/status", getStatus),
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
func setOwnStatus(c *Call, f ownStatusForm) (noFields, error) {
	if err := checkPermission(c, func(v realm.View) error {
		_, err := v.RequireHuman()
		return err
	}); err != nil {
		return noFields{}, err
	}
	cmd, err := f.command(c, f.Away != nil)
	if err != nil {
		return noFields{}, err
	}
	if f.Away != nil { // the older way to disable and enable presence
		a, err := Execute(c, realm.ChangeSettings{Values: []realm.SettingValue{{Name: "presence_enabled",
			Value: !*f.Away}}})
		if err != nil {
			return noFields{}, err
		}
		if err := updatePresence(c, a); err != nil {
			return noFields{}, err
		}
		if a.PresenceOff || a.PresenceOn {
			cmd.Away = f.Away
		}
	}
	if cmd.Text == nil && cmd.Emoji == nil && cmd.Away == nil {
		return noFields{}, nil
	}
	_, err = Execute(c, cmd)
	return noFields{}, err
}

type setStatusForm struct {
	User realm.UserID `path:"user_id"`
	statusForm
}

func setStatus(c *Call, f setStatusForm) (noFields, error) {
	if err := checkPermission(c, func(v realm.View) error {
		_, err := v.RequireAdmin()
		return err
	}); err != nil {
		return noFields{}, err
	}
	cmd, err := f.command(c, false)
	if err != nil {
		return noFields{}, err
	}
	cmd.User = f.User
	_, err = Execute(c, cmd)
	return noFields{}, err
}

type statusAnswer struct {
	Status statusJSON `json:"status"`
}

func getStatus(c *Call, v realm.View, f userIDForm) (*statusAnswer, error) {
	u := v.Find(f.User)
	if u == nil || !v.MaySeeUser(u) {
		return nil, realm.BadRequest("No such user")
	}
	return &statusAnswer{newStatus(v.StatusOf(u.ID))}, nil
}

// statusJSON has only the fields that are set.
type statusJSON struct {
	Away      bool              `json:"away,omitzero"`
	Text      string            `json:"status_text,omitzero"`
	EmojiName *string           `json:"emoji_name,omitzero"`
	EmojiCode *string           `json:"emoji_code,omitzero"`
	EmojiType *reactionTypeJSON `json:"reaction_type,omitzero"`
}

func newStatus(s realm.UserStatus) statusJSON {
	out := statusJSON{Away: s.Away, Text: s.Text}
	if s.EmojiName != "" {
		out.EmojiName, out.EmojiCode, out.EmojiType = &s.EmojiName, &s.EmojiCode, ptr(reactionTypeJSON(s.EmojiType))
	}
	return out
}

func statusSection(s *initialState) {
	all := map[string]statusJSON{}
	if s.short {
		for _, u := range s.listedUsers() {
			if x := s.StatusOf(u.ID); u.Active && x != (realm.UserStatus{}) {
				all[u.ID.String()] = newStatus(x)
			}
		}
		s.answer.Statuses = all
		return
	}
	s.EachStatus(func(u realm.UserID, x realm.UserStatus) {
		if w := s.Find(u); w != nil && w.Active && s.MaySeeUser(w) {
			all[u.String()] = newStatus(x)
		}
	})
	s.answer.Statuses = all
}

// statusEvent has only the fields that changed.
type statusEvent struct {
	_         struct{}     `const:"type=user_status"`
	User      realm.UserID `json:"user_id"`
	Away      *bool        `json:"away,omitzero"`
	Text      *string      `json:"status_text,omitzero"`
	EmojiName *string      `json:"emoji_name,omitzero"`
	EmojiCode *string      `json:"emoji_code,omitzero"`
	EmojiType *string      `json:"reaction_type,omitzero" enum:"unicode_emoji|realm_emoji|zulip_extra_emoji|"`
}

func statusChanged(e *realm.StatusChanged, to *Recipient) *statusEvent {
	out := &statusEvent{User: e.User, Away: e.Away, Text: e.Text}
	if e.Emoji != nil {
		out.EmojiName, out.EmojiCode, out.EmojiType = &e.Emoji.EmojiName, &e.Emoji.EmojiCode, &e.Emoji.EmojiType
		if e.Emoji.EmojiName == "" {
			out.EmojiType = ptr("unicode_emoji") // also of a removed emoji (protocol)
		}
	}
	return out
}
