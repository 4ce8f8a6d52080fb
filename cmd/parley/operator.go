package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"parley/cmd/internal/server"
)

// upgradeTimeout is how long `parley upgrade` waits for the successor to serve.
const upgradeTimeout = 2 * time.Minute

// runOperator is `parley realm …` and `parley user …`.
func runOperator(noun string, args []string, in io.Reader, out io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("usage: parley %s %s", noun, map[string]string{"realm": "create|list|digest|slowest|close|reopen", "user": "create|list|api-key|password|grant"}[noun])
	}
	fs := flag.NewFlagSet(noun+" "+args[0], flag.ContinueOnError)
	data := fs.String("data", environmentOr("DATA", "./data"), "data directory, of a running or a stopped server")
	values := map[string]*string{}
	add := func(name, value, help string) { values[name] = fs.String(name, value, help) }
	add("realm", "", "subdomain of the organization; empty is the root organization")
	only := new(bool)
	switch noun + "-" + args[0] {
	case "realm-create":
		add("name", "", "name of the organization")
	case "user-create":
		add("email", "", "address")
		add("name", "", "full name")
		add("role", "member", "owner, administrator, moderator, member or guest")
		add("password", "", "password; - reads it from standard input")
	case "user-api-key":
		add("email", "", "address")
		fs.BoolVar(only, "only", false, "take back every other key of the account")
	case "user-password":
		add("email", "", "address")
		add("password", "-", "password; - reads it from standard input")
	case "user-grant":
		add("email", "", "address")
		add("create-users", "false", "may create users through the API")
		add("change-emails", "false", "may change addresses of others")
	case "realm-list", "realm-close", "realm-reopen", "realm-digest", "realm-slowest", "user-list":
	default:
		return fmt.Errorf("unknown command %q", noun+" "+args[0])
	}
	if err := fs.Parse(args[1:]); err != nil {
		return err
	}
	send := map[string]string{"only": fmt.Sprint(*only)}
	for k, v := range values {
		send[k] = *v
	}
	if send["password"] == "-" {
		line, err := bufio.NewReader(in).ReadString('\n')
		if err != nil && line == "" {
			return fmt.Errorf("read the password from standard input: %w", err)
		}
		send["password"] = strings.TrimRight(line, "\r\n")
	}
	answer, err := server.Command(*data, noun+"-"+args[0], send)
	if err != nil {
		return err
	}
	printAnswer(out, answer)
	return nil
}

func environmentOr(name, otherwise string) string {
	if v := os.Getenv(server.EnvironmentPrefix + name); v != "" {
		return v
	}
	return otherwise
}

// printAnswer prints an answer: a list as a line each, otherwise a line a field.
func printAnswer(out io.Writer, answer map[string]any) {
	for _, k := range slices.Sorted(maps.Keys(answer)) {
		list, ok := answer[k].([]any)
		if !ok {
			fmt.Fprintf(out, "%s: %v\n", k, answer[k])
			continue
		}
		for _, x := range list {
			row, _ := x.(map[string]any)
			var fields []string
			for _, f := range slices.Sorted(maps.Keys(row)) {
				fields = append(fields, fmt.Sprintf("%s=%v", f, row[f]))
			}
			fmt.Fprintln(out, strings.Join(fields, "  "))
		}
	}
}

// runUpgrade is `parley runUpgrade`: it returns when the successor serves.
func runUpgrade(args []string, out io.Writer) error {
	fs := flag.NewFlagSet("upgrade", flag.ContinueOnError)
	data := fs.String("data", environmentOr("DATA", "./data"), "data directory of a running server")
	if err := fs.Parse(args); err != nil {
		return err
	}
	began := time.Now()
	answer, ran, err := server.RemoteCommand(*data, "upgrade", nil)
	if !ran {
		return fmt.Errorf("no server runs in %s", *data)
	}
	if err != nil {
		return err
	}
	for time.Since(began) < upgradeTimeout {
		info, ran, err := server.RemoteCommand(*data, "server-info", nil)
		if ran && err == nil && info["pid"] == answer["pid"] {
			fmt.Fprintf(out, "process %v, version %v, serves since %.2f s after the order\n", info["pid"], info["version"], time.Since(began).Seconds())
			return nil
		}
		if ran && err == nil && info["successor"] == false {
			return errors.New("the successor ended before it took over; the server's log has the reason, and it continues")
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("process %v did not take over within %v", answer["pid"], upgradeTimeout)
}
