package bench

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// smallScenario returns a scenario that takes about a second.
func smallScenario(name string) Scenario {
	s := Scenarios()[name]
	s.Users, s.Pollers, s.Channels, s.Zipf, s.Conns, s.History, s.Sample, s.Hundred = 12, 12, 3, 1, 4, 0, 3, 0
	return s
}

func runAgainst(t *testing.T, f *fakeServer, s Scenario) (*Result, string) {
	t.Helper()
	srv := httptest.NewServer(f)
	defer srv.CloseClientConnections()
	var out bytes.Buffer
	opt := options{target: srv.URL, out: &out}
	if f.fault != "" {
		opt.drainLimit = 500 * time.Millisecond // long enough for late events, and short for lost ones
	}
	res, err := runScenario(s, opt)
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	writeTable(&out, res)
	return res, out.String()
}

func TestHealthyServerHasNoViolations(t *testing.T) {
	s := smallScenario("chat")
	s.Phases = []Phase{{Name: "rounds", Rounds: 20}, {Name: "open", Seconds: 1, Rate: 100, Mix: chatMix},
		{Name: "closed", Count: 50, Closed: 4}}
	res, out := runAgainst(t, newFake(""), s)
	if res.Broken != 0 {
		t.Fatalf("a server that meets its guarantees has violations:\n%s", out)
	}
	if len(res.Phases) != 3 || res.Phases[2].Kinds["send"].N != 50 || res.Phases[0].Delivered < 20*2 {
		t.Fatalf("the phases differ from the scenario:\n%s", out)
	}
	for _, n := range []string{"rounds.deliveries_per_s", "closed.send_per_s", "open.presence_p99"} {
		if f, ok := res.Figure(n); !ok || f.Value <= 0 {
			t.Errorf("figure %s is missing", n)
		}
	}
}

func TestFaultsAreReported(t *testing.T) {
	for fault, kind := range map[string]string{"loss": "loss", "duplicate": "duplicate", "reorder": "reorder",
		"leak": "leak", "forget": "queue lost"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			s := smallScenario("chat")
			s.Sample = 0
			s.Phases = []Phase{{Name: "open", Count: 40, Closed: 4}}
			f := newFake(fault)
			res, out := runAgainst(t, f, s)
			if res.Broken == 0 {
				t.Fatalf("a %s was not reported:\n%s", fault, out)
			}
			found := false
			for _, v := range res.Violations {
				found = found || v.Kind == kind
			}
			if !found {
				t.Fatalf("%s was reported as another violation: %v", fault, res.Violations)
			}
			if !strings.Contains(out, "GUARANTEES VIOLATED") {
				t.Error("the table does not show the violation")
			}
		})
	}
}

func TestCrowdMirrorsMatchRegister(t *testing.T) {
	crowd := func(t *testing.T, seed uint64, fault, policy string) (*Result, string) {
		s := smallScenario("crowd")
		s.Sample, s.Seed = 12, seed
		s.Phases = []Phase{{Name: "crowd", Count: 400, Closed: 1, Mix: map[string]float64{"crowd": 1}}}
		f := newFake(fault)
		f.policy = policy
		return runAgainst(t, f, s)
	}
	for _, seed := range []uint64{1, 2} {
		for _, policy := range []string{"all", "moves", "none", ""} { // "" is a server without the policy
			t.Run(fmt.Sprint(seed, policy), func(t *testing.T) {
				t.Parallel()
				if res, out := crowd(t, seed, "", policy); res.Broken != 0 {
					t.Fatalf("seed %d, edit history of %q:\n%s", seed, policy, out)
				}
			})
		}
		for fault, what := range map[string]string{"silent": "unsubscribing without an event",
			"no past": "an edit that is missing in the edit history"} {
			t.Run(fmt.Sprint(seed, fault), func(t *testing.T) {
				t.Parallel()
				if res, _ := crowd(t, seed, fault, "all"); res.Broken == 0 {
					t.Fatalf("seed %d: %s was not reported", seed, what)
				}
			})
		}
	}
}
