package bench

import (
	"fmt"
	"slices"
	"sort"
)

// A Scenario describes a crowd and the load it makes, phase after phase, as plain data. Flags and JSON files change
// it.
type Scenario struct {
	Name     string   `json:"name"`
	About    string   `json:"about"`
	Users    int      `json:"users"`             // users to create
	Pollers  int      `json:"pollers"`           // event queues with a parked poll; may exceed Users
	Channels int      `json:"channels"`          // channels with Users/rank^Zipf members
	Zipf     float64  `json:"zipf"`              // 0: every user is in every channel
	Hundred  int      `json:"hundred,omitempty"` // one more channel with this many subscribers
	Room     int      `json:"room,omitempty"`    // further channels of this size that divide the users among them
	History  int      `json:"history,omitempty"` // messages sent before the measurement
	Events   []string `json:"events,omitempty"`  // event types of the queues; empty means all
	Sample   int      `json:"sample"`            // pollers that decode every event and mirror the state
	// Realms is the number of organizations of the crowd; they need their hosts in a credentials file.
	Realms int `json:"realms,omitempty"`
	// Fresh restarts the server between building and measuring (with --self), so that memory counts from zero.
	Fresh   bool     `json:"fresh,omitempty"`
	Crowd   bool     `json:"crowd,omitempty"` // sampled users also run the actions of bench/crowd
	Phases  []Phase  `json:"phases"`
	Gate    Gate     `json:"gate"`
	Seed    uint64   `json:"seed"`
	Sources int      `json:"sources"`     // loopback source addresses
	Conns   int      `json:"connections"` // connections shared by all requests that are not polls
	Serve   []string `json:"serve,omitempty"`
	// Thresholds are expressions as for --threshold. Stop holds expressions that end the run early.
	Thresholds []string `json:"thresholds,omitempty"`
	Stop       []string `json:"stop,omitempty"`
}

// A Phase is one kind of load for a while. At most one of Rounds, Rate, Curve, Closed, Share
// and Burst is set; without any
// of them the polls only wait.
type Phase struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds,omitempty"`
	Count   int     `json:"count,omitempty"`  // stop after this many requests
	Rounds  int     `json:"rounds,omitempty"` // closed loop: the next send when all pollers have seen the last
	Rate    float64 `json:"rate,omitempty"`   // open loop: requests a second, at random times
	Closed  int     `json:"closed,omitempty"` // closed loop: this many requests under way
	// Share is an open loop at this share of the deliveries a second that another phase (Of) reached.
	Share float64            `json:"share,omitempty"`
	Of    string             `json:"of,omitempty"`
	Mix   map[string]float64 `json:"mix,omitempty"`     // weights by kind of request; default: only sends
	To    string             `json:"channel,omitempty"` // channel of the sends; empty: a random one
	Even  bool               `json:"even,omitempty"`    // open loop with even instead of random distances
	Burst int                `json:"burst,omitempty"`   // this many at once; after Seconds the rest is given up
	Kill  float64            `json:"kill,omitempty"`    // kill -9 and restart the server after this many seconds
	Warm  bool               `json:"warm,omitempty"`    // not reported
	// Upgrade has the server replaced by its successor after this many seconds.
	Upgrade float64 `json:"upgrade,omitempty"`
	// Backup takes an online backup after this many seconds.
	Backup float64 `json:"backup,omitempty"`
	// Curve is an open loop with a rate that changes: points of a second and a rate, joined by lines.
	Curve [][2]float64 `json:"curve,omitempty"`
	Think float64      `json:"think,omitempty"` // mean think time of a client of a closed loop, in seconds
}

// replaces reports whether another process serves at the end of the phase than at its start.
func (p *Phase) replaces() bool { return p.Kill > 0 || p.Upgrade > 0 }

// A Gate holds the limits that a run must keep for hunt to accept it.
type Gate struct {
	Mean       float64 `json:"mean_ms"`        // of all answers except polls
	P99        float64 `json:"p99_ms"`         // of all answers except polls
	Errors     float64 `json:"errors_percent"` // 5xx and lost answers
	SeenP99    float64 `json:"seen_p99_ms"`    // from intended send to seen
	Violations int     `json:"violations"`     // violated guarantees
	// Above these limits there is no verdict, since rates and latencies are then not those of the server: the CPU
	// share of the generator's thread, its delay behind its schedule, and the CPU share of other processes. CPU
	// figures are counted for each process and stay valid.
	Generator float64 `json:"generator_share"`
	Late      float64 `json:"generator_late_ms"`
	Others    float64 `json:"others_share"`
}

