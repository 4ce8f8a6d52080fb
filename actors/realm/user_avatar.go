package realm

// SetAvatar asks for another avatar of the caller. An empty file name means the generated one.
type SetAvatar struct{ File string }

// MayChangeAvatar returns the caller, or a refusal if the caller is not allowed to change their avatar.
func (v View) MayChangeAvatar() (*User, error) {
	me, err := v.RequireHuman()
	if err != nil {
		return nil, err
	}
	if v.OrgBool("avatar_changes_disabled") && !me.IsAdmin() {
		return nil, BadRequest("Avatar changes are disabled in this organization.")
	}
	return me, nil
}

func (c SetAvatar) Decide(t *Turn) (UserInfo, error) {
	me, err := t.MayChangeAvatar()
	if err != nil {
		return UserInfo{}, err
	}
	source := "U"
	if c.File == "" {
		source = t.OrgText("default_avatar_source")
	}
	t.Record(&AvatarChanged{User: me.ID, Source: source, File: c.File, Version: me.AvatarVersion + 1})
	return t.UserInfo(me.ID), nil
}

// AvatarChanged gives a user or bot another avatar.
type AvatarChanged struct {
	User         UserID
	Source, File string
	Version      int
}

func (f *AvatarChanged) apply(r *Realm) {
	u := r.users.change(f.User)
	u.Avatar, u.AvatarFile, u.AvatarVersion = f.Source, f.File, f.Version
}

func (f *AvatarChanged) notices(r *Realm) []Notice {
	return []Notice{{To: r.canSeeUserAudience(r.users.must(f.User)), Event: &AvatarShown{r.UserInfo(f.User)}}}
}

// AvatarShown is the event realm_user/update of an avatar.
type AvatarShown struct{ Person UserInfo }

func (*AvatarShown) EventType() string { return "realm_user" }
