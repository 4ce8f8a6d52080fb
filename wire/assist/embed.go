package assist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"parley/actors/realm"
	"parley/wire"
)

// Search by meaning. A service with the interface of OpenAI's embeddings makes vectors of the texts of messages, in the
// background, and of the words that users search for.

const (
	// maxVectors is the size of an answer with vectors in bytes: 16 of 4,096 numbers with 24 characters each, and more.
	maxVectors = 4 << 20
	// MaxEmbedDimensions is how many numbers a vector can have: the largest models of today have 4,096.
	MaxEmbedDimensions = 4096
	// searchTokens is what the words of a search cost at most, by the estimate of 500 characters with three bytes each.
	searchTokens = 500
)

// EmbedName identifies the model of the settings: vectors of another one are of no use.
func (s *Settings) EmbedName() string {
	return fmt.Sprint(s.EmbedURL, " ", s.EmbedModel, " ", s.EmbedDimensions)
}

// MeaningAtOwner returns the search by meaning of an edge, given whether its core has one. Requests are sent to the
// owner of the organization, so it finds nothing itself.
func MeaningAtOwner(offered string) wire.MeaningSearch {
	if offered != "true" {
		return nil
	}
	return meaningAtOwner{}
}

type meaningAtOwner struct{ wire.MeaningSearch } // nil

type embedRequest struct {
	Model      string   `json:"model"`
	Input      []string `json:"input"`
	Format     string   `json:"encoding_format"`
	Dimensions int      `json:"dimensions,omitempty"`
}

type embedAnswer struct {
	Data []struct {
		Index  int       `json:"index"`
		Vector []float32 `json:"embedding"`
	} `json:"data"`
	Usage embedUsage `json:"usage"`
}

// embedUsage is the tokens that the service counts. An answer with a number that is none is not useless.
type embedUsage struct{ Total int64 }

// UnmarshalJSON never fails.
func (u *embedUsage) UnmarshalJSON(text []byte) error {
	u.Total = totalTokens(text)
	return nil
}

// Embedder makes vectors. It implements Model of package snapshot/meaning.
type Embedder struct{ a *Assistant }

// Embedder returns the service for vectors; nil: none is set.
func (a *Assistant) Embedder() *Embedder {
	if a.o.EmbedURL == "" {
		return nil
	}
	return &Embedder{a}
}

// Embed returns a vector of each text, and the tokens that they have cost; 0: unknown. If dims is not 0, a vector has
// so many numbers. All numbers are finite. The texts are of one organization.
func (e *Embedder) Embed(
	ctx context.Context, id realm.ID, texts []string, dims int,
) (vectors [][]float32, tokens int64, err error) {
	a := e.a
	ctx, cancel := context.WithTimeout(ctx, a.o.Timeout)
	defer cancel()
	r := embedRequest{a.o.EmbedModel, texts, "float", a.o.EmbedDimensions}
	res, err := a.send(ctx, job{realm: id, place: realm.PlaceVectors}, a.o.EmbedURL, "/embeddings", a.embedKey, r)
	if err != nil {
		return nil, 0, err
	}
	defer res.Body.Close()
	var out embedAnswer
	if err := decode(res.Body, maxVectors, &out); err != nil {
		return nil, 0, err
	}
	vectors, err = out.vectors(len(texts), cmp.Or(a.o.EmbedDimensions, dims))
	return vectors, out.Usage.Total, err
}

// vectors returns the vectors of an answer in the order of the texts.
func (e *embedAnswer) vectors(texts, dims int) ([][]float32, error) {
	if len(e.Data) != texts {
		return nil, fmt.Errorf("the answer has %d vectors for %d texts", len(e.Data), texts)
	}
	out := make([][]float32, texts)
	for _, d := range e.Data {
		if d.Index < 0 || d.Index >= texts || out[d.Index] != nil {
			return nil, fmt.Errorf("the answer has a vector with the number %d", d.Index)
		}
		if dims == 0 {
			dims = len(d.Vector)
		}
		if len(d.Vector) != dims || dims == 0 || dims > MaxEmbedDimensions {
			return nil, fmt.Errorf("the answer has a vector of %d numbers, want %d, at most %d", len(d.Vector), dims,
				MaxEmbedDimensions)
		}
		out[d.Index] = d.Vector
	}
	return out, nil
}

// IsRefusal reports whether the service will refuse the same texts again: it has understood the request.
func (e *Embedder) IsRefusal(err error) bool {
	var status statusError
	return errors.As(err, &status) &&
		(status == http.StatusBadRequest || status == http.StatusRequestEntityTooLarge ||
			status == http.StatusUnprocessableEntity)
}

var (
	errMeaningTokens = realm.BadRequest("You have used up your searches by meaning of today.")
	errMeaningAll    = realm.BadRequest("Your organization has used up its searches by meaning of today.")
	errMeaningMany   = realm.Refuse(realm.Busy, "SERVER_OVERLOADED",
		"Too many searches by meaning are running. Try again in a moment.")
	errMeaningBusy = realm.Refuse(realm.BadGateway, "BAD_REQUEST",
		"The service for search by meaning is busy. Try again later.")
	errMeaningFailed = realm.Refuse(realm.BadGateway, "BAD_REQUEST", "The service for search by meaning failed.")
)

// Query returns the vector of the words that a user searches for. They cost tokens of the user, from the same count as
// summaries and translations.
func (e *Embedder) Query(by wire.Asker, words string, dims int) ([]float32, error) {
	a := e.a
	q, err := a.begin(by, job{text: words, written: max(0, searchTokens-estimate(words))})
	switch {
	case errors.Is(err, realm.ErrUserTokens):
		return nil, errMeaningTokens
	case errors.Is(err, realm.ErrOrganizationTokens):
		return nil, errMeaningAll
	case errors.Is(err, errTooMany):
		return nil, errMeaningMany
	case err != nil:
		return nil, err
	}
	defer q.leave()
	vectors, cost, err := e.Embed(a.ctx, by.Realm, []string{words}, dims)
	if err == nil && !slices.ContainsFunc(vectors[0], func(x float32) bool { return x != 0 }) {
		err = errors.New("the vector has no direction")
	}
	if err != nil {
		a.results[failed].Add(1)
		a.o.Log.Warn("search by meaning failed", "realm", by.Realm, "user", int64(by.User), "err", err)
		if isBusy(err) {
			return nil, errMeaningBusy
		}
		return nil, errMeaningFailed
	}
	if err := a.tokens.settle(by, q.day, q.estimated, cmp.Or(max(cost, 0), estimate(words))); err != nil {
		a.o.Log.Warn("tokens of a search by meaning remain as estimated", "realm", by.Realm, "user", int64(by.User),
			"err", err)
	}
	a.results[answered].Add(1)
	return vectors[0], nil
}
