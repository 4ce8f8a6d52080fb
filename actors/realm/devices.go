package realm

import "slices"

// Device is the row of a program somebody has logged in with that may be notified end-to-end encrypted.
type Device struct {
	ID           int64
	User         UserID
	KeyID        *int64 // of the key notifications are encrypted with
	Key          []byte
	TokenKind    string
	TokenID      *string // of the token registered with the push service
	PendingToken *string // of the one being registered
	Updated      *int64
	Failure      *string // why the last registration failed
}

// maxDevices is how many devices an account has at once; the oldest are removed, as programs that were deleted do not
// say goodbye.
const maxDevices = 100

// DevicesOf is a user's devices, oldest first.
func (r *Realm) DevicesOf(u UserID) []Device {
	var out []Device
	for _, id := range r.nouns.devicesOf[u] {
		out = append(out, *r.nouns.devices.must(id))
	}
	return out
}

func (v View) ownDevice(id int64) (*Device, error) {
	me, err := v.Human()
	if err != nil {
		return nil, err
	}
	d := v.nouns.devices.find(id)
	if d == nil || d.User != me.ID {
		return nil, Bad("Invalid 'device_id'")
	}
	return d, nil
}

// AddDevice asks for a record of the device the caller uses.
type AddDevice struct{}

func (AddDevice) Decide(t *Turn) (int64, error) {
	me, err := t.Human()
	if err != nil {
		return 0, err
	}
	if own := t.nouns.devicesOf[me.ID]; len(own) >= maxDevices {
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
	r.usedID("device", f.ID)
	r.nouns.devices.put(f.ID, &Device{ID: f.ID, User: f.User})
	r.nouns.devicesOf[f.User] = append(slices.Clone(r.nouns.devicesOf[f.User]), f.ID)
}

func (f *DeviceAdded) tell(r *Realm) []Notice { return r.tellOwn(f.User, f) }
func (*DeviceAdded) EventType() string        { return "device" }
func (*DeviceAdded) calm()                    {}

// tellOwn is the notice of an event that only one user hears.
func (r *Realm) tellOwn(u UserID, e Event) []Notice {
	if to := r.only(u); len(to) > 0 {
		return []Notice{{To: to, Event: e}}
	}
	return nil
}

// RemoveDevice asks to forget a device.
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
	defer r.learnDevices(f.User)
	r.nouns.devices.remove(f.ID)
	rest := slices.DeleteFunc(slices.Clone(r.nouns.devicesOf[f.User]), func(id int64) bool { return id == f.ID })
	if len(rest) == 0 {
		delete(r.nouns.devicesOf, f.User)
		return
	}
	r.nouns.devicesOf[f.User] = rest
}

func (f *DeviceRemoved) tell(r *Realm) []Notice { return r.tellOwn(f.User, f) }
func (*DeviceRemoved) EventType() string        { return "device" }
func (*DeviceRemoved) calm()                    {}

// forgetDevices ends every registration for notifications of an account.
func (t *Turn) forgetDevices(u UserID) {
	if len(t.PushTokensOf(u)) > 0 {
		t.Record(&PushTokensChanged{User: u})
		t.registers(u, Registration{Gone: true})
	}
	for _, d := range t.DevicesOf(u) {
		t.Record(&DeviceRemoved{d.ID, u})
	}
}

// RegisterDevice asks to set up, or to renew, a device's encrypted notifications: its key, its token, or both.
type RegisterDevice struct {
	ID    int64
	KeyID *int64 // with Key
	Key   []byte
	Kind  string  // of the token: fcm or apns
	Token *string // id of the token, which only the push service may read
	// Encrypted is the token for that service, PublicKey of its keys the one that was used.
	Encrypted, PublicKey string
}

