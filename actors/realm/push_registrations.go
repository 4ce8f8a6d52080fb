package realm

// DeviceRegistration is what the service that passes notifications on for us is to hear of somebody's devices.
type DeviceRegistration struct {
	Token PushToken // to notify, or with Gone not any more; of Gone without one, all he has
	Gone  bool
	// Of an end-to-end encrypted device: its token, readable for that service only.
	Device                        int64
	TokenID, Encrypted, PublicKey string
}

// Limits of registrations that wait for the service. A phone registers its token anew whenever its app starts, so what is
// dropped is made up for; an encrypted one is refused.
const (
	MaxDeviceRegistrations        = 2000 // half a kilobyte each, 25 kB if somebody means harm
	maxDeviceRegistrationsPerUser = 32   // the phones somebody carries, several times
)

// registerDevices has the service that passes notifications on for us hear of devices, where there is one.
func (t *Turn) registerDevices(u UserID, list ...DeviceRegistration) {
	if !t.env.PushBouncer {
		return
	}
	var errands []OutboxJob
	for _, x := range list {
		errands = append(errands, OutboxJob{Kind: OutboxRegistration, User: u, Registration: &x})
	}
	t.addOutboxJobs(errands)
}
