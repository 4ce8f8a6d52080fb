package wire

import (
	"errors"
	"reflect"
	"slices"
	"time"

	"parley/actors/realm"
	"parley/wire/form"
)

// Endpoint is one method of one path of the protocol. The methods that return an Endpoint declare a property; they are
// chained in the tables of endpoints.
type Endpoint struct {
	Method, Path string
	Form         *form.Form
	Settings     *form.Form // further parameters from a settings table; nil if there are none
	Open         bool       // needs no credentials
	Visitors     bool       // logged-out visitors are accepted where the organization allows them
	Dev          bool       // exists only on development servers
	// AtOwner is a read that only the owner of the organization can answer, because edges do not have what it needs:
	// the server's secret, or a service of the cores.
	AtOwner bool

	APIKeyInQuery    bool // the API key is a parameter, for services that cannot send a login
	AllowWebhookBots bool // incoming-webhook bots are accepted

	// Extension is the reason why this server has an endpoint that the protocol's description does not contain. It is
	// empty for the endpoints of the description.
	Extension string

	name        string       // method and path
	answerType  reflect.Type // the struct with the fields of a success besides result and msg
	file        *fileField
	redirects   bool
	alwaysFails bool
	tus         *tusDescription // for resumable uploads
	run         func(*Call) (any, error)
}

// Parked is the result of an endpoint that answers later through a Reply.
type Parked struct{}

// Run decodes the form and executes the request. The result is a RawAnswer, Parked, or the answer of a success.
func (e *Endpoint) Run(c *Call) (any, error) {
	c.Caller.Operation = e.name
	if err := e.checkScope(c); err != nil {
		return nil, err
	}
	return e.run(c)
}

// withoutLogin accepts requests without credentials.
func (e Endpoint) withoutLogin() Endpoint { e.Open = true; return e }

// developmentOnly is withoutLogin for endpoints that exist only on development servers.
func (e Endpoint) developmentOnly() Endpoint { e.Open, e.Dev = true, true; return e }

// atOwner declares a read that edges forward to the owner; see Endpoint.AtOwner.
func (e Endpoint) atOwner() Endpoint { e.AtOwner = true; return e }

// allowWebhookBots accepts incoming-webhook bots, which other endpoints refuse.
func (e Endpoint) allowWebhookBots() Endpoint { e.AllowWebhookBots = true; return e }

// apiKeyInQuery accepts the API key as a parameter instead of a login.
func (e Endpoint) apiKeyInQuery() Endpoint { e.APIKeyInQuery = true; return e }

// PathNames returns the names of the parameters in the path.
func (e *Endpoint) PathNames() (names []string) {
	for _, p := range e.Form.Describe() {
		if p.Where == "path" {
			names = append(names, p.Name)
		}
	}
	return names
}

// Name returns the method and path of the endpoint, such as "GET /messages/{message_id}".
func (e *Endpoint) Name() string { return e.name }

// extension marks an endpoint that the protocol's description does not contain; see Endpoint.Extension.
func (e Endpoint) extension(reason string) Endpoint { e.Extension = reason; return e }

// AllowVisitors accepts logged-out visitors if the organization allows them.
func (e Endpoint) AllowVisitors() Endpoint { e.Visitors = true; return e }

// TakesFile declares the file that a multipart body must contain, under any field name.
func (e Endpoint) TakesFile(f fileField) Endpoint { e.file = &f; return e }

// Redirects declares that a success is a redirect to another address.
func (e Endpoint) Redirects() Endpoint { e.redirects = true; return e }

// AlwaysFails declares an endpoint of the protocol that this server does not support.
func (e Endpoint) AlwaysFails() Endpoint { e.alwaysFails = true; return e }

// fileField describes the file that a request uploads.
type fileField struct {
	types string // accepted content types
	max   int    // bytes
}

// decodeForm reads the parameters of the call into a form and records the ignored parameters.
func decodeForm[F any](c *Call, f *form.Form) (F, error) {
	var into F
	if err := f.Decode(c.Params, &into); err != nil {
		return into, err
	}
	c.ignored = f.Ignored(c.Params)
	return into, nil
}

// CommandFromForm is an endpoint that runs one command. command makes it from the form, answer turns its result into
// the body, a struct. The OpenAPI document is made from its type, and tests check every real answer against it.
func CommandFromForm[F any, C realm.Command[R], R, A any](
	method, path string, command func(F) C, answer func(R) A,
) Endpoint {
	return CommandFromCall(method, path, func(c *Call, f F) (C, error) { return command(f), nil }, answer)
}

// CommandFromCall is CommandFromForm for commands that need more than the form, such as rendered text, a password
// hash or the caller's client.
func CommandFromCall[F any, C realm.Command[R], R, A any](
	method, path string, command func(*Call, F) (C, error), answer func(R) A,
) Endpoint {
	return Custom(method, path, func(c *Call, f F) (a A, err error) {
		cmd, err := command(c, f)
		if err != nil {
			return a, err
		}
		r, err := Execute(c, cmd)
		if err != nil {
			return a, err
		}
		return answer(r), nil
	})
}

