package httpd

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"parley/actors/presence"
	"parley/actors/realm"
	"parley/actors/realm/realmtest"
	"parley/wire"
)

// instantServer is a sceneServer that carries out commands without the organization: a benchmark of it measures the
// connection and the HTTP layer alone.
type instantServer struct{ sceneServer }

func (s *instantServer) Turn(realm.ID, realm.Caller, func(*realm.Turn) (any, error)) (any, error) {
	return realm.SendResult{ID: 123456}, nil
}

func (s *instantServer) RunAsync(commands []wire.AsyncCommand) {
	for _, c := range commands {
		switch c.CommandWithCallback.(type) {
		case *parkedSend, *forwardedSend:
			c.Done(realm.SendResult{ID: 123456}, nil)
		default:
			c.Done(realm.PresencePolicy{}, nil)
		}
	}
}

func (s *instantServer) Poll(p wire.PollRequest) { wire.AnswerPoll(p.Reply, p.Queue, nil) }

func (s *instantServer) PollAll(polls []*wire.PollRequest) {
	for _, p := range polls {
		s.Poll(*p)
	}
}

func (s *instantServer) ReportPresence(realm.ID, realm.UserID, bool) (row presence.Row, announce bool) {
	return
}

func (s *instantServer) ReportPresenceAsync(_ realm.ID, _ realm.UserID, _ bool, done func(presence.Row, bool)) {
	done(presence.Row{}, false)
}

// loginServer is an instantServer with many browser sessions and API keys, found as the actors find them: by the hash
// of their secret, under a lock.
type loginServer struct {
	instantServer
	lock           sync.RWMutex
	sessions, keys map[[32]byte]*wire.Account
}

const benchmarkedLogins = 10_000

func (s *loginServer) AccountByKeyHash(hash [32]byte) (*wire.Account, bool) {
	s.lock.RLock()
	a := s.keys[hash]
	s.lock.RUnlock()
	return a, a != nil
}

func (s *loginServer) AccountBySessionHash(hash [32]byte) (*wire.Account, *realm.BrowserSession) {
	s.lock.RLock()
	a := s.sessions[hash]
	s.lock.RUnlock()
	if a == nil {
		return nil, nil
	}
	return a, a.FindSession(hash)
}

// logIn adds sessions and keys of other users, and of the server's own account.
func (s *loginServer) logIn() {
	s.sessions, s.keys = map[[32]byte]*wire.Account{}, map[[32]byte]*wire.Account{}
	add := func(a *wire.Account, secret, key string) {
		session := newSession()
		session.Hash = s256(secret)
		a.Sessions = append(a.Sessions, session)
		s.sessions[session.Hash], s.keys[s256(key)] = a, a
	}
	for i := range benchmarkedLogins {
		a := &wire.Account{Realm: 1, User: realm.UserID(1000 + i), Active: true}
		add(a, fmt.Sprintf("%032d", i), fmt.Sprintf("k%031d", i))
	}
	add(s.account, testSecret, testKey)
}

// s256 is the hash that the server uses for secrets.
func s256(secret string) [32]byte { return sha256.Sum256([]byte(secret)) }

// serveLogins serves a loginServer at an address. ann has the account of the requests.
func serveLogins(b *testing.B) (server *Server, address string, ann realm.UserID) {
	scene := realmtest.New(b)
	ann = scene.Join("Ann")
	s := &loginServer{instantServer: instantServer{sceneServer{scene: scene,
		account: &wire.Account{Realm: 1, User: ann, Email: testEmail, Active: true}}}}
	s.logIn()
	server, address = serveFast(b, s, nil)
	server.options.Tools.HashKey = s256
	return server, address, ann
}

