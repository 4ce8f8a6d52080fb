package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"parley/cmd/internal/server"
)

// serve runs a server until a signal or a successor stops it. SIGHUP starts a successor; SIGINT and SIGTERM stop the
// server.
func serve(args []string, out io.Writer) (err error) {
	settings, err := parseServe(args)
	if err != nil {
		return err
	}
	log, err := server.NewLog(&settings, os.Stderr)
	if err != nil {
		return err
	}
	tuner := newGCTuner()
	handover, listeners, err := server.InheritHandover()
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 4)
	s, err := server.Start(server.Config{
		Settings:  settings,
		Log:       log,
		Output:    out,
		Fatal:     newFatal(log),
		Listeners: listeners,
		Handover:  handover,
		BeforeServing: func() {
			signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		},
	})
	if err != nil {
		return err
	}
	end := make(chan struct{})
	defer close(end)
	go tuner.run(end)
	// Memory that only the start needed is garbage now. If many clients wait, they come first.
	if s.Crowded() {
		defer time.AfterFunc(server.StartupDelay, debug.FreeOSMemory).Stop()
	} else {
		debug.FreeOSMemory()
	}
	notifySystemd("READY=1\nMAINPID=" + strconv.Itoa(os.Getpid()))
	err = errors.Join(waitForStop(s, signals, log), s.Stop())
	signal.Stop(signals) // a second signal ends the process, even while clients are receiving responses
	return errors.Join(err, s.Finish())
}

// waitForStop returns when the server must stop: at a signal, when a successor is ready, or when the server cannot accept
// connections any more.
func waitForStop(s *server.Server, signals <-chan os.Signal, log *slog.Logger) error {
	for {
		select {
		case err := <-s.AcceptErrors():
			return err
		case <-s.Successor():
			s.Yield()
			log.Info("stopping: the successor takes over")
			return nil
		case sig := <-signals:
			if sig == syscall.SIGHUP {
				if _, err := s.StartSuccessor(); err != nil {
					log.Error("starting a successor failed; this process continues", "err", err)
				}
				continue
			}
			notifySystemd("STOPPING=1")
			log.Info("stopping", "signal", sig.String())
			return nil
		}
	}
}

// Exit codes: exitError after a command or a start that failed; exitFatal after a server ended itself because it could
// not store data any more. Starting it again recovers.
const (
	exitError = 1
	exitFatal = 2
)

// newFatal returns a function that ends the process at once and prints the reason. Nothing is acknowledged afterwards;
// everything that was acknowledged is on disk.
func newFatal(log *slog.Logger) func(error) {
	var once sync.Once
	return func(err error) {
		once.Do(func() {
			log.Error("cannot store data; the process ends and acknowledges nothing more", "err", err)
			fmt.Fprintln(os.Stderr, "parley: stopped: "+err.Error())
			os.Exit(exitFatal)
		})
		select {} // another goroutine is ending the process
	}
}

// notifySystemd tells the service manager about the state of the process, if a service manager has asked for it.
func notifySystemd(state string) {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return
	}
	if strings.HasPrefix(path, "@") {
		path = "\x00" + path[1:]
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return // the server can do without
	}
	defer c.Close()
	c.Write([]byte(state))
}

// parseServe reads the settings of `parley serve` with the flags in args.
func parseServe(args []string) (server.Settings, error) {
	fs := flag.NewFlagSet("serve", flag.ContinueOnError)
	file := fs.String("config", os.Getenv(server.EnvironmentPrefix+"CONFIG"), "configuration file (TOML)")
	flags := map[string]string{}
	for i := range server.AllSettings {
		x := &server.AllSettings[i]
		note := func(text string) error {
			flags[x.Name] = text
			return nil
		}
		if x.Type == server.Switch {
			fs.BoolFunc(x.Name, x.Meaning, note)
		} else {
			fs.Func(x.Name, x.Meaning, note)
		}
	}
	if err := fs.Parse(args); err != nil {
		return server.Settings{}, err
	}
	if fs.NArg() > 0 {
		return server.Settings{}, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	return readSettings(*file, flags)
}
