package web

import "encoding/json"

// The paths of the page about the server. ServerScriptPath changes with the content of its file.
const (
	ServerPath     = "/admin/server"
	ServerJSONPath = "/admin/server.json"
)

// ServerScriptPath is the path of the script that refreshes the page about the server.
var ServerScriptPath = "/static/parley/server-" + hash(ServerScript()) + ".js"

// ServerScript returns the script that refreshes the page about the server.
func ServerScript() []byte { return mustRead("server.js") }

// ServerStatus is the state of the server, for its owners and operators. Its size is bounded: it has one entry for each
// label of ServerLabels and each bound, and a few turns.
type ServerStatus struct {
	Health  string        `json:"health"` // "ok", or why the server is degraded
	Version string        `json:"version"`
	Uptime  string        `json:"uptime"`
	Values  []ServerValue `json:"values"`
	Turns   []ServerTurn  `json:"turns"` // the slowest kinds of work, slowest first
	Bounds  []ServerBound `json:"bounds"`
}

// JSON returns the state as JSON, for the script of the page.
func (s *ServerStatus) JSON() []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic("BUG: encode the state of the server: " + err.Error())
	}
	return b
}

// ServerValue is one number of ServerStatus.
type ServerValue struct {
	Key   string  `json:"key"`
	Label string  `json:"-"` // in English
	Text  string  `json:"text"`
	Rate  string  `json:"rate"` // growth in a second; "" for numbers that are no counter
	Chart bool    `json:"-"`
	Drawn float64 `json:"drawn"` // the number for the chart: the rate of a counter, else the value
}

// ServerTurn is one kind of work that blocks an organization.
type ServerTurn struct {
	Kind  string `json:"kind"`
	Max   string `json:"max"`
	Mean  string `json:"mean"`
	Count int64  `json:"count"`
}

// ServerBound is the limit of something that could grow.
type ServerBound struct {
	Of    string `json:"of"`
	Used  int64  `json:"used"`
	Limit int64  `json:"limit"`
	Hits  int64  `json:"hits"` // how often the limit was reached
}

// ServerPageOf is the page about the server.
func ServerPageOf(s ServerStatus) View {
	return View{Template: "server", Title: "Server", Script: ServerScriptPath, Wide: true, Data: s}
}