func (c RegisterDevice) Decide(t *Turn) (Done, error) {
	d, err := t.ownDevice(c.ID)
	if err != nil {
		return Done{}, err
	}
	if d.KeyID == nil && c.KeyID == nil {
		return Done{}, Bad("The first registration of a device needs a key and a token.")
	}
	switch {
	case c.Token != nil && !t.moment.Bouncer:
		return Done{}, Refuse(Busy, "PUSH_SERVICE_NOT_CONFIGURED", "Server is not configured to use push notification service.")
	case c.Token != nil && !t.nouns.waiting.room(RegisterErrand, d.User, nil):
		return Done{}, Refuse(Busy, "BAD_REQUEST", "The push notification service is busy")
	}
	f := &DeviceChanged{ID: d.ID, User: d.User, KeyID: c.KeyID, Key: c.Key, Kind: c.Kind}
	if c.Token != nil {
		f.Pending, f.PendingSet = c.Token, true
		f.FailureSet = d.Failure != nil
	}
	t.Record(f)
	if c.Token != nil {
		t.registers(d.User, Registration{Device: d.ID, TokenID: *c.Token, Encrypted: c.Encrypted, PublicKey: c.PublicKey})
	}
	return Done{}, nil
}

// SettleDevice is the server's: the push service has taken a device's token, or refused it. A registration that was
// overtaken by another one is settled by that one.
type SettleDevice struct {
	ID      int64
	Token   string
	Failure string // code; "": taken
}

func (c SettleDevice) Decide(t *Turn) (Done, error) {
	d := t.nouns.devices.find(c.ID)
	if !t.System || d == nil || d.PendingToken == nil || *d.PendingToken != c.Token {
		return Done{}, Bad("Invalid 'device_id'")
	}
	f := &DeviceChanged{ID: d.ID, User: d.User, PendingSet: true}
	if c.Failure != "" {
		f.Failure, f.FailureSet = &c.Failure, true
	} else {
		now := t.Now
		f.Token, f.Updated = &c.Token, &now
	}
	t.Record(f)
	if c.Failure == "" {
		t.forgetPlain(d)
	}
	return Done{}, nil
}

// forgetPlain ends the unencrypted registration of a device that is notified end-to-end encrypted from now on: it would
// be told of everything twice, once legibly.
func (t *Turn) forgetPlain(d *Device) {
	var rest []PushToken
	var gone []Registration
	for _, x := range t.PushTokensOf(d.User) {
		if x.Kind == pushKinds[d.TokenKind] && slices.Contains(tokenIDs(x), *d.TokenID) {
			gone = append(gone, Registration{Token: x, Gone: true})
		} else {
			rest = append(rest, x)
		}
	}
	if len(gone) > 0 {
		t.Record(&PushTokensChanged{d.User, rest})
		t.registers(d.User, gone...)
	}
}

// DropDeviceToken is the server's: the push service says a device's token is dead.
type DropDeviceToken struct {
	ID    int64
	Token string
}

func (c DropDeviceToken) Decide(t *Turn) (Done, error) {
	d := t.nouns.devices.find(c.ID)
	if !t.System || d == nil || d.TokenID == nil || *d.TokenID != c.Token {
		return Done{}, Bad("Invalid 'device_id'")
	}
	t.Record(&DeviceChanged{ID: d.ID, User: d.User, TokenGone: true})
	return Done{}, nil
}

// DeviceChanged is the event device/update. Fields that may become nothing say beside them whether they changed.
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
	d := r.nouns.devices.change(f.ID)
	if f.KeyID != nil {
		d.KeyID, d.Key = f.KeyID, f.Key
	}
	if f.Kind != "" {
		d.TokenKind = f.Kind
	}
	if f.Token != nil {
		d.TokenID, d.Updated = f.Token, f.Updated
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
	r.learnDevices(f.User)
}

func (f *DeviceChanged) tell(r *Realm) []Notice { return r.tellOwn(f.User, f) }
func (*DeviceChanged) EventType() string        { return "device" }
func (*DeviceChanged) calm()                    {}
