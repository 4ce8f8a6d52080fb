// Package wire is what clients see: forms, answers and events, one file a noun. It says how a request becomes a command
// or a look at the realm, and how what comes back reads as JSON. It knows nothing of HTTP: httpd serves its endpoints.
package wire

import (
	"errors"
	"reflect"
	"slices"
	"time"

	"parley/actors/realm"
	"parley/wire/form"
)

// Answer is the body of a success beside result and msg.
type Answer = map[string]any

// Endpoint is one method of one path.
type Endpoint struct {
	Method, Path string
	Form         *form.Form
	Settings     *form.Form // further parameters that come from a settings table; may be nil
	// Open endpoints need no credentials; Visitors may also be used anonymously where the organization allows it.
	Open, Visitors         bool
	Dev                    bool   // developmentOnly only
	APIKeyInQuery          bool   // the key is a parameter, as services that know no login send it
	AllowWebhookBots       bool   // receiveWebhook-webhook bots may call it
	LongPoll               bool   // a long poll: it does not count against the time a request may take
	name                   string // method and path
	answer                 string
	file                   *fileField
	redirects, alwaysFails bool
	tus                    *tusDescription // sectionFor uploads in pieces
	run                    func(*Call) (any, error)
}

// Parked is what an endpoint returns when the answer comes later.
type Parked struct{}

// SharedFragments decodes the form and carries out the request. The result is an Answer, a RawAnswer one, or Parked.
func (e *Endpoint) Run(c *Call) (any, error) {
	c.Caller.Operation = e.name
	return e.run(c)
}

// AllowVisitors lets anonymous callers in where the organization allows it.
func (e Endpoint) AllowVisitors() Endpoint { e.Visitors = true; return e }

// Returns is what a success holds beside result and msg, in the notation of package shape with the names of objects; an
// endpoint without it says nothing more. Descriptions are made of it, and tests hold every real answer against it.
func (e Endpoint) Returns(answer string) Endpoint { e.answer = answer; return e }

// TakesFile is the file that a multipart body has to bring, under any name.
func (e Endpoint) TakesFile(f fileField) Endpoint { e.file = &f; return e }

// Redirects to another address: a success is a redirect.
func (e Endpoint) Redirects() Endpoint { e.redirects = true; return e }

// AlwaysFails succeeds: a feature that the protocol has and this server has not.
func (e Endpoint) AlwaysFails() Endpoint { e.alwaysFails = true; return e }

// fileField describes a file to upload.
type fileField struct {
	types string // content types that are taken
	max   int    // bytes
}

// Decode reads the call's parameters into a form.
func decodeForm[F any](c *Call, f *form.Form) (F, error) {
	var into F
	if err := f.Decode(c.Params, &into); err != nil {
		return into, err
	}
	c.ignored = f.Ignored(c.Params)
	return into, nil
}

// CommandFromForm is an endpoint that carries out a command: a form makes it, answer says what came of it.
func CommandFromForm[F any, C realm.Command[A], A any](method, path string, command func(F) C, answer func(A) Answer) Endpoint {
	return CommandFromCall(method, path, func(c *Call, f F) (C, error) { return command(f), nil }, answer)
}

// CommandFromCall is CommandFromForm for commands that need more than the form: rendered text, a hashed password, the caller's client.
func CommandFromCall[F any, C realm.Command[A], A any](method, path string, command func(*Call, F) (C, error), answer func(A) Answer) Endpoint {
	return Custom(method, path, func(c *Call, f F) (Answer, error) {
		cmd, err := command(c, f)
		if err != nil {
			return nil, err
		}
		a, err := Execute(c, cmd)
		if err != nil {
			return nil, err
		}
		return answer(a), nil
	})
}

