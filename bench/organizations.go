package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Limits of the organizations command, on a machine with two processors.
const (
	organizationsStart = 3 * time.Second       // from a kill until the first answer
	organizationsRSS   = 600                   // MB, with the active organizations in memory
	firstRequestP99    = 50 * time.Millisecond // to an organization that is asleep
)

const (
	organizationsSleep  = "20s"            // sleep-after of the server
	organizationsMade   = 30 * time.Minute // to make them
	organizationsRest   = 20 * time.Minute // until the others are asleep: at most 40 a second
	firstRequestSamples = 500
	herdClients         = 256 // that send requests at the same time
	organizationUsers   = 5
	organizationTexts   = 10
)

// firstUser is the form that gets the key of the first user of an organization.
var firstUser = url.Values{"username": {"u0@crowd.example.org"}}

// organizationsRun is one run: a server with many organizations, of which few are active.
type organizationsRun struct {
	out          io.Writer
	exe, data    string
	address      string
	count        int
	active       int
	kills        int
	client       *http.Client
	cmd          *exec.Cmd
	missed       []string
	log          *os.File
	keys         []string // of a user of each active organization
	sent         []any    // id of its last message that was acknowledged
	firstAnswers []time.Duration
}

// organizationsMain runs `parley bench organizations`: it makes organizations, kills the server several times while
// some are active, and measures starts, memory and first requests.
func organizationsMain(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("organizations", flag.ContinueOnError)
	flags.SetOutput(stderr)
	self := flags.Bool("self", false, "start a server of this program")
	r := &organizationsRun{out: stdout}
	flags.IntVar(&r.count, "realms", 10_000, "organizations")
	flags.IntVar(&r.active, "active", 200, "organizations with requests before each kill")
	flags.IntVar(&r.kills, "kills", 5, "how often the server is killed")
	cores := flags.Int("cores", 1, "1: a single server, 3: three cores whose leader is killed and moved")
	moves := flags.Int("moves", 10, "with three cores: how often the leadership is moved")
	flags.StringVar(&r.data, "data", "", "data directory of an earlier run; default: a new one")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if !*self {
		fmt.Fprintln(stderr, "organizations needs --self")
		return 2
	}
	if *cores != 1 && *cores != 3 {
		fmt.Fprintln(stderr, "organizations: --cores is 1 or 3")
		return 2
	}
	measure := r.measureOne
	if *cores == 3 {
		measure = (&coresRun{organizationsRun: r, names: []string{"a", "b", "c"}, moves: *moves}).measure
	}
	if err := r.run(measure); err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	if len(r.missed) > 0 {
		fmt.Fprintf(stdout, "MISSED: %s\n", strings.Join(r.missed, "; "))
		return 1
	}
	return 0
}

func (r *organizationsRun) run(measure func() error) (err error) {
	if r.exe, err = os.Executable(); err != nil {
		return err
	}
	if r.data == "" {
		dir, err := os.MkdirTemp("", "parley-bench-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		r.data = filepath.Join(dir, "data")
	}
	return measure()
}

// measureOne measures a single server.
func (r *organizationsRun) measureOne() error {
	port, err := freePort()
	if err != nil {
		return err
	}
	r.address = fmt.Sprintf("127.0.0.1:%d", port)
	if r.log, err = os.Create(r.data + ".log"); err != nil {
		return err
	}
	defer r.log.Close()
	r.client = &http.Client{Timeout: time.Minute,
		Transport: &http.Transport{MaxIdleConnsPerHost: herdClients, MaxConnsPerHost: herdClients}}
	defer func() {
		if r.cmd != nil {
			r.cmd.Process.Kill()
			r.cmd.Wait()
		}
	}()
	if err := r.make(); err != nil {
		return err
	}
	return r.measure()
}

// start starts the server and returns the time until its first answer.
func (r *organizationsRun) start(limit time.Duration) (time.Duration, error) {
	r.cmd = exec.Command(r.exe, "serve", "--data", r.data, "--listen", r.address, "--sleep-after", organizationsSleep,
		"--demo-crowd", fmt.Sprintf("users=%d,channels=%d,realms=%d,messages=%d", organizationUsers*r.count, r.count,
			r.count, organizationTexts*r.count))
	r.cmd.Stdout, r.cmd.Stderr = r.log, r.log
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	began := time.Now()
	if err := r.cmd.Start(); err != nil {
		return 0, err
	}
	for time.Since(began) < limit {
		if _, err := r.get(0, "/api/v1/server_settings", ""); err == nil {
			return time.Since(began), nil
		}
		time.Sleep(2 * time.Millisecond)
	}
	return 0, fmt.Errorf("the server did not answer within %v", limit)
}

// stop ends the server with a signal.
func (r *organizationsRun) stop(s syscall.Signal) {
	r.cmd.Process.Signal(s)
	r.cmd.Wait()
	r.cmd = nil
}

// send sends a request to an organization. user is empty or "email:key".
func (r *organizationsRun) send(i int, method, path, user string, form url.Values) (map[string]any, error) {
	answer, status, err := askOrganization(r.client, r.address, i, method, path, user, form)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%s %s of organization %d: %d %v", method, path, i, status, answer["msg"])
	}
	return answer, err
}

