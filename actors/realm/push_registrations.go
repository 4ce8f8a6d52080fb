package realm

// DeviceRegistration is one change of a user's devices that the push bouncer must get.
type DeviceRegistration struct {
	Token PushToken // the token to register, or to remove if Gone; Gone without a token removes all the user's devices
	Gone  bool
	// For an end-to-end encrypted device: its token, encrypted for the bouncer.
	Device                        int64
	TokenID, Encrypted, PublicKey string
}

// Limits of registrations that wait for the bouncer. A phone registers its token whenever its app starts, so a dropped
// registration is repeated later. An encrypted registration is refused instead.
const (
	MaxDeviceRegistrations        = 2000 // about 500 bytes each; up to 25 kB if sent by an attacker
	maxDeviceRegistrationsPerUser = 32   // several times the number of phones of one person
)

// registerDevices adds outbox jobs that report the changes to the push bouncer. It does nothing without a bouncer.
func (t *Turn) registerDevices(u UserID, changes ...DeviceRegistration) {
	if !t.env.PushBouncer {
		return
	}
	var jobs []OutboxJob
	for _, change := range changes {
		if change.Token.Kind == PushWeb { // browsers have push services of their own
			continue
		}
		jobs = append(jobs, OutboxJob{Kind: OutboxRegistration, User: u, Registration: &change})
	}
	t.addOutboxJobs(jobs)
}
