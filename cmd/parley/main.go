// Command parley is a realtime team-chat server that speaks the Zulip REST and events API, with its tools.
package main

import (
	"fmt"
	"os"

	"parley/bench"
	"parley/wire"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "parley: "+err.Error())
		os.Exit(exitError)
	}
}

const usage = `usage: parley COMMAND …

  serve                          serve; parley serve --help lists the settings
  realm create|list|digest|slowest|close|reopen
                                 organizations of a running or a stopped server
  user create|list|api-key|password|grant
                                 accounts of one of them
  backup FILE                    of a running or a stopped server
  restore FILE DIR [--upto N]    a data directory from a backup, to its end or to an earlier fact
  verify FILE                    prove that a backup is whole and replays
  export FILE [--realm NAME]     an organization of a running or a stopped server, as lines of JSON
  import FILE [--realm NAME]     an exported organization into a stopped server's data directory, or a new one
  upgrade                        a running server gives way to the program file as it is now, unnoticed
  log print|check|replay DIR     look into a stopped server's data directory
  search rebuild DIR             make a stopped server's full-text indexes anew
  openapi                        what the server takes and answers, as an OpenAPI 3.1 document
  bench                          load harness; parley bench help
`

func run(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("no command\n%s", usage)
	}
	switch args[0] {
	case "serve":
		return serve(args[1:], os.Stdout)
	case "realm", "user":
		return runOperator(args[0], args[1:], os.Stdin, os.Stdout)
	case "backup":
		return runBackup(args[1:], os.Stdout)
	case "restore":
		return runRestore(args[1:], os.Stdin, os.Stdout)
	case "verify":
		return runVerify(args[1:], os.Stdin, os.Stdout)
	case "export":
		return runExport(args[1:], os.Stdout)
	case "import":
		return runImport(args[1:], os.Stdin, os.Stdout)
	case "upgrade":
		return runUpgrade(args[1:], os.Stdout)
	case "log":
		return runLog(args[1:], os.Stdout)
	case "search":
		return runSearchRebuild(args[1:], os.Stdout)
	case "openapi":
		_, err := os.Stdout.Write(wire.OpenAPI())
		return err
	case "bench":
		os.Exit(bench.Main(args[1:], os.Stdout, os.Stderr))
	case "help", "--help", "-h":
		fmt.Print(usage)
		return nil
	}
	return fmt.Errorf("unknown command %q\n%s", args[0], usage)
}
