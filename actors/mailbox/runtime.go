// Package mailbox runs actors: values that handle one message at a time, from a mailbox without a limit. Their users
// limit the messages. It is the only package that names the actor library, and so the only one that another library
// would change.
//
//	Runtime.Spawn ──► Address ◄── Send
//	                     │
//	                     ▼
//	general actors: a pool of reused goroutines
//	session actors: a few goroutines, on which the organizations take turns (pool.go)
//
// A simulation brings its own Runtime, on which a seed decides which actor runs next, and every random value.
package mailbox

import (
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/google/uuid"
	cmap "github.com/orcaman/concurrent-map"
)

// The library stores the actors in 1,024 maps. By default each is divided into 32 again, which takes three megabytes.
func init() { cmap.SHARD_COUNT = 1 }

// Actor handles messages, one at a time. It must ignore messages that it does not know: the library sends some of its
// own.
type Actor interface{ Receive(message any) }

// Address is where messages to one actor are sent. Addresses can be compared; the zero value belongs to no actor.
type Address struct{ pid *actor.PID }

// NewAddress returns an address with a name that no other one of the process has, for runtimes of tests.
func NewAddress(name string) Address { return Address{actor.NewPID("test", name)} }

// Runtime runs the actors of a process and draws random values. Its methods may be called by any goroutine and do not
// block, except Shutdown.
type Runtime interface {
	// Spawn starts an actor. A panic in it must not reach the runtime, which would start the actor again.
	Spawn(Actor) Address
	// SessionSpawner returns a function that starts the session actors of one realm.
	SessionSpawner() func(Actor) Address
	// Send puts a message behind the others in a mailbox. Messages of one sender arrive in order.
	Send(to Address, message any)
	Stop(Address)                // messages to it are dropped from then on
	RunInBackground(func())      // outside the actors, for as long as it takes
	After(time.Duration, func()) // runs once
	Shutdown()                   // ends every actor
	Token(length int) string     // random characters of [A-Za-z0-9]
	UUID() string                // random, version 4
	RandomBelow(n int64) int64   // 0 to n-1
}

// actorRuntime is the runtime of a server: the library's mailboxes on two worker pools.
type actorRuntime struct {
	system   *actor.ActorSystem
	general  actor.Dispatcher
	sessions *sessionPool
	token    func(length int) string
	stopped  chan struct{}
}

// generalWorkers is how many goroutines, each with a stack of about 16 KB, serve the actors that are no session actors.
// No actor waits for another there.
const generalWorkers = 16

// NewRuntime returns the runtime of a server. token makes secret random characters.
func NewRuntime(token func(length int) string) Runtime {
	noLog := func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }
	stop := make(chan struct{})
	return actorRuntime{
		system:   actor.NewActorSystem(actor.WithLoggerFactory(noLog)),
		general:  newWorkerPool(generalWorkers, stop),
		sessions: newSessionPool(),
		token:    token,
		stopped:  stop,
	}
}

// receiver is an actor as the library knows it.
type receiver struct{ Actor }

func (r receiver) Receive(c actor.Context) { r.Actor.Receive(c.Message()) }

// propsOf returns how the library starts an actor.
func propsOf(a Actor, how ...actor.PropsOption) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor { return receiver{a} }, how...)
}

func (r actorRuntime) Spawn(a Actor) Address {
	return Address{r.system.Root.Spawn(propsOf(a, actor.WithDispatcher(r.general)))}
}

func (r actorRuntime) SessionSpawner() func(Actor) Address {
	turns := &realmTurns{pool: r.sessions}
	return func(a Actor) Address {
		return Address{r.system.Root.Spawn(propsOf(a, actor.WithDispatcher(turns),
			actor.WithMailbox(func() actor.Mailbox { return &sessionMailbox{} })))}
	}
}

func (r actorRuntime) Send(to Address, message any)    { r.system.Root.Send(to.pid, message) }
func (r actorRuntime) Stop(a Address)                  { r.system.Root.Stop(a.pid) }
func (actorRuntime) RunInBackground(run func())        { go run() }
func (actorRuntime) After(d time.Duration, run func()) { time.AfterFunc(d, run) }
func (r actorRuntime) Token(length int) string         { return r.token(length) }
func (actorRuntime) UUID() string                      { return uuid.NewString() }
func (actorRuntime) RandomBelow(n int64) int64         { return rand.Int64N(n) }
func (r actorRuntime) Shutdown() {
	r.system.Shutdown()
	close(r.stopped)
	r.sessions.close()
}
