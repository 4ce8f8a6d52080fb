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

// Limits say how often somebody may call. The defaults are the protocol's; 0 switches a limit off.
type Limits struct {
	User    int            // requests of one account a minute
	Visitor int            // requests of one address a minute, without login
	Login   int            // failed logins of one account in loginWindow
	Proxies []netip.Prefix // whose X-Forwarded-For is believed
}

const (
	DefaultUserLimit    = 200
	DefaultVisitorLimit = 100
	DefaultLoginLimit   = 5
	requestWindow       = time.Minute
	loginWindow         = 30 * time.Minute
	// addressChangesPerHour and addressChangesPerDay are how often somebody may ask for another address: each is a letter to where he
	// says (protocol).
	addressChangesPerHour = 2
	addressChangesPerDay  = 5
	// MaxTracked is how many callers a limiter remembers at once, about 100 bytes each; beyond it the ones whose
	// requestWindow has passed are forgotten, then any.
	MaxTracked = 200_000
)

// limiter is a leaky bucket a key: each request adds window/max to the time at which the budget is full again; one that
// would put it beyond a window from now is refused.
type limiter struct {
	max    int
	window time.Duration
	now    func() time.Time
	mu     sync.Mutex
	fullAt map[string]time.Time // when the key's budget is whole again
}

func newLimiter(limit int, window time.Duration) *limiter {
	return &limiter{max: limit, window: window, now: time.Now, fullAt: map[string]time.Time{}}
}

// verdict is what a limiter says of one request.
type verdict struct {
	limit, remaining int
	reset            time.Time
	retry            time.Duration // above 0: refused, try again after so long
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

// evict makes room for an eighth, so that it is not done for each newcomer.
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

// Tracked is how many callers the fullest limiter remembers.
func (s *Server) Tracked() int64 {
	most := max(s.users.tracked(), s.visitors.tracked(), s.logins.tracked())
	for _, l := range s.addressChanges {
		most = max(most, l.tracked())
	}
	return most
}

// The header lines that say what is left of a budget.
const (
	headerLimit     = "X-RateLimit-Limit"
	headerRemaining = "X-RateLimit-Remaining"
	headerReset     = "X-RateLimit-Reset"
)

// limitRequest counts a request and refuses it if there were too many.
func limitRequest(ctx *fasthttp.RequestCtx, l *limiter, key string) error {
	if l == nil {
		return nil
	}
	v := l.count(key)
	h := &ctx.Response.Header
	h.Set(headerLimit, strconv.Itoa(v.limit))
	h.Set(headerRemaining, strconv.Itoa(v.remaining))
	h.Set(headerReset, strconv.FormatInt(v.reset.Unix(), 10))
	if v.retry <= 0 {
		return nil
	}
	return TooMany(float64(v.retry.Milliseconds()) / 1000)
}

// setRetryAfter tells who called too often, whatever the budget, when to call again.
func setRetryAfter(ctx *fasthttp.RequestCtx, err error) {
	var r *realm.Refusal
	if !errors.As(err, &r) || r.Kind != realm.TooMany {
		return
	}
	if seconds, ok := r.Data["retry-after"].(float64); ok {
		ctx.Response.Header.Set("Retry-After", strconv.FormatFloat(seconds, 'f', -1, 64))
	}
}

// countAttempt counts an attempt of a key's and refuses one too many. It counts before anybody knows whether the attempt is
// right: many at once are many.
func (l *limiter) countAttempt(who string) error {
	if l == nil {
		return nil
	}
	if v := l.count(who); v.retry > 0 {
		return TooMany(v.retry.Seconds())
	}
	return nil
}

// countAddressChange counts somebody's wish for another address.
func (s *Server) countAddressChange(who string) error {
	for _, l := range s.addressChanges {
		if err := l.countAttempt(who); err != nil {
			return err
		}
	}
	return nil
}

// reset gives a key its whole budget back.
func (l *limiter) reset(who string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.fullAt, who)
}

// TooMany is the refusal of somebody who called too often.
func TooMany(seconds float64) error {
	return realm.Refuse(realm.TooMany, "RATE_LIMIT_HIT", "API usage exceeded rate limit").With("retry-after", seconds)
}

// remote is the caller's address: the connection's, or what a trusted proxy says.
func (s *Server) remote(ctx *fasthttp.RequestCtx) string {
	addr, ok := netip.AddrFromSlice(ctx.RemoteIP())
	if !ok {
		return ctx.RemoteAddr().String()
	}
	addr = addr.Unmap()
	if !s.trusted(addr) {
		return clientNetworkKey(addr)
	}
	// A proxy adds itself to the line there is, or adds a line: all lines together are the list, the nearest hop last.
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

// clientNetworkKey is what visitors are counted by: an IPv4 address, or the /64 that one IPv6 customer has at least.
func clientNetworkKey(a netip.Addr) string {
	h := park.ClientNetwork(a)
	if h.Is4() {
		return h.String()
	}
	return h.String() + "/64"
}

func (s *Server) trusted(a netip.Addr) bool {
	for _, p := range s.options.Limits.Proxies {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// ParseProxies reads addresses and networks, comma-separated.
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