// Execute gives a command its turn.
func Execute[A any](c *Call, cmd realm.Command[A]) (A, error) {
	caller := c.Caller
	if caller.Operation == "" { // no endpoint's doing: the command names itself
		caller.Operation = reflect.TypeOf(cmd).String()
	}
	v, err := c.Server.Turn(c.Realm, caller, func(t *realm.Turn) (any, error) {
		a, err := cmd.Decide(t)
		return a, err
	})
	a, _ := v.(A)
	return a, err
}

// maxJobWait is how long one request waits for work of many turns (protocol).
const maxJobWait = 50 * time.Second

// waitForJob waits until work that a turn began is done, and tells whether it is. If not, because there is too much of it or
// the organization too busy, it will be all the same. Each look stands behind the next step in the realm's mailbox.
func waitForJob(c *Call, work int64) bool {
	more := work != 0
	for began := time.Now(); more && time.Since(began) < maxJobWait; {
		var err error
		if more, err = Read(c, func(v realm.View) (bool, error) { return v.JobRemains(work), nil }); err != nil {
			return false
		}
	}
	return !more
}

// Read asks the realm something between turns; what look returns must be copied out of the realm.
func Read[A any](c *Call, look func(realm.View) (A, error)) (A, error) {
	v, err := c.Server.View(c.Realm, c.Caller, func(v realm.View) (any, error) {
		a, err := look(v)
		return a, err
	})
	a, _ := v.(A)
	return a, err
}

// Get is an endpoint that only looks; its whole answer is built inside the view.
func Get[F any](path string, look func(*Call, realm.View, F) (Answer, error)) Endpoint {
	return Custom("GET", path, func(c *Call, f F) (Answer, error) {
		return Read(c, func(v realm.View) (Answer, error) { return look(c, v, f) })
	})
}

// Custom is an endpoint that does not fit the others. It is called outside the realm.
func Custom[F any](method, path string, run func(*Call, F) (Answer, error)) Endpoint {
	f := form.Of[F]()
	return Endpoint{Method: method, Path: path, Form: f, name: method + " " + path, run: func(c *Call) (any, error) {
		in, err := decodeForm[F](c, f)
		if err != nil {
			return nil, err
		}
		a, err := run(c, in)
		if errors.Is(err, errParked) {
			return Parked{}, nil
		}
		return a, err
	}}
}

var errParked = errors.New("parked")

// emptyAnswer is the answer of a command that has nothing to say.
func emptyAnswer(realm.Done) Answer { return Answer{} }

// noParameters is the form of an endpoint without parameters.
type noParameters struct{}

// endpoints is every endpoint; each noun's file adds its own to a list named here.
var endpoints = slices.Concat(
	alertWordEndpoints,

	botEndpoints,

	callEndpoints,

	channelEndpoints,

	deactivationEndpoints,

	defaultChannelEndpoints,

	domainEndpoints,

	draftEndpoints,

	editEndpoints,

	emojiEndpoints,

	eventEndpoints,

	exportEndpoints,

	profileFieldEndpoints,

	flagEndpoints,

	folderEndpoints,

	groupEndpoints,

	historyEndpoints,

	incomingEndpoints,

	inviteEndpoints,

	jwtEndpoints,

	linkifierEndpoints,

	loginEndpoints,

	messageEndpoints,

	muteEndpoints,

	navigationEndpoints,

	onboardingEndpoints,

	pictureEndpoints,

	playgroundEndpoints,

	presenceEndpoints,

	profileEndpoints,

	pushEndpoints,

	reactionEndpoints,

	realmEndpoints,

	registerEndpoints,

	reminderEndpoints,

	resumableEndpoints,

	scheduledEndpoints,

	searchEndpoints,

	settingEndpoints,

	snippetEndpoints,

	statusEndpoints,

	storageEndpoints,

	submessageEndpoints,

	subscriptionEndpoints,

	typingEndpoints,

	uploadEndpoints,

	userEndpoints,

	userTopicEndpoints,
)

// Endpoints is every endpoint of the protocol that this server answers.
func Endpoints() []Endpoint { return slices.Clone(endpoints) }
