package gifs

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"parley/actors/admission"
	"parley/actors/realm"
	"parley/actors/registry"
	"parley/wire"
)

const (
	// pageSize is how many pictures an answer has: three screens of the window in which users choose.
	pageSize = 24
	// maxPosition is how far a search goes: GIPHY allows 4,999, and users do not look at so many.
	maxPosition = 1000
	// maxAnswer bounds an answer of the provider, in bytes. One with 24 pictures in all sizes has about 200 kB.
	maxAnswer = 2 << 20
	// callTimeout limits a request: the user waits for it.
	callTimeout = 5 * time.Second
	// maxInProgress is how many requests wait for the provider at a time.
	maxInProgress = 16
	// maxTitle and maxAddress bound what is used of an answer, in bytes.
	maxTitle, maxAddress = 200, 2000
	// maxToken bounds the provider's name of a next page, in bytes.
	maxToken = 500
	// cacheTime is how long an answer is kept: many users look at the same first page.
	cacheTime = 5 * time.Minute
	// maxCached is how many answers are kept, of at most about 100 kB.
	maxCached = 100
)

// Provider asks the provider of the settings. It is safe for concurrent use.
type Provider struct {
	o      Options
	client http.Client
	key    string
	places *admission.Places // of requests in progress

	mu     sync.Mutex
	cached map[question]cachedPage
}

// Options are the parts of a Provider.
type Options struct {
	Settings
	Client  *http.Client          // it opens no connection to a private network that is not allowed
	Allowed func(netip.Addr) bool // reports whether an address may be asked
	Several func() bool           // see admission.Shares
	// Ask is asked before each request; see wire.Places. nil: all are sent.
	Ask func(realm.ID, realm.Place) error
	Now func() time.Time
	Log *slog.Logger
}

// question is what the answer of the provider depends on.
type question struct {
	query, page string
	rating      int64
}

type cachedPage struct {
	page wire.GIFPage
	at   time.Time
}

// New returns a Provider, or nil if none is set.
func New(o Options) (*Provider, error) {
	key, err := o.check(o.Allowed)
	if err != nil || o.GIFProvider == "" {
		return nil, err
	}
	p := &Provider{o: o, client: *o.Client, key: key, places: admission.NewPlaces(maxInProgress, o.Several),
		cached: map[question]cachedPage{}}
	p.client.Timeout = callTimeout
	return p, nil
}

// Keys returns the key of the provider.
func (p *Provider) Keys() wire.GIFKeys { return keys(p.o.GIFProvider, p.key) }

// Address returns the address of the interface of the provider; "" if none is set.
func (p *Provider) Address() string {
	if p == nil {
		return ""
	}
	return p.o.GIFURL
}

// AtOwner returns the wire.GIFs of an edge, which gets the keys of its core as a text. Requests are sent to the owner
// of the organization, so it finds nothing itself.
func AtOwner(text string) wire.GIFs {
	provider, key, _ := strings.Cut(text, " ")
	if key == "" {
		return nil
	}
	return atOwner{keys: keys(provider, key)}
}

type atOwner struct {
	wire.GIFs // nil
	keys      wire.GIFKeys
}

func (a atOwner) Keys() wire.GIFKeys { return a.keys }

// Text returns what cores send to edges; AtOwner reads it.
func (p *Provider) Text() string {
	if p == nil {
		return ""
	}
	return p.o.GIFProvider + " " + p.key
}

var (
	errBusy = realm.Refuse(realm.Busy, "SERVER_OVERLOADED",
		"Too many searches for GIFs at the moment; try again later.")
	errPage   = realm.BadRequest("Invalid page")
	errFailed = realm.BadRequest("The provider of GIFs did not answer; try again later.")
)

// Find returns pictures for a query, or for "" those that are popular now.
func (p *Provider) Find(by wire.Asker, query, page string, rating int64) (wire.GIFPage, error) {
	q := question{strings.ToLower(query), page, rating}
	if found, ok := p.known(q); ok {
		return found, nil
	}
	address, parse, err := p.address(q)
	if err != nil {
		return wire.GIFPage{}, err
	}
	leave := p.places.Enter(strconv.Itoa(int(by.Realm)))
	if leave == nil {
		return wire.GIFPage{}, errBusy
	}
	defer leave()
	if p.o.Ask != nil {
		if err := p.o.Ask(by.Realm, realm.PlaceGIFs); err != nil {
			return wire.GIFPage{}, err
		}
	}
	found, err := p.ask(address, parse)
	if err != nil {
		p.o.Log.Warn("the provider of GIFs did not answer", "provider", p.o.GIFProvider, "err", withoutKey(err, p.key))
		return wire.GIFPage{}, errFailed
	}
	p.keep(q, found)
	return found, nil
}

