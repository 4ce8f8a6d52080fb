package actors

import (
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/google/uuid"
)

// actorRuntime runs the actors and draws random values. A simulation brings its own one, on which a seed decides
// everything: which actor runs next, and every random value.
type actorRuntime interface {
	spawn(actor.Actor) *actor.PID
	// sessionSpawner returns a function that starts the session actors of one realm.
	sessionSpawner() func(actor.Actor) *actor.PID
	send(to *actor.PID, message any)
	stop(*actor.PID)        // messages to it are dropped from then on
	runInBackground(func()) // outside the actors, for as long as it takes
	after(time.Duration, func())
	shutdown()

	token(length int) string   // random characters of [A-Za-z0-9]
	uuid() string              // random version 4
	randomBelow(n int64) int64 // 0 to n-1
}

// protoactorRuntime is the runtime of a server: protoactor's mailboxes on two worker pools.
type protoactorRuntime struct {
	system            *actor.ActorSystem
	generalDispatcher actor.Dispatcher // of realm, presence and journal actors
	sessions          *sessionPool     // of session actors
	stopped           chan struct{}
}

func newProtoactorRuntime() actorRuntime {
	noLog := func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }
	stop := make(chan struct{})
	return protoactorRuntime{
		system:            actor.NewActorSystem(actor.WithLoggerFactory(noLog)),
		generalDispatcher: newGeneralDispatcher(stop),
		sessions:          newSessionPool(),
		stopped:           stop,
	}
}

func (r protoactorRuntime) spawn(a actor.Actor) *actor.PID {
	return r.system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return a },
		actor.WithDispatcher(r.generalDispatcher)))
}

func (r protoactorRuntime) sessionSpawner() func(actor.Actor) *actor.PID {
	turns := &realmTurns{pool: r.sessions}
	return func(a actor.Actor) *actor.PID {
		return r.system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return a },
			actor.WithDispatcher(turns), actor.WithMailbox(func() actor.Mailbox { return &sessionMailbox{} })))
	}
}

func (r protoactorRuntime) send(to *actor.PID, message any) { r.system.Root.Send(to, message) }
func (r protoactorRuntime) stop(pid *actor.PID)             { r.system.Root.Stop(pid) }
func (protoactorRuntime) runInBackground(run func())        { go run() }
func (protoactorRuntime) after(d time.Duration, run func()) { time.AfterFunc(d, run) }
func (r protoactorRuntime) shutdown() {
	r.system.Shutdown()
	close(r.stopped)
	r.sessions.close()
}
func (protoactorRuntime) token(length int) string       { return Token(length) }
func (protoactorRuntime) uuid() string                  { return uuid.NewString() }
func (protoactorRuntime) randomBelow(sides int64) int64 { return rand.Int64N(sides) }