// DefaultGate holds limits that suit a large chat service.
var DefaultGate = Gate{Mean: 100, P99: 2000, Errors: 0.025, SeenP99: 1000, Generator: 0.95, Late: 250, Others: 0.15}

// chatMix is the traffic mix of a busy Zulip server without polls (44 % of its requests, which here follow from the
// sends): 36 % presence, and a fifth for reading, flags, typing and sending.
var chatMix = map[string]float64{"presence": 36, "messages": 6, "read": 6, "flag": 1, "typing": 3, "send": 3,
	"react": 1}

// Scenarios returns the built-in scenarios by name.
func Scenarios() map[string]Scenario {
	base := Scenario{Users: 1000, Pollers: 1000, Channels: 20, Zipf: 1, Seed: 1, Sources: 8, Conns: 64,
		Gate: DefaultGate, Sample: 4}
	m := map[string]Scenario{}
	add := func(name, about string, set func(*Scenario)) {
		s := base
		s.Name, s.About = name, about
		set(&s)
		m[name] = s
	}
	msg := []string{"message"}
	add("idle", "many parked polls that receive only heartbeats: memory and CPU of waiting", func(s *Scenario) {
		s.Users, s.Pollers, s.Channels, s.Zipf, s.Sample, s.Fresh, s.Events = 2000, 19000, 4, 0, 0, true, msg
		s.Phases = []Phase{{Name: "settle", Seconds: 5, Warm: true}, {Name: "parked", Seconds: 65}}
	})
	add("fanout", "one channel, every user polls: rounds at saturation, then a channel of 100 at 10 % of that load",
		func(s *Scenario) {
			s.Users, s.Pollers, s.Channels, s.Zipf, s.Hundred, s.Sample, s.Events = 10000, 10000, 1, 0, 100, 0, msg
			s.Phases = []Phase{{Name: "warm", Rounds: 5, To: "largest", Warm: true},
				{Name: "rounds", Rounds: 30, To: "largest"},
				{Name: "hundred", Seconds: 10, Share: 0.1, Of: "rounds", To: "hundred", Even: true}}
		})
	add("small-rooms", "10,000 users poll, and each message goes to the 100 of its room: one after the other, then "+
		"20 and 100 messages a second", func(s *Scenario) {
		s.Users, s.Pollers, s.Channels, s.Room, s.Sample, s.Events = 10000, 10000, 0, 100, 0, msg
		s.Phases = []Phase{{Name: "warm", Rounds: 100, Warm: true}, {Name: "rounds", Rounds: 1000},
			{Name: "slow", Seconds: 10, Rate: 20, Even: true}, {Name: "paced", Seconds: 10, Rate: 100, Even: true}}
	})
	add("chat", "many channels and the mix of requests of a busy server, open loop", func(s *Scenario) {
		s.Users, s.Pollers, s.Channels, s.History = 2000, 2000, 100, 1000
		s.Phases = []Phase{{Name: "warm", Seconds: 3, Rate: 200, Mix: chatMix, Warm: true},
			{Name: "chat", Seconds: 20, Rate: 400, Mix: chatMix}}
	})
	add("register-herd", "thousands of clients register at once", func(s *Scenario) {
		s.Users, s.Pollers, s.Channels, s.Sample, s.Conns = 10000, 0, 50, 0, 512
		s.Phases = []Phase{{Name: "warm", Burst: 20, Mix: map[string]float64{"register": 1}, Warm: true},
			{Name: "herd", Burst: 5000, Seconds: 30, Mix: map[string]float64{"register": 1}}}
	})
	add("restart-herd", "kill -9 while messages flow; every poller continues with its own queue", func(s *Scenario) {
		s.Users, s.Pollers, s.Channels, s.Zipf, s.Sample, s.Events = 2000, 19000, 20, 1, 0, msg
		s.Phases = []Phase{{Name: "before", Seconds: 3, Rate: 20}, {Name: "crash", Seconds: 12, Rate: 20, Kill: 3},
			{Name: "after", Seconds: 3, Rate: 20}}
	})
	add("upgrade", "a successor takes over while messages flow: the longest waits of senders and pollers, and "+
		"failed requests", func(s *Scenario) {
		s.Users, s.Pollers, s.Channels, s.Zipf, s.Sample, s.Events = 2000, 5000, 500, 1, 0, msg
		s.Phases = []Phase{{Name: "before", Seconds: 3, Rate: 50},
			{Name: "upgrade", Seconds: 10, Rate: 50, Upgrade: 3}, {Name: "after", Seconds: 3, Rate: 50}}
	})
	add("overload", "one organization at two and five times the load that it can deliver; the latency of another one",
		func(s *Scenario) {
			s.Users, s.Pollers, s.Channels, s.Zipf, s.Sample, s.Realms, s.Events = 2*overloadPollers, 0, 2, 0, 0, 2, msg
			s.Phases = []Phase{{Name: "overload", Seconds: 60}}
		})
	add("hostile", "members that attack within the default rate limits: memory, and the latency for other members",
		func(s *Scenario) {
			s.Users = len(attacks)*hostileMembers + victimCount
			s.Pollers, s.Channels, s.Zipf, s.Sample = 0, 1, 0, 0
			s.Serve = []string{"--demo-crowd", fmt.Sprintf("users=%d,channels=1,zipf=0,messages=1000", s.Users),
				"--rate-limit", "200", "--anonymous-rate-limit", "0", "--login-limit", "0"}
			s.Phases = []Phase{{Name: "hostile", Seconds: 1}}
		})
	add("mcp", "200 agents of the Model Context Protocol, and 200 clients of the events API: memory, updates and reads",
		func(s *Scenario) {
			s.Users, s.Pollers, s.Channels, s.Zipf, s.Sample = mcpClients, 0, 1, 0, 0
			s.Phases = []Phase{{Name: "mcp", Seconds: 1}}
		})
	add("cluster", "a core and edges as processes: kills of edges and of the core, and the cost of a send at each node",
		func(s *Scenario) {
			s.Users, s.Pollers, s.Channels, s.Zipf, s.Sample, s.Events, s.Sources = 9500, 9500, 1, 0, 0, msg, 8
			s.Phases = []Phase{{Name: "cluster", Seconds: 1, Rate: 5}}
		})
	add("cluster-kill", "three cores as processes: kills of cores, and the longest outages after them",
		func(s *Scenario) {
			s.Users, s.Pollers, s.Channels, s.Zipf, s.Sample, s.Events, s.Sources = 1000, 1000, 1, 0, 0, msg, 8
			s.Phases = []Phase{{Name: "cluster-kill", Seconds: 1, Rate: 100}}
		})
	add("snapshot", "1,000 sends/s into a long history while snapshots are written: the slowest sends show their "+
		"cost", func(s *Scenario) {
		s.Users, s.Pollers, s.Channels, s.Sample, s.Events, s.History = 200, 20, 100, 0, msg, 1000000
		s.Phases = []Phase{{Name: "warm", Seconds: 2, Rate: 1000, Warm: true}, {Name: "open", Seconds: 60, Rate: 1000}}
	})
	add("backup", "an online backup of a long history during 16 concurrent senders, compared with the time before "+
		"and after",
		func(s *Scenario) {
			s.Users, s.Pollers, s.Channels, s.Sample, s.Events, s.History = 200, 20, 100, 0, msg, 1000000
			s.Phases = []Phase{{Name: "warm", Seconds: 2, Closed: 16, Warm: true},
				{Name: "before", Seconds: 10, Closed: 16}, {Name: "backup", Seconds: 10, Closed: 16, Backup: 0.5},
				{Name: "after", Seconds: 10, Closed: 16}}
		})
	add("reopen", "kill -9 with a long history and 10,000 queues: how soon the first poll is answered",
		func(s *Scenario) {
			s.Users, s.Pollers, s.Channels, s.Zipf, s.Sample, s.Events, s.History = 2000, 10000, 500, 1, 0, msg, 1000000
			s.Phases = []Phase{{Name: "before", Seconds: 3, Rate: 20}, {Name: "crash", Seconds: 12, Rate: 20, Kill: 3},
				{Name: "after", Seconds: 3, Rate: 20}}
		})
	add("presence", "every user reports presence once a minute", func(s *Scenario) {
		s.Users, s.Pollers, s.Channels, s.Sample = 10000, 0, 4, 0
		ping := map[string]float64{"ping": 1}
		s.Phases = []Phase{{Name: "first", Closed: 16, Count: 10000, Mix: ping, Warm: true},
			{Name: "minute", Seconds: 20, Rate: 10000. / 60, Mix: ping}}
	})
	add("send", "durable sends: an open loop, then 64 concurrent senders", func(s *Scenario) {
		s.Users, s.Pollers, s.Channels, s.Sample, s.Events = 200, 20, 100, 0, msg
		s.Phases = []Phase{{Name: "warm", Seconds: 2, Rate: 1000, Warm: true}, {Name: "open", Seconds: 30, Rate: 5000},
			{Name: "saturation", Seconds: 10, Closed: 64}}
	})
	add("history", "reading pages of a long history", func(s *Scenario) {
		s.Users, s.Pollers, s.Channels, s.Sample, s.History = 200, 0, 50, 0, 1000000
		s.Phases = []Phase{{Name: "open", Seconds: 10, Rate: 200, Mix: map[string]float64{"messages": 1}},
			{Name: "saturation", Seconds: 5, Closed: 16, Mix: map[string]float64{"messages": 1}}}
	})
	add("mixed-realms", "the chat mix over several organizations at once", func(s *Scenario) {
		s.Users, s.Pollers, s.Channels, s.Realms = 2000, 2000, 40, 4
		s.Phases = []Phase{{Name: "warm", Seconds: 3, Rate: 200, Mix: chatMix, Warm: true},
			{Name: "chat", Seconds: 20, Rate: 400, Mix: chatMix}}
	})
	add("crowd", "seeded users use every feature; clients mirror the state and compare", func(s *Scenario) {
		s.Users, s.Pollers, s.Channels, s.Sample, s.Crowd = 12, 12, 5, 12, true
		s.Phases = []Phase{{Name: "crowd", Seconds: 10, Closed: 1, Mix: map[string]float64{"crowd": 1}}}
	})
	add("crowd-crash", "the crowd scenario with five kill -9, each between two actions", func(s *Scenario) {
		s.Users, s.Pollers, s.Channels, s.Sample, s.Crowd = 12, 12, 5, 12, true
		for i := 0; i < 5; i++ {
			s.Phases = append(s.Phases, Phase{Name: fmt.Sprintf("crash %d", i+1), Seconds: 3, Closed: 1, Kill: 1,
				Mix: map[string]float64{"crowd": 1}})
		}
	})
	return m
}

