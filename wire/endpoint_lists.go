package wire

// The endpoints and events of nouns that have no file of their own.
var (
	callEvents []EventKind

	profileEvents []EventKind

	storageEvents []EventKind
)
