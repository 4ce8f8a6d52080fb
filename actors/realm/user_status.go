package realm

import "strings"

// UserStatus is the row of one user's status.
type UserStatus struct {
	Text      string
	EmojiName string
	EmojiCode string
	EmojiType string
	Away      bool `msgpack:"-"` // hides presence; derived from a setting
}

func (u *User) away() bool { return !u.System && !u.IsBot() && !u.BoolSetting("presence_enabled") }

// maxStatusText is the maximum length of a status in code points (protocol).
const maxStatusText = 60

// StatusOf returns a user's status.
func (r *Realm) StatusOf(u UserID) (s UserStatus) {
	if row := r.small.statuses.find(u); row != nil {
		s = *row
	}
	s.Away = r.index.presenceHidden.Has(int64(u))
	return s
}

// statusNotices returns the event with the status of a new or reactivated account, for users who may see it.
func (r *Realm) statusNotices(u *User) []Notice {
	s := r.StatusOf(u.ID)
	to := r.canSeeUserAudience(u)
	if s == (UserStatus{}) || len(to) == 0 {
		return nil
	}
	return []Notice{{To: to, Event: &StatusChanged{User: u.ID, Text: &s.Text, Emoji: &s, Away: &s.Away}}}
}

// SetStatus asks to change a status. Nil fields stay unchanged, empty ones are cleared.
type SetStatus struct {
	User  UserID // 0: the caller; only administrators may set others
	Text  *string
	Emoji *Reaction // name, code and type; an empty name clears it
	// Away is the change of presence_enabled that was made before, for the event only: older clients know it as a part
	// of the status.
	Away *bool
}

func (c SetStatus) Decide(t *Turn) (Done, error) {
	user := c.User
	if user == 0 {
		me, err := t.RequireHuman()
		if err != nil {
			return Done{}, err
		}
		user = me.ID
	} else {
		if _, err := t.RequireAdmin(); err != nil {
			return Done{}, err
		}
		if u := t.Find(user); u == nil || u.System || u.IsBot() {
			return Done{}, errNoUser()
		}
	}
	if c.Text == nil && c.Emoji == nil && c.Away == nil {
		return Done{}, BadRequest("Client did not pass any new values.")
	}
	f := &StatusChanged{User: user, Away: c.Away}
	if c.Text != nil {
		text := strings.TrimSpace(*c.Text)
		if runeCount(text) > maxStatusText {
			return Done{}, BadRequest("status_text is too long (limit: %d characters)", maxStatusText)
		}
		f.Text = &text
	}
	if c.Emoji != nil {
		f.Emoji = &UserStatus{EmojiName: c.Emoji.Name, EmojiCode: c.Emoji.Code, EmojiType: c.Emoji.Type}
	}
	t.Record(f)
	return Done{}, nil
}

// StatusChanged says that a user's status changed. It is also the event user_status.
type StatusChanged struct {
	User  UserID
	Text  *string
	Emoji *UserStatus // only its emoji fields are used
	Away  *bool       // only in events: it follows from a setting
}

func (f *StatusChanged) apply(r *Realm) {
	s := r.small.statuses.ensure(f.User)
	if f.Text != nil {
		s.Text = *f.Text
	}
	if f.Emoji != nil {
		s.EmojiName, s.EmojiCode, s.EmojiType = f.Emoji.EmojiName, f.Emoji.EmojiCode, f.Emoji.EmojiType
	}
	if *s == (UserStatus{}) {
		r.small.statuses.remove(f.User)
	}
}

func (f *StatusChanged) notices(r *Realm) []Notice {
	return []Notice{{To: r.canSeeUserAudience(r.users.must(f.User)), Event: f}}
}

func (*StatusChanged) EventType() string { return "user_status" }

// EachStatus calls fn with the status of every user that has one or hides presence.
func (r *Realm) EachStatus(fn func(UserID, UserStatus)) {
	users := r.index.presenceHidden.Clone()
	for u := range r.small.statuses.all() {
		users.Add(int64(u))
	}
	users.Each(func(u int64) bool {
		fn(UserID(u), r.StatusOf(UserID(u)))
		return true
	})
}