// ScenarioNames returns the names of Scenarios in alphabetical order.
func ScenarioNames() []string {
	var names []string
	for n := range Scenarios() {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

var mixKinds = map[string]int{"send": kindSend, "presence": kindPresence, "read": kindRead, "flag": kindFlag,
	"typing": kindTyping, "messages": kindMessages, "register": kindRegister, "react": kindReact, "edit": kindEdit,
	"crowd": kindOther, "ping": kindPing}

func (s *Scenario) check() error {
	if len(s.Phases) == 0 || len(s.Phases) > maxPhases {
		return fmt.Errorf("scenario %q must have 1 to %d phases, not %d", s.Name, maxPhases, len(s.Phases))
	}
	if _, err := parseThresholds(slices.Concat(s.Thresholds, s.Stop)); err != nil {
		return err
	}
	if s.Users < 1 {
		return fmt.Errorf("scenario %q has no users", s.Name)
	}
	if s.Pollers > 19500 {
		return fmt.Errorf("%d pollers: at most 19,500 are possible, since one process can open 20,000 files", s.Pollers)
	}
	reported := false
	for i, p := range s.Phases {
		reported = reported || !p.Warm
		if err := p.check(); err != nil {
			return fmt.Errorf("phase %d (%s): %w", i, p.Name, err)
		}
	}
	if !reported {
		return fmt.Errorf("scenario %q has only warm-up phases", s.Name)
	}
	return nil
}
