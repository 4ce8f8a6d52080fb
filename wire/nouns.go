package wire

// The endpoints and events of nouns that have no file of their own.
var (
	callEndpoints []Endpoint

	callEvents []EventKind

	domainEndpoints []Endpoint

	domainEvents []EventKind

	draftEndpoints []Endpoint

	draftEvents []EventKind

	emojiEndpoints []Endpoint

	emojiEvents []EventKind

	exportEndpoints []Endpoint

	exportEvents []EventKind

	inviteEndpoints []Endpoint

	inviteEvents []EventKind

	linkifierEndpoints []Endpoint

	linkifierEvents []EventKind

	navigationEndpoints []Endpoint

	navigationEvents []EventKind

	playgroundEndpoints []Endpoint

	playgroundEvents []EventKind

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
