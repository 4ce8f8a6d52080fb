package wire

import (
	"parley/actors/realm"
)

// GIFs finds animated pictures at a provider of the operator's choice; see package gifs.
type GIFs interface {
	// Keys returns the key of the provider, for clients that ask it themselves.
	Keys() GIFKeys
	// Find waits for the provider and returns refusals. query is "" for pictures that are popular now, page is the Next
	// of the page before, or "", rating is a value of gif_rating_policy but 0.
	Find(by Asker, query, page string, rating int64) (GIFPage, error)
}

// GIFKeys are the keys of providers; "": none.
type GIFKeys struct{ GIPHY, KLIPY, Tenor string }

// Provider returns the name of the provider, which windows with its pictures must show.
func (k GIFKeys) Provider() string {
	switch {
	case k.GIPHY != "":
		return "GIPHY"
	case k.KLIPY != "":
		return "KLIPY"
	}
	return "Tenor"
}

// GIFPage is a part of the pictures that were found.
type GIFPage struct {
	GIFs []GIF
	Next string // "": there are no more
}

// GIF is an animated picture.
type GIF struct {
	Title         string
	URL           string // for a message
	Preview       string // a small one
	Width, Height int64  // of the small one
}

var gifEndpoints = []Endpoint{
	Custom("GET", "/gifs", findGIFs).atOwner().extension("GIFs of a provider of the operator's choice, found by the server"),
}

// gifForm: 50 characters are what GIPHY allows, 500 what package gifs uses of a provider's name of a page.
type gifForm struct {
	Query string `form:"query,maxlen=50,strip"`
	Page  string `form:"page,maxlen=500"`
}

type gifsAnswer struct {
	Provider string    `json:"provider"`
	GIFs     []gifJSON `json:"gifs"`
	Next     string    `json:"next_page"` // "": there are no more
}

type gifJSON struct {
	Title   string `json:"title"`
	URL     string `json:"url"`
	Preview string `json:"preview_url"`
	Width   int64  `json:"width"`
	Height  int64  `json:"height"`
}

const gifRating = "gif_rating_policy"

func findGIFs(c *Call, f gifForm) (*gifsAnswer, error) {
	if c.Tools.GIFs == nil {
		return nil, realm.BadRequest("GIFs are not enabled on this server.")
	}
	rating, err := Read(c, func(v realm.View) (int64, error) {
		if err := v.CheckPlace(realm.PlaceExternalPictures); err != nil { // clients would load the pictures there
			return 0, err
		}
		if n, _ := v.OrgSetting(gifRating).(int64); n > 0 {
			return n, nil
		}
		return 0, realm.BadRequest("GIFs are not enabled in this organization.")
	})
	if err != nil {
		return nil, err
	}
	found, err := c.Tools.GIFs.Find(c.asker(), f.Query, f.Page, rating)
	if err != nil {
		return nil, err
	}
	a := &gifsAnswer{Provider: c.Tools.GIFs.Keys().Provider(), GIFs: []gifJSON{}, Next: found.Next}
	for _, x := range found.GIFs {
		if c.Tools.ProxyPicture != nil { // so that the provider does not learn who looks
			x.Preview = c.Tools.ProxyPicture(x.Preview)
		}
		a.GIFs = append(a.GIFs, gifJSON(x))
	}
	return a, nil
}

// gifKeys returns the keys of the provider, if there is one. Visitors without an account cannot write. Clients with a
// key ask the provider themselves, so there is none if the organization has closed these places.
func (s *initialState) gifKeys() GIFKeys {
	if s.call.Tools.GIFs == nil || s.call.Account == nil || !s.PlaceOpen(realm.PlaceGIFs) ||
		!s.PlaceOpen(realm.PlaceExternalPictures) {
		return GIFKeys{}
	}
	return s.call.Tools.GIFs.Keys()
}
