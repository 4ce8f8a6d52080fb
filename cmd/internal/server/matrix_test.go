package server

import (
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley/wire"
	"parley/wire/contract"
)

// TestPermissionMatrix checks the permissions of every endpoint and the audience of every event. The tables contain the
// questions; afterwards the test checks that no endpoint, no kind of caller and no event is missing. To run one table:
// go test -run TestPermissionMatrix/Tables/Messages.
func TestPermissionMatrix(t *testing.T) { permissionMatrix(t, newCoverage(byKey)) }

// TestPermissionMatrixThroughEdge asks the same of a node that does not own the organizations. With sessions, only the
// tables about logins and events are asked, or all with TABLES=all: the other ones differ only in the login.
func TestPermissionMatrixThroughEdge(t *testing.T) {
	for name, login := range map[string]matrixLogin{"ByKey": byKey, "BySession": bySession} {
		t.Run(name, func(t *testing.T) {
			l := newCoverage(login)
			l.throughEdge = true
			var only []string
			if login == bySession && os.Getenv("TABLES") != "all" {
				only = []string{"Authentication", "Roles", "OtherOrganizations", "Events", "ChannelEvents"}
			}
			permissionMatrix(t, l, only...)
		})
	}
}

// TestPermissionMatrixThroughCore asks the same of a core that does not lead but keeps the event queues and answers
// reads.
func TestPermissionMatrixThroughCore(t *testing.T) {
	l := newCoverage(byKey)
	l.throughCore = true
	permissionMatrix(t, l)
}

// permissionMatrix runs some tables, or all, with callers that log in in one way.
func permissionMatrix(t *testing.T, l *coverage, only ...string) {
	tables := []struct {
		name string
		ask  func(*testing.T, *coverage)
	}{
		{"Authentication", matrixAuthentication},
		{"Webhooks", matrixWebhooks},
		{"Roles", matrixRoles},
		{"OwnedObjects", matrixOwned("owner", "member", "guest")},
		{"MoreOwnedObjects", matrixOwned("moderator", "admin", "newcomer", "bot")},
		{"Channels", matrixChannels},
		{"Messages", matrixMessages},
		{"DirectMessages", matrixDirectMessages},
		{"EmailAddresses", matrixEmailAddresses},
		{"LimitedGuests", matrixLimitedGuests},
		{"OtherOrganizations", matrixOtherOrganizations},
		{"MissingObjects", matrixMissingObjects},
		{"Events", matrixEvents},
		{"ChannelEvents", matrixChannelEvents},
		{"Changes", matrixChanges},
		{"TimeLimits", matrixTimeLimits},
		{"PermissionSettings", matrixPermissionSettings},
		{"Settings", matrixSettings},
		{"BotRanks", matrixBotRanks},
	}
	t.Run("Tables", func(t *testing.T) {
		for _, x := range tables {
			if len(only) > 0 && !slices.Contains(only, x.name) {
				continue
			}
			t.Run(x.name, func(t *testing.T) {
				t.Parallel()
				x.ask(t, l)
			})
		}
	})
	cells, wrong := 0, 0
	for _, name := range slices.Sorted(maps.Keys(l.counts)) {
		n := l.counts[name]
		t.Logf("%-20s %6d cells, %d wrong", name, n[0], n[1])
		cells, wrong = cells+n[0], wrong+n[1]
	}
	t.Logf("%d cells, %d wrong", cells, wrong)
	if len(l.counts) < len(tables) {
		t.Log("only some tables ran, so the matrix is not checked for missing cells")
		return
	}
	l.checkEndpoints(t)
	l.checkForms(t)
	l.checkEvents(t)
}

// matrixRequest is a request that the next cell is about.
type matrixRequest struct {
	who, method, path string
	refusal, code     string // "" if it was not refused
}

// coverage collects the questions that the tables have asked so far, and the events that they have compared.
type coverage struct {
	sync.Mutex
	login matrixLogin
	// throughEdge sends all requests to a node that does not own the organizations.
	throughEdge bool
	// throughCore sends them to a core that does not lead.
	throughCore bool
	asked       map[string]map[string]int // requests by endpoint and kind of caller, without refused forms
	outcomes    map[string]*askedQuestion // by endpoint
	neverUsed   map[int]bool              // rows of neverAllowed
	events      map[string]int            // how often an event of each form was compared
	counts      map[string][2]int         // by table: cells, and wrong cells
	forms       map[int]bool              // used rows of formRefusals
}

func newCoverage(login matrixLogin) *coverage {
	return &coverage{login: login, asked: map[string]map[string]int{},
		outcomes: map[string]*askedQuestion{}, neverUsed: map[int]bool{}, events: map[string]int{},
		counts: map[string][2]int{}, forms: map[int]bool{}}
}

// noteRequests counts requests. It returns those that are not counted because their form was refused.
func (l *coverage) noteRequests(asked []matrixRequest) (refused []matrixRequest) {
	l.Lock()
	defer l.Unlock()
	for _, a := range asked {
		if a.refusesForm() {
			at := a.excusedForm()
			if at < 0 {
				refused = append(refused, a)
				continue
			}
			l.forms[at] = true
		}
		e := endpointOf(a.method, a.path)
		if l.asked[e] == nil {
			l.asked[e], l.outcomes[e] = map[string]int{}, &askedQuestion{}
		}
		l.asked[e][a.who]++
		l.outcomes[e].note(a.refusal)
	}
	return refused
}

func (l *coverage) noteEvent(form string) {
	l.Lock()
	defer l.Unlock()
	l.events[form]++
}

// tableOf returns the name of the table in the name of a test.
func tableOf(test string) string { return test[strings.LastIndex(test, "/")+1:] }

