package wire

// The endpoints and events of nouns that have no file of their own.
var (
	callEndpoints []Endpoint

	callEvents []EventKind

	exportEndpoints []Endpoint

	exportEvents []EventKind

	profileEvents []EventKind

	storageEvents []EventKind
)
