package realm

// Registration is what the service that passes notifications on for us is to hear of somebody's devices.
type Registration struct {
	Token PushToken // to notify, or with Gone not any more; of Gone without one, all he has
	Gone  bool
	// Of an end-to-end encrypted device: its token, readable for that service only.
	Device                        int64
	TokenID, Encrypted, PublicKey string
}

// Limits of registrations that wait for the service. A phone registers its token anew whenever its app starts, so what is
// dropped is made up for; an encrypted one is refused.
const (
	MaxRegistrations       = 2000 // half a kilobyte each, 25 kB if somebody means harm
	maxRegistrationsOfUser = 32   // the phones somebody carries, several times
)

// registers has the service that passes notifications on for us hear of devices, where there is one.
func (t *Turn) registers(u UserID, list ...Registration) {
	if !t.moment.Bouncer {
		return
	}
	var errands []Errand
	for _, x := range list {
		errands = append(errands, Errand{Kind: RegisterErrand, User: u, Registration: &x})
	}
	t.errand(errands)
}
