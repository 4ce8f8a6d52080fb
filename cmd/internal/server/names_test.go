package server

import (
	"parley/actors"
	"parley/actors/realm"
	"parley/cmd/internal/datadir"
)

// Names of other packages as the permission matrix has them.
var (
	newSigner           = datadir.NewSigner
	newSignatureChecker = datadir.NewSignatureChecker
	systemCaller        = realm.System
)

func execute[A any](orgs *actors.Server, id realm.ID, c realm.Caller, cmd realm.Command[A]) (A, error) {
	return realm.Execute(orgs, id, c, cmd)
}
