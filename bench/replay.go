package bench

import (
	"fmt"
	"io"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"
)

func sortSteps(s []Step) {
	sort.SliceStable(s, func(i, j int) bool { return s[i].At < s[j].At })
}

// replayMain repeats the requests of a trace at their times, with a crowd of as many users. Polls are not repeated as
// such: each user that polled gets a queue and polls it, as a client does.
func replayMain(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") && !asksForHelp(args[0]) {
		fmt.Fprint(stderr, usage)
		return 2
	}
	var file string
	if !asksForHelp(args[0]) {
		file, args = args[0], args[1:]
	}
	s := newRunFlags("replay", stdout, stderr)
	speed := s.flags.Float64("speed", 1, "speed `factor`: 2 is twice as fast as recorded")
	if err := s.parse("chat", args); err != nil {
		return s.fail(err, stderr)
	}
	f, err := os.Open(file)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	steps, err := ReadTrace(f)
	f.Close()
	if err == nil && len(steps) == 0 {
		err = fmt.Errorf("%s contains no request", file)
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	s.scenario = replayScenario(steps, s.scenario, *speed)
	s.options.traceSteps, s.options.speed = steps, *speed
	fmt.Fprintf(stdout, "parley bench replay: %d requests of %d people over %.0f s, %g times as fast\n", len(steps),
		s.scenario.Users, s.scenario.Phases[0].Seconds**speed, *speed)
	res, err := runScenario(s.scenario, s.options)
	if err != nil {
		return s.fail(err, stderr)
	}
	return s.finish(res, stdout, stderr)
}

// replayScenario returns a scenario of the trace's size. All users are in all channels, since a trace does not record
// memberships.
func replayScenario(steps []Step, sc Scenario, speed float64) Scenario {
	users, channels := 0, 0
	polled := map[int]bool{}
	for _, st := range steps {
		users = max(users, st.User+1)
		if strings.HasSuffix(st.Path, "/events") && st.Method == "GET" {
			polled[st.User] = true
		}
		for _, v := range st.Params {
			if n, err := strconv.Atoi(strings.TrimPrefix(v, "c")); err == nil && strings.HasPrefix(v, "c") {
				channels = max(channels, n+1)
			}
		}
	}
	sc.Name, sc.About = "replay", "a recorded trace"
	sc.Users, sc.Pollers, sc.Channels, sc.Zipf, sc.History = max(users, 1), len(polled), max(channels, 1), 0, 100
	last := steps[len(steps)-1].At
	sc.Phases = []Phase{{Name: "replay", Seconds: float64(last)/1e6/speed + 0.5}}
	return sc
}

// runReplay sends the steps of a trace at their times.
func (r *run) runReplay() error {
	m := r.meter
	begin := r.loop.Now()
	n := 0
	var next func()
	next = func() {
		for n < len(r.options.traceSteps) {
			st := &r.options.traceSteps[n]
			due := begin + time.Duration(float64(st.At)*1000/r.options.speed)
			if due > r.loop.Now() {
				r.loop.At(due, next)
				return
			}
			n++
			recordLatency(m.lateness, r.loop.Now()-due)
			r.replayStep(st, due)
		}
	}
	next()
	return r.loop.Run(func() bool { return n == len(r.options.traceSteps) && r.pool.Pending() == 0 })
}

// replayStep maps one anonymous request to this crowd and sends it.
func (r *run) replayStep(st *Step, due time.Duration) {
	_, path, ok := strings.Cut(st.Path, "/api/v1/")
	if !ok {
		if _, path, ok = strings.Cut(st.Path, "/json/"); !ok {
			r.skippedSteps++
			return
		}
	}
	if path == "events" || strings.Contains(path, "api_key") || strings.Contains(path, "user_uploads") {
		return // pollers poll on their own; logins and files cannot be replayed
	}
	var user *person
	if st.User >= 0 {
		user = &r.population.people[st.User%len(r.population.people)]
	}
	if path == "messages" && st.Method == "POST" && st.Params["type"] != "direct" && st.Params["type"] != "private" {
		to, _ := strconv.Atoi(strings.TrimPrefix(st.Params["to"], "c"))
		r.startSend(to%len(r.population.channels), due, nil, nil)
		return
	}
	path, ok = r.stepPath(path)
	if !ok {
		r.skippedSteps++
		return
	}
	r.issueCall(stepKind(st.Method, path), r.newCall(st.Method, path, user, r.stepParams(st)), due, nil, nil)
}

func (r *run) stepPath(path string) (string, bool) {
	parts := strings.Split(path, "/")
	for i, s := range parts {
		if len(s) < 2 || !digits.MatchString(s[1:]) {
			continue
		}
		n, _ := strconv.Atoi(s[1:])
		switch s[0] {
		case 'm':
			sent, _ := r.recentSend()
			if sent == nil {
				return "", false
			}
			parts[i] = strconv.FormatInt(sent.message, 10)
		case 'c':
			parts[i] = strconv.FormatInt(r.population.channels[n%len(r.population.channels)].ID, 10)
		case 'u':
			parts[i] = strconv.FormatInt(r.population.people[n%len(r.population.people)].ID, 10)
		case 'x':
			return "", false
		}
	}
	return strings.Join(parts, "/"), true
}

func (r *run) stepParams(st *Step) params {
	p := params{}
	for k, v := range st.Params {
		n := 0
		if len(v) > 1 {
			n, _ = strconv.Atoi(v[1:])
		}
		switch {
		case plainParams[k]:
			p[k] = v
		case k == "topic" || k == "subject" || k == "topic_name":
			p[k] = "topic " + v
		case k == "stream_id" || k == "to":
			p[k] = r.population.channels[n%len(r.population.channels)].ID
		case k == "anchor" && !strings.HasPrefix(v, "m"):
			p[k] = v
		case k == "anchor" || k == "message_id" || k == "messages":
			id := int64(1)
			if s, _ := r.recentSend(); s != nil {
				id = s.message
			}
			if p[k] = id; k == "messages" {
				p[k] = []int64{id}
			}
		case k == "narrow":
			p[k] = r.stepNarrow(v)
		case k == "content":
			p[k] = (filler + " " + filler)[:max(1, min(n, 2*len(filler)))]
		}
	}
	return p
}

func (r *run) stepNarrow(v string) []map[string]any {
	out := []map[string]any{}
	for _, term := range strings.Fields(v) {
		op, operand, _ := strings.Cut(term, ":")
		switch {
		case op == "is" || op == "has":
			out = append(out, map[string]any{"operator": op, "operand": operand})
		case op == "channel" || op == "stream":
			n, _ := strconv.Atoi(strings.TrimPrefix(operand, "c"))
			out = append(out, map[string]any{"operator": "channel",
				"operand": r.population.channels[n%len(r.population.channels)].ID})
		case op == "topic":
			out = append(out, map[string]any{"operator": "topic", "operand": "topic 1"})
		}
	}
	return out
}

func stepKind(method, path string) int {
	switch {
	case path == "register":
		return kindRegister
	case path == "users/me/presence":
		return kindPresence
	case path == "messages/flags" || path == "messages/flags/narrow":
		return kindRead
	case path == "typing":
		return kindTyping
	case path == "messages" && method == "POST":
		return kindSend
	case path == "messages":
		return kindMessages
	case strings.HasSuffix(path, "/reactions"):
		return kindReact
	case method == "PATCH" && strings.HasPrefix(path, "messages/"):
		return kindEdit
	}
	return kindOther
}
