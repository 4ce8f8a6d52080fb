package realm

import "reflect"

// System is the caller of commands that no user has sent.
var System = Caller{System: true, Client: "Internal"}

// Operator is the caller of commands on the command line of the server.
var Operator = Caller{System: true, Client: "Operator"}

// Turns gives a function exclusive access to an organization. It returns when the recorded facts are on disk.
type Turns interface {
	Turn(ID, Caller, func(*Turn) (any, error)) (any, error)
}

// Views runs a function with read access to an organization. It returns when the facts that it could see are on disk.
type Views interface {
	View(ID, Caller, func(View) (any, error)) (any, error)
}

// Execute runs a command in a turn of an organization. The type of the command is its name in metrics.
func Execute[A any](s Turns, id ID, c Caller, cmd Command[A]) (A, error) {
	c.Operation = reflect.TypeOf(cmd).String()
	v, err := s.Turn(id, c, func(t *Turn) (any, error) {
		a, err := cmd.Decide(t)
		return a, err
	})
	a, _ := v.(A)
	return a, err
}