func (l *coverage) finish(name string, cells, wrong int) {
	l.Lock()
	defer l.Unlock()
	name = tableOf(name)
	n := l.counts[name]
	l.counts[name] = [2]int{n[0] + cells, n[1] + wrong}
}

// endpointOf returns the row of the endpoint table for a request, as "METHOD path". If several rows match, a number in
// the path selects the row with an id.
func endpointOf(method, path string) string {
	best, score := "", -1
	path, _, _ = strings.Cut(path, "?")
	parts := strings.Split(path, "/")
	for _, e := range splitEndpoints()[method] {
		segments, n := e.segments, 0
		for i, s := range segments {
			if strings.HasSuffix(s, ":*}") && i < len(parts) {
				n += 1
				segments = segments[:i]
				break
			}
			if i >= len(parts) || s != parts[i] && !strings.HasPrefix(s, "{") {
				n = -1
				break
			}
			switch numeric := strings.Trim(parts[i], "0123456789") == ""; {
			case s == parts[i]:
				n += 100
			case numeric == strings.HasSuffix(s, "id}"):
				n += 2
			}
		}
		if n < 0 || len(segments) < len(parts) && !strings.HasSuffix(e.Path, ":*}") {
			continue
		}
		if n > score {
			best, score = method+" "+e.Path, n
		}
	}
	return best
}

// splitEndpoint is a row of the endpoint table with the parts of its path.
type splitEndpoint struct {
	wire.Endpoint
	segments []string
}

// splitEndpoints returns the endpoint table by method.
var splitEndpoints = sync.OnceValue(func() map[string][]splitEndpoint {
	all := map[string][]splitEndpoint{}
	for _, e := range wire.Endpoints() {
		all[e.Method] = append(all[e.Method], splitEndpoint{e, strings.Split(e.Path, "/")})
	}
	return all
})

// callerKinds are the kinds of callers that must have asked every endpoint: accounts of each role, bots, and callers
// without an account here.
var callerKinds = []string{"owner", "admin", "moderator", "member", "newcomer", "guest", "bot", "webhook bot", "gone",
	"owner elsewhere", "visitor"}

// skippedEndpoints are endpoints without a cell, with the reason. An unnecessary row fails the test.
var skippedEndpoints = []struct{ endpoint, callers, why string }{
	{"POST /dev_fetch_api_key", "*", "served in development only"},
	{"GET /dev_list_users", "*", "served in development only"},
	{"HEAD /external/{integration}", "*", "checks the key like POST; TestWebhookAddressCheck asks it"},
}

// checkEndpoints fails for every endpoint that a kind of caller has not asked, and for every endpoint that no caller
// was allowed to use.
func (l *coverage) checkEndpoints(t *testing.T) {
	used := make([]bool, len(skippedEndpoints))
	excused := func(e, who string) bool {
		for i, x := range skippedEndpoints {
			if x.endpoint == e && (x.callers == "*" || slices.Contains(strings.Split(x.callers, ", "), who)) {
				used[i] = true
				return true
			}
		}
		return false
	}
	asked, cells := 0, 0
	for _, endpoint := range wire.Endpoints() {
		e := endpoint.Method + " " + endpoint.Path
		var missing []string
		for _, who := range callerKinds {
			switch n := l.asked[e][who]; {
			case n > 0:
				cells += n
			case !excused(e, who):
				missing = append(missing, who)
			}
		}
		if len(missing) > 0 {
			t.Errorf("%s: no cell for %s. Add one to a table, or a row with the reason to skippedEndpoints", e,
				strings.Join(missing, ", "))
			continue
		}
		asked++
		if q := l.outcomes[e]; q != nil {
			l.checkNever(t, e, q)
		}
	}
	l.checkUnusedNever(t)
	for i, x := range skippedEndpoints {
		if !used[i] {
			t.Errorf("%s is asked by %s: remove its row from skippedEndpoints", x.endpoint, x.callers)
			continue
		}
		t.Logf("not asked: %s by %s: %s", x.endpoint, x.callers, x.why)
	}
	t.Logf("%d of %d endpoints asked by every kind of caller, %d requests", asked, len(wire.Endpoints()), cells)
}

// skippedEvents are forms of events that no user of the matrix receives, with the reason. An unnecessary row fails the
// test.
var skippedEvents = []struct{ form, why string }{
	{"has_zoom_token", "needs an account at an external service"},
	{"has_webex_token", "needs an account at an external service"},
	{"device/update", "needs a push service"},
	{"heartbeat", "answers a waiting poll of any user"},
	{"restart", "is sent to every user after a start of the server"},
	{"web_reload_client", "is for a web client that is part of the server, and this server has none"},
	{"realm_filters", "is documented but never sent"},
	{"realm_bot/remove", "is documented but never sent"},
}

// checkEvents fails for every form of event that no table has compared.
func (l *coverage) checkEvents(t *testing.T) {
	c, err := contract.Load()
	if err != nil {
		t.Skip(err)
	}
	used := map[string]bool{}
	n := 0
	for _, form := range c.Events() {
		at := slices.IndexFunc(skippedEvents, func(u struct{ form, why string }) bool { return u.form == form })
		switch {
		case l.events[form] > 0:
			n++
		case at >= 0:
			used[form] = true
			t.Logf("not received: %s: %s", form, skippedEvents[at].why)
		default:
			t.Errorf("event %s: no user received it. Cause it in a table, or add a row with the reason to "+
				"skippedEvents", form)
		}
	}
	for _, u := range skippedEvents {
		if !used[u.form] {
			t.Errorf("event %s is received, or is not an event of the protocol: remove its row from skippedEvents",
				u.form)
		}
	}
	t.Logf("%d of %d forms of events compared", n, len(c.Events()))
}
