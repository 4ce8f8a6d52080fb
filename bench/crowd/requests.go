package crowd

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// A Request is one request of one user: the endpoint's method and path, and the parameters of path, query and form.
type Request struct {
	User    int
	Name    string
	Params  map[string]any
	File    string // content of an uploaded file
	creates string // kind of object that it creates; its id is in the answer
}

// A RequestGenerator makes random requests to all parts of the API. It knows the ids from earlier answers but not the
// permission rules: many requests are rejected, which is intended. The same seed and the same answers give the same
// sequence of requests.
type RequestGenerator struct {
	People         []int64 // ids by user number; created users are appended
	Channels       []int64
	names          map[int64]string // of channels, by id
	rng            *rand.Rand       // of the step that is being drawn; the only one if OneSource is set
	seed           uint64
	steps          []Step[requestStep]
	minorTurns     uint64
	created        map[string][]createdObject
	userSettings   []string // personal settings with a boolean value
	orgSettings    []string // boolean settings of the organization
	orgPermissions []string // permission settings of the organization
	count          int
	// OneSource makes all requests draw from one random source, and leaves out the steps that came later: the named
	// seeds of TestMirrors were found so, and repeat their requests only so.
	OneSource bool
	// Now is the clock's time in seconds, for requests about the future.
	Now int64
}

// createdObject is the id of an object and the user that created it.
type createdObject struct {
	creator int
	id      any
}

// NewRequestGenerator returns a generator for the given users, all of whom can see all channels. register is the
// complete answer of a register by one of them.
func NewRequestGenerator(seed uint64, people []int64, register map[string]any) *RequestGenerator {
	a := &RequestGenerator{People: people, names: map[int64]string{}, rng: rand.New(rand.NewPCG(seed, 0x61736b)),
		seed: seed, steps: requestSteps, created: map[string][]createdObject{}}
	for k, v := range register["user_settings"].(map[string]any) {
		if _, ok := v.(bool); ok {
			a.userSettings = append(a.userSettings, k)
		}
	}
	for k, v := range register {
		if _, ok := v.(bool); ok && strings.HasPrefix(k, "realm_") {
			a.orgSettings = append(a.orgSettings, strings.TrimPrefix(k, "realm_"))
		}
	}
	for k := range register["server_supported_permission_settings"].(map[string]any)["realm"].(map[string]any) {
		a.orgPermissions = append(a.orgPermissions, k)
	}
	slices.Sort(a.userSettings)
	slices.Sort(a.orgSettings)
	slices.Sort(a.orgPermissions)
	for _, x := range register["streams"].([]any) {
		a.addChannel(x.(map[string]any))
	}
	for _, x := range register["realm_user_groups"].([]any) {
		a.created["group"] = append(a.created["group"], createdObject{0, x.(map[string]any)["id"]})
	}
	return a
}

func (a *RequestGenerator) addChannel(o map[string]any) {
	id, _ := o["stream_id"].(float64)
	if a.names[int64(id)] == "" {
		a.Channels = append(a.Channels, int64(id))
	}
	a.names[int64(id)], _ = o["name"].(string)
}

type params = map[string]any

// A requestStep makes a request, or leaves its name empty if there is no object for it.
type requestStep func(*RequestGenerator, *Request)

// requestSteps are the kinds of requests; the weights are percentages of the first five. A new kind of request is a new
// step. A new case in one of the existing functions would change all of its requests for all seeds, so a test fails.
var requestSteps = []Step[requestStep]{
	{"messages", 50, (*RequestGenerator).messages},
	{"channels", 16, (*RequestGenerator).channels},
	{"personal", 14, (*RequestGenerator).personal},
	{"people", 11, (*RequestGenerator).people},
	{"organization", 9, (*RequestGenerator).organization},
	{"order", 2.5, (*RequestGenerator).reorder},
}

// Next returns the next request.
func (a *RequestGenerator) Next() Request {
	a.count++
	if a.OneSource {
		return a.nextOfOneSource()
	}
	for try := uint64(0); ; try++ {
		for _, s := range Draw(a.seed, uint64(a.count)|try<<32, a.steps) {
			a.rng = s.Random
			x := a.drawUser()
			if s.Do(a, &x); x.Name != "" {
				return x
			}
		}
	}
}

// drawUser returns a request without a name, of a random user or of the user with the most rights.
func (a *RequestGenerator) drawUser() Request {
	x := Request{User: a.rng.IntN(len(a.People))}
	if a.rng.IntN(4) == 0 {
		x.User = 0
	}
	return x
}

func (a *RequestGenerator) nextOfOneSource() Request {
	for {
		x := a.drawUser()
		say := a.messages
		switch d := a.rng.IntN(100); {
		case d < 50:
		case d < 66:
			say = a.channels
		case d < 80:
			say = a.personal
		case d < 91:
			say = a.people
		default:
			say = a.organization
		}
		if say(&x); x.Name != "" {
			return x
		}
	}
}