// askOrganization sends a request to an organization at an address, and returns the answer and its status.
func askOrganization(client *http.Client, address string, i int, method, path, user string, form url.Values) (
	answer map[string]any, status int, err error,
) {
	q, err := http.NewRequest(method, "http://"+address+path, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, 0, err
	}
	if q.Host = address; i > 0 {
		q.Host = fmt.Sprintf("r%d.%s", i, address)
	}
	if form != nil {
		q.Header.Set("Content-Type", formType)
	}
	if email, key, ok := strings.Cut(user, ":"); ok {
		q.SetBasicAuth(email, key)
	}
	a, err := client.Do(q)
	if err != nil {
		return nil, 0, err
	}
	defer a.Body.Close()
	answer = map[string]any{}
	err = json.NewDecoder(a.Body).Decode(&answer)
	return answer, a.StatusCode, err
}

func (r *organizationsRun) get(i int, path, user string) (map[string]any, error) {
	return r.send(i, "GET", path, user, nil)
}

// make makes the organizations, unless the data directory has them, and waits until they are asleep.
func (r *organizationsRun) make() error {
	began := time.Now()
	if _, err := r.start(organizationsMade); err != nil {
		return err
	}
	fmt.Fprintf(r.out, "%d organizations with %d users each: ready after %.0f s, RSS %d MB\n", r.count,
		organizationUsers+1, time.Since(began).Seconds(), r.rss())
	return r.waitUntilAsleep()
}

// waitUntilAsleep waits until at most the active organizations are in memory.
func (r *organizationsRun) waitUntilAsleep() error {
	for end := time.Now().Add(organizationsRest); time.Now().Before(end); time.Sleep(5 * time.Second) {
		list := exec.Command(r.exe, "realm", "list", "--data", r.data)
		list.Stderr = r.out
		out, err := list.Output()
		if err != nil {
			return fmt.Errorf("realm list: %w", err)
		}
		awake := bytes.Count(out, []byte("\n")) - bytes.Count(out, []byte("asleep=true"))
		if awake <= r.active {
			fmt.Fprintf(r.out, "%d organizations awake, RSS %d MB\n", awake, r.rss())
			return nil
		}
	}
	return fmt.Errorf("the organizations are not asleep after %v", organizationsRest)
}

// rss returns the memory of the server in MB.
func (r *organizationsRun) rss() int64 { return rssOf(r.cmd.Process.Pid) }

// rssOf returns the memory of a process in MB.
func rssOf(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "VmRSS:" {
			kb, _ := strconv.ParseInt(f[1], 10, 64)
			return kb >> 10
		}
	}
	return 0
}

