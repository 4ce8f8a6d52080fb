package wire

import (
	"errors"
	"io"
	"strconv"

	"parley/actors/realm"
)

var pictureEndpoints = []Endpoint{
	Custom("GET", "/realm/icon", func(c *Call, _ none) (Answer, error) { return pictureRedirect(c, realm.Icon) }).Leads(),
	Custom("POST", "/realm/icon", func(c *Call, _ none) (Answer, error) {
		return setPicture(c, realm.Icon, "You must upload exactly one icon.", c.Tools.Files.SaveAvatar)
	}).Says("{icon_url: str}").Takes(fileField{imageTypes, MaxAvatar}),
	Custom("DELETE", "/realm/icon", func(c *Call, _ none) (Answer, error) { return dropPicture(c, realm.Icon) }).Says("{icon_url: str}"),
	Custom("GET", "/realm/logo", func(c *Call, f nightForm) (Answer, error) { return pictureRedirect(c, f.kind()) }).Leads(),
	Custom("POST", "/realm/logo", func(c *Call, f nightForm) (Answer, error) {
		return setPicture(c, f.kind(), "You must upload exactly one logo.", c.Tools.Files.SaveLogo)
	}).Takes(fileField{imageTypes, MaxAvatar}),
	Custom("DELETE", "/realm/logo", func(c *Call, f nightForm) (Answer, error) { return dropPicture(c, f.kind()) }),
}

var pictureEvents = []EventKind{
	Event(func(e *realm.PictureChanged, to *To) any {
		source, url := pictureFields(e.Kind)
		return obj{"type": "realm", "op": "update_dict", "property": e.Kind, "data": obj{source: e.Picture.Source, url: pictureURL(e.Kind, e.Picture, to.Site)}}
	}),
}

// nightForm says which of the two logos is meant.
type nightForm struct {
	Night bool `form:"night,required"`
}

func (f nightForm) kind() string {
	if f.Night {
		return realm.NightLogo
	}
	return realm.Logo
}

// pictureFields are the names of a picture's source and address, behind realm_ in a registration and in events.
func pictureFields(kind string) (source, url string) { return kind + "_source", kind + "_url" }

// pictureURL is where one of the organization's pictures is; its address changes with it.
func pictureURL(kind string, p realm.Picture, s Site) string {
	version := ".png?version=" + strconv.Itoa(p.Version)
	switch {
	case p.File != "":
		return "/user_avatars/" + realmPath(s) + "/realm/" + p.File + version
	case kind == realm.Icon:
		return "/user_avatars/" + realmPath(s) + "/icon" + version
	case kind == realm.NightLogo:
		return "/static/images/logo/logo-night.svg?version=" + strconv.Itoa(p.Version)
	}
	return "/static/images/logo/logo.svg?version=" + strconv.Itoa(p.Version)
}

// picturesSection is the organization's pictures in a registration.
func picturesSection(s *state) {
	for _, kind := range []string{realm.Icon, realm.Logo, realm.NightLogo} {
		source, url := pictureFields(kind)
		p := s.Org().PictureOf(kind)
		s.a["realm_"+source], s.a["realm_"+url] = p.Source, pictureURL(kind, p, s.c.Site)
	}
}

// pictureRedirect leads to a picture.
func pictureRedirect(c *Call, kind string) (Answer, error) {
	url, err := Look(c, func(v realm.View) (string, error) { return pictureURL(kind, v.Org().PictureOf(kind), c.Site), nil })
	if err != nil {
		return nil, err
	}
	return nil, Redirect{url}
}

// Redirect is returned as an error by endpoints that answer with another address.
type Redirect struct{ URL string }

func (r Redirect) Error() string { return "the answer is at " + r.URL }

func setPicture(c *Call, kind, one string, save func(io.Reader, int64) (string, error)) (Answer, error) {
	// Whether the caller may is checked before the picture is read, which costs.
	if _, err := Look(c, func(v realm.View) (any, error) { _, err := v.Admin(); return nil, err }); err != nil {
		return nil, err
	}
	_, r, err := openFile(c, one, one)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	name, err := save(r, MaxAvatar)
	if err != nil {
		return nil, fileError(err, MaxAvatar>>20)
	}
	p, err := Play(c, realm.SetPicture{Kind: kind, File: name})
	return pictureAnswer(c, kind, p), errors.Join(err, c.Tools.Files.Release(name, nil))
}

func dropPicture(c *Call, kind string) (Answer, error) {
	p, err := Play(c, realm.SetPicture{Kind: kind})
	return pictureAnswer(c, kind, p), err
}

// pictureAnswer shows the icon's new address; of logos only the event tells.
func pictureAnswer(c *Call, kind string, p realm.Picture) Answer {
	if kind != realm.Icon {
		return Answer{}
	}
	return Answer{"icon_url": pictureURL(kind, p, c.Site)}
}
