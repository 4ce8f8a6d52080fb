package wire

import (
	"sync"
	"time"

	"parley/actors/realm"
)

// The list of places is an extension of the protocol: other services to which data of an organization can go.
var dataPlaceEndpoints = []Endpoint{
	Get("/places", listPlaces).atOwner().
		extension("the services to which data of the organization can go, for owners and administrators"),
}

// ErrPlaceClosed means that an organization sends no data to a place. It can be the answer to a request.
var ErrPlaceClosed error = realm.ErrPlaceClosed()

// MaxPlaceRecords limits the organizations for which the server remembers when data last went to each place: about
// 200 bytes each.
const MaxPlaceRecords = 10_000

// Places answers whether data of an organization is allowed to go to a place, and remembers when it last did. It is
// safe for concurrent use.
type Places struct {
	// Configured returns the places that the operator has configured for an organization; nil: none is.
	Configured func(Site) map[realm.Place]ConfiguredPlace

	server Server
	now    func() time.Time
	since  int64 // Unix seconds

	mu   sync.Mutex
	used map[realm.ID]map[realm.Place]int64 // Unix seconds
}

// ConfiguredPlace is a place that the operator has configured.
type ConfiguredPlace struct {
	Hosts    []string // without passwords and keys; "*": users choose the hosts
	LastUsed int64    // when data last went there, if the operator's commands record it, in Unix seconds
}

// NewPlaces returns the Places of a server. now nil means time.Now.
func NewPlaces(s Server, now func() time.Time) *Places {
	if now == nil {
		now = time.Now
	}
	return &Places{server: s, now: now, since: now().Unix(), used: map[realm.ID]map[realm.Place]int64{}}
}

// Ask is called before each attempt to send data of an organization to a place. It returns ErrPlaceClosed if the
// organization has closed the place, and another error if the organization cannot be asked now.
func (p *Places) Ask(id realm.ID, place realm.Place) error {
	open, err := p.server.View(id, realm.System, func(v realm.View) (any, error) { return v.PlaceOpen(place), nil })
	switch {
	case err != nil:
		return err
	case !open.(bool):
		return ErrPlaceClosed
	}
	p.record(id, place)
	return nil
}

// record records that data goes to a place now.
func (p *Places) record(id realm.ID, place realm.Place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.used[id] == nil {
		for other := range p.used {
			if len(p.used) < MaxPlaceRecords {
				break
			}
			delete(p.used, other)
		}
		p.used[id] = map[realm.Place]int64{}
	}
	p.used[id][place] = p.now().Unix()
}

// lastUsed returns when data of an organization last went to a place, in Unix seconds; 0: unknown.
func (p *Places) lastUsed(id realm.ID, place realm.Place) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used[id][place]
}

type placesAnswer struct {
	Places []dataPlaceJSON `json:"places"`
	Since  int64           `json:"recorded_since"`
}

// dataPlaceJSON is a place. Setting is the setting of the organization that closes it, if there is one.
type dataPlaceJSON struct {
	Name       realm.Place `json:"name"`
	Hosts      []string    `json:"hosts"`
	Configured bool        `json:"configured"`
	Open       bool        `json:"open"`
	Setting    string      `json:"setting" zero:"null"`
	LastUsed   int64       `json:"last_used" zero:"null"`
}

// listPlaces returns all places.
func listPlaces(c *Call, v realm.View, _ noParameters) (*placesAnswer, error) {
	if err := v.MayReadPlaces(); err != nil {
		return nil, err
	}
	p := c.Tools.Places
	configured := map[realm.Place]ConfiguredPlace{}
	if p.Configured != nil {
		configured = p.Configured(c.Site)
	}
	a := &placesAnswer{Since: p.since, Places: []dataPlaceJSON{}}
	for _, rule := range realm.Places {
		place, ok := configured[rule.Place]
		x := dataPlaceJSON{Name: rule.Place, Hosts: append([]string{}, place.Hosts...), Configured: ok,
			Open: v.PlaceOpen(rule.Place), Setting: rule.Setting,
			LastUsed: max(place.LastUsed, p.lastUsed(c.Realm, rule.Place))}
		switch rule.Place {
		case realm.PlaceUserDirectories:
			x.Configured = v.HasScimTokens()
		case realm.PlaceProfilePictures:
			x.Open = x.Open || v.HasGravatars()
		}
		a.Places = append(a.Places, x)
	}
	return a, nil
}