// Execute runs a command in a turn of the realm and returns its result when its facts are on disk.
func Execute[A any](c *Call, cmd realm.Command[A]) (A, error) {
	caller := c.Caller
	if caller.Operation == "" { // not called by an endpoint: the command's type is the name in metrics
		caller.Operation = reflect.TypeOf(cmd).String()
	}
	v, err := c.Server.Turn(c.Realm, caller, func(t *realm.Turn) (any, error) {
		a, err := cmd.Decide(t)
		if t.HasRecorded() {
			c.Caller.Request = "" // later turns of the request are no repetitions of this one
		}
		return a, err
	})
	a, _ := v.(A)
	return a, err
}

// maxJobWait is how long one request waits for a job of several turns (protocol).
const maxJobWait = 50 * time.Second

// waitForJob waits until a job that a turn started is complete, and reports whether it is. The job continues even if
// the request stops waiting. Each read is queued behind the next step of the job in the realm's mailbox. If the rights
// of the caller were withdrawn, the job has stopped and the error is a refusal.
func waitForJob(c *Call, job int64) (complete bool, err error) {
	more := job != 0
	for began := time.Now(); more && time.Since(began) < maxJobWait; {
		more, err = Read(c, func(v realm.View) (bool, error) {
			if v.JobStopped(job) {
				return false, realm.BadRequest("Insufficient permission")
			}
			return v.JobRemains(job), nil
		})
		var refused *realm.Refusal
		switch {
		case errors.As(err, &refused) && refused.Kind != realm.Busy:
			return false, err
		case err != nil:
			return false, nil
		}
	}
	return !more, nil
}

// Read runs a function between turns with a read-only view of the realm. The result must be copied out of the realm.
func Read[A any](c *Call, read func(realm.View) (A, error)) (A, error) {
	v, err := c.Server.View(c.Realm, c.Caller, func(v realm.View) (any, error) {
		a, err := read(v)
		return a, err
	})
	a, _ := v.(A)
	return a, err
}

// checkPermission runs a check in a view of the realm, before work that is expensive or has to be undone. The command
// checks again, because the realm can change in between.
func checkPermission(c *Call, check func(realm.View) error) error {
	_, err := Read(c, func(v realm.View) (any, error) { return nil, check(v) })
	return err
}

// Get is an endpoint that only reads. It builds its whole answer inside one view.
func Get[F, A any](path string, read func(*Call, realm.View, F) (A, error)) Endpoint {
	return Custom("GET", path, func(c *Call, f F) (A, error) {
		return Read(c, func(v realm.View) (A, error) { return read(c, v, f) })
	})
}

// Custom is an endpoint with its own code, for example because it needs several views or turns. It runs outside the
// realm.
func Custom[F, A any](method, path string, run func(*Call, F) (A, error)) Endpoint {
	f := form.Of[F]()
	return Endpoint{
		Method:     method,
		Path:       path,
		Form:       f,
		name:       method + " " + path,
		answerType: reflect.TypeFor[A](),
		run: func(c *Call) (any, error) {
			in, err := decodeForm[F](c, f)
			if err != nil {
				return nil, err
			}
			a, err := run(c, in)
			if errors.Is(err, errParked) {
				return Parked{}, nil
			}
			return a, err
		},
	}
}

var errParked = errors.New("parked")

// emptyAnswer is the answer of a command without a result.
func emptyAnswer(realm.Done) noFields { return noFields{} }

// noParameters is the form of an endpoint without parameters.
type noParameters struct{}

// endpoints is every endpoint. Each file adds its own list here.
var endpoints = slices.Concat(
	alertWordEndpoints,
	botCommandEndpoints,
	botEndpoints,
	callEndpoints,
	channelEndpoints,
	deactivationEndpoints,
	deliveryEndpoints,
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
	compatibilityEndpoints,
	complianceEndpoints,
	dataPlaceEndpoints,
	incomingEndpoints,
	inviteEndpoints,
	jwtEndpoints,
	keyEndpoints,
	confirmEndpoints,
	linkifierEndpoints,
	loginEndpoints,
	messageEndpoints,
	muteEndpoints,
	navigationEndpoints,
	onboardingEndpoints,
	ownExportEndpoints,
	peopleEndpoints,
	pictureEndpoints,
	playgroundEndpoints,
	presenceEndpoints,
	profileEndpoints,
	pushEndpoints,
	reactionEndpoints,
	realmEndpoints,
	registerEndpoints,
	reminderEndpoints,
	roomEndpoints,
	auditEndpoints,
	resumableEndpoints,
	scheduledEndpoints,
	searchEndpoints,
	settingEndpoints,
	snippetEndpoints,
	statusEndpoints,
	storageEndpoints,
	submessageEndpoints,
	summaryEndpoints,
	gifEndpoints,
	meaningEndpoints,
	subscriptionEndpoints,
	typingEndpoints,
	uploadEndpoints,
	usageEndpoints,
	userEndpoints,
	userTopicEndpoints,
)

// Endpoints returns every endpoint of the protocol that this server implements.
func Endpoints() []Endpoint { return slices.Clone(endpoints) }
