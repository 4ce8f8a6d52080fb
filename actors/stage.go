package actors

import (
	"log/slog"
	"math/rand/v2"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/google/uuid"
)

// stage is what actors play on, and all of chance there is in them: who runs when, and what is drawn. A simulation
// brings its own, on which one seed is one story.
type stage interface {
	spawn(actor.Actor) *actor.PID
	spawnSession(actor.Actor) *actor.PID
	send(to *actor.PID, message any)
	work(func()) // beside the actors, as long as it takes
	end()

	token(length int) string // random characters of [A-Za-z0-9]
	uuid() string            // random version 4
	dice(sides int64) int64  // 0 to sides-1
}

// theatre is the stage of a server: protoactor's mailboxes and dispatchers.
type theatre struct {
	system *actor.ActorSystem
	warm   actor.Dispatcher
	crew   actor.Dispatcher // of the sessions
	stop   chan struct{}
}

func newTheatre() stage {
	quiet := slog.New(slog.DiscardHandler)
	stop := make(chan struct{})
	return theatre{actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet })), newWarm(stop), newCrew(stop), stop}
}

func (t theatre) spawn(a actor.Actor) *actor.PID        { return t.spawnOn(a, t.warm) }
func (t theatre) spawnSession(a actor.Actor) *actor.PID { return t.spawnOn(a, t.crew) }

func (t theatre) spawnOn(a actor.Actor, d actor.Dispatcher) *actor.PID {
	return t.system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return a }, actor.WithDispatcher(d)))
}

func (t theatre) send(to *actor.PID, message any) { t.system.Root.Send(to, message) }
func (theatre) work(do func())                    { go do() }
func (t theatre) end()                            { t.system.Shutdown(); close(t.stop) }
func (theatre) token(length int) string           { return Token(length) }
func (theatre) uuid() string                      { return uuid.NewString() }
func (theatre) dice(sides int64) int64            { return rand.Int64N(sides) }
