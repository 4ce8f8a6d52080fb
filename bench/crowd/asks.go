package crowd

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// An Ask is one request of one user: the endpoint's method and path, and its parameters, those of the path too.
type Ask struct {
	User   int
	Name   string
	Params map[string]any
	File   string // contents of a file it brings
	kind   string // of the noun it makes, to be known by the answer
}

// Askers make up requests over every noun there is. They know what answers told them, not what is allowed: many
// requests are refused, and that is part of it. The same seed and the same answers give the same story.
type Askers struct {
	People   []int64 // ids, by number of user; it grows
	Channels []int64
	names    map[int64]string // of channels
	rng      *rand.Rand
	known    map[string][]thing
	bools    []string // personal settings that are on or off
	org      []string // settings of the organization that are on or off
	groups   []string // permission settings of the organization
	count    int
	// WithOrders adds requests that put things into another order: see order.
	WithOrders bool
	// Now is what the clock shows, for what is to happen later.
	Now int64
}

// thing is something that was made, and by whom.
type thing struct {
	user int
	id   any
}

// NewAskers makes users who know each other and the channels; register is a complete registration of one of them.
func NewAskers(seed uint64, people []int64, register map[string]any) *Askers {
	a := &Askers{People: people, names: map[int64]string{}, rng: rand.New(rand.NewPCG(seed, 0x61736b)),
		known: map[string][]thing{}}
	for k, v := range register["user_settings"].(map[string]any) {
		if _, ok := v.(bool); ok {
			a.bools = append(a.bools, k)
		}
	}
	for k, v := range register {
		if _, ok := v.(bool); ok && strings.HasPrefix(k, "realm_") {
			a.org = append(a.org, strings.TrimPrefix(k, "realm_"))
		}
	}
	for k := range register["server_supported_permission_settings"].(map[string]any)["realm"].(map[string]any) {
		a.groups = append(a.groups, k)
	}
	slices.Sort(a.bools)
	slices.Sort(a.org)
	slices.Sort(a.groups)
	for _, x := range register["streams"].([]any) {
		a.channel(x.(map[string]any))
	}
	for _, x := range register["realm_user_groups"].([]any) {
		a.known["group"] = append(a.known["group"], thing{0, x.(map[string]any)["id"]})
	}
	return a
}

func (a *Askers) channel(o map[string]any) {
	id, _ := o["stream_id"].(float64)
	if a.names[int64(id)] == "" {
		a.Channels = append(a.Channels, int64(id))
	}
	a.names[int64(id)], _ = o["name"].(string)
}

type params = map[string]any

// Next is the next request.
func (a *Askers) Next() Ask {
	a.count++
	if x := (Ask{}); a.WithOrders && a.count%orderEvery == 0 && a.order(&x) {
		return x
	}
	for {
		x := Ask{User: a.rng.IntN(len(a.People))}
		if a.rng.IntN(4) == 0 {
			x.User = 0 // who may most
		}
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

// Done tells what came of a request.
func (a *Askers) Done(x Ask, status int, body map[string]any) {
	if status != 200 || x.kind == "" {
		return
	}
	for _, k := range []string{"id", "scheduled_message_id", "reminder_id", "saved_snippet_id", "group_id", "user_id",
		"channel_folder_id", "url", "device_id", "default_stream_group_id"} {
		if id, ok := body[k]; ok {
			a.made(x, id)
			return
		}
	}
	if files, ok := body["attachments"].([]any); ok {
		for _, f := range files {
			a.made(x, f.(map[string]any)["id"])
		}
		return
	}
	ids, _ := body["ids"].([]any)
	for _, id := range ids {
		a.made(x, id)
	}
	if name, ok := x.Params["fragment"]; ok {
		a.made(x, name)
	}
	if name, ok := x.Params["domain"]; ok {
		a.made(x, name)
	}
	if name, ok := x.Params["emoji_name"]; ok {
		a.made(x, name)
	}
}

func (a *Askers) made(x Ask, id any) {
	switch x.kind {
	case "user":
		n, _ := id.(float64)
		a.People = append(a.People, int64(n))
	case "channel":
		n, _ := id.(float64)
		a.channel(params{"stream_id": n, "name": x.Params["name"]})
		return
	}
	a.known[x.kind] = append(a.known[x.kind], thing{x.User, id})
	if len(a.known[x.kind]) > maxMessages {
		a.known[x.kind] = a.known[x.kind][1:]
	}
}

// one is something of a kind, mostly what was made lately, and mostly in the hands of who made it.
func (a *Askers) one(x *Ask, kind string, own int) (any, bool) {
	list := a.known[kind]
	if len(list) == 0 {
		return nil, false
	}
	if n := len(list); n > 12 && a.rng.IntN(3) > 0 {
		list = list[n-12:]
	}
	t := list[a.rng.IntN(len(list))]
	if a.rng.IntN(100) < own {
		x.User = t.user
	}
	return t.id, true
}

func (a *Askers) ask(x *Ask, name string, p params) { x.Name, x.Params = name, p }

func (a *Askers) make(x *Ask, kind, name string, p params) {
	a.ask(x, name, p)
	x.kind = kind
}

func choose[T any](a *Askers, list ...T) T { return list[a.rng.IntN(len(list))] }
func (a *Askers) yes() bool                { return a.rng.IntN(2) == 0 }
func (a *Askers) person() int64            { return choose(a, a.People...) }
func (a *Askers) somewhere() int64         { return choose(a, a.Channels...) }
func (a *Askers) numbered(s string) string {
	return fmt.Sprintf("%s %d", s, a.count)
}

func (a *Askers) group() any { return choose(a, a.known["group"]...).id }

func (a *Askers) groupValue() any {
	if a.rng.IntN(3) == 0 {
		return params{"direct_members": []int64{a.person()}, "direct_subgroups": []any{a.group()}}
	}
	return a.group()
}

// someone are up to n people.
func (a *Askers) someone(n int) []int64 {
	var out []int64
	for range 1 + a.rng.IntN(n) {
		if u := a.person(); !slices.Contains(out, u) {
			out = append(out, u)
		}
	}
	return out
}

var subjects = []string{"lunch", "release", "Lunch", "", "✔ release", "bugs"}

func (a *Askers) subject() string { return choose(a, subjects...) }

// text is something to say: plain, or with what makes texts more than texts.
func (a *Askers) text() string {
	s := a.numbered("text")
	if a.rng.IntN(3) > 0 {
		return s
	}
	extra := []string{"@**all**", "@**topic**", "*emphasis*", "/me waves", "octopus", "> quoted", ":wave:", "#**one**",
		"/poll what\nthis\nthat", "/todo list", "https://chat.test/", "#12", "```quote\nold\n```",
		"@**Ann|" + fmt.Sprint(a.person()) + "**", "@_**all**", "<time:2030-01-01T00:00:00Z>"}
	if files := a.known["file"]; len(files) > 0 {
		extra = append(extra, fmt.Sprintf("[file](%v)", choose(a, files...).id))
	}
	e := choose(a, extra...)
	if strings.HasPrefix(e, "/") {
		return e + " " + s
	}
	return s + " " + e
}

// owner is who made a thing.
func (a *Askers) owner(kind string, id any) int {
	for _, t := range a.known[kind] {
		if t.id == id {
			return t.user
		}
	}
	return 0
}
