package realm

import "slices"

// profileChanges checks custom profile values and returns the facts that set them. With byAdmin also values of fields
// that users may not edit themselves are accepted.
func (t *Turn) profileChanges(u *User, values []ProfileValue, byAdmin bool) ([]Fact, error) {
	var out []Fact
	for _, v := range values {
		text, html, err := t.profileValue(v, byAdmin)
		if err != nil {
			return nil, err
		}
		if u.Profile[v.Field] == text {
			continue
		}
		out = append(out, &ProfileChanged{User: u.ID, Field: v.Field, Value: text, HTML: html})
	}
	return slices.Clip(out), nil
}

// ProfileChanged says that a custom profile value was set; "" removes it.
type ProfileChanged struct {
	User  UserID
	Field int64
	Value string
	HTML  string
}

func (f *ProfileChanged) apply(r *Realm) {
	u := r.users.change(f.User)
	if f.Value == "" {
		delete(u.Profile, f.Field)
		delete(u.ProfileHTML, f.Field)
		return
	}
	if u.Profile == nil {
		u.Profile, u.ProfileHTML = Profile{}, Profile{}
	}
	u.Profile[f.Field] = f.Value
	delete(u.ProfileHTML, f.Field)
	if f.HTML != "" {
		u.ProfileHTML[f.Field] = f.HTML
	}
}

func (f *ProfileChanged) notices(r *Realm) []Notice {
	return []Notice{{To: r.canSeeUserAudience(r.users.must(f.User)), Event: f}}
}

func (*ProfileChanged) EventType() string { return "realm_user" }
