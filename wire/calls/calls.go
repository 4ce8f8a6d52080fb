package calls

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley/actors/admission"
	"parley/actors/realm"
	"parley/wire"
)

// lookInterval is the time between two looks at the rooms: a user that loses the access is removed after that time.
const lookInterval = 2 * time.Second

// maxJoins limits the requests for tokens that wait for LiveKit at a time.
const maxJoins = 64

// Organizations have the calls.
type Organizations interface {
	realm.Turns
	realm.Views
	// Owns reports whether this node owns an organization.
	Owns(realm.ID) bool
	// HasSeveralRealms reports whether the server has several organizations; see admission.Shares.
	HasSeveralRealms() bool
}

// Service gives out tokens, and looks at the people in the rooms. It is an owner task.
type Service struct {
	livekit
	orgs  Organizations
	token func(length int) string
	log   *slog.Logger
	// ask is asked before the rooms of an organization are; see wire.Places.
	ask   func(realm.ID, realm.Place) error
	joins *admission.Places // of requests for tokens that wait for LiveKit

	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{}
	begins sync.WaitGroup // goroutines that Begin has started

	mu sync.Mutex
	// watched are the organizations that may have calls. The value grows with each new call, so that a look that found
	// none does not end the watching of a call that was started meanwhile.
	watched map[realm.ID]int
	failing bool // the last request failed; a failure is logged once
}

// Start starts a service; nil without settings. token makes random texts, ask is wire.Places.Ask.
func Start(
	s Settings, orgs Organizations, ask func(realm.ID, realm.Place) error, token func(length int) string,
	log *slog.Logger, now func() time.Time,
) (*Service, error) {
	if s.LiveKitURL == "" {
		return nil, nil
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	key, secret, err := readKey(s.LiveKitKeyFile)
	if err != nil {
		return nil, err
	}
	x := &Service{orgs: orgs, ask: ask, token: token, log: log, done: make(chan struct{}), watched: map[realm.ID]int{},
		joins: admission.NewPlaces(maxJoins, orgs.HasSeveralRealms),
		livekit: livekit{address: s.LiveKitURL, key: key, secret: secret, now: now,
			http: http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
				return http.ErrUseLastResponse // the token is only for the configured address
			}}}}
	x.ctx, x.cancel = context.WithCancel(context.Background())
	go x.run()
	return x, nil
}

// Close ends the service. Calls go on without it.
func (x *Service) Close() {
	if x == nil {
		return
	}
	x.cancel()
	x.begins.Wait()
	<-x.done
}

// Begin watches the calls of an organization that this node has become the owner of.
func (x *Service) Begin(id realm.ID) {
	x.begins.Go(func() {
		if list, err := x.calls(id); err == nil && len(list) > 0 {
			x.Watch(id)
		}
	})
}

// End does nothing: the next look finds that this node is not the owner.
func (x *Service) End(realm.ID) {}

// Watch looks at the calls of an organization from now on, because it has a new one.
func (x *Service) Watch(id realm.ID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.watched[id]++
}

// Address returns the address of the LiveKit server for browsers.
func (x *Service) Address() string { return x.address }

// Join makes the room of a call and returns a token with which a user can join it, and when the token expires.
func (x *Service) Join(id realm.ID, call realm.Call, u realm.UserID, name string) (string, time.Time, error) {
	leave := x.joins.Enter(strconv.FormatInt(int64(id), 10))
	if leave == nil {
		return "", time.Time{}, errTooManyJoins
	}
	defer leave()
	if err := x.ask(id, realm.PlaceCallRooms); err != nil {
		return "", time.Time{}, err
	}
	room := roomOf(id, call)
	if err := x.createRoom(x.ctx, room); err != nil {
		x.log.Error("the LiveKit server did not make a room", "realm", id, "err", err)
		return "", time.Time{}, wire.ErrCallServer()
	}
	// A user can be there with several devices.
	identity := u.String() + "." + x.token(identityLength)
	return x.sign(identity, name, grants{Room: room, Join: true, CanPublish: true, CanSubscribe: true}, tokenTime)
}

var errTooManyJoins = realm.Refuse(realm.Busy, "SERVER_OVERLOADED",
	"Too many users are joining calls. Try again in a few seconds.")

