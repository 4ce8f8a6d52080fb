package server

import "parley/cmd/internal/datadir"

// Names of other packages as the permission matrix has them.
var (
	newSigner           = datadir.NewSigner
	newSignatureChecker = datadir.NewSignatureChecker
)
