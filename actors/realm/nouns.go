package realm

// nounTables are the tables of the smaller nouns; each is declared in its noun's file and numbered here once, for ever.
type nounTables struct{}

func (n *nounTables) init(r *Realm) {}

// index rebuilds what the smaller nouns derive from their rows.
func (n *nounTables) index(r *Realm) {}

// alerted is whose alert words occur in a message, of those who will have a row of it.
func (t *Turn) alerted(f *MessageSent) []UserID { return nil }

// mutersOf is who muted the sender of a message.
func (t *Turn) mutersOf(f *MessageSent) []UserID { return nil }

// checkDomain refuses addresses outside the organization's domains.
func (v View) checkDomain(email string) error { return nil }

// due is what the smaller nouns want done at a time: scheduled messages, reminders, expiries. nil is nothing.
func (n *nounTables) due(r *Realm, now int64) func(*Turn) (any, error) { return nil }
