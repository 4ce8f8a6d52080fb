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
	v, err := h.Server.View(a.Realm, realm.Caller{System: true}, func(v realm.View) (any, error) {
		return wire.PushRegistration{DeviceRegistration: *r, Realm: a.Realm, RealmUUID: v.Org().UUID, User: a.Job.User,
			UserUUID: v.PushUserUUID(a.Job.User)}, nil
	})
	if err != nil {
		return dispatch.Outcome{RetryAfter: recheckPause}
	}
	code := ""
	if h.isTooOld(&a.Job) {
		code = codeExpired
	} else if err = h.Pusher.Register(v.(wire.PushRegistration)); err != nil {
		var again bool
		if code, again = deviceFailure(err, r.Device != 0); again {
			if isMissingRealm(err) && h.Upload != nil {
				h.Upload()
			}
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
	_, err = h.Server.Turn(a.Realm, realm.System, func(t *realm.Turn) (any, error) {
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

// The codes that a device understands (protocol).
const (
	codeExpired   = "REQUEST_EXPIRED"
	codeRefused   = "BAD_REQUEST"
	codePublicKey = "INVALID_BOUNCER_PUBLIC_KEY"
)

// deviceFailure returns the code that a device gets for a failed registration, or that it is to be tried again: the
// bouncer may be down, or an upload or a plan may make it accept the device. Unencrypted registrations are not repeated
// after a refusal, since phones register again by themselves.
func deviceFailure(err error, encrypted bool) (code string, again bool) {
	var refused *wire.BouncerRefusal
	switch {
	case errors.Is(err, wire.ErrPushNotConfigured):
		return codeRefused, false
	case errors.As(err, &refused):
		switch refused.Code {
		case "MISSING_REMOTE_REALM", "INVALID_ZULIP_SERVER", "PUSH_NOTIFICATIONS_DISALLOWED":
			return codeRefused, encrypted
		case codeExpired, codePublicKey:
			return refused.Code, false
		}
		return codeRefused, false
	case errors.Is(err, wire.ErrPushRefused): // the server is not registered yet
		return codeRefused, encrypted
	}
	return "", true
}

// isMissingRealm reports whether the bouncer does not know the organization.
func isMissingRealm(err error) bool {
	var refused *wire.BouncerRefusal
	return errors.As(err, &refused) && refused.Code == "MISSING_REMOTE_REALM"
}