// withoutKey returns the text of an error, which may quote the address with the key.
func withoutKey(err error, key string) string {
	return strings.ReplaceAll(err.Error(), url.QueryEscape(key), "…")
}

func (p *Provider) known(q question) (wire.GIFPage, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, ok := p.cached[q]
	return c.page, ok && p.o.Now().Sub(c.at) < cacheTime
}

func (p *Provider) keep(q question, found wire.GIFPage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.cached) >= maxCached {
		clear(p.cached) // rather than an order of ages: a page costs one request
	}
	p.cached[q] = cachedPage{found, p.o.Now()}
}

// address returns where a question is asked and what reads the answer, or a refusal.
func (p *Provider) address(q question) (string, parser, error) {
	form := p.giphyForm
	if p.o.GIFProvider != giphy {
		form = p.tenorForm
	}
	path, values, parse, err := form(q)
	if err != nil {
		return "", nil, err
	}
	return strings.TrimSuffix(p.o.GIFURL, "/") + path + "?" + values.Encode(), parse, nil
}

// ask sends a question to the provider.
func (p *Provider) ask(address string, parse parser) (wire.GIFPage, error) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return wire.GIFPage{}, err
	}
	answer, err := p.client.Do(r)
	if err != nil {
		return wire.GIFPage{}, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return wire.GIFPage{}, fmt.Errorf("status %d", answer.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case err != nil:
		return wire.GIFPage{}, err
	case len(data) > maxAnswer:
		return wire.GIFPage{}, fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	return parse(data)
}

type parser func(data []byte) (wire.GIFPage, error)

// giphyRatings are the names of realm ratings at GIPHY, the mildest first.
var giphyRatings = []string{"g", "pg", "pg-13", "r"}

// tenorRatings are the same at Tenor: how much is left out.
var tenorRatings = []string{"high", "medium", "low", "off"}

func (p *Provider) giphyForm(q question) (path string, _ url.Values, _ parser, _ error) {
	offset, err := 0, error(nil)
	if q.page != "" {
		if offset, err = strconv.Atoi(q.page); err != nil || offset < 0 || offset > maxPosition {
			return "", nil, nil, errPage
		}
	}
	v := url.Values{"api_key": {p.key}, "limit": {strconv.Itoa(pageSize)}, "offset": {strconv.Itoa(offset)},
		"rating": {ratingName(giphyRatings, q.rating)}}
	return searchPath(v, q.query, "/trending"), v, func(data []byte) (found wire.GIFPage, err error) {
		type picture struct {
			URL    string `json:"url"`
			Width  side   `json:"width"` // a text
			Height side   `json:"height"`
		}
		var a struct {
			Data []struct {
				Title  string `json:"title"`
				Images struct {
					Full  picture `json:"downsized_medium"`
					Whole picture `json:"original"`
					Small picture `json:"fixed_width"`
				} `json:"images"`
			} `json:"data"`
			Pages struct {
				Total int `json:"total_count"`
			} `json:"pagination"`
		}
		if err := json.Unmarshal(data, &a); err != nil {
			return found, err
		}
		for _, x := range a.Data {
			full := x.Images.Full
			if full.URL == "" {
				full = x.Images.Whole
			}
			small := x.Images.Small
			add(&found, wire.GIF{Title: x.Title, URL: full.URL, Preview: small.URL,
				Width: int64(small.Width), Height: int64(small.Height)})
		}
		if next := offset + pageSize; len(a.Data) == pageSize && next <= maxPosition && next < a.Pages.Total {
			found.Next = strconv.Itoa(next)
		}
		return found, nil
	}, nil
}

func (p *Provider) tenorForm(q question) (path string, _ url.Values, _ parser, _ error) {
	if len(q.page) > maxToken {
		return "", nil, nil, errPage
	}
	v := url.Values{"key": {p.key}, "limit": {strconv.Itoa(pageSize)}, "media_filter": {"gif,tinygif"},
		"contentfilter": {ratingName(tenorRatings, q.rating)}}
	if q.page != "" {
		v.Set("pos", q.page)
	}
	return searchPath(v, q.query, "/featured"), v, func(data []byte) (found wire.GIFPage, err error) {
		type picture struct {
			URL  string `json:"url"`
			Size []side `json:"dims"`
		}
		var a struct {
			Results []struct {
				Title   string `json:"title"`
				Text    string `json:"content_description"`
				Formats struct {
					Full  picture `json:"gif"`
					Small picture `json:"tinygif"`
				} `json:"media_formats"`
			} `json:"results"`
			Next string `json:"next"`
		}
		if err := json.Unmarshal(data, &a); err != nil {
			return found, err
		}
		for _, x := range a.Results {
			g := wire.GIF{Title: x.Text, URL: x.Formats.Full.URL, Preview: x.Formats.Small.URL}
			if g.Title == "" {
				g.Title = x.Title
			}
			if size := x.Formats.Small.Size; len(size) == 2 {
				g.Width, g.Height = int64(size[0]), int64(size[1])
			}
			add(&found, g)
		}
		if len(a.Next) <= maxToken && len(a.Results) > 0 {
			found.Next = a.Next
		}
		return found, nil
	}, nil
}

// searchPath adds the words of a search to a form and returns the path; without words, popular.
func searchPath(v url.Values, words, popular string) string {
	if words == "" {
		return popular
	}
	v.Set("q", words)
	return "/search"
}

// side is a number of pixels, which can be a text; 0: unknown. One that is no number does not spoil the answer.
type side int64

// UnmarshalJSON never fails.
func (s *side) UnmarshalJSON(text []byte) error {
	n, _ := strconv.ParseInt(strings.Trim(string(text), `"`), 10, 64)
	*s = side(n)
	return nil
}

// ratingName returns the provider's name of a rating of 1 or more.
func ratingName(names []string, rating int64) string {
	return names[min(max(rating, 1), int64(len(names)))-1]
}

// maxSide bounds the sides of a picture, in pixels: a client divides by them.
const maxSide = 10_000

// add adds a picture to a page if it can be used.
func add(page *wire.GIFPage, g wire.GIF) {
	if len(page.GIFs) >= pageSize || !isPicture(g.URL) {
		return
	}
	if !isPicture(g.Preview) {
		g.Preview = g.URL
	}
	if g.Width < 1 || g.Height < 1 || g.Width > maxSide || g.Height > maxSide {
		g.Width, g.Height = 1, 1
	}
	g.Title = strings.Join(strings.Fields(strings.Map(visible, strings.ToValidUTF8(g.Title, ""))), " ")
	if len(g.Title) > maxTitle {
		g.Title = strings.ToValidUTF8(g.Title[:maxTitle], "")
	}
	page.GIFs = append(page.GIFs, g)
}

// visible replaces the characters that are not seen, but could turn or end what follows, by spaces.
func visible(r rune) rune {
	const joiner = '\u200d' // of emoji
	if unicode.IsPrint(r) || r == joiner {
		return r
	}
	return ' '
}

// isPicture reports whether a text is an address of the web that can be in a message.
func isPicture(address string) bool {
	u, err := url.Parse(address)
	return err == nil && len(address) <= maxAddress && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" &&
		u.User == nil && !strings.ContainsAny(address, " ()<>\"\\`") &&
		!strings.ContainsFunc(address, func(r rune) bool { return !unicode.IsPrint(r) })
}

// Bounds returns the bounds of the provider.
func (p *Provider) Bounds() []registry.Bound {
	read := func(of func() int64) func() int64 {
		return func() int64 {
			if p == nil { // none is set
				return 0
			}
			return of()
		}
	}
	return []registry.Bound{
		{
			Name:     "gif_requests",
			Of:       "requests at a time to the provider of GIFs",
			Overflow: "503",
			Reason:   "each takes up to 5 seconds",
			Limit:    registry.Constant(maxInProgress),
			Used:     read(func() int64 { return p.places.Used() }),
			Hits:     read(func() int64 { return p.places.Refused() }),
			Halved:   "wire/gifs TestSearchesAreShared",
		},
		{
			Name:     "gif_answers",
			Of:       "answers of the provider of GIFs that are kept for 5 minutes",
			Overflow: "all are dropped",
			Reason:   "many users look at the same first page; each has at most about 100 kB",
			Limit:    registry.Constant(maxCached),
			Used: read(func() int64 {
				p.mu.Lock()
				defer p.mu.Unlock()
				return int64(len(p.cached))
			}),
			Whole: registry.Cached,
		},
	}
}
