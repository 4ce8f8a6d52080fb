package bench

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"parley/bench/conform"
	"parley/bench/swarm"
)

// conformMain checks a server against statements of the API documentation.
func conformMain(args []string, stdout, stderr io.Writer) int {
	s := newRunFlags("conform", stdout, stderr)
	if err := s.parse("conform", args); err != nil {
		return s.fail(err, stderr)
	}
	s.options.quiet = true
	r := newRun(s.scenario, s.options)
	defer r.closeSetup()
	users, err := r.conformUsers()
	if err != nil {
		return s.fail(err, stderr)
	}
	host := r.server.host
	if host == "" {
		host = r.server.addr.String()
	}
	fmt.Fprintf(stdout, "%s%s, version %s, feature level %d\n", r.server.scheme(), host, orUnknown(r.server.version),
		r.server.featureLevel)
	deviations, skipped := 0, 0
	suite := junitSuite{Name: "parley bench conform"}
	all := conform.Run(conform.Target{URL: r.server.scheme() + r.server.addr.String(), Host: host, TLS: r.server.tls,
		Level: r.server.featureLevel, Users: users}, func(o conform.Outcome) {
		c := junitCase{Class: "conform", Name: o.Name, Time: "0"}
		switch {
		case o.Deviation != "":
			deviations++
			c.Failure = &junitReason{o.Statement + " (" + o.Page + ")", o.Deviation}
			fmt.Fprintf(stdout, "DEVIATES  %s: %s\n          documented: %s (%s)\n", o.Name, o.Deviation, o.Statement,
				o.Page)
		case o.Skipped != "":
			skipped++
			fmt.Fprintf(stdout, "skipped   %s: %s\n", o.Name, o.Skipped)
		default:
			fmt.Fprintf(stdout, "ok        %s\n", o.Name)
		}
		suite.Cases = append(suite.Cases, c)
	})
	fmt.Fprintf(stdout, "%d statements, %d deviations, %d skipped\n", len(all), deviations, skipped)
	err = errors.Join(s.writeJSON(all), writeFile(s.junitFile, suite.write))
	if err != nil {
		fmt.Fprintf(stderr, "parley bench conform: %v\n", err)
		return 2
	}
	if deviations > 0 {
		return 1
	}
	return 0
}

// conformUsers connects to the server and returns three ordinary users: of the accounts file, of the development login,
// or new ones.
func (r *run) conformUsers() ([]conform.User, error) {
	if err := r.connect(); err != nil {
		return nil, err
	}
	var err error
	if r.loop, err = swarm.Open(); err != nil {
		return nil, err
	}
	r.meter = newMeter("conform")
	r.pool = swarm.NewPool(r.loop, r.server.addr, nil, 2, agent)
	if r.server.tls != nil {
		r.pool.UseTLS(r.server.tls)
	}
	if err := r.buildCrowd(); err != nil {
		return nil, err
	}
	people := r.population.people
	if err := r.fetchOwnIDs(people); err != nil {
		return nil, err
	}
	var users []conform.User
	for _, p := range people[:conformUsers] {
		users = append(users, conform.User{Email: p.Email, Key: p.Key, ID: p.ID})
	}
	return users, nil
}

// conformUsers is the number of users that the checks need.
const conformUsers = 3

// conformScenario describes the crowd of the checks.
func conformScenario() Scenario {
	s := Scenarios()["chat"]
	s.Name, s.About = "conform", "statements of the API documentation"
	s.Users, s.Pollers, s.Channels, s.Zipf, s.History, s.Sample = conformUsers, 0, 1, 0, 0, 0
	return s
}

// clientMain is a scripted server that checks the behaviour of a client.
func clientMain(args []string, stdout, stderr io.Writer) int {
	s := &runFlags{}
	f := newFlagSet("client", stderr)
	s.flags = f
	listen := f.String("listen", "127.0.0.1:9993", "`address` of the scripted server")
	wait := f.Duration("wait", 2*time.Minute, "time for the client to complete the script")
	f.StringVar(&s.jsonFile, "json", "", "write the steps to `file`")
	f.StringVar(&s.junitFile, "junit", "", "write the steps to `file`, as JUnit XML")
	f.BoolVar(&s.options.quiet, "quiet", false, "do not print the requests of the client")
	if err := f.Parse(args); err != nil {
		return 2
	}
	l, err := net.Listen("tcp", *listen)
	if err != nil {
		return s.fail(err, stderr)
	}
	log := stdout
	if s.options.quiet {
		log = io.Discard
	}
	script := conform.NewScript(log)
	srv := &http.Server{Handler: script, ReadHeaderTimeout: settingsLimit}
	go srv.Serve(l)
	defer srv.Close()
	fmt.Fprintf(stdout, "http://%s waits for a client (any email address and key), for %v at most\n", l.Addr(), *wait)
	select {
	case <-script.Done():
	case <-time.After(*wait):
	}
	return s.reportClient(script.Steps(), stdout, stderr)
}

// reportClient prints the steps of a client and returns the exit code: 2 if there was no client.
func (s *runFlags) reportClient(steps []conform.Step, stdout, stderr io.Writer) int {
	wrong, unseen := 0, 0
	suite := junitSuite{Name: "parley bench client"}
	for _, x := range steps {
		c := junitCase{Class: "client", Name: x.Name, Time: "0"}
		switch {
		case x.Wrong != "":
			wrong++
			c.Failure = &junitReason{x.Statement, x.Wrong}
			fmt.Fprintf(stdout, "WRONG     %s: %s\n          expected: %s\n", x.Name, x.Wrong, x.Statement)
		case !x.Seen:
			unseen++
			c.Failure = &junitReason{x.Statement, "the client did not get to this step"}
			fmt.Fprintf(stdout, "not seen  %s: %s\n", x.Name, x.Statement)
		default:
			fmt.Fprintf(stdout, "ok        %s: %s\n", x.Name, x.Statement)
		}
		suite.Cases = append(suite.Cases, c)
	}
	if err := errors.Join(s.writeJSON(steps), writeFile(s.junitFile, suite.write)); err != nil {
		fmt.Fprintf(stderr, "parley bench client: %v\n", err)
		return 2
	}
	switch {
	case unseen == len(steps):
		fmt.Fprintln(stderr, "parley bench client: no client connected")
		return 2
	case wrong+unseen > 0:
		fmt.Fprintf(stdout, "%d wrong, %d not seen\n", wrong, unseen)
		return 1
	}
	fmt.Fprintln(stdout, "the client did everything right")
	return 0
}
