package main

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// openTerminal returns both ends of a new terminal: that of a person, and that of a program.
func openTerminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("the machine has no terminals: ", err)
	}
	t.Cleanup(func() { person.Close() })
	if err := unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("the machine has no terminals: ", err)
	}
	t.Cleanup(func() { program.Close() })
	return person, program
}

// A command that needs a password asks for it at a terminal, and does not show it.
func TestPasswordPrompt(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	if out, code := runParley("realm", "create", "--name", "Example", "--data", data); code != 0 {
		t.Fatal(out)
	}
	person, program := openTerminal(t)
	c := parleyCommand("user", "create", "--email", "olive@example.org", "--name", "Olive", "--password", "-", "--data",
		data)
	c.Stdin, c.Stdout, c.Stderr = program, program, program
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	screen := bufio.NewReader(person)
	shown, err := screen.ReadString(':') // it asks before anything is typed
	if err != nil || shown != "Password:" {
		t.Fatalf("the command shows %q, %v", shown, err)
	}
	if _, err := person.WriteString("mellow-harbour-17\n"); err != nil {
		t.Fatal(err)
	}
	for !strings.Contains(shown, "email: olive@example.org") && !strings.Contains(shown, "parley:") {
		line, err := screen.ReadString('\n')
		if err != nil {
			t.Fatalf("%q, then %v", shown, err)
		}
		shown += line
	}
	if err := c.Wait(); err != nil || !strings.Contains(shown, "api_key: ") || strings.Contains(shown, "harbour") {
		t.Errorf("%v: the terminal shows %q", err, shown)
	}
	state, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
	if err != nil || state.Lflag&unix.ECHO == 0 {
		t.Errorf("the terminal does not show what is typed afterwards: %v", err)
	}
}
