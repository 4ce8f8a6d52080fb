package push

import (
	"context"
	"errors"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/dispatch"
)

// MaxRegistering is how many users' devices the bouncer is told of at a time.
const MaxRegistering = 8

// Registrar tells the bouncer of devices: of tokens that it is to notify, or no more, and of encrypted ones, whose
// devices hear what came of it.
type Registrar struct{ Options }

// Handle tries until the bouncer has answered; after a day the token is taken for too old (protocol: for how long an
// encrypted one is good).
func (c *Registrar) Handle(_ context.Context, j *dispatch.Attempt) dispatch.Outcome {
	x := j.Job.Registration
	uuid, err := c.Server.View(j.Realm, realm.Caller{System: true}, func(v realm.View) (any, error) { return v.Org().UUID, nil })
	if err != nil {
		return dispatch.Outcome{RetryAfter: recheckPause}
	}
	code := ""
	if c.isTooOld(&j.Job) {
		code = "REQUEST_EXPIRED"
	} else {
		code, err = c.Pusher.Register(wire.PushRegistration{DeviceRegistration: *x, RealmUUID: uuid.(string), User: j.Job.User})
		switch {
		case errors.Is(err, wire.ErrPushNotConfigured), errors.Is(err, wire.ErrPushRefused): // until somebody mends the configuration
			code = "REQUEST_EXPIRED"
		case err != nil:
			waits := c.retryPauses()
			return dispatch.Outcome{RetryAfter: waits[min(j.Number, len(waits))-1]}
		}
	}
	if code != "" {
		c.Log.Warn("push registration failed", "realm", j.Realm, "user", j.Job.User.String(), "code", code, "error", err)
	}
	if x.Device == 0 {
		return dispatch.Outcome{}
	}
	settle := realm.FinishDeviceRegistration{ID: x.Device, Token: x.TokenID, Failure: code}
	_, err = c.Server.Turn(j.Realm, realm.Caller{System: true, Client: "Internal"}, func(t *realm.Turn) (any, error) {
		done, err := settle.Decide(t)
		if err == nil {
			t.FinishOutboxJobs([]int64{j.Job.ID})
		}
		return done, err
	})
	var overtaken *realm.Refusal
	switch {
	case err == nil:
		return dispatch.Outcome{Finished: true}
	case errors.As(err, &overtaken) && overtaken.Kind == realm.Invalid: // by another registration, or removed
		return dispatch.Outcome{}
	}
	return dispatch.Outcome{RetryAfter: recheckPause}
}
