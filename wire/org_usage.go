package wire

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/actors/realm"
	"parley/wire/form"
)

// The charts of the reference's page of statistics. Its API description leaves them out.
var usageEndpoints = []Endpoint{
	Get("/analytics/chart_data", func(c *Call, v realm.View, f chartForm) (*chartAnswer, error) {
		return chart(c, v, f, nil)
	}).extension(chartReason),
	Get("/analytics/chart_data/stream/{stream_id}", func(c *Call, v realm.View, f channelChartForm) (
		*chartAnswer, error,
	) {
		if err := v.UsageReader(); err != nil {
			return nil, err
		}
		channel, err := v.VisibleChannel(f.Channel)
		if err != nil {
			return nil, err
		}
		return chart(c, v, f.chartForm, channel)
	}).extension(chartReason),
	Get("/usage", usageTotals).extension("totals that the reference has only in a page"),
}

const chartReason = "the charts of the reference's page of statistics, which its description leaves out"

// chartForm selects a chart. start and end are Unix seconds and may have a fraction.
type chartForm struct {
	Chart     string           `form:"chart_name,required"`
	MinLength int              `form:"min_length,min=0,default=0"`
	Start     form.Opt[string] `form:"start"`
	End       form.Opt[string] `form:"end"`
}

type channelChartForm struct {
	chartForm
	Channel realm.ChannelID `path:"stream_id"`
}

// chartAnswer is the numbers of a chart by label, of all users and of the caller. Each number is of the hour or day
// that ends at the time with the same index.
type chartAnswer struct {
	Ends     []int64          `json:"end_times"`
	Step     string           `json:"frequency"`
	Everyone map[string][]int `json:"everyone"`
	User     map[string][]int `json:"user,omitzero"`
	Order    []string         `json:"display_order" zero:"null"` // labels, the largest total first
}

// kindLabels are the labels of realm.UsageKind.
var kindLabels = [...]string{"Public channels", "Private channels", "Direct messages", "Group direct messages"}

// chart returns a chart; channel is nil unless the address names one.
func chart(c *Call, v realm.View, f chartForm, channel *realm.Channel) (*chartAnswer, error) {
	if err := v.UsageReader(); err != nil {
		return nil, err
	}
	step, a := int64(24*time.Hour/time.Second), &chartAnswer{Step: "day"}
	switch f.Chart {
	case "messages_sent_over_time", "messages_read_over_time":
		step, a.Step = int64(time.Hour/time.Second), "hour"
	case "number_of_humans", "messages_sent_by_message_type", "messages_sent_by_client":
	case "messages_sent_by_stream":
		if channel == nil {
			return nil, realm.BadRequest("Missing channel for chart: %s", f.Chart)
		}
	default:
		return nil, realm.BadRequest("Unknown chart name: %s", f.Chart)
	}
	span, err := f.span(v, step)
	if err != nil {
		return nil, err
	}
	a.Ends = span.Ends()
	switch f.Chart {
	case "number_of_humans":
		n := v.PeopleOverTime(span)
		a.Everyone = map[string][]int{"_1day": n.Day, "_15day": n.Fortnight, "all_time": n.All}
	case "messages_sent_over_time":
		all, own := v.SentOverTime(span)
		a.Everyone, a.User = peopleAndBots(all), peopleAndBots(own)
	case "messages_sent_by_message_type":
		all, own := v.SentByKind(span)
		a.Everyone, a.User = map[string][]int{}, map[string][]int{}
		for i, label := range kindLabels {
			a.Everyone[label], a.User[label] = all[i], own[i]
		}
		a.Order = byTotals(a.Everyone)
	case "messages_sent_by_client":
		all, own := v.SentByClient(span)
		a.Everyone, a.User = withClientLabels(all), withClientLabels(own)
		a.Order = clientOrder(a.Everyone, a.User)
	case "messages_read_over_time":
		all, own := v.ReadOverTime(span)
		a.Everyone, a.User = map[string][]int{"read": all}, map[string][]int{"read": own}
	case "messages_sent_by_stream":
		a.Everyone = peopleAndBots(v.SentToChannel(span, channel.ID))
	}
	return a, nil
}

// span returns the hours or days of the chart: from the creation of the organization to now, unless the form says
// otherwise.
func (f chartForm) span(v realm.View, step int64) (realm.UsageSpan, error) {
	start, end := v.Org().Created, v.Now
	for _, x := range []struct {
		name string
		from form.Opt[string]
		to   *int64
	}{{"start", f.Start, &start}, {"end", f.End, &end}} {
		if !x.from.Set {
			continue
		}
		n, err := strconv.ParseFloat(x.from.Value, 64)
		if err != nil || n < 0 || n > maxChartTime {
			return realm.UsageSpan{}, realm.BadRequest("Invalid %s: Not a time in Unix seconds", x.name)
		}
		*x.to = int64(n)
	}
	if f.Start.Set && f.End.Set && start > end {
		return realm.UsageSpan{}, realm.BadRequest("Start time is later than end time. Start: %s, End: %s",
			chartTime(start), chartTime(end))
	}
	return realm.NewUsageSpan(start, end, step, f.MinLength), nil
}

