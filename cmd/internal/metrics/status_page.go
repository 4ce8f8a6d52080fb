package metrics

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"parley/cmd/internal/operator"
	"parley/wire"
	"parley/wire/web"
)

// statusAge is how old the numbers of the page about the server may be: many open pages cost one reading.
const statusAge = time.Second

// statusValue is one number of the page about the server.
type statusValue struct {
	label   string // in English
	metric  string // name of a metric; "" if read is set
	read    func(r *Reading) float64
	unit    string // "bytes", "seconds" or ""
	counter bool   // the page shows how fast it grows
	chart   bool
}

// statusValues lists the numbers of the page. They are metrics, or computed from the same reading.
var statusValues = []statusValue{
	{label: "Send requests", read: sendRequests, counter: true, chart: true},
	{label: "Deliveries", metric: "parley_deliveries_total", counter: true, chart: true},
	{label: "Requests", metric: "parley_http_requests_total", counter: true, chart: true},
	{label: "Decided commands", metric: "parley_turns_total", counter: true},
	{label: "Delivery lag", metric: "parley_delivery_lag_seconds", unit: "seconds", chart: true},
	{label: "Mean commit time", read: func(r *Reading) float64 {
		return r.store.Total.Seconds() / float64(max(1, r.store.Commits))
	}, unit: "seconds"},
	{label: "Longest commit time", read: func(r *Reading) float64 { return r.store.Slowest.Seconds() },
		unit: "seconds"},
	{label: "Event queues", metric: "parley_queues", chart: true},
	{label: "Parked polls", metric: "parley_polls_parked", chart: true},
	{label: "Unacknowledged events", metric: "parley_unacked_events"},
	{label: "Waiting commands", metric: "parley_commands_waiting"},
	{label: "Refused commands", metric: "parley_commands_refused_total", counter: true},
	{label: "Organizations in memory", metric: "parley_organizations_awake"},
	{label: "Organizations asleep", metric: "parley_organizations_asleep"},
	{label: "Organizations being loaded", metric: "parley_organizations_waking"},
	{label: "Longest loading of an organization", metric: "parley_organization_slowest_wake_seconds", unit: "seconds"},
	{label: "Connections", metric: "parley_http_connections"},
	{label: "Journal facts", metric: "parley_store_facts_total", counter: true},
	{label: "Journal bytes", metric: "parley_store_written_bytes_total", unit: "bytes", counter: true},
	{label: "Store on disk", metric: "parley_store_disk_bytes", unit: "bytes"},
	{label: "Free disk space", metric: "parley_disk_free_bytes", unit: "bytes"},
}

// sendRequests returns how many requests to send a message the organizations have decided.
func sendRequests(r *Reading) float64 {
	for _, k := range r.Orgs.TurnLatencies() {
		if k.Kind == "POST /messages" {
			return float64(k.Count)
		}
	}
	return 0
}

// value returns the number of a reading.
func (v *statusValue) value(r *Reading) float64 {
	if v.read != nil {
		return v.read(r)
	}
	metrics := r.metrics()
	for i := range metrics {
		if m := &metrics[i]; m.Name == v.metric {
			return m.Value()
		}
	}
	panic("BUG: no metric " + v.metric)
}

// text returns a number with its unit.
func (v *statusValue) text(x float64) string {
	switch v.unit {
	case "seconds":
		return fmt.Sprintf("%.2f ms", x*1000)
	case "bytes":
		return fmt.Sprintf("%.1f MiB", x/(1<<20))
	}
	return fmt.Sprintf("%.0f", x)
}

// StatusReader reads the state of the server for its page. It is safe for concurrent use.
type StatusReader struct {
	parts   func() *Parts
	started time.Time

	mu     sync.Mutex
	last   web.ServerStatus
	at     time.Time // of last; before the first reading, the start
	totals []float64 // values of last
}

// NewStatusReader returns a reader that calls parts at each reading.
func NewStatusReader(parts func() *Parts) *StatusReader {
	now := time.Now()
	return &StatusReader{parts: parts, started: now, at: now, totals: make([]float64, len(statusValues))}
}

// Read returns the state of the server, at most statusAge old. Rates are those since the reading before.
func (x *StatusReader) Read() web.ServerStatus {
	x.mu.Lock()
	defer x.mu.Unlock()
	now := time.Now()
	if x.last.Version != "" && now.Sub(x.at) < statusAge {
		return x.last
	}
	parts := x.parts()
	r := Read(parts)
	seconds := max(now.Sub(x.at).Seconds(), 1e-3)
	status := web.ServerStatus{Health: "ok", Version: parts.Program + ", " + wire.Protocol,
		Uptime: now.Sub(x.started).Round(time.Second).String()}
	if disk := r.Space.State(); disk != "" {
		status.Health = "degraded: the disk is " + disk
	} else if n := r.Orgs.DamagedTexts(); n > 0 {
		status.Health = fmt.Sprintf("degraded: %d damaged message texts", n)
	}
	for i := range statusValues {
		v := &statusValues[i]
		n := v.value(r)
		shown := web.ServerValue{Key: fmt.Sprint("v", i), Label: v.label, Text: v.text(n), Chart: v.chart, Drawn: n}
		if v.counter {
			shown.Drawn = (n - x.totals[i]) / seconds
			shown.Rate = fmt.Sprintf("%.1f", shown.Drawn)
			if v.unit != "" {
				shown.Rate = v.text(shown.Drawn)
			}
		}
		x.totals[i] = n
		status.Values = append(status.Values, shown)
	}
	turns := r.Orgs.TurnLatencies()
	for _, k := range turns[:min(operator.SlowestShown, len(turns))] {
		status.Turns = append(status.Turns, web.ServerTurn{Kind: k.Kind, Count: k.Count,
			Max:  fmt.Sprintf("%.2f ms", operator.InMilliseconds(k.Max)),
			Mean: fmt.Sprintf("%.2f ms", operator.InMilliseconds(k.Total/time.Duration(max(1, k.Count))))})
	}
	for _, b := range r.Bounds() {
		if b.Used == nil {
			continue
		}
		row := web.ServerBound{Of: b.Name, Used: b.Used(), Limit: b.Limit()}
		if b.Hits != nil {
			row.Hits = b.Hits()
		}
		status.Bounds = append(status.Bounds, row)
	}
	x.last, x.at = status, now
	return status
}

// addPages serves the page about the server without a login, for operators.
func (x *StatusReader) addPages(mux *http.ServeMux) {
	file := func(path, contentType string, body func() []byte) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			h := w.Header()
			h.Set("Content-Type", contentType)
			h.Set("Cache-Control", "no-store")
			h.Set("X-Content-Type-Options", "nosniff")
			h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; connect-src 'self'; "+
				"style-src 'self'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'")
			w.Write(body())
		})
	}
	mux.HandleFunc("GET "+web.ServerPath+"/{$}", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, web.ServerPath, http.StatusFound)
	})
	file(web.ServerPath, "text/html; charset=utf-8", func() []byte {
		return web.Render(web.Page{Language: web.Match(""), View: web.ServerPageOf(x.Read())})
	})
	file(web.ServerJSONPath, "application/json", func() []byte {
		state := x.Read()
		return state.JSON()
	})
	file(web.StylePath, "text/css; charset=utf-8", web.Style)
	file(web.IconPath, "image/svg+xml", web.Icon)
	file(web.ServerScriptPath, "text/javascript; charset=utf-8", web.ServerScript)
}
