package push

import (
	"context"
	"errors"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/courier"
)

// Registrars is how many users' devices the bouncer is told of at a time.
const Registrars = 8

// Registrar tells the bouncer of devices: of tokens that it is to notify, or no more, and of encrypted ones, whose
// devices hear what came of it.
type Registrar struct{ Means }

// Carry tries until the bouncer has answered; after a day the token is taken for too old (protocol: for how long an
// encrypted one is good).
func (c *Registrar) Carry(_ context.Context, j *courier.Job) courier.Outcome {
	x := j.Errand.Registration
	uuid, err := c.House.View(j.Realm, realm.Caller{System: true}, func(v realm.View) (any, error) { return v.Org().UUID, nil })
	if err != nil {
		return courier.Outcome{Again: unheard}
	}
	code := ""
	if c.stale(&j.Errand) {
		code = "REQUEST_EXPIRED"
	} else {
		code, err = c.Push.Register(wire.PushRegistration{Registration: *x, RealmUUID: uuid.(string), User: j.Errand.User})
		switch {
		case errors.Is(err, wire.ErrNoPush), errors.Is(err, wire.ErrPushRefused): // until somebody mends the configuration
			code = "REQUEST_EXPIRED"
		case err != nil:
			waits := c.waits()
			return courier.Outcome{Again: waits[min(j.Attempt, len(waits))-1]}
		}
	}
	if code != "" {
		c.Log.Warn("push registration failed", "realm", j.Realm, "user", j.Errand.User.String(), "code", code, "error", err)
	}
	if x.Device == 0 {
		return courier.Outcome{}
	}
	settle := realm.SettleDevice{ID: x.Device, Token: x.TokenID, Failure: code}
	_, err = c.House.Turn(j.Realm, realm.Caller{System: true, Client: "Internal"}, func(t *realm.Turn) (any, error) {
		done, err := settle.Decide(t)
		if err == nil {
			t.Settle([]int64{j.Errand.ID})
		}
		return done, err
	})
	var overtaken *realm.Refusal
	switch {
	case err == nil:
		return courier.Outcome{Settled: true}
	case errors.As(err, &overtaken) && overtaken.Kind == realm.Invalid: // by another registration, or removed
		return courier.Outcome{}
	}
	return courier.Outcome{Again: unheard}
}
