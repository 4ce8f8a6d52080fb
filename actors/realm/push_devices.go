package realm

import "slices"

// Device is the row of a client program on a device that a user has logged in with. It can receive end-to-end encrypted
// notifications.
type Device struct {
	ID           int64
	User         UserID
	KeyID        *int64 // of the key that encrypts the notifications
	Key          []byte
	TokenKind    string
	TokenID      *string // of the token registered with the push service
	PendingToken *string // of the token that is being registered
	Updated      *int64
	Failure      *string // why the last registration failed
}

// maxDevices is the limit of devices of an account. The oldest ones are removed first, because a deleted client program
// does not unregister.
const maxDevices = 100

// DevicesOf returns a user's devices, oldest first.
func (r *Realm) DevicesOf(u UserID) []Device {
	var out []Device
	for _, id := range r.small.devicesOf[u] {
		out = append(out, *r.small.devices.must(id))
	}
	return out
}

// ownDevice returns a device of the caller by id.
func (v View) ownDevice(id int64) (*Device, error) {
	me, err := v.RequireHuman()
	if err != nil {
		return nil, err
	}
	d := v.small.devices.find(id)
	if d == nil || d.User != me.ID {
		return nil, BadRequest("Invalid 'device_id'")
	}
	return d, nil
}

// AddDevice asks to add the device that the caller uses. It answers the device's id.
type AddDevice struct{}

func (AddDevice) Decide(t *Turn) (int64, error) {
	me, err := t.RequireHuman()
	if err != nil {
		return 0, err
	}
	if own := t.small.devicesOf[me.ID]; len(own) >= maxDevices {
		t.Record(&DeviceRemoved{own[0], me.ID})
	}
	id := t.nextID("device")
	t.Record(&DeviceAdded{id, me.ID})
	return id, nil
}

// DeviceAdded is the event device/add.
type DeviceAdded struct {
	ID   int64
	User UserID
}

func (f *DeviceAdded) apply(r *Realm) {
	r.reserveID("device", f.ID)
	r.small.devices.put(f.ID, &Device{ID: f.ID, User: f.User})
	r.small.devicesOf[f.User] = append(slices.Clone(r.small.devicesOf[f.User]), f.ID)
}

func (f *DeviceAdded) notices(r *Realm) []Notice { return r.userNotices(f.User, f) }
func (*DeviceAdded) EventType() string           { return "device" }

// userNotices returns the notice of an event for one user, or nil if the user is not connected.
func (r *Realm) userNotices(u UserID, e Event) []Notice {
	if to := r.usersAudience(u); len(to) > 0 {
		return []Notice{{To: to, Event: e}}
	}
	return nil
}

// RemoveDevice asks to remove a device.
type RemoveDevice struct{ ID int64 }

func (c RemoveDevice) Decide(t *Turn) (Done, error) {
	d, err := t.ownDevice(c.ID)
	if err != nil {
		return Done{}, err
	}
	t.Record(&DeviceRemoved{d.ID, d.User})
	return Done{}, nil
}

// DeviceRemoved is the event device/remove.
type DeviceRemoved struct {
	ID   int64
	User UserID
}

func (f *DeviceRemoved) apply(r *Realm) {
	defer r.updatePushReachable(f.User)
	r.small.devices.remove(f.ID)
	rest := slices.DeleteFunc(slices.Clone(r.small.devicesOf[f.User]), func(id int64) bool { return id == f.ID })
	if len(rest) == 0 {
		delete(r.small.devicesOf, f.User)
		return
	}
	r.small.devicesOf[f.User] = rest
}

func (f *DeviceRemoved) notices(r *Realm) []Notice { return r.userNotices(f.User, f) }
func (*DeviceRemoved) EventType() string           { return "device" }

// removeAllDevices ends every registration of an account for notifications, encrypted or not.
func (t *Turn) removeAllDevices(u UserID) { t.removeDevices(u, nil) }

// removePhones is removeAllDevices, but without browsers: their subscriptions end with their sessions.
func (t *Turn) removePhones(u UserID) {
	t.removeDevices(u, slices.DeleteFunc(slices.Clone(t.PushTokensOf(u)), func(x PushToken) bool {
		return x.Kind != PushWeb || x.Session == 0
	}))
}

func (t *Turn) removeDevices(u UserID, remaining []PushToken) {
	if len(t.PushTokensOf(u)) > len(remaining) {
		t.Record(&PushTokensChanged{User: u, List: remaining})
		t.registerDevices(u, DeviceRegistration{Gone: true})
	}
	for _, d := range t.DevicesOf(u) {
		t.Record(&DeviceRemoved{d.ID, u})
	}
}

// RegisterDevice asks to register a device for encrypted notifications, or to renew the registration: its key, its
// token, or both.
type RegisterDevice struct {
	ID    int64
	KeyID *int64 // with Key
	Key   []byte
	Kind  string  // of the token: fcm or apns
	Token *string // id of the token; only the push service can read the token itself
	// Encrypted is the token, encrypted for the push service with the key that PublicKey names.
	Encrypted, PublicKey string
}

