// Command parley is a realtime team-chat server that speaks the Zulip REST and events API, with its tools.
package main

import (
	"fmt"
	"os"

	"parley/bench"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "parley: "+err.Error())
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("usage: parley serve …")
	}
	switch args[0] {
	case "serve":
		return serve(args[1:])
	case "bench":
		os.Exit(bench.Main(args[1:], os.Stdout, os.Stderr))
	}
	return fmt.Errorf("unknown command %q", args[0])
}
