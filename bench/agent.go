package bench

import (
	"cmp"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"strings"
	"sync"
	"time"

	"parley/bench/swarm"
)

const (
	// minToken is the length of the shortest token, in bytes: a token is a key, not a password.
	minToken = 32
	// maxToken bounds a token file, in bytes.
	maxToken = 4 << 10
	// maxFrame bounds a message between coordinator and agent, in bytes: the ledger of some millions of sends.
	maxFrame = 512 << 20
	// aliveEvery is the interval in which an agent shows that it lives.
	aliveEvery = time.Second
	// agentSilence is the time without a message after which the other side counts as dead.
	agentSilence = 15 * time.Second
	// agentSetupLimit is the time in which an agent opens its queues and later sends its result.
	agentSetupLimit = 5 * time.Minute
)

// A frame is one message between coordinator and agent. Exactly one member is set, besides Now.
type frame struct {
	Ping   bool         `json:"ping,omitempty"`
	Now    int64        `json:"now,omitempty"` // clock of the agent, in ns since 1970
	Plan   *agentPlan   `json:"plan,omitempty"`
	Ready  bool         `json:"ready,omitempty"`
	Start  int64        `json:"start,omitempty"` // on the clock of the agent, in ns since 1970
	Alive  bool         `json:"alive,omitempty"`
	Sends  *[]agentSend `json:"sends,omitempty"`
	Result *agentResult `json:"result,omitempty"`
	Error  string       `json:"error,omitempty"`
}

// An agentPlan is the part of a run that one agent makes.
type agentPlan struct {
	Scenario Scenario  `json:"scenario"`
	Target   string    `json:"target"`
	CA       []byte    `json:"ca,omitempty"` // PEM
	HTTP2    bool      `json:"http2,omitempty"`
	People   []person  `json:"people"`
	Channels []channel `json:"channels"`
	From, To int       // the users of this agent
	Index    int       // of this agent
	Agents   int
	Marker   uint64 // of the texts of the run
	Offset   int64  // clock of the coordinator minus that of this agent, in ns
	Oldest   int64  // message ids of the history
	Newest   int64
	Late     time.Duration
	Drain    time.Duration // instead of drainLimit; 0: drainLimit
}

// An agentSend is one send of the ledger of an agent.
type agentSend struct {
	No       int       `json:"n"` // unique in the whole run
	Audience int32     `json:"a"`
	State    sendState `json:"s"`
	Message  int64     `json:"m"`
}

// An agentResult holds the measurements of one agent.
type agentResult struct {
	Phases     []agentPhase   `json:"phases"`
	Violations []violation    `json:"violations"`
	ByKind     map[string]int `json:"by_kind"`
	Complaints []string       `json:"complaints"`
	Notes      []string       `json:"notes"`
	Stopped    string         `json:"stopped"`
}

// An agentPhase is the meter of a phase. Its histograms are encoded without loss.
type agentPhase struct {
	Name                        string
	Seconds, Drain              float64
	Kinds                       [kindCount]agentTally
	Seen, Lateness              []byte
	Delivered, Heartbeats       int64
	EventBytes, In, Out, Held   int64
	Busy                        time.Duration
	WindowRequests, WindowSeens []int64
}

type agentTally struct {
	N, Bytes int64
	Status   map[int]int64
	Latency  []byte
}

// readToken reads the secret that coordinator and agents share.
func readToken(file string) ([]byte, error) {
	if file == "" {
		return nil, errors.New("--token-file is required")
	}
	b, err := readBounded(file, maxToken)
	if err != nil {
		return nil, err
	}
	token := []byte(strings.TrimSpace(string(b)))
	if len(token) < minToken {
		return nil, fmt.Errorf("%s: the token must have at least %d bytes; create one with: openssl rand -hex 32", file,
			minToken)
	}
	return token, nil
}

