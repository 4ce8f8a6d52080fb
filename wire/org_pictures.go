package wire

import (
	"errors"
	"io"
	"strconv"

	"parley/actors/realm"
)

var pictureEndpoints = []Endpoint{
	Custom("GET", "/realm/icon", func(c *Call, _ noParameters) (noFields, error) {
		return noFields{}, pictureRedirect(c, realm.Icon)
	}).Redirects(),
	Custom("POST", "/realm/icon", func(c *Call, _ noParameters) (*iconAnswer, error) {
		p, err := setPicture(c, realm.Icon, "You must upload exactly one icon.", c.Tools.Files.SaveAvatar)
		return newIconAnswer(c, p), err
	}).TakesFile(fileField{imageTypes, MaxAvatarBytes}),
	Custom("DELETE", "/realm/icon", func(c *Call, _ noParameters) (*iconAnswer, error) {
		p, err := Execute(c, realm.SetPicture{Kind: realm.Icon})
		return newIconAnswer(c, p), err
	}),
	Custom("GET", "/realm/logo", func(c *Call, f logoForm) (noFields, error) {
		return noFields{}, pictureRedirect(c, f.kind())
	}).Redirects(),
	Custom("POST", "/realm/logo", func(c *Call, f logoForm) (noFields, error) {
		_, err := setPicture(c, f.kind(), "You must upload exactly one logo.", c.Tools.Files.SaveLogo)
		return noFields{}, err
	}).TakesFile(fileField{imageTypes, MaxAvatarBytes}),
	CommandFromForm("DELETE", "/realm/logo", func(f logoForm) realm.SetPicture {
		return realm.SetPicture{Kind: f.kind()}
	}, func(realm.Picture) noFields { return noFields{} }),
}

var pictureEvents = []EventKind{
	EventOneOf(func(e *realm.PictureChanged, to *Recipient) any {
		source, url := e.Picture.Source, pictureURL(e.Kind, e.Picture, to.Site)
		switch e.Kind {
		case realm.Icon:
			return &iconEvent{Data: iconFields{source, url}}
		case realm.Logo:
			return &logoEvent{Data: logoFields{source, url}}
		}
		return &nightLogoEvent{Data: nightLogoFields{source, url}}
	}).sends(formOf[iconEvent](), formOf[logoEvent](), formOf[nightLogoEvent]()),
}

// iconAnswer has the new URL. For logos the protocol sends the URL only in the event.
type iconAnswer struct {
	URL string `json:"icon_url"`
}

func newIconAnswer(c *Call, p realm.Picture) *iconAnswer {
	return &iconAnswer{pictureURL(realm.Icon, p, c.Site)}
}

type iconEvent struct {
	_    struct{}   `const:"type=realm op=update_dict property=icon"`
	Data iconFields `json:"data"`
}

type logoEvent struct {
	_    struct{}   `const:"type=realm op=update_dict property=logo"`
	Data logoFields `json:"data"`
}

type nightLogoEvent struct {
	_    struct{}        `const:"type=realm op=update_dict property=night_logo"`
	Data nightLogoFields `json:"data"`
}

type iconFields struct {
	Source string `json:"icon_source"`
	URL    string `json:"icon_url"`
}

type logoFields struct {
	Source string `json:"logo_source"`
	URL    string `json:"logo_url"`
}

type nightLogoFields struct {
	Source string `json:"night_logo_source"`
	URL    string `json:"night_logo_url"`
}

// logoForm selects the logo for the light or the dark theme.
type logoForm struct {
	Night bool `form:"night,required"`
}

func (f logoForm) kind() string {
	if f.Night {
		return realm.NightLogo
	}
	return realm.Logo
}

// pictureURL returns the URL of one of the organization's pictures. The version in it changes with the picture, so
// clients can cache it.
func pictureURL(kind string, p realm.Picture, s Site) string {
	version := ".png?version=" + strconv.Itoa(p.Version)
	switch {
	case p.File != "":
		return "/user_avatars/" + realmPath(s) + "/realm/" + p.File + version
	case kind == realm.Icon:
		return "/user_avatars/" + realmPath(s) + "/icon" + version
	}
	// the name in official releases, which have one logo for both themes
	return "/static/images/logo/zulip-org-logo.svg?version=" + strconv.Itoa(p.Version)
}

// pictureRedirect returns a redirect to a picture, or another error.
func pictureRedirect(c *Call, kind string) error {
	url, err := Read(c, func(v realm.View) (string, error) {
		return pictureURL(kind, v.Org().PictureOf(kind), c.Site), nil
	})
	if err != nil {
		return err
	}
	return Redirect{url}
}

// Redirect is the error of an endpoint that answers with a redirect.
type Redirect struct{ URL string }

func (r Redirect) Error() string { return "the answer is at " + r.URL }

func setPicture(
	c *Call, kind, one string, save func(realm.ID, io.Reader, int64) (string, error),
) (p realm.Picture, err error) {
	// The permission is checked first, because decoding a picture is expensive.
	err = checkPermission(c, func(v realm.View) error {
		_, err := v.RequireAdmin()
		return err
	})
	if err != nil {
		return p, err
	}
	_, r, err := openPicture(c, one, one)
	if err != nil {
		return p, err
	}
	defer r.Close()
	name, err := save(c.Realm, r, MaxAvatarBytes)
	if err != nil {
		return p, refusalOfPicture(c, err, MaxAvatarBytes>>20)
	}
	p, err = Execute(c, realm.SetPicture{Kind: kind, File: name})
	return p, errors.Join(err, c.Tools.Files.Release(name, nil))
}