// measure kills the server several times, and prints the table.
func (r *organizationsRun) measure() error {
	var starts []time.Duration
	rss := int64(0)
	for range r.kills {
		if err := r.work(); err != nil {
			return err
		}
		rss = max(rss, r.rss())
		r.stop(syscall.SIGKILL)
		took, err := r.start(time.Minute)
		if err != nil {
			return err
		}
		starts = append(starts, took)
		if err := r.check(); err != nil {
			return err
		}
		rss = max(rss, r.rss())
	}
	r.print("start after kill -9, longest", slices.Max(starts), organizationsStart)
	fmt.Fprintf(r.out, "%-46s %8d MB  limit %d MB\n", "RSS, highest", rss, organizationsRSS)
	if rss > organizationsRSS {
		r.missed = append(r.missed, "RSS")
	}
	if err := r.first(); err != nil {
		return err
	}
	return r.herd()
}

// print prints a line of the table.
func (r *organizationsRun) print(what string, got, limit time.Duration) {
	fmt.Fprintf(r.out, "%-46s %8.1f ms  limit %v\n", what, 1000*got.Seconds(), limit)
	if got > limit {
		r.missed = append(r.missed, what)
	}
}

// work sends a message in each active organization. The keys of their users are fetched once.
func (r *organizationsRun) work() error {
	for i := range r.active {
		if len(r.keys) <= i {
			a, err := r.send(i, "POST", "/api/v1/dev_fetch_api_key", "", firstUser)
			if err != nil {
				return err
			}
			r.keys = append(r.keys, fmt.Sprint(a["email"], ":", a["api_key"]))
			r.sent = append(r.sent, nil)
		}
		a, err := r.send(i, "POST", "/api/v1/messages", r.keys[i], url.Values{"type": {"direct"},
			"to": {`["u0@crowd.example.org"]`}, "content": {"work"}})
		if err != nil {
			return err
		}
		r.sent[i] = a["id"]
	}
	return nil
}

// check reads the last acknowledged message of each active organization.
func (r *organizationsRun) check() error {
	for i := range r.active {
		if _, err := r.get(i, fmt.Sprintf("/api/v1/messages/%.0f", r.sent[i]), r.keys[i]); err != nil {
			return fmt.Errorf("after a kill: %w", err)
		}
	}
	return nil
}

// first measures the first requests to organizations that are asleep.
func (r *organizationsRun) first() error {
	return r.firstBy(func(i int) error {
		_, err := r.send(i, "POST", "/api/v1/dev_fetch_api_key", "", firstUser)
		return err
	})
}

// firstBy measures a request to each of many organizations that are asleep.
func (r *organizationsRun) firstBy(request func(i int) error) error {
	step := max(1, (r.count-r.active)/firstRequestSamples)
	for i := r.active; i < r.count; i += step {
		began := time.Now()
		if err := request(i); err != nil {
			return err
		}
		r.firstAnswers = append(r.firstAnswers, time.Since(began))
	}
	n := len(r.firstAnswers)
	if n == 0 {
		return nil
	}
	slices.Sort(r.firstAnswers)
	fmt.Fprintf(r.out, "%-46s %8.1f ms\n", "first request to a sleeping one, median",
		1000*r.firstAnswers[n/2].Seconds())
	r.print("first request to a sleeping one, p99", r.firstAnswers[n*99/100], firstRequestP99)
	return nil
}

// herd sends one request to every organization, as clients do after a start.
func (r *organizationsRun) herd() error {
	r.stop(syscall.SIGTERM)
	took, err := r.start(time.Minute)
	if err != nil {
		return err
	}
	r.print("start after a stop", took, organizationsStart)
	began := time.Now()
	var all sync.WaitGroup
	var mu sync.Mutex
	refused, next := 0, 0
	for range herdClients {
		all.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				mu.Unlock()
				if i >= r.count {
					return
				}
				if _, err := r.get(i, "/api/v1/server_settings", ""); err != nil {
					mu.Lock()
					refused++
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	fmt.Fprintf(r.out, "%-46s %8.1f s   %d refused, RSS %d MB\n", "one request to each organization at once",
		time.Since(began).Seconds(), refused, r.rss())
	return nil
}
