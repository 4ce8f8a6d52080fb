package push

import (
	"context"
	"errors"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/dispatch"
)

// MaxRegistering is how many users' devices are registered at the bouncer at a time.
const MaxRegistering = 8

// Registrar is the dispatch.Handler that registers devices at the bouncer, and removes them. An encrypted registration
// is answered: the device learns the result by an event.
type Registrar struct{ Options }

// Handle tries until the bouncer has answered. After maxAge the registration has expired: encrypted ones are valid as
// long (protocol).
func (h *Registrar) Handle(_ context.Context, a *dispatch.Attempt) dispatch.Outcome {
	r := a.Job.Registration
	uuid, err := h.Server.View(a.Realm, realm.Caller{System: true}, func(v realm.View) (any, error) {
		return v.Org().UUID, nil
	})
	if err != nil {
		return dispatch.Outcome{RetryAfter: recheckPause}
	}
	code := ""
	if h.isTooOld(&a.Job) {
		code = "REQUEST_EXPIRED"
	} else {
		code, err = h.Pusher.Register(wire.PushRegistration{
			DeviceRegistration: *r, RealmUUID: uuid.(string), User: a.Job.User,
		})
		switch {
		case errors.Is(err, wire.ErrPushNotConfigured), errors.Is(err, wire.ErrPushRefused):
			// Trying again cannot help until the configuration is changed.
			code = "REQUEST_EXPIRED"
		case err != nil:
			pauses := h.retryPauses()
			return dispatch.Outcome{RetryAfter: pauses[min(a.Number, len(pauses))-1]}
		}
	}
	if code != "" {
		h.Log.Warn("push registration failed",
			"realm", a.Realm, "user", a.Job.User.String(), "code", code, "err", err)
	}
	if r.Device == 0 {
		return dispatch.Outcome{}
	}
	finish := realm.FinishDeviceRegistration{ID: r.Device, Token: r.TokenID, Failure: code}
	_, err = h.Server.Turn(a.Realm, realm.Caller{System: true, Client: "Internal"}, func(t *realm.Turn) (any, error) {
		done, err := finish.Decide(t)
		if err == nil {
			t.FinishOutboxJobs([]int64{a.Job.ID})
		}
		return done, err
	})
	var refused *realm.Refusal
	switch {
	case err == nil:
		return dispatch.Outcome{Finished: true}
	case errors.As(err, &refused) && refused.Kind == realm.Invalid:
		// Another registration replaced this one, or the device was removed.
		return dispatch.Outcome{}
	}
	return dispatch.Outcome{RetryAfter: recheckPause}
}