// identityLength is the length of the random end of the identity of a device.
const identityLength = 12

// roomOf returns the name of the room of a call.
func roomOf(id realm.ID, call realm.Call) string { return fmt.Sprintf("parley-%d-%s", id, call.Key) }

// userOf returns the user with an identity; 0: it is none of ours.
func userOf(identity string) realm.UserID {
	text, _, _ := strings.Cut(identity, ".")
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return realm.UserID(n)
}

func (x *Service) run() {
	defer close(x.done)
	t := time.NewTicker(lookInterval)
	defer t.Stop()
	for {
		select {
		case <-x.ctx.Done():
			return
		case <-t.C:
			x.look()
		}
	}
}

// look looks once at the calls of all organizations. After a request that fails, the other calls of this look wait for
// the next one: a server that does not answer must not cost its time for each call.
func (x *Service) look() {
	x.mu.Lock()
	watched := maps.Clone(x.watched)
	x.mu.Unlock()
	var failure error
	var found counts
	for _, id := range slices.Sorted(maps.Keys(watched)) {
		list, err := x.calls(id)
		if err != nil || len(list) == 0 || !x.orgs.Owns(id) {
			x.unwatch(id, watched[id])
			continue
		}
		found.addCalls(len(list))
		for _, call := range list {
			people, err := x.lookAt(id, call, failure != nil)
			if found.addPeople(people); err != nil {
				failure = err
			}
		}
	}
	if failure != nil && !x.failing && x.ctx.Err() == nil {
		x.log.Error("looking who is in calls failed", "err", failure)
	}
	x.failing = failure != nil
	x.numbers.store(found)
}

// unwatch ends the watching of an organization if it has got no new call since a look began.
func (x *Service) unwatch(id realm.ID, seen int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.watched[id] == seen {
		delete(x.watched, id)
	}
}

// calls returns the calls of an organization.
func (x *Service) calls(id realm.ID) ([]realm.Call, error) {
	list, err := x.orgs.View(id, realm.System, func(v realm.View) (any, error) { return v.Calls(), nil })
	if err != nil {
		return nil, err
	}
	return list.([]realm.Call), nil
}

// lookAt removes the people that may not be in a call any more, and records the others, whose number it returns. skip
// says that LiveKit is not asked. If the organization has closed calls, its calls end: each room is removed by the last
// request about it, so that no user remains there.
func (x *Service) lookAt(id realm.ID, call realm.Call, skip bool) (present int, err error) {
	room := roomOf(id, call)
	command := realm.SetCallPeople{ID: call.ID, Unknown: true}
	present = len(call.Present)
	var failure error
	if !skip {
		err := x.ask(id, realm.PlaceCallRooms)
		if skip = errors.Is(err, wire.ErrPlaceClosed); err != nil && !skip {
			return present, err
		}
	}
	if !skip {
		people, err := x.people(x.ctx, room)
		if failure = err; err == nil {
			command.Unknown = false
			if command.Present, failure = x.removeOthers(id, call, people); failure != nil {
				return present, failure
			}
			present = len(command.Present)
		}
	}
	ended, err := x.orgs.Turn(id, realm.System, func(t *realm.Turn) (any, error) { return command.Decide(t) })
	if err != nil || !ended.(bool) {
		// An organization that has another owner now, or a call that has ended, is not an error here.
		return present, failure
	}
	return 0, x.deleteRoom(x.ctx, room)
}

// removeOthers removes the people that may not be in a call, and returns the other ones.
func (x *Service) removeOthers(id realm.ID, call realm.Call, people []string) (present []realm.UserID, err error) {
	allowed, err := x.orgs.View(id, realm.System, func(v realm.View) (any, error) {
		out := map[string]bool{}
		for _, identity := range people {
			u := userOf(identity)
			out[identity] = u != 0 && v.MayBeInCall(u, call.Key)
		}
		return out, nil
	})
	if err != nil {
		return nil, err
	}
	for identity, ok := range allowed.(map[string]bool) {
		if ok {
			present = append(present, userOf(identity))
			continue
		}
		if err := x.remove(x.ctx, roomOf(id, call), identity); err != nil {
			return nil, err
		}
		x.removed.Add(1)
		x.log.Info("removed a user from a call", "realm", id, "user", int64(userOf(identity)))
	}
	return present, nil
}
