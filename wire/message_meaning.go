package wire

import (
	"slices"

	"parley/actors/realm"
	"parley/actors/realm/ids"
	"parley/wire/form"
)

// MeaningSearch finds messages whose texts are near in meaning to some words, with a service of the operator's choice;
// see packages assist and snapshot/meaning.
type MeaningSearch interface {
	// Nearest waits for the service and returns all messages with a vector, nearest first, or a refusal. complete is
	// false while messages wait for their vectors.
	Nearest(by Asker, words string) (list []NearText, complete bool, err error)
}

// NearText is the text of a message, and its similarity to the words of a search, at most 1.
type NearText struct {
	Text  realm.BodyRef
	Score float32
}

const (
	// maxMeaningChecked is how many of the nearest messages a search looks at to fill its answer. A reader who can see
	// none of so many gets fewer messages than there are.
	maxMeaningChecked = 20_000
	// meaningPerView is how many of them one view checks: well under 5 ms.
	meaningPerView = 500
)

var meaningEndpoints = []Endpoint{
	Custom("GET", "/messages/meaning", searchByMeaning).atOwner().
		extension("search by meaning with a service of the operator's choice"),
}

// meaningForm: 500 characters are more than people search for; they cost tokens.
type meaningForm struct {
	Query      string      `form:"query,required,minlen=1,maxlen=500,strip"`
	Narrow     form.Narrow `form:"narrow"`
	Limit      int         `form:"limit,min=1,max=100,default=20"`
	Gravatar   bool        `form:"client_gravatar,default=true"`
	Markdown   bool        `form:"apply_markdown,default=true"`
	EmptyTopic bool        `form:"allow_empty_topic_name"`
}

type meaningAnswer struct {
	Messages listOf[foundMessageJSON] `json:"messages"` // nearest first
	Scores   []float64                `json:"scores"`   // in their order
	Complete bool                     `json:"complete"`
}

// offersMeaning reports whether the server searches by meaning for users of organizations whose owners agree.
func (c *Call) offersMeaning() bool { return c.Tools.Meaning != nil }

// searchByMeaning returns the messages nearest to some words among those of a narrow that the caller can read.
func searchByMeaning(c *Call, f meaningForm) (*meaningAnswer, error) {
	if !c.offersMeaning() {
		return nil, realm.BadRequest("Search by meaning is not enabled on this server.")
	}
	if err := checkPermission(c, realm.View.MaySearchMeaning); err != nil {
		return nil, err
	}
	terms, query := narrowTerms(f.Narrow)
	search, err := newNarrowSearch(c, query)
	if err != nil {
		return nil, err
	}
	if _, err := search.messagesAmong(c, terms, nil); err != nil { // before the service is asked
		return nil, err
	}
	near, complete, err := c.Tools.Meaning.Nearest(c.asker(), f.Query)
	if err != nil {
		return nil, err
	}
	readable, scores, err := readableNear(c, search, terms, near, f.Limit)
	if err != nil {
		return nil, err
	}
	found := &messagePage{call: c, client: requestClient(c, f.Markdown, f.Gravatar, f.EmptyTopic), search: search,
		memory: answerMemory{call: c}}
	if _, err := found.collect(readable); err != nil {
		return nil, err
	}
	out := &meaningAnswer{Scores: make([]float64, len(found.list)), Complete: complete}
	for i, m := range found.list {
		out.Scores[i] = scores[m.ID]
	}
	out.Messages = listOf[foundMessageJSON]{found.inOrder()}
	return out, nil
}

// readableNear returns the first messages of a list that the caller can read, that the narrow includes, and whose texts
// are still those of the list, with their scores.
func readableNear(
	c *Call, search *narrowSearch, terms []realm.Term, near []NearText, limit int,
) (out []realm.MessageID, scores map[realm.MessageID]float64, err error) {
	scores = map[realm.MessageID]float64{}
	near = near[:min(len(near), maxMeaningChecked)]
	for part := range slices.Chunk(near, meaningPerView) {
		list, sorted := make([]realm.MessageID, len(part)), make([]int64, len(part))
		for i, x := range part {
			list[i], sorted[i] = x.Text.Message, int64(x.Text.Message)
		}
		readable, err := search.messagesAmong(c, terms, sorted)
		if err != nil {
			return nil, nil, err
		}
		current, err := Read(c, func(v realm.View) ([]realm.BodyRef, error) { return v.BodyRefs(list), nil })
		if err != nil {
			return nil, nil, err
		}
		var set ids.Set
		for _, id := range readable {
			set.Add(int64(id))
		}
		for i, x := range part {
			if current[i] != x.Text || !set.Has(int64(x.Text.Message)) {
				continue
			}
			out, scores[x.Text.Message] = append(out, x.Text.Message), float64(x.Score)
			if len(out) == limit {
				return out, scores, nil
			}
		}
	}
	return out, scores, nil
}
