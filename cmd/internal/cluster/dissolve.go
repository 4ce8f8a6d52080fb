package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"parley/snapshot"
	"parley/snapshot/replicated"
	"parley/wire/peer"
)

// dissolvedFolder is the name of the membership folder while it is being deleted.
const dissolvedFolder = folder + ".dissolved"

// Dissolve turns the data directory of a stopped core into that of a single server. The organizations, event queues and
// keys are kept, the membership is removed. It returns the number of entries of the replicated log that the store did
// not contain yet. Without acceptLoss the core must be the only one with a vote.
func Dissolve(data string, acceptLoss bool) (applied uint64, err error) {
	d, err := OpenDirectory(data)
	if err != nil {
		return 0, err
	}
	if d.Role != peer.Core {
		return 0, fmt.Errorf("%s is the data directory of an edge, which stores nothing: delete it", data)
	}
	has, err := replicated.HasLog(data)
	if err != nil {
		return 0, err
	}
	if has {
		applied, err = replicated.Dissolve(data, replicated.Options{ID: d.Node, Address: d.PeerListen,
			Store: snapshot.Options{Kept: snapshot.FollowedKept}}, acceptLoss)
		var others *replicated.OtherVotersError
		if errors.As(err, &others) {
			return 0, fmt.Errorf("%w: remove the other cores first with parley cluster remove, while a majority runs. "+
				"If they are lost for ever, --accept-loss makes this copy the only one; they must never start again",
				others)
		}
		if err != nil {
			return 0, err
		}
	}
	dissolved := filepath.Join(data, dissolvedFolder)
	if err := os.RemoveAll(dissolved); err != nil {
		return applied, err
	}
	if err := os.Rename(d.path, dissolved); err != nil {
		return applied, err
	}
	return applied, os.RemoveAll(dissolved)
}
