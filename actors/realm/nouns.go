package realm

// nounTables are the tables of the smaller nouns; each is declared in its noun's file and numbered here once, for ever.
type nounTables struct {
	// 20-29 people

	// 30-39 channels

	// 40-49 stored items

	// 50-69 organization

	// 70-79 invitations, mail, push, exports

	// 80-89 uploads, pictures
}

func (n *nounTables) init(r *Realm) {
	// people

	// channels

	// stored items

	// organization

	// invitations, mail, push, exports

	// uploads, pictures
}

// index rebuilds what the smaller nouns derive from their rows.
func (n *nounTables) index(r *Realm) {
	// people

	// channels

	// stored items

	// organization

	// invitations, mail, push, exports

	// uploads, pictures
}

// alerted is whose alert words occur in a message, of those who will have a row of it.
func (t *Turn) alerted(f *MessageSent) []UserID { return nil }

// mutersOf is who muted the sender of a message.
func (t *Turn) mutersOf(f *MessageSent) []UserID { return nil }

// mutes is whether one user has muted another.
func (r *Realm) mutes(u, other UserID) bool { return false }

// checkDomain refuses addresses outside the organization's domains.
func (v View) checkDomain(email string) error { return nil }

// due is what the smaller nouns want done at a time: scheduled messages, reminders, expiries. nil is nothing.
func (n *nounTables) due(r *Realm, now int64) func(*Turn) (any, error) {
	for _, due := range []func(*Realm, int64) func(*Turn) (any, error){
		// stored items

		// invitations, mail, push, exports
	} {
		if d := due(r, now); d != nil {
			return d
		}
	}
	return nil
}
