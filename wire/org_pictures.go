package wire

import (
	"errors"
	"io"
	"strconv"

	"parley/actors/realm"
)

var pictureEndpoints = []Endpoint{
	Custom("GET", "/realm/icon", func(c *Call, _ noParameters) (Answer, error) {
		return pictureRedirect(c, realm.Icon)
	}).Redirects(),
	Custom("POST", "/realm/icon", func(c *Call, _ noParameters) (Answer, error) {
		return setPicture(c, realm.Icon, "You must upload exactly one icon.", c.Tools.Files.SaveAvatar)
	}).Returns("{icon_url: str}").TakesFile(fileField{imageTypes, MaxAvatarBytes}),
	Custom("DELETE", "/realm/icon", func(c *Call, _ noParameters) (Answer, error) {
		return removePicture(c, realm.Icon)
	}).Returns("{icon_url: str}"),
	Custom("GET", "/realm/logo", func(c *Call, f logoForm) (Answer, error) {
		return pictureRedirect(c, f.kind())
	}).Redirects(),
	Custom("POST", "/realm/logo", func(c *Call, f logoForm) (Answer, error) {
		return setPicture(c, f.kind(), "You must upload exactly one logo.", c.Tools.Files.SaveLogo)
	}).TakesFile(fileField{imageTypes, MaxAvatarBytes}),
	Custom("DELETE", "/realm/logo", func(c *Call, f logoForm) (Answer, error) { return removePicture(c, f.kind()) }),
}

var pictureEvents = []EventKind{
	EventOneOf(func(e *realm.PictureChanged, to *Recipient) any {
		source, url := pictureFields(e.Kind)
		return obj{"type": "realm", "op": "update_dict", "property": e.Kind,
			"data": obj{source: e.Picture.Source, url: pictureURL(e.Kind, e.Picture, to.Site)}}
	}),
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

// pictureFields returns the field names of a picture's source and URL. Registrations prefix them with realm_.
func pictureFields(kind string) (source, url string) { return kind + "_source", kind + "_url" }

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

// pictureRedirect answers with a redirect to a picture.
func pictureRedirect(c *Call, kind string) (Answer, error) {
	url, err := Read(c, func(v realm.View) (string, error) {
		return pictureURL(kind, v.Org().PictureOf(kind), c.Site), nil
	})
	if err != nil {
		return nil, err
	}
	return nil, Redirect{url}
}

// Redirect is the error of an endpoint that answers with a redirect.
type Redirect struct{ URL string }

func (r Redirect) Error() string { return "the answer is at " + r.URL }

func setPicture(c *Call, kind, one string, save func(realm.ID, io.Reader, int64) (string, error)) (Answer, error) {
	// The permission is checked first, because decoding a picture is expensive.
	err := checkPermission(c, func(v realm.View) error {
		_, err := v.RequireAdmin()
		return err
	})
	if err != nil {
		return nil, err
	}
	_, r, err := openPicture(c, one, one)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	name, err := save(c.Realm, r, MaxAvatarBytes)
	if err != nil {
		return nil, refusalOfPicture(c, err, MaxAvatarBytes>>20)
	}
	p, err := Execute(c, realm.SetPicture{Kind: kind, File: name})
	return pictureAnswer(c, kind, p), errors.Join(err, c.Tools.Files.Release(name, nil))
}

func removePicture(c *Call, kind string) (Answer, error) {
	p, err := Execute(c, realm.SetPicture{Kind: kind})
	return pictureAnswer(c, kind, p), err
}

// pictureAnswer returns the new URL of the icon. For logos the protocol sends the URL only in the event.
func pictureAnswer(c *Call, kind string, p realm.Picture) Answer {
	if kind != realm.Icon {
		return Answer{}
	}
	return Answer{"icon_url": pictureURL(kind, p, c.Site)}
}
