package wire

// The endpoints and events of nouns that have no file of their own.
var (
	callEndpoints []Endpoint

	callEvents []EventKind

	draftEndpoints []Endpoint

	draftEvents []EventKind

	emojiEndpoints []Endpoint

	emojiEvents []EventKind

	exportEndpoints []Endpoint

	exportEvents []EventKind

	inviteEndpoints []Endpoint

	inviteEvents []EventKind

	navigationEndpoints []Endpoint

	navigationEvents []EventKind

	profileEvents []EventKind

	pushEndpoints []Endpoint

	pushEvents []EventKind

	reminderEndpoints []Endpoint

	reminderEvents []EventKind

	scheduledEndpoints []Endpoint

	scheduledEvents []EventKind

	snippetEndpoints []Endpoint

	snippetEvents []EventKind

	storageEvents []EventKind

	uploadEndpoints []Endpoint

	uploadEvents []EventKind
)
