package bench

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A Step is one request of a trace. A trace holds times and shapes of requests, but no names, texts or keys: users,
// channels, topics and messages are numbers in order of appearance, and of texts only the length is stored.
type Step struct {
	At     int64             `json:"at_us"` // since the start of the recording
	User   int               `json:"who"`   // -1: no credentials
	Method string            `json:"method"`
	Path   string            `json:"path"` // numbers replace ids and names
	Params map[string]string `json:"params,omitempty"`
	Status int               `json:"status"`
	Took   int64             `json:"took_us"`
	Bytes  int64             `json:"bytes"`
}

// An anonymiser replaces names and ids by numbers. Its key is never stored, so a trace cannot be mapped back.
type anonymiser struct {
	mu      sync.Mutex
	key     []byte
	people  map[string]int
	numbers map[string]int
}

func newAnonymiser() *anonymiser {
	a := &anonymiser{key: make([]byte, 32), people: map[string]int{}, numbers: map[string]int{}}
	rand.Read(a.key)
	return a
}

func (a *anonymiser) person(auth string) int {
	if auth == "" {
		return -1
	}
	mac := hmac.New(sha256.New, a.key)
	mac.Write([]byte(auth))
	k := string(mac.Sum(nil))
	a.mu.Lock()
	defer a.mu.Unlock()
	n, ok := a.people[k]
	if !ok {
		n = len(a.people)
		a.people[k] = n
	}
	return n
}

// number returns the number of a value within a class: "c3" is the fourth channel of the trace.
func (a *anonymiser) number(class, value string) string {
	mac := hmac.New(sha256.New, a.key)
	mac.Write([]byte(class + "\x00" + strings.ToLower(value)))
	k := class + string(mac.Sum(nil))
	a.mu.Lock()
	defer a.mu.Unlock()
	n, ok := a.numbers[k]
	if !ok {
		n = a.numbers["n"+class]
		a.numbers[k] = n
		a.numbers["n"+class]++
	}
	return class + strconv.Itoa(n)
}

// plainParams are stored as they are: their values are words of the protocol, not of users.
var plainParams = map[string]bool{"type": true, "op": true, "flag": true, "num_before": true, "num_after": true,
	"status": true, "ping_only": true, "new_user_input": true, "slim_presence": true, "apply_markdown": true,
	"client_gravatar": true, "dont_block": true, "event_types": true, "fetch_event_types": true,
	"client_capabilities": true, "include_subscribers": true, "idle_queue_timeout": true, "emoji_name": true,
	"emoji_code": true, "reaction_type": true, "include_anchor": true, "propagate_mode": true, "read_by_sender": true,
	"history_limit_days": true, "visibility_policy": true, "allow_empty_topic_name": true}

var digits = regexp.MustCompile(`^[0-9]+$`)

// path replaces the ids and names in a path.
func (a *anonymiser) path(p string) string {
	parts := strings.Split(p, "/")
	for i, s := range parts {
		before := ""
		if i > 0 {
			before = parts[i-1]
		}
		switch {
		case strings.Contains(s, "@"):
			parts[i] = a.number("u", s)
		case digits.MatchString(s):
			parts[i] = a.number(idClass(before), s)
		case before == "user_uploads" || before == "avatar" || before == "emoji" || before == "domains":
			parts[i] = a.number("x", s)
		}
	}
	return strings.Join(parts, "/")
}

func idClass(before string) string {
	switch before {
	case "messages":
		return "m"
	case "streams", "me", "subscriptions":
		return "c"
	case "users":
		return "u"
	}
	return "x"
}

func (a *anonymiser) params(v url.Values) map[string]string {
	out := map[string]string{}
	for k, vs := range v {
		s := vs[len(vs)-1]
		switch {
		case plainParams[k]:
			out[k] = s
		case k == "to" || k == "stream_id" || k == "stream":
			out[k] = a.number("c", s)
		case k == "topic" || k == "subject" || k == "topic_name":
			out[k] = a.number("t", s)
		case k == "anchor" && !digits.MatchString(s):
			out[k] = s
		case k == "message_id" || k == "anchor":
			out[k] = a.number("m", s)
		case k == "messages":
			out[k] = "n" + strconv.Itoa(strings.Count(s, ",")+1)
		case k == "narrow":
			out[k] = a.narrow(s)
		case k == "queue_id" || k == "last_event_id" || k == "local_id" || k == "last_update_id":
			out[k] = "" // the replaying client has its own
		default:
			out[k] = "n" + strconv.Itoa(len([]rune(s)))
		}
	}
	return out
}