// Done tells the generator the answer to a request.
func (a *RequestGenerator) Done(x Request, status int, body map[string]any) {
	if status != 200 || x.creates == "" {
		return
	}
	for _, k := range []string{"id", "scheduled_message_id", "reminder_id", "saved_snippet_id", "group_id", "user_id",
		"channel_folder_id", "url", "device_id", "default_stream_group_id"} {
		if id, ok := body[k]; ok {
			a.addCreated(x, id)
			return
		}
	}
	if files, ok := body["attachments"].([]any); ok {
		for _, f := range files {
			a.addCreated(x, f.(map[string]any)["id"])
		}
		return
	}
	ids, _ := body["ids"].([]any)
	for _, id := range ids {
		a.addCreated(x, id)
	}
	if name, ok := x.Params["fragment"]; ok {
		a.addCreated(x, name)
	}
	if name, ok := x.Params["domain"]; ok {
		a.addCreated(x, name)
	}
	if name, ok := x.Params["emoji_name"]; ok {
		a.addCreated(x, name)
	}
}

func (a *RequestGenerator) addCreated(x Request, id any) {
	switch x.creates {
	case "user":
		n, _ := id.(float64)
		a.People = append(a.People, int64(n))
	case "channel":
		n, _ := id.(float64)
		a.addChannel(params{"stream_id": n, "name": x.Params["name"]})
		return
	}
	a.created[x.creates] = append(a.created[x.creates], createdObject{x.User, id})
	if len(a.created[x.creates]) > maxMessages {
		a.created[x.creates] = a.created[x.creates][1:]
	}
}

// pick returns the id of a created object: mostly a recent one, and own percent of the time with its creator as the
// user.
func (a *RequestGenerator) pick(x *Request, kind string, own int) (any, bool) {
	list := a.created[kind]
	if len(list) == 0 {
		return nil, false
	}
	if n := len(list); n > 12 && a.rng.IntN(3) > 0 {
		list = list[n-12:]
	}
	t := list[a.rng.IntN(len(list))]
	if a.rng.IntN(100) < own {
		x.User = t.creator
	}
	return t.id, true
}

func (a *RequestGenerator) set(x *Request, name string, p params) { x.Name, x.Params = name, p }

func (a *RequestGenerator) create(x *Request, kind, name string, p params) {
	a.set(x, name, p)
	x.creates = kind
}

func choose[T any](a *RequestGenerator, list ...T) T { return list[a.rng.IntN(len(list))] }
func (a *RequestGenerator) coin() bool               { return a.rng.IntN(2) == 0 }
func (a *RequestGenerator) userID() int64            { return choose(a, a.People...) }
func (a *RequestGenerator) channelID() int64         { return choose(a, a.Channels...) }
func (a *RequestGenerator) numbered(s string) string {
	return fmt.Sprintf("%s %d", s, a.count)
}

func (a *RequestGenerator) group() any { return choose(a, a.created["group"]...).id }

func (a *RequestGenerator) groupValue() any {
	if a.rng.IntN(3) == 0 {
		return params{"direct_members": []int64{a.userID()}, "direct_subgroups": []any{a.group()}}
	}
	return a.group()
}

// userIDs returns up to n different users.
func (a *RequestGenerator) userIDs(n int) []int64 {
	var out []int64
	for range 1 + a.rng.IntN(n) {
		if u := a.userID(); !slices.Contains(out, u) {
			out = append(out, u)
		}
	}
	return out
}

var requestTopics = []string{"lunch", "release", "Lunch", "", "✔ release", "bugs"}

func (a *RequestGenerator) topic() string { return choose(a, requestTopics...) }

// text returns the text of a message; one in three contains Markdown, a mention or a command.
func (a *RequestGenerator) text() string {
	s := a.numbered("text")
	if a.rng.IntN(3) > 0 {
		return s
	}
	extra := []string{"@**all**", "@**topic**", "*emphasis*", "/me waves", "octopus", "> quoted", ":wave:", "#**one**",
		"/poll what\nthis\nthat", "/todo list", "https://chat.test/", "#12", "```quote\nold\n```",
		"@**Ann|" + fmt.Sprint(a.userID()) + "**", "@_**all**", "<time:2030-01-01T00:00:00Z>"}
	if files := a.created["file"]; len(files) > 0 {
		extra = append(extra, fmt.Sprintf("[file](%v)", choose(a, files...).id))
	}
	e := choose(a, extra...)
	if strings.HasPrefix(e, "/") {
		return e + " " + s
	}
	return s + " " + e
}

// creator returns the user that created an object, 0 if unknown.
func (a *RequestGenerator) creator(kind string, id any) int {
	for _, t := range a.created[kind] {
		if t.id == id {
			return t.creator
		}
	}
	return 0
}
