package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"golang.org/x/sys/unix"
)

// readPassword reads a line with a password. If in is a terminal, it asks for the password on prompts and does not show
// the typed characters.
func readPassword(in io.Reader, prompts io.Writer) (string, error) {
	show, err := hideTyping(in)
	if err != nil {
		return "", err
	}
	if show != nil {
		fmt.Fprint(prompts, "Password: ")
		interrupted := make(chan os.Signal, 1)
		signal.Notify(interrupted, os.Interrupt)
		done := make(chan struct{})
		go func() {
			select {
			case <-interrupted:
				show()
				os.Exit(exitError)
			case <-done:
			}
		}()
		defer func() {
			close(done)
			signal.Stop(interrupted)
			show()
			fmt.Fprintln(prompts)
		}()
	}
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && line == "" {
		return "", fmt.Errorf("read the password from standard input: %w", err)
	}
	return strings.TrimRight(line, "\r\n"), nil
}

// hideTyping lets a terminal not show typed characters, until the returned function is called. The function is nil if
// in is not a terminal.
func hideTyping(in io.Reader) (show func(), err error) {
	f, ok := in.(*os.File)
	if !ok {
		return nil, nil
	}
	fd := int(f.Fd())
	state, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return nil, nil // not a terminal
	}
	hidden := *state
	hidden.Lflag &^= unix.ECHO
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, &hidden); err != nil {
		return nil, fmt.Errorf("hide the password at the terminal: %w", err)
	}
	return func() { unix.IoctlSetTermios(fd, unix.TCSETS, state) }, nil
}
