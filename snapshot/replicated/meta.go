package replicated

import (
	"parley/snapshot"
)

// SetMeta stores a small value of the cluster itself, such as the list of its members, on every node. It returns when a
// majority of the voters have it. The error is a realm.ErrMoved if this node is not the leader.
func (n *Node) SetMeta(key string, value []byte) error {
	r := n.propose([]snapshot.LogOp{{Meta: key, Value: value}})[0]
	return snapshot.Moved(r.Err)
}

// Meta returns a value; nil if there is none.
func (n *Node) Meta(key string) ([]byte, error) { return n.store.Load().Meta(key) }

// OnMeta calls fn with the present value of a key, if there is one, and with the new value after every change. fn must
// neither block nor modify the value.
func (n *Node) OnMeta(key string, fn func([]byte)) error {
	n.metaMu.Lock()
	defer n.metaMu.Unlock()
	if n.onMeta == nil {
		n.onMeta = map[string]func([]byte){}
	}
	n.onMeta[key] = fn
	value, err := n.Meta(key)
	if err == nil && value != nil {
		fn(value)
	}
	return err
}

// metaChanged calls the functions of OnMeta for applied entries.
func (n *Node) metaChanged(list []snapshot.LogEntry) {
	for i := range list {
		for _, op := range list[i].Ops {
			if op.Meta == "" {
				continue
			}
			n.levelChanged(&op)
			n.metaMu.Lock()
			if fn := n.onMeta[op.Meta]; fn != nil {
				fn(append([]byte{}, op.Value...))
			}
			n.metaMu.Unlock()
		}
	}
}

// metaInstalled calls the functions of OnMeta after the installation of a backup.
func (n *Node) metaInstalled() {
	n.metaMu.Lock()
	defer n.metaMu.Unlock()
	for key, fn := range n.onMeta {
		value, err := n.Meta(key)
		if err != nil {
			n.failed.fail(err)
			return
		}
		if value != nil {
			fn(value)
		}
	}
}
