package httpd

import (
	"bytes"
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"parley/actors/realm"
	"parley/wire/httpd/park"
)

// Limits configure the rate limits. The defaults are those of the protocol; 0 turns a limit off.
type Limits struct {
	User    int            // requests per minute of one account
	Visitor int            // requests per minute of one client network without login
	Login   int            // failed logins of one account from one client network per loginWindow
	Proxies []netip.Prefix // proxies whose X-Forwarded-For is trusted
}

// Default limits (protocol), and the windows they apply to.
const (
	DefaultUserLimit    = 200
	DefaultVisitorLimit = 100
	DefaultLoginLimit   = 5
	requestWindow       = time.Minute
	loginWindow         = 30 * time.Minute
	// accountLoginFactor times the limit of one client network is the limit of an account for all networks together: so
	// one attacker who guesses does not lock out the user, and many attackers cannot guess without end.
	accountLoginFactor = 10
	// AddressChangesPerHour and AddressChangesPerDay limit how often one account may ask to change its email
	// address (protocol). Each request sends an email to an address of the caller's choice.
	AddressChangesPerHour = 2
	AddressChangesPerDay  = 5
	// EmailFormsPerHour and PasswordFormsPerHour limit the forms of pages that send emails to any address, or that hash
	// a new password, for one client network: an office signs up together.
	EmailFormsPerHour    = 30
	PasswordFormsPerHour = 60
	// MaxTracked is the number of callers that a limiter tracks at a time, about 100 bytes each. Beyond it the
	// limiter evicts first the callers whose budget is full again, then any.
	MaxTracked = 200_000
)

// limiter is a leaky bucket for each key. Each request adds window/max to the time at which the key's budget is
// full again. A request that would move this time beyond a window from now is refused. It is safe for concurrent
// use.
type limiter struct {
	max    int
	window time.Duration
	now    func() time.Time
	mu     sync.Mutex
	fullAt map[string]time.Time // when the budget of a key is full again
}

func newLimiter(limit int, window time.Duration) *limiter {
	return &limiter{max: limit, window: window, now: time.Now, fullAt: map[string]time.Time{}}
}

// verdict is the result of counting one request.
type verdict struct {
	limit, remaining int
	reset            time.Time
	retry            time.Duration // above 0: the request is refused; retry after this duration
}

// count counts one request of a key.
func (l *limiter) count(key string) verdict {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	cost := max(1, l.window/time.Duration(l.max))
	full := l.fullAt[key]
	if full.Before(now) {
		full = now
	}
	v := verdict{limit: l.max, reset: full}
	if after := full.Add(cost); after.After(now.Add(l.window)) {
		v.retry = after.Sub(now.Add(l.window))
	} else {
		full, v.reset = after, after
		if len(l.fullAt) >= MaxTracked {
			l.evict(now)
		}
		l.fullAt[key] = full
	}
	v.remaining = max(0, int((now.Add(l.window).Sub(full))/cost))
	return v
}

// evict removes an eighth of the keys, so that it does not run for each new key.
func (l *limiter) evict(now time.Time) {
	for k, t := range l.fullAt {
		if t.Before(now) {
			delete(l.fullAt, k)
		}
	}
	for k := range l.fullAt {
		if len(l.fullAt) <= MaxTracked*7/8 {
			break
		}
		delete(l.fullAt, k)
	}
}

func (l *limiter) tracked() int64 {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(len(l.fullAt))
}

// Tracked returns the largest number of keys that one of the limiters tracks.
func (s *Server) Tracked() int64 {
	most := max(s.users.tracked(), s.visitors.tracked(), s.logins.tracked(), s.accountLogins.tracked())
	most = max(most, s.emailForms.tracked(), s.passwordForms.tracked(), s.drawings.tracked())
	for _, l := range slices.Concat(s.addressChanges, s.formEmails) {
		most = max(most, l.tracked())
	}
	return most
}

// Names of the header lines with the rest of the budget.
const (
	headerLimit     = "X-RateLimit-Limit"
	headerRemaining = "X-RateLimit-Remaining"
	headerReset     = "X-RateLimit-Reset"
)

// eachHeader calls add with the name and value of each rate limit header, in the order in which they are sent.
func (v verdict) eachHeader(add func(name string, value int64)) {
	add(headerLimit, int64(v.limit))
	add(headerRemaining, int64(v.remaining))
	add(headerReset, v.reset.Unix())
}

// appendHeaderLines appends the rate limit header lines, for answers that are written without fasthttp.
func (v verdict) appendHeaderLines(b []byte) []byte {
	v.eachHeader(func(name string, value int64) {
		b = append(append(b, name...), ": "...)
		b = append(strconv.AppendInt(b, value, 10), "\r\n"...)
	})
	return b
}

// limitRequest counts a request, sets the rate limit headers, and returns a refusal if the budget is exhausted.
func limitRequest(ctx *fasthttp.RequestCtx, l *limiter, key string) error {
	if l == nil {
		return nil
	}
	v := l.count(key)
	h := &ctx.Response.Header
	v.eachHeader(func(name string, value int64) { h.Set(name, strconv.FormatInt(value, 10)) })
	if v.retry <= 0 {
		return nil
	}
	return TooMany(float64(v.retry.Milliseconds()) / 1000)
}