func (c RegisterDevice) Decide(t *Turn) (Done, error) {
	d, err := t.ownDevice(c.ID)
	if err != nil {
		return Done{}, err
	}
	if d.KeyID == nil && c.KeyID == nil {
		return Done{}, BadRequest("The first registration of a device needs a key and a token.")
	}
	switch {
	case c.Token != nil && !t.env.PushBouncer:
		return Done{}, Refuse(Busy, "PUSH_SERVICE_NOT_CONFIGURED",
			"Server is not configured to use push notification service.")
	case c.Token != nil && !t.hasOutboxCapacity(OutboxRegistration, d.User, nil):
		return Done{}, Refuse(Busy, "BAD_REQUEST", "The push notification service is busy")
	}
	if c.Token != nil && d.PendingToken != nil && d.Failure == nil {
		return Done{}, BadRequest("A registration for the device already in progress.")
	}
	f := &DeviceChanged{ID: d.ID, User: d.User, KeyID: c.KeyID, Key: c.Key, Kind: c.Kind}
	if c.Token != nil {
		now := t.Now
		f.Pending, f.PendingSet, f.FailureSet, f.Updated = c.Token, true, true, &now
	}
	t.Record(f)
	if c.Token != nil {
		t.registerDevices(d.User, DeviceRegistration{Device: d.ID, TokenID: *c.Token, Encrypted: c.Encrypted,
			PublicKey: c.PublicKey})
	}
	return Done{}, nil
}

// FinishDeviceRegistration is a command of the server: the push service has accepted a device's token, or rejected it.
// A token that has been replaced by a newer registration is refused here; the newer one finishes itself.
type FinishDeviceRegistration struct {
	ID      int64
	Token   string
	Failure string // error code; "": accepted
}

func (c FinishDeviceRegistration) Decide(t *Turn) (Done, error) {
	d := t.small.devices.find(c.ID)
	if !t.System || d == nil || d.PendingToken == nil || *d.PendingToken != c.Token || d.Failure != nil {
		return Done{}, BadRequest("Invalid 'device_id'")
	}
	f := &DeviceChanged{ID: d.ID, User: d.User}
	if c.Failure != "" { // the token stays pending, so that the device knows which one failed
		f.Failure, f.FailureSet = &c.Failure, true
	} else {
		f.Token, f.PendingSet = &c.Token, true
	}
	t.Record(f)
	if c.Failure == "" {
		t.removeUnencryptedTokens(d)
	}
	return Done{}, nil
}

// removeUnencryptedTokens ends the unencrypted registration of a device that now gets encrypted notifications.
// Otherwise the device would show everything twice, and one copy would be readable for the push service.
func (t *Turn) removeUnencryptedTokens(d *Device) {
	var kept []PushToken
	var removed []DeviceRegistration
	for _, token := range t.PushTokensOf(d.User) {
		if token.Kind == pushKinds[d.TokenKind] && slices.Contains(tokenIDs(token), *d.TokenID) {
			removed = append(removed, DeviceRegistration{Token: token, Gone: true})
		} else {
			kept = append(kept, token)
		}
	}
	if len(removed) > 0 {
		t.Record(&PushTokensChanged{d.User, kept})
		t.registerDevices(d.User, removed...)
	}
}

// RemoveDeviceToken is a command of the server: the push service says that a device's token is no longer valid.
type RemoveDeviceToken struct {
	ID    int64
	Token string
}

func (c RemoveDeviceToken) Decide(t *Turn) (Done, error) {
	d := t.small.devices.find(c.ID)
	if !t.System || d == nil || d.TokenID == nil || *d.TokenID != c.Token {
		return Done{}, BadRequest("Invalid 'device_id'")
	}
	t.Record(&DeviceChanged{ID: d.ID, User: d.User, TokenGone: true})
	return Done{}, nil
}

// DeviceChanged is the event device/update. For fields that can become null, a second field says whether they changed.
type DeviceChanged struct {
	ID         int64
	User       UserID
	KeyID      *int64
	Key        []byte
	Kind       string
	Token      *string
	Updated    *int64
	Pending    *string
	PendingSet bool
	Failure    *string
	FailureSet bool
	TokenGone  bool // the push service does not know the token any more
}

func (f *DeviceChanged) apply(r *Realm) {
	d := r.small.devices.change(f.ID)
	if f.KeyID != nil {
		d.KeyID, d.Key = f.KeyID, f.Key
	}
	if f.Kind != "" {
		d.TokenKind = f.Kind
	}
	if f.Token != nil {
		d.TokenID = f.Token
	}
	if f.Updated != nil {
		d.Updated = f.Updated
	}
	if f.PendingSet {
		d.PendingToken = f.Pending
	}
	if f.FailureSet {
		d.Failure = f.Failure
	}
	if f.TokenGone {
		d.TokenID = nil
	}
	r.updatePushReachable(f.User)
}

func (f *DeviceChanged) notices(r *Realm) []Notice { return r.userNotices(f.User, f) }
func (*DeviceChanged) EventType() string           { return "device" }
