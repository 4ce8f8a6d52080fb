package realm

import "parley/actors/realm/ids"

// ownedTable is a table of rows that belong to one user each, with an index by user.
type ownedTable[V any, P interface {
	*V
	owner() UserID
}] struct {
	table[int64, V]
	byOwner map[UserID]*ids.Set
}

func (o *ownedTable[V, P]) init(r *Realm, number uint16) {
	o.table.init(r, number)
	o.byOwner = map[UserID]*ids.Set{}
}

// rebuildIndex rebuilds the index by user after rows were loaded.
func (o *ownedTable[V, P]) rebuildIndex() {
	o.byOwner = map[UserID]*ids.Set{}
	for id, v := range o.all() {
		openSet(o.byOwner, P(v).owner()).Add(id)
	}
}

// put adds or replaces a row. The owner of a row never changes.
func (o *ownedTable[V, P]) put(id int64, v *V) {
	o.table.put(id, v)
	openSet(o.byOwner, P(v).owner()).Add(id)
}

// remove removes an existing row.
func (o *ownedTable[V, P]) remove(id int64) {
	u := P(o.must(id)).owner()
	o.byOwner[u].Remove(id)
	o.table.remove(id)
}

// count returns how many rows a user has.
func (o *ownedTable[V, P]) count(u UserID) int {
	if s := o.byOwner[u]; s != nil {
		return s.Len()
	}
	return 0
}

// list returns copies of a user's rows by ascending id.
func (o *ownedTable[V, P]) list(u UserID) []V {
	out := []V{}
	if s := o.byOwner[u]; s != nil {
		s.Each(func(id int64) bool { out = append(out, *o.must(id)); return true })
	}
	return out
}

// findOwned returns a row of the user, or nil. Rows of other users look nonexistent.
func (o *ownedTable[V, P]) findOwned(u UserID, id int64) *V {
	if v := o.find(id); v != nil && P(v).owner() == u {
		return v
	}
	return nil
}
