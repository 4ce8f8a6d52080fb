package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"syscall"

	"parley/bench/crowd"
)

// floorBuilder returns the crowd of a floor, which has no users: channels are numbers, and a register names the
// channels of its queue.
type floorBuilder struct{}

func (floorBuilder) Build(r *run, plan crowd.Plan) (*population, error) {
	pop := &population{how: "locally (a floor has no users)", people: make([]person, plan.Users)}
	for i := range pop.people {
		p := &pop.people[i]
		p.ID, p.Email, p.Key = int64(i+1), fmt.Sprintf("user%d@floor.invalid", i), "00000000000000000000000000000000"
		p.setAuth(r.server.host)
	}
	for i, m := range plan.Members() {
		c := channel{ID: int64(i), Name: "floor " + strconv.Itoa(i), Members: m}
		if plan.Hundred > 0 && i == plan.Channels {
			c.Name = "floor hundred"
		}
		pop.channels = append(pop.channels, c)
	}
	return pop, nil
}

// floorChannels returns the channels of a user as a floor expects them.
func (r *run) floorChannels(user int32) string {
	var list []string
	for i := range r.population.channels {
		if c := &r.population.channels[i]; r.ledger.audiences[c.audience].contains(user) {
			list = append(list, strconv.Itoa(i))
		}
	}
	return strings.Join(list, ".")
}

// floorRatioFigures are the figures that are compared with the floor.
var floorRatioFigures = []string{"cpu_per_delivery", "deliveries_per_s", "seen_p50", "seen_p99"}

// runFloor runs the same phases on the bare server. The server and its clients are processes of their own, so that
// they do not share file limits and memory with this run. Meanwhile the polls of the measured server stay parked.
func (r *run) runFloor() error {
	weight := 1000
	// Events of the floor get the size of the measured server's events, once that is known.
	for _, p := range r.scenario.Phases {
		if f, ok := r.result.Figure(p.Name + ".bytes_per_delivery"); ok {
			weight = int(f.Value)
			break
		}
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	argv := []string{exe, "bench", "floor-server"}
	if r.options.floorCommand != "" {
		argv = strings.Fields(r.options.floorCommand)
	}
	address, stop, err := startFloor(append(argv, "--listen", "127.0.0.1:0", "--bytes", strconv.Itoa(weight)))
	if err != nil {
		return err
	}
	defer stop()
	r.logf("the floor, event answers of %d bytes", weight)
	res, err := r.runFloorClient(exe, address)
	if err != nil {
		return err
	}
	if res.Broken > 0 {
		return fmt.Errorf("the floor violated a guarantee: %v", res.Violations[0])
	}
	r.floorResults = append(r.floorResults, res)
	return nil
}

// startFloor starts a bare server, which ends at the latest with this process.
func startFloor(argv []string) (address string, stop func(), err error) {
	server := exec.Command(argv[0], argv[1:]...)
	server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	server.Stderr = os.Stderr
	out, err := server.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := server.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		server.Process.Kill()
		server.Wait()
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	f := strings.Fields(line)
	if err != nil || len(f) == 0 {
		stop()
		return "", nil, fmt.Errorf("the floor server did not print its address: %w", err)
	}
	return f[len(f)-1], stop, nil
}

// runFloorClient runs the scenario's phases on a bare server in a client process and returns its result.
func (r *run) runFloorClient(exe, address string) (*Result, error) {
	dir, err := os.MkdirTemp("", "parley-floor-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	sc := r.scenario
	sc.Sample, sc.History, sc.Fresh, sc.Crowd = 0, 0, false, false
	b, err := json.Marshal(sc)
	if err != nil {
		return nil, err
	}
	scFile, resFile := filepath.Join(dir, "scenario.json"), filepath.Join(dir, "result.json")
	if err := os.WriteFile(scFile, b, 0o600); err != nil {
		return nil, err
	}
	client := exec.Command(exe, "bench", "floor-client", "--target", "http://"+address, "--scenario", scFile, "--json",
		resFile, "--quiet")
	client.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	done := make(chan error, 1)
	var said []byte
	go func() {
		var err error
		said, err = client.CombinedOutput()
		done <- err
	}()
	finished := false
	if lerr := r.loop.Run(func() bool {
		select {
		case err = <-done:
			finished = true
		default:
		}
		return finished
	}); lerr != nil {
		return nil, lerr
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, said)
	}
	if b, err = os.ReadFile(resFile); err != nil {
		return nil, err
	}
	res := &Result{}
	return res, json.Unmarshal(b, res)
}

// combineRepetitions merges the figures of all repetitions, and adds ratios to the floor. Ratios are computed for
// each pair: both runs of a pair had the same conditions on the machine.
func (r *run) combineRepetitions() {
	by := map[string][]Figure{}
	var order []string
	for _, f := range r.result.Figures {
		if len(by[f.Name]) == 0 {
			order = append(order, f.Name)
		}
		by[f.Name] = append(by[f.Name], f)
	}
	var out []Figure
	for _, name := range order {
		all := by[name]
		out = append(out, medianFigure(all))
		_, kind, _ := strings.Cut(name, ".")
		if len(r.floorResults) == 0 || !contains(floorRatioFigures, kind) {
			continue
		}
		var floors, pairs []Figure
		for i, f := range all {
			if i >= len(r.floorResults) {
				break
			}
			g, ok := r.floorResults[i].Figure(name)
			if !ok || g.Value == 0 {
				continue
			}
			floors = append(floors, Figure{Name: "floor." + name, Unit: f.Unit, Value: g.Value, More: f.More,
				Refused: g.Refused})
			ratio := Figure{Name: name + "_to_floor", Unit: "x", Value: f.Value / g.Value, More: f.More,
				Refused: f.Refused}
			if ratio.Refused == "" {
				ratio.Refused = g.Refused
			}
			pairs = append(pairs, ratio)
		}
		if len(pairs) > 0 {
			out = append(out, medianFigure(floors), medianFigure(pairs))
		}
	}
	r.result.Figures = out
}

// medianFigure returns the median of repeated figures, with their range.
func medianFigure(all []Figure) Figure {
	if len(all) == 1 {
		f := all[0]
		if f.Low == 0 && f.High == 0 {
			f.Low, f.High = f.Value, f.Value
		}
		return f
	}
	vs := make([]float64, len(all))
	for i, f := range all {
		vs[i] = f.Value
	}
	sort.Float64s(vs)
	f := all[len(all)-1]
	for _, g := range all {
		if g.Refused != "" {
			f.Refused = g.Refused
		}
	}
	f.Value, f.Low, f.High, f.Runs = vs[len(vs)/2], vs[0], vs[len(vs)-1], len(vs)
	if len(vs)%2 == 0 {
		f.Value = (vs[len(vs)/2-1] + vs[len(vs)/2]) / 2
	}
	return f
}

func contains(all []string, s string) bool {
	for _, x := range all {
		if x == s {
			return true
		}
	}
	return false
}