// narrow keeps the operators and the numbers of channels.
func (a *anonymiser) narrow(s string) string {
	var terms []json.RawMessage
	if json.Unmarshal([]byte(s), &terms) != nil {
		return ""
	}
	var ops []string
	for _, t := range terms {
		var o struct {
			Operator string `json:"operator"`
			Operand  any    `json:"operand"`
		}
		var pair []any
		if json.Unmarshal(t, &o) != nil {
			if json.Unmarshal(t, &pair) == nil && len(pair) == 2 {
				o.Operator, o.Operand = fmt.Sprint(pair[0]), pair[1]
			}
		}
		word := o.Operator
		if o.Operator == "is" || o.Operator == "has" {
			word += ":" + fmt.Sprint(o.Operand)
		} else if o.Operator == "channel" || o.Operator == "stream" {
			word += ":" + a.number("c", fmt.Sprint(o.Operand))
		}
		ops = append(ops, word)
	}
	return strings.Join(ops, " ")
}

// maxTraceBody bounds the request bodies that are parsed, in bytes; larger ones are uploads.
const maxTraceBody = 1 << 20

// A Recorder is a reverse proxy that writes each request as a Step.
type Recorder struct {
	proxy *httputil.ReverseProxy
	anon  *anonymiser
	begin time.Time
	mu    sync.Mutex
	out   *json.Encoder
	Count int
}

// NewRecorder returns a proxy in front of target that writes steps to out.
func NewRecorder(target *url.URL, out io.Writer) *Recorder {
	p := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target) // also sets Host to that of the target
		r.SetXForwarded()
	}}
	return &Recorder{proxy: p, anon: newAnonymiser(), begin: time.Now(), out: json.NewEncoder(out)}
}

func (rec *Recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begin := time.Now()
	v := url.Values{}
	for k, x := range r.URL.Query() {
		v[k] = x
	}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") &&
		r.ContentLength <= maxTraceBody {
		body, err := io.ReadAll(io.LimitReader(r.Body, maxTraceBody+1))
		if err == nil {
			form, _ := url.ParseQuery(string(body))
			for k, x := range form {
				v[k] = x
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
	}
	cw := &countingWriter{ResponseWriter: w, status: 200}
	rec.proxy.ServeHTTP(cw, r)
	s := Step{At: begin.Sub(rec.begin).Microseconds(), User: rec.anon.person(r.Header.Get("Authorization")),
		Method: r.Method, Path: rec.anon.path(r.URL.Path), Params: rec.anon.params(v), Status: cw.status,
		Took: time.Since(begin).Microseconds(), Bytes: cw.n}
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.out.Encode(s)
	rec.Count++
}

type countingWriter struct {
	http.ResponseWriter
	status int
	n      int64
}

func (w *countingWriter) WriteHeader(s int) {
	w.status = s
	w.ResponseWriter.WriteHeader(s)
}

func (w *countingWriter) Write(b []byte) (int, error) {
	n, err := w.ResponseWriter.Write(b)
	w.n += int64(n)
	return n, err
}

// Unwrap lets the proxy find the Flusher.
func (w *countingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func recordMain(args []string, stdout, stderr io.Writer) int {
	f := flag.NewFlagSet("parley bench record", flag.ContinueOnError)
	f.SetOutput(stderr)
	target := f.String("target", "", "`URL` of the server")
	listen := f.String("listen", "127.0.0.1:9992", "`address` that clients connect to")
	out := f.String("out", "", "`file` for the trace, JSON lines")
	if err := f.Parse(args); err != nil || *target == "" || *out == "" {
		if err == nil {
			fmt.Fprint(stderr, usage)
		}
		return 2
	}
	u, err := url.Parse(*target)
	var file *os.File
	if err == nil {
		file, err = os.OpenFile(*out, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	defer file.Close()
	rec := NewRecorder(u, file)
	srv := &http.Server{Addr: *listen, Handler: rec, ReadHeaderTimeout: 30 * time.Second}
	fmt.Fprintf(stdout, "recording requests from %s to %s; interrupt to stop\n", *listen, *target)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-stop
		srv.Close()
	}()
	if err := srv.ListenAndServe(); err != http.ErrServerClosed {
		fmt.Fprintln(stderr, err)
		return 2
	}
	fmt.Fprintf(stdout, "%d requests recorded\n", rec.Count)
	return 0
}

// ReadTrace reads a trace and returns its steps in order of their start.
func ReadTrace(r io.Reader) ([]Step, error) {
	var out []Step
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, maxTraceBody)
	for sc.Scan() {
		var s Step
		if err := json.Unmarshal(sc.Bytes(), &s); err != nil {
			return nil, fmt.Errorf("line %d: %w", len(out)+1, err)
		}
		out = append(out, s)
	}
	// The file has the order in which requests ended.
	sortSteps(out)
	return out, sc.Err()
}