// agentTLS returns the TLS configuration of both sides. Each side proves that it has the token: their certificates have
// the key that derives from it. So no certificates have to be created or copied.
func agentTLS(token []byte) (*tls.Config, error) {
	seed := sha256.Sum256(append([]byte("parley bench agent\x00"), token...))
	key := ed25519.NewKeyFromSeed(seed[:])
	now := time.Now()
	form := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-24 * time.Hour),
		NotAfter: now.AddDate(1, 0, 0)}
	cert, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{cert}, PrivateKey: key}},
		ClientAuth:   tls.RequireAnyClientCert,
		MinVersion:   tls.VersionTLS13,
		// The peer is verified by its key below: it has no name and no authority.
		InsecureSkipVerify: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			peer, ok := s.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
			if !ok || !peer.Equal(key.Public()) {
				return errors.New("the other side has another token")
			}
			return nil
		},
	}, nil
}

// A framer sends and receives frames.
type framer struct {
	conn net.Conn
	mu   sync.Mutex // of writes
}

func (f *framer) send(x frame) error {
	b, err := json.Marshal(x)
	if err != nil {
		return err
	}
	if len(b) > maxFrame {
		return fmt.Errorf("a message of %d bytes is longer than %d", len(b), maxFrame)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conn.SetWriteDeadline(time.Now().Add(agentSetupLimit))
	_, err = f.conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...))
	return err
}

func (f *framer) receive(limit time.Duration) (x frame, err error) {
	f.conn.SetReadDeadline(time.Now().Add(limit))
	var head [4]byte
	if _, err := io.ReadFull(f.conn, head[:]); err != nil {
		return x, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxFrame {
		return x, fmt.Errorf("a message of %d bytes is longer than %d", n, maxFrame)
	}
	f.conn.SetReadDeadline(time.Now().Add(agentSetupLimit))
	d := json.NewDecoder(io.LimitReader(f.conn, int64(n)))
	if err := d.Decode(&x); err != nil {
		return x, err
	}
	if x.Error != "" {
		return x, errors.New(x.Error)
	}
	return x, nil
}

// agentMain generates load for a coordinator on another machine.
func agentMain(args []string, stdout, stderr io.Writer) int {
	f := newFlagSet("agent", stderr)
	listen := f.String("listen", "127.0.0.1:9994", "`address` for the coordinator")
	tokenFile := f.String("token-file", "", "`file` with the secret that coordinator and agents share")
	mayLoad := f.Bool(strings.TrimLeft(loadThisServer, "-"), false,
		"confirm that this agent may load a target that is not on this machine")
	once := f.Bool("once", false, "end after one run")
	if err := f.Parse(args); err != nil {
		return 2
	}
	fail := func(err error) int {
		fmt.Fprintf(stderr, "parley bench agent: %v\n", err)
		return 2
	}
	token, err := readToken(*tokenFile)
	if err != nil {
		return fail(err)
	}
	cfg, err := agentTLS(token)
	if err != nil {
		return fail(err)
	}
	l, err := tls.Listen("tcp", *listen, cfg)
	if err != nil {
		return fail(err)
	}
	defer l.Close()
	fmt.Fprintf(stdout, "agent listens on %s\n", l.Addr())
	for {
		conn, err := l.Accept()
		if err != nil {
			return fail(err)
		}
		conn.SetDeadline(time.Now().Add(agentSilence))
		if err := conn.(*tls.Conn).Handshake(); err != nil {
			fmt.Fprintf(stdout, "%s: refused: %v\n", conn.RemoteAddr(), err)
			conn.Close()
			continue
		}
		conn.SetDeadline(time.Time{})
		fmt.Fprintf(stdout, "%s: a run begins\n", conn.RemoteAddr())
		done := make(chan error)
		go func() {
			done <- serveAgent(&framer{conn: conn},
				*mayLoad)
		}() // a goroutine of its own: swarm locks its thread
		if err := <-done; err != nil {
			fmt.Fprintf(stdout, "%s: %v\n", conn.RemoteAddr(), err)
		} else {
			fmt.Fprintf(stdout, "%s: the run is over\n", conn.RemoteAddr())
		}
		conn.Close()
		if *once {
			return 0
		}
	}
}

// serveAgent makes one run for a coordinator.
func serveAgent(f *framer, mayLoad bool) (err error) {
	defer func() {
		if err != nil {
			f.send(frame{Error: err.Error()})
		}
	}()
	var plan *agentPlan
	for plan == nil {
		x, err := f.receive(agentSetupLimit)
		if err != nil {
			return err
		}
		if x.Ping {
			if err := f.send(frame{Ping: true, Now: time.Now().UnixNano()}); err != nil {
				return err
			}
		}
		plan = x.Plan
	}
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		t := time.NewTicker(aliveEvery)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				if f.send(frame{Alive: true}) != nil {
					return
				}
			case <-stop:
				return
			}
		}
	}()
	r, err := newAgentRun(plan, mayLoad)
	if r != nil {
		defer r.closeSetup()
	}
	if err != nil {
		return err
	}
	if err := f.send(frame{Ready: true}); err != nil {
		return err
	}
	x, err := f.receive(agentSetupLimit)
	if err != nil {
		return err
	}
	if err := r.loop.RunFor(max(0, time.Until(time.Unix(0, x.Start))), nil); err != nil {
		return err
	}
	for i := range r.scenario.Phases {
		if err := r.runPhase(&r.scenario.Phases[i]); err != nil {
			return err
		}
		if r.stopped != "" {
			break
		}
	}
	own := r.ledger.export()
	if err := f.send(frame{Sends: &own}); err != nil {
		return err
	}
	if x, err = f.receive(agentSetupLimit + drainLimit); err != nil {
		return err
	}
	if x.Sends == nil {
		return errors.New("the coordinator did not send the sends of the other agents")
	}
	end := r.loop.Now() + cmp.Or(plan.Drain, drainLimit)
	err = r.loop.Run(func() bool { return r.loop.Now() > end || r.ledger.allExpectedSeen(*x.Sends) })
	if err != nil {
		return err
	}
	if err := r.checkStored(); err != nil {
		return err
	}
	r.finished = true
	r.ledger.checkLost()
	r.ledger.checkExpected(*x.Sends)
	result := r.agentResult()
	return f.send(frame{Result: &result})
}

