package realm

// AsyncCommand is a command whose caller does not wait for the result: a callback gets it.
type AsyncCommand struct {
	Realm  ID
	Caller Caller
	CommandWithCallback
}

// CommandWithCallback is a command together with the function that gets its result.
type CommandWithCallback interface {
	Decide(*Turn) (any, error)
	// Done gets the result, once, when the facts it depends on are on disk. It runs in the realm actor, so it must not
	// block: the organization's next answers wait behind it.
	Done(result any, err error)
}
