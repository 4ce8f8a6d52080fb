package actors

import (
	"slices"
	"sync"
	"sync/atomic"

	"parley/actors/admission"
	"parley/actors/delivery"
	"parley/actors/realm"
	"parley/actors/stream"
)

// ask is one command or view on its way to a realm actor. Exactly one of decide, view and async is set.
type ask struct {
	caller realm.Caller
	decide func(*realm.Turn) (any, error)
	view   func(realm.View) (any, error)
	async  realm.CommandWithCallback // its caller does not wait
	reply  chan stream.Result        // nil with async
	// inFlight is realmHandle.inFlight, with async.
	inFlight *atomic.Int64
	// admitted says that the command is counted by its organization's deliveryFlow.
	admitted bool
}

// replies are reused: a new channel for each request would cost more than the turn.
var replies = sync.Pool{New: func() any { return make(chan stream.Result, 1) }}

// Turn runs decide in a turn of a realm. It returns when the recorded facts, and all facts before them, are on disk.
func (srv *Server) Turn(id realm.ID, c realm.Caller, decide func(*realm.Turn) (any, error)) (any, error) {
	return srv.ask(id, &ask{caller: c, decide: decide})
}

// View runs view between turns of a realm. It returns when every fact that view could see is on disk.
func (srv *Server) View(id realm.ID, c realm.Caller, view func(realm.View) (any, error)) (any, error) {
	return srv.ask(id, &ask{caller: c, view: view})
}

var errUnknownRealm = realm.Refuse(realm.NotFound, "NONEXISTENT_SUBDOMAIN", "Invalid subdomain")

// ask sends a command or view to a realm actor and waits for the answer.
func (srv *Server) ask(id realm.ID, a *ask) (any, error) {
	u := forClient
	switch {
	case a.caller.System && a.view != nil:
		u = forLook
	case a.caller.System:
		u = forWork
	}
	r, err := srv.awaken(id, u)
	if err != nil {
		return nil, err
	}
	err = srv.count(r, a.view == nil)
	r.leave() // it is counted as in progress
	if err != nil {
		return nil, err
	}
	a.reply = replies.Get().(chan stream.Result)
	if a.admitted = a.mayWait(); a.admitted && !r.sessions.Flow.TryAdmit() {
		r.sessions.Flow.Wait(a)
	} else {
		srv.runtime.Send(r.pid, a)
	}
	x := <-a.reply
	replies.Put(a.reply)
	r.inFlight.Add(-1)
	return x.Value, x.Err
}

// User returns the user of the caller.
func (m *ask) User() realm.UserID { return m.caller.User }

// Refuse answers a command that got no turn.
func (m *ask) Refuse(err error) {
	x := m.output(stream.Result{Err: err})
	x.Answer.Send()
}

// output returns a result for the caller, without events.
func (m *ask) output(x stream.Result) stream.Output {
	return stream.Output{Admitted: m.admitted,
		Answer: stream.Answer{Result: x, Reply: m.reply, Async: m.async, InFlight: m.inFlight}}
}

// runSystemAsync runs a command of the server itself and does not wait for it.
func (srv *Server) runSystemAsync(r *realmHandle, decide func(*realm.Turn) (any, error)) {
	caller := realm.System
	srv.runtime.Send(r.pid, &ask{caller: caller, decide: decide, reply: make(chan stream.Result, 1)})
}

// mayWait reports whether an ask waits when events are late: commands of users do.
func (m *ask) mayWait() bool { return m.view == nil && !m.caller.System && m.caller.User != 0 }

// isDeliveredLate reports whether too many recipients of events wait: of all organizations, or of one of several.
func (srv *Server) isDeliveredLate(r *realmHandle) bool {
	return srv.Metrics.Undelivered.Load() > MaxUndelivered ||
		r.sessions.Undelivered.Load() > admission.Half(MaxUndelivered) && srv.HasSeveralRealms()
}

// count counts a command or view in, or rejects it as busy.
func (srv *Server) count(r *realmHandle, command bool) error {
	if r.inFlight.Add(1) > MaxInFlight || command && srv.isDeliveredLate(r) {
		r.inFlight.Add(-1)
		srv.Metrics.Busy.Add(1)
		return delivery.ErrOverloaded
	}
	return nil
}

// RunAsync runs commands whose callers do not wait. Each command's Done gets the result. Commands of one realm that are
// next to each other in the list go to it in one message. RunAsync does not keep the list.
func (srv *Server) RunAsync(list []realm.AsyncCommand) {
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].Realm == list[0].Realm {
			n++
		}
		r := srv.enter(list[0].Realm, forClient)
		if r == nil && srv.has(list[0].Realm) {
			srv.runWhenAwake(slices.Clone(list[:n]))
			list = list[n:]
			continue
		}
		batch := make(asyncBatch, 0, n)
		for i := range list[:n] {
			o := &list[i]
			if r == nil {
				o.Done(nil, errUnknownRealm)
				continue
			}
			if err := srv.count(r, true); err != nil {
				o.Done(nil, err)
				continue
			}
			m := ask{caller: o.Caller, async: o.CommandWithCallback, inFlight: &r.inFlight}
			if m.admitted = m.mayWait(); m.admitted && !r.sessions.Flow.TryAdmit() {
				late := m
				r.sessions.Flow.Wait(&late)
				continue
			}
			batch = append(batch, m)
		}
		if r != nil {
			r.leave() // the commands are counted as in progress
		}
		if len(batch) > 0 {
			srv.runtime.Send(r.pid, batch)
		}
		list = list[n:]
	}
}

// runWhenAwake runs commands of one realm when it is in memory.
func (srv *Server) runWhenAwake(list []realm.AsyncCommand) {
	srv.runtime.RunInBackground(func() {
		r, err := srv.awaken(list[0].Realm, forClient)
		if err != nil {
			for i := range list {
				list[i].Done(nil, err)
			}
			return
		}
		defer r.leave()
		srv.RunAsync(list)
	})
}