// maxChartTime is the latest time of a chart in Unix seconds: the end of the year 9999.
const maxChartTime = 253_402_300_799

func chartTime(at int64) string { return time.Unix(at, 0).UTC().Format("2006-01-02 15:04:05-07:00") }

func peopleAndBots(p realm.UsagePair) map[string][]int {
	return map[string][]int{"human": p.People, "bot": p.Bots}
}

// byTotals returns labels by the sum of their numbers, the largest first, then by label.
func byTotals(numbers map[string][]int) []string {
	total := func(label string) (sum int) {
		for _, n := range numbers[label] {
			sum += n
		}
		return sum
	}
	return slices.SortedFunc(maps.Keys(numbers), func(a, b string) int {
		return cmp.Or(total(b)-total(a), cmp.Compare(b, a))
	})
}

// clientOrder returns the labels of clients in the order in which a page shows them: those that matter for the caller
// before those that matter equally for all users.
func clientOrder(all, own map[string][]int) []string {
	rank := map[string]float64{}
	for i, label := range byTotals(all) {
		rank[label] = float64(i)
	}
	for i, label := range byTotals(own) {
		if of, known := rank[label]; !known || float64(i)-0.1 < of {
			rank[label] = float64(i) - 0.1
		}
	}
	return slices.SortedFunc(maps.Keys(rank), func(a, b string) int {
		return cmp.Or(cmp.Compare(rank[a], rank[b]), cmp.Compare(a, b))
	})
}

// withClientLabels returns the numbers by the labels that the reference gives client programs. Several programs can
// have one label.
func withClientLabels(numbers map[string][]int) map[string][]int {
	out := map[string][]int{}
	for name, of := range numbers {
		label := clientLabel(name)
		if out[label] == nil {
			out[label] = of
			continue
		}
		for i, n := range of {
			out[label][i] += n
		}
	}
	return out
}

// clientLabels are the labels of client programs with other names (protocol).
var clientLabels = map[string]string{
	"":                    "Other",
	"website":             "Web app",
	"ZulipElectron":       "Desktop app",
	"ZulipTerminal":       "Terminal app",
	"ZulipAndroid":        "Ancient Android app",
	"ZulipiOS":            "Ancient iOS app",
	"ZulipMobile":         "Old mobile app (React Native)",
	"ZulipFlutter":        "Mobile app (Flutter)",
	"ZulipMobile/flutter": "Mobile app (Flutter)",
	"ZulipPython":         "Python API",
	"API: Python":         "Python API",
}

func clientLabel(name string) string {
	if label, ok := clientLabels[name]; ok {
		return label
	}
	if strings.HasPrefix(name, "desktop app") {
		return "Old desktop app"
	}
	if hook, ok := strings.CutSuffix(name, "Webhook"); ok && strings.HasPrefix(name, "Zulip") {
		return strings.TrimPrefix(hook, "Zulip") + " webhook"
	}
	return name
}

// usageForm selects the days of which the messages by channel are counted, with today.
type usageForm struct {
	Days int64 `form:"days,min=1,max=1826,default=30"`
}

// usageAnswer is the numbers of an organization at the present time.
type usageAnswer struct {
	People    int            `json:"active_accounts"`
	Guests    int            `json:"guest_accounts"`
	Bots      int            `json:"bots"`
	Active    int            `json:"active_today"`
	Fortnight int            `json:"active_15day"`
	Messages  uint64         `json:"messages_sent"`
	Since     int64          `json:"counted_since" zero:"null"`
	FileBytes int64          `json:"upload_space_used"`
	Channels  []channelTotal `json:"channels"`
	Storage   []int64        `json:"upload_space_by_day"`
	Ends      []int64        `json:"end_times"`
}

type channelTotal struct {
	Channel realm.ChannelID `json:"channel_id"`
	People  int             `json:"human"`
	Bots    int             `json:"bot"`
}

func usageTotals(_ *Call, v realm.View, f usageForm) (*usageAnswer, error) {
	t, err := v.UsageTotals(f.Days)
	if err != nil {
		return nil, err
	}
	const day = int64(24 * time.Hour / time.Second)
	span := realm.NewUsageSpan(v.Now-f.Days*day, v.Now, day, 0)
	return &usageAnswer{t.People, t.Guests, t.Bots, t.Active, t.Fortnight, t.Messages, t.Since, t.FileBytes,
		each(t.Channels, func(c realm.ChannelTotal) channelTotal { return channelTotal(c) }),
		v.PeopleOverTime(span).FileBytes, span.Ends()}, nil
}