// BenchmarkFastPath measures the processor time of a request on each path, including the client and the kernel. The
// fast poll is one that its connection recognizes; the first poll is one that it does not. Requests of browsers have
// the cookies of one of ten thousand sessions, a token and an origin, instead of an API key.
//
//	go test -run - -bench FastPath -benchtime 50000x -count 3 ./wire/httpd
func BenchmarkFastPath(b *testing.B) {
	server, address, ann := serveLogins(b)
	server.options.Tools.Sign = newSigner()
	token := wire.CSRFToken(server.options.Tools, 1, ann, newSession().ID)
	headers := "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(testEmail+":"+testKey)) +
		"\r\nAccept: */*\r\n"
	formHeaders := headers + "Content-Type: application/x-www-form-urlencoded\r\n"
	poll := testRequest{"GET", "/api/v1/events?queue_id=fb67bf8a-c031-47cc-84cf-ed80accacda8&last_event_id=1234",
		headers, ""}
	otherPoll := poll
	otherPoll.headers += "X-Other: 1\r\n"
	message := testRequest{"POST", "/api/v1/messages", formHeaders,
		"type=stream&to=general&topic=lunch&content=Shall+we+meet+at+**noon**%3F&queue_id=q%3A1&local_id=17.01"}
	report := testRequest{"POST", "/api/v1/users/me/presence", formHeaders,
		"status=active&ping_only=true&new_user_input=false"}
	for _, c := range []struct {
		name     string
		requests []testRequest
		ordinary bool
	}{
		{"poll/fast", []testRequest{poll}, false},
		{"poll/first", []testRequest{poll, otherPoll}, false},
		{"poll/ordinary", []testRequest{poll}, true},
		{"message/fast", []testRequest{message}, false},
		{"message/ordinary", []testRequest{message}, true},
		{"presence/fast", []testRequest{report}, false},
		{"presence/ordinary", []testRequest{report}, true},
		{"browser/poll/fast", []testRequest{ofBrowser(poll, token)}, false},
		{"browser/poll/first", []testRequest{ofBrowser(poll, token), ofBrowser(otherPoll, token)}, false},
		{"browser/poll/ordinary", []testRequest{ofBrowser(poll, token)}, true},
		{"browser/message/fast", []testRequest{ofBrowser(message, token)}, false},
		{"browser/message/ordinary", []testRequest{ofBrowser(message, token)}, true},
		{"browser/presence/fast", []testRequest{ofBrowser(report, token)}, false},
	} {
		b.Run(c.name, func(b *testing.B) {
			(&testConn{t: b, address: address}).do(message, true) // prepares the rendering of texts
			b.ReportAllocs()
			b.SetParallelism(16)
			began := processorTime()
			b.RunParallel(func(pb *testing.PB) {
				conn, err := net.Dial("tcp", address)
				if err != nil {
					b.Error(err)
					return
				}
				defer conn.Close()
				r := bufio.NewReader(conn)
				texts := make([]string, len(c.requests))
				for i, q := range c.requests {
					var text strings.Builder
					q.write(&text, c.ordinary)
					texts[i] = text.String()
				}
				for n := 0; pb.Next(); n++ {
					io.WriteString(conn, texts[n%len(texts)])
					if err := skipAnswer(r); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(0, "ns/op") // a burst of polls makes the loop pause, so the time on the clock says little
			b.ReportMetric(float64(processorTime()-began)/1000/float64(b.N), "us-cpu/op")
		})
	}
}

// ownerCluster is the cluster of a node that owns all organizations.
type ownerCluster struct{ Cluster }

func (ownerCluster) IsReady() bool                 { return true }
func (ownerCluster) Prepare(string) error          { return nil }
func (ownerCluster) Owns(realm.ID) bool            { return true }
func (ownerCluster) DurableSeq(realm.ID) realm.Seq { return 1234 }

// BenchmarkForwardedSend measures what the owner does for a message that another node forwards, without the link and
// without the organization: in batches of 16 on the short way, and on the ordinary one.
func BenchmarkForwardedSend(b *testing.B) {
	server, _, _ := serveLogins(b)
	server.options.Cluster = ownerCluster{}
	const form = "type=stream&to=general&topic=lunch&content=Shall+we+meet+at+**noon**%3F&queue_id=q%3A1&local_id=17.01"
	request := ForwardedRequest{ID: "edge-1", Realm: 1, Remote: "192.0.2.1", HTTP: fmt.Appendf(nil,
		"POST /api/v1/messages HTTP/1.1\r\nHost: example.com\r\nUser-Agent: ZulipMobile/1\r\n"+
			"Authorization: Basic %s\r\nAccept: */*\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s",
		base64.StdEncoding.EncodeToString([]byte(testEmail+":"+testKey)), len(form), form)}
	if a, err := server.ServeForwarded(request); err != nil || !strings.HasPrefix(string(a.HTTP), "HTTP/1.1 200") {
		b.Fatalf("%s %v", a.HTTP, err)
	}
	b.Run("short", func(b *testing.B) {
		sends := server.NewForwardedSends()
		answered := 0
		b.ReportAllocs()
		for n := 0; b.Loop(); n++ {
			r := request
			r.ID = strconv.Itoa(n)
			if !sends.Begin(r, func(ForwardedAnswer, error) { answered++ }) {
				b.Fatal("not taken")
			}
			if n%16 == 15 {
				sends.Flush()
			}
		}
		sends.Flush()
		if answered != b.N {
			b.Errorf("%d answers for %d messages", answered, b.N)
		}
	})
	b.Run("ordinary", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := server.ServeForwarded(request); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// ofBrowser returns the same request with a session, as a browser sends it.
func ofBrowser(r testRequest, token string) testRequest {
	r.target = "/json" + strings.TrimPrefix(r.target, "/api/v1")
	_, others, _ := strings.Cut(r.headers, "\r\n")
	r.headers = "Cookie: csrftoken=" + token + "; sessionid=" + testSecret + "\r\nX-CSRFToken: " + token +
		"\r\nOrigin: http://example.com\r\nReferer: http://example.com/\r\n" + others
	return r
}

// newSigner returns a function that signs as the server does.
func newSigner() func(string) string {
	key := []byte(strings.Repeat("k", 32))
	return func(text string) string {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(text))
		return hex.EncodeToString(mac.Sum(nil))
	}
}

// processorTime returns the processor time of this process.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// skipAnswer reads a successful answer as cheaply as possible.
func skipAnswer(r *bufio.Reader) error {
	length := 0
	for first := true; ; first = false {
		line, err := r.ReadSlice('\n')
		switch {
		case err != nil:
			return err
		case first && !strings.HasPrefix(string(line), "HTTP/1.1 200"):
			return fmt.Errorf("unexpected answer %q", line)
		case len(line) == 2:
			_, err := r.Discard(length)
			return err
		}
		if rest, ok := strings.CutPrefix(string(line), "Content-Length: "); ok {
			for _, c := range strings.TrimSpace(rest) {
				length = 10*length + int(c-'0')
			}
		}
	}
}
