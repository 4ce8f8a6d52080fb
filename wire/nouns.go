package wire

// The endpoints and events of nouns that have no file of their own.
var (
	botEndpoints []Endpoint

	botEvents []EventKind

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

	fieldEndpoints []Endpoint

	fieldEvents []EventKind

	inviteEndpoints []Endpoint

	inviteEvents []EventKind

	linkifierEndpoints []Endpoint

	linkifierEvents []EventKind

	navigationEndpoints []Endpoint

	navigationEvents []EventKind

	playgroundEndpoints []Endpoint

	playgroundEvents []EventKind

	profileEndpoints []Endpoint

	profileEvents []EventKind

	pushEndpoints []Endpoint

	pushEvents []EventKind

	reminderEndpoints []Endpoint

	reminderEvents []EventKind

	scheduledEndpoints []Endpoint

	scheduledEvents []EventKind

	snippetEndpoints []Endpoint

	snippetEvents []EventKind

	storageEndpoints []Endpoint

	storageEvents []EventKind

	uploadEndpoints []Endpoint

	uploadEvents []EventKind
)
