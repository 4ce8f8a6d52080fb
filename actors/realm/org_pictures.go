package realm

// Kinds of pictures of the organization: its icon, and its logo for light and dark themes.
const (
	Icon      = "icon"
	Logo      = "logo"
	NightLogo = "night_logo"
)

// Picture is one of the organization's pictures: its source, the name of the uploaded file, and how often it changed.
type Picture struct {
	Source  string // U: uploaded; G and D: default of the icon and of the logos
	File    string
	Version int
}

// PictureOf returns the picture of a kind.
func (o *Organization) PictureOf(kind string) Picture {
	source, file, version := o.picture(kind)
	return Picture{*source, *file, *version}
}

// picture returns where the picture of a kind is stored.
func (o *Organization) picture(kind string) (source, file *string, version *int) {
	switch kind {
	case Icon:
		return &o.IconSource, &o.IconFile, &o.IconVersion
	case Logo:
		return &o.LogoSource, &o.LogoFile, &o.LogoVersion
	}
	return &o.NightLogoSource, &o.NightLogoFile, &o.NightLogoVersion
}

// SetPicture asks to change a picture of the organization. Without a file it becomes the default again.
type SetPicture struct{ Kind, File string }

func (c SetPicture) Decide(t *Turn) (Picture, error) {
	if _, err := t.RequireAdmin(); err != nil {
		return Picture{}, err
	}
	p := Picture{Source: "U", File: c.File, Version: t.Org().PictureOf(c.Kind).Version + 1}
	if c.File == "" {
		p.Source = "D"
		if c.Kind == Icon {
			p.Source = "G"
		}
	}
	t.Record(&PictureChanged{c.Kind, p})
	return p, nil
}

// PictureChanged says that a picture of the organization was changed.
type PictureChanged struct {
	Kind    string
	Picture Picture
}

func (f *PictureChanged) apply(r *Realm) {
	source, file, version := r.org.change(0).picture(f.Kind)
	*source, *file, *version = f.Picture.Source, f.Picture.File, f.Picture.Version
}

func (f *PictureChanged) notices(r *Realm) []Notice {
	return []Notice{{To: r.everyoneAudience(), Event: f}}
}
func (*PictureChanged) EventType() string { return "realm" }
