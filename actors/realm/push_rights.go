package realm

import (
	"crypto/sha256"
	"encoding/hex"
)

// PushState is the organization's state at the push bouncer.
type PushState struct {
	Answered bool   // the bouncer has answered at least once
	Allowed  bool   // the bouncer forwards notifications of this organization
	End      int64  // when it stops to, in Unix seconds; 0: not known to stop
	Reason   string // the bouncer's reason if it forwards none; "": it gave none
	// Secret proves to the bouncer that a server owns this organization. It is made once and never changes.
	Secret string
}

// pushSecretPrefix and pushSecretLength are the form of PushState.Secret (protocol).
const (
	pushSecretPrefix = "zuliprealm_"
	pushSecretLength = 32
)

// maxOwnersNotified limits the owners that get a message about push notifications.
const maxOwnersNotified = 20

// PushState returns the organization's state at the push bouncer.
func (r *Realm) PushState() PushState {
	if s := r.Org().Push; s != nil {
		return *s
	}
	return PushState{}
}

// PushUserUUID returns the UUID by which the push bouncer knows a user. It depends only on the organization's UUID and
// the user's id, so that it is the same after a restore, after an import and on another server.
func (r *Realm) PushUserUUID(u UserID) string {
	h := sha256.Sum256([]byte("push user " + r.Org().UUID + " " + u.String()))
	b := h[:16]
	b[6] = b[6]&0x0f | 0x40 // version 4
	b[8] = b[8]&0x3f | 0x80
	x := hex.EncodeToString(b)
	return x[:8] + "-" + x[8:12] + "-" + x[12:16] + "-" + x[16:20] + "-" + x[20:]
}

// MakePushSecret is a command of the server: it returns the organization's secret for the push bouncer, and makes it if
// there is none.
type MakePushSecret struct{}

func (MakePushSecret) Decide(t *Turn) (string, error) {
	if !t.System {
		return "", errPermission()
	}
	if s := t.PushState().Secret; s != "" {
		return s, nil
	}
	secret := pushSecretPrefix + t.env.Token(pushSecretLength)
	t.Record(&PushSecretMade{secret})
	return secret, nil
}

// PushSecretMade sets the organization's secret for the push bouncer.
type PushSecretMade struct{ Secret string }

func (f *PushSecretMade) apply(r *Realm) {
	s := r.PushState()
	s.Secret = f.Secret
	r.org.change(0).Push = &s
}

func (*PushSecretMade) notices(*Realm) []Notice { return nil }

// SetPushRights is a command of the server: the push bouncer has said whether it forwards notifications of the
// organization. Owners get a message when it stops to, and when it forwards them again.
type SetPushRights struct {
	Allowed bool
	End     int64  // Unix seconds; 0: not known to stop
	Reason  string // why it forwards none; "": not said
}

// Changes reports whether the command would change anything.
func (c SetPushRights) Changes(s PushState) bool {
	if !c.Allowed && c.Reason == "" {
		c.Reason = s.Reason
	}
	return !s.Answered || s.Allowed != c.Allowed || s.End != c.End || s.Reason != c.Reason
}

func (c SetPushRights) Decide(t *Turn) (Done, error) {
	if !t.System {
		return Done{}, errPermission()
	}
	before := t.PushState()
	if !c.Changes(before) {
		return Done{}, nil
	}
	f := &PushRightsChanged{c.Allowed, c.End, c.Reason}
	switch {
	case c.Allowed:
		f.Reason = ""
	case c.Reason == "":
		f.Reason = before.Reason // the reason is only in some answers
	}
	t.Record(f)
	text := ""
	switch {
	case !f.Allowed && (!before.Answered || before.Allowed || before.Reason != f.Reason):
		text = "Mobile push notifications of this organization are not delivered: the push notification service " +
			"refuses them."
		if f.Reason != "" {
			text += " It gives this reason:\n\n" + QuoteBlock(f.Reason)
		}
	case f.Allowed && before.Answered && !before.Allowed:
		text = "Mobile push notifications of this organization are delivered again."
	}
	if text != "" && !t.Org().Deactivated {
		for _, u := range t.activeOwners(maxOwnersNotified) {
			t.NotifyUsers(text, u)
		}
	}
	return Done{}, nil
}

// activeOwners returns at most limit owners that can log in, lowest ids first.
func (r *Realm) activeOwners(limit int) (out []UserID) {
	r.EachUser(func(u *User) {
		if len(out) < limit && u.Active && u.Role == Owner && !u.IsBot() {
			out = append(out, u.ID)
		}
	})
	return out
}

// PushRightsChanged says whether the push bouncer forwards notifications of the organization.
type PushRightsChanged struct {
	Allowed bool
	End     int64
	Reason  string
}

func (f *PushRightsChanged) apply(r *Realm) {
	s := r.PushState()
	s.Answered, s.Allowed, s.End, s.Reason = true, f.Allowed, f.End, f.Reason
	r.org.change(0).Push = &s
}

// notices shows both values, changed or not, as two settings. Clients cannot see the reason.
func (f *PushRightsChanged) notices(r *Realm) []Notice {
	to := r.everyoneAudience()
	if len(to) == 0 {
		return nil
	}
	end := any(nil)
	if f.End != 0 {
		end = f.End
	}
	return []Notice{
		{To: to, Event: &OrganizationChanged{Setting: "push_notifications_enabled", Value: f.Allowed}},
		{To: to, Event: &OrganizationChanged{Setting: "push_notifications_enabled_end_timestamp", Value: end}},
	}
}
