package migration

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// Report has the counts of an import, and everything that was left out or changed.
type Report struct {
	Organization   string `json:"organization"`
	Users          int    `json:"users"`
	Groups         int    `json:"groups"`
	Channels       int    `json:"channels"`
	Subscriptions  int    `json:"subscriptions"` // all of them, those that users have left included
	Subscribed     int    `json:"active_subscriptions"`
	Messages       int    `json:"messages"` // all of them, direct ones included
	DirectMessages int    `json:"direct_messages"`
	Reactions      int    `json:"reactions"`
	Attachments    int    `json:"attachments"`
	Emoji          int    `json:"emoji"`
	Edited         int    `json:"edited"`
	Starred        int    `json:"starred"`
	Unread         int    `json:"unread"`

	Dropped []Count `json:"dropped"`
	Changed []Count `json:"changed"`

	// Retention are the rules that delete messages from the first start of a server with the organization on.
	Retention []Retention `json:"retention,omitempty"`

	// Rendering counts the messages whose HTML differs from the exported one, by the first different element.
	Rendering []Count `json:"rendering_differences"`
	Compared  int     `json:"rendering_compared"`

	PerChannel map[string]int `json:"per_channel"`
	PerAuthor  map[string]int `json:"per_author"`
	PerThread  map[string]int `json:"per_thread"`
	PerEmoji   map[string]int `json:"per_reaction"`
	PerFile    map[string]int `json:"per_file_type"`

	DryRun  bool    `json:"dry_run,omitempty"`
	Seconds float64 `json:"seconds"`
	Resumed bool    `json:"resumed,omitempty"`
}

// Retention is the rule by which the messages of a channel, or all direct messages, are deleted after some days.
type Retention struct {
	Channel  string `json:"channel"` // its name; "": direct messages
	Days     int64  `json:"days"`
	Messages int    `json:"messages"`
	Due      int    `json:"due"` // messages that are older already: the first start deletes them
}

// Count is a number of records of one kind that were left out or changed for one reason.
type Count struct {
	Kind   string `json:"kind"`
	Count  int    `json:"count"`
	Reason string `json:"reason"`
	// Places are where the records are in the archive: the first maxPlaces that are known, in their order.
	Places []string `json:"places,omitempty"`
}

// maxCountKeys bounds the keys of each map of the report. Further ones are counted together.
const maxCountKeys = 100_000

// otherKeys is the key under which further keys are counted.
const otherKeys = "(others)"

type countKey struct{ kind, reason string }

// counts are the records of one kind and reason.
type counts struct {
	n      int
	places []string
}

// counter collects the counts of a report.
type counter struct {
	dropped, changed, rendering map[countKey]*counts
	places                      int // of all counts
}

func newCounter() *counter {
	return &counter{dropped: map[countKey]*counts{}, changed: map[countKey]*counts{}, rendering: map[countKey]*counts{}}
}

// Limits of the texts and of the number of the reasons: parts of them come from the archive. With all of them, a report
// has some 5 MB.
const (
	maxReason    = 200 // bytes
	maxReasons   = 10_000
	maxPlace     = 300 // bytes
	maxPlaces    = 1000
	maxAllPlaces = 10_000
)

// add counts n records. place is where they are in the archive; "": unknown.
func (c *counter) add(m map[countKey]*counts, kind, reason, place string, n int) {
	k := countKey{kind, shortenText(reason, maxReason)}
	if _, known := m[k]; !known && len(m) >= maxReasons {
		k.reason = "other reasons"
	}
	to := m[k]
	if to == nil {
		to = &counts{}
		m[k] = to
	}
	to.n += n
	if place != "" && len(to.places) < maxPlaces && c.places < maxAllPlaces {
		c.places++
		to.places = append(to.places, shortenText(place, maxPlace))
	}
}

// shortenText returns the first bytes of a text as valid UTF-8.
func shortenText(s string, limit int) string {
	return strings.ToValidUTF8(s[:min(len(s), limit)], "")
}

func countList(m map[countKey]*counts) []Count {
	list := make([]Count, 0, len(m))
	for k, c := range m {
		list = append(list, Count{k.kind, c.n, k.reason, c.places})
	}
	slices.SortFunc(list, func(a, b Count) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Reason, b.Reason))
	})
	return list
}

func countIn(m map[string]int, key string) {
	if _, known := m[key]; !known && len(m) >= maxCountKeys {
		key = otherKeys
	}
	m[key]++
}

// WriteReports writes one report, or the list of several, to a file.
func WriteReports(file string, reports []*Report) error {
	var v any = reports
	if len(reports) == 1 {
		v = reports[0]
	}
	data, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	return writeSynced(file, append(data, '\n'))
}