// newAgentRun connects to the target and opens the queues of the agent's users.
func newAgentRun(plan *agentPlan, mayLoad bool) (*run, error) {
	if plan.From < 0 || plan.From >= plan.To || plan.To > len(plan.People) || plan.Index < 0 ||
		plan.Index >= plan.Agents {
		return nil, errors.New("the plan has no users for this agent")
	}
	if err := plan.Scenario.check(); err != nil {
		return nil, err
	}
	r := newRun(plan.Scenario, options{target: plan.Target, ca: plan.CA, http2: plan.HTTP2, mayLoad: mayLoad,
		quiet: true, out: io.Discard, late: plan.Late, drainLimit: plan.Drain})
	r.agent = plan
	if err := r.connect(); err != nil {
		return r, err
	}
	r.server.pid = 0 // the coordinator has no figures of the server's process
	var err error
	if r.loop, err = swarm.Open(); err != nil {
		return r, err
	}
	r.openPool()
	r.sampler = startSampler(0, "")
	pop := &population{people: plan.People, channels: plan.Channels}
	for i := range pop.people {
		pop.people[i].setAuth(r.server.host)
	}
	r.oldest, r.newest = plan.Oldest, plan.Newest
	r.usePopulation(pop, plan.Marker)
	r.ledger.agents, r.ledger.index = plan.Agents, plan.Index
	start := r.loop.Wall(0).UnixNano() + plan.Offset // of the loop, on the clock of the coordinator
	r.ledger.stamp = func(t time.Duration) int64 { return (start + int64(t)) / 1000 }
	r.ledger.unstamp = func(us int64) time.Duration { return time.Duration(us*1000 - start) }
	return r, r.openPollers()
}

// agentResult returns the measurements of this agent.
func (r *run) agentResult() agentResult {
	a := agentResult{Violations: r.ledger.violations, ByKind: r.ledger.violationsByKind, Complaints: r.complaints,
		Stopped: r.stopped, Phases: r.agentPhases}
	a.Notes = append(a.Notes, fmt.Sprintf("agent %d: users %d to %d, %d sends, %d deliveries seen", r.agent.Index,
		r.agent.From, r.agent.To-1, len(r.ledger.sends), r.ledger.seen))
	return a
}