// setRetryAfter sets the Retry-After header if err is a refusal by any limit that says when to try again, or because
// the server is busy.
func setRetryAfter(ctx *fasthttp.RequestCtx, err error) {
	var r *realm.Refusal
	if !errors.As(err, &r) || r.Kind != realm.TooMany && r.Kind != realm.Busy {
		return
	}
	if r.Kind == realm.Busy {
		ctx.Response.Header.Set("Retry-After", park.BusyRetryAfter)
	} else if seconds, ok := r.Data["retry-after"].(float64); ok {
		ctx.Response.Header.Set("Retry-After", strconv.FormatFloat(seconds, 'f', -1, 64))
	}
}

// countAttempt counts an attempt, such as a login, and refuses it if there were too many. Call it before the
// attempt is checked: otherwise many concurrent attempts would all pass.
func (l *limiter) countAttempt(key string) error {
	if l == nil {
		return nil
	}
	if v := l.count(key); v.retry > 0 {
		return TooMany(v.retry.Seconds())
	}
	return nil
}

// countAddressChange counts a request to change an email address.
func (s *Server) countAddressChange(key string) error {
	for _, l := range s.addressChanges {
		if err := l.countAttempt(key); err != nil {
			return err
		}
	}
	return nil
}

// countLogin counts an attempt to log in to an account, for the pair of account and client network, and for the
// account. An attempt that the first limit refuses does not count for the second.
func (s *Server) countLogin(account, network string) error {
	if err := s.logins.countAttempt(account + " " + network); err != nil {
		return err
	}
	return s.accountLogins.countAttempt(account)
}

// forgetLogins resets the count of a pair of account and client network after a correct password. In the account's own
// count it takes back only this attempt: otherwise each login of the user would allow an attacker more guesses.
func (s *Server) forgetLogins(account, network string) {
	s.logins.reset(account + " " + network)
	s.accountLogins.giveBack(account)
}

// giveBack takes one counted attempt back.
func (l *limiter) giveBack(key string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if full, ok := l.fullAt[key]; ok {
		l.fullAt[key] = full.Add(-max(1, l.window/time.Duration(l.max)))
	}
}

// reset gives a key its full budget.
func (l *limiter) reset(key string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.fullAt, key)
}

// TooMany returns the refusal of a request over a rate limit, to be repeated after the given number of seconds.
func TooMany(seconds float64) error {
	return realm.Refuse(realm.TooMany, "RATE_LIMIT_HIT", "API usage exceeded rate limit").With("retry-after", seconds)
}

// remote returns the network of the client: the peer of the connection, or the address that a trusted proxy
// reports.
func (s *Server) remote(ctx *fasthttp.RequestCtx) string {
	if f := forwardedOf(ctx); f != nil {
		return f.request.Remote
	}
	addr, ok := netip.AddrFromSlice(ctx.RemoteIP())
	if !ok {
		return ctx.RemoteAddr().String()
	}
	addr = addr.Unmap()
	if !s.trusted(addr) {
		return clientNetworkKey(addr)
	}
	// A proxy either appends its peer to the existing header line or adds a line. So all lines together are one
	// list, with the nearest hop last.
	hops := bytes.Split(bytes.Join(ctx.Request.Header.PeekAll("X-Forwarded-For"), []byte(",")), []byte(","))
	for _, h := range slices.Backward(hops) {
		hop, err := netip.ParseAddr(string(bytes.TrimSpace(h)))
		if err != nil {
			break
		}
		if addr = hop.Unmap(); !s.trusted(addr) {
			break
		}
	}
	return clientNetworkKey(addr)
}

// clientNetworkKey returns the key by which requests without login are counted: an IPv4 address, or the /64 of an
// IPv6 address, which is the least that one customer gets.
func clientNetworkKey(a netip.Addr) string {
	h := park.ClientNetwork(a)
	if h.Is4() {
		return h.String()
	}
	return h.String() + "/64"
}

func (s *Server) trusted(a netip.Addr) bool { return s.options.Limits.trusts(a) }

func (l Limits) trusts(a netip.Addr) bool {
	for _, p := range l.Proxies {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// Unlimited reports whether an address may open any number of connections: a trusted proxy, which brings the
// clients of many addresses, or a program on this machine.
func (l Limits) Unlimited(a netip.Addr) bool { return a.IsLoopback() || l.trusts(a) }

// ParseProxies parses a comma-separated list of addresses and networks.
func ParseProxies(list string) (out []netip.Prefix, err error) {
	for _, p := range strings.Split(list, ",") {
		if p = strings.TrimSpace(p); p == "" {
			continue
		}
		if a, err := netip.ParseAddr(p); err == nil {
			out = append(out, netip.PrefixFrom(a, a.BitLen()))
			continue
		}
		n, err := netip.ParsePrefix(p)
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, nil
}
