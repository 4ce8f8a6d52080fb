package realm

// owned is a table of things that belong to one user each, with who has which.
type owned[V any, P interface {
	*V
	owner() UserID
}] struct {
	table[int64, V]
	of map[UserID]*Set
}

func (o *owned[V, P]) init(r *Realm, number uint16) {
	o.table.init(r, number)
	o.of = map[UserID]*Set{}
}

// index rebuilds who has which, after rows were loaded.
func (o *owned[V, P]) index() {
	o.of = map[UserID]*Set{}
	for id, v := range o.all() {
		setOf(o.of, P(v).owner()).Add(id)
	}
}

func (o *owned[V, P]) put(id int64, v *V) {
	o.table.put(id, v)
	setOf(o.of, P(v).owner()).Add(id)
}

func (o *owned[V, P]) remove(id int64) {
	u := P(o.must(id)).owner()
	o.of[u].Remove(id)
	o.table.remove(id)
}

// count is how many things a user has.
func (o *owned[V, P]) count(u UserID) int {
	if s := o.of[u]; s != nil {
		return s.Len()
	}
	return 0
}

// list is a user's things by ascending id.
func (o *owned[V, P]) list(u UserID) []V {
	out := []V{}
	if s := o.of[u]; s != nil {
		s.Each(func(id int64) bool { out = append(out, *o.must(id)); return true })
	}
	return out
}

// mine is a thing of the user's, or nil: other people's things do not exist for him.
func (o *owned[V, P]) mine(u UserID, id int64) *V {
	if v := o.find(id); v != nil && P(v).owner() == u {
		return v
	}
	return nil
}
