package replicated

import (
	"errors"
	"fmt"
	"io"

	"parley/snapshot"
)

// install replaces the store of a running node. Everything that uses the old store gets snapshot.ErrClosed.
func (n *Node) install(backup io.Reader) error {
	if err := n.failed.get(); err != nil {
		return err
	}
	if err := snapshot.UnpackReplacement(backup, n.dir, n.o.Store); err != nil {
		n.log.Error("installing the backup of another node failed", "err", err)
		return errors.Join(err, n.snapshots.revertInstall())
	}
	if err := n.store.Load().Close(); err != nil {
		return n.failed.fail(err)
	}
	if err := snapshot.Replace(n.dir, n.o.Store); err != nil {
		return n.failed.fail(err)
	}
	store, err := snapshot.Open(n.dir, n.storeOptions())
	if err != nil {
		return n.failed.fail(err)
	}
	if err := n.snapshots.markInstalled(store.Applied()); err != nil {
		return n.failed.fail(errors.Join(err, store.Close()))
	}
	if err := n.loadLevel(store); err != nil {
		return n.failed.fail(errors.Join(err, store.Close()))
	}
	n.installs.Add(1) // before setStore: a caller that sees the new store must also see that it is new
	n.setStore(store)
	n.metaInstalled()
	n.log.Info("installed the backup of another node", "applied", store.Applied())
	return nil
}

// finishInstall installs a backup that an earlier process has received but not installed. When the caller has opened
// the store, it calls markInstalled.
func (n *Node) finishInstall(x *raftSnapshot) error {
	f, err := n.fs.Open(n.fs.PathJoin(n.raftDir(), x.Backup))
	if err != nil {
		return fmt.Errorf("open the backup of another node: %w", err)
	}
	err = snapshot.UnpackReplacement(f, n.dir, n.o.Store)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("the backup of another node is damaged; remove this data directory and join the cluster "+
			"again: %w", err)
	}
	if err := snapshot.Replace(n.dir, n.o.Store); err != nil {
		return err
	}
	return nil
}
