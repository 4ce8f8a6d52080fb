package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"parley/actors/registry"
	"parley/cmd/internal/handover"
	"parley/cmd/internal/logs"
	"parley/cmd/internal/machine"
	"parley/cmd/internal/server"
)

// wallClock is the clock of the organizations; nil: the system's. Tests set it, because a program's clock cannot be
// changed from outside.
var wallClock func() time.Time

func newServeCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run a server",
		Long: "Run a server. Settings come from defaults, then from the TOML file of --config, then from " +
			"environment variables\n(" +
			registry.EnvironmentPrefix +
			" and the name in capitals, _ for -), then from flags; the last one that is set counts.",
		Args: noArgs,
	}
	file := c.Flags().String("config", "", "configuration file (TOML)")
	c.MarkFlagFilename("config", "toml")
	flags := map[string]string{}
	for _, x := range new(server.Settings).Table() {
		f := c.Flags().VarPF(&settingFlag{setting: x, values: flags}, x.Name, "", x.Meaning)
		if x.Type() == registry.Switch {
			f.NoOptDefVal = "true"
		}
	}
	c.SetUsageFunc(func(c *cobra.Command) error { return serveUsage(c, c.OutOrStderr()) })
	c.RunE = func(c *cobra.Command, _ []string) error {
		path := *file
		if !c.Flags().Changed("config") {
			path = os.Getenv(registry.EnvironmentPrefix + "CONFIG")
		}
		settings, given, err := readSettings(path, flags)
		if err != nil {
			return err
		}
		return serve(settings, given, c.OutOrStdout())
	}
	return c
}

// settingFlag is the flag of a setting. It only stores the text: readSettings parses values in the order of the
// sources.
type settingFlag struct {
	setting registry.Setting
	values  map[string]string // by the name of the setting; shared by all flags
}

// String returns the default value.
func (f *settingFlag) String() string { return f.setting.Default }

// Set stores the text that was given on the command line.
func (f *settingFlag) Set(text string) error {
	f.values[f.setting.Name] = text
	return nil
}

// Type returns the type as the help text shows it.
func (f *settingFlag) Type() string {
	if f.setting.Type() == registry.Switch {
		return "bool"
	}
	return string(f.setting.Type())
}

// serveUsage prints the flags of serve in the groups of the settings.
func serveUsage(c *cobra.Command, out io.Writer) error {
	const width = 120
	groups := map[string]*pflag.FlagSet{}
	for _, g := range registry.SettingGroups() {
		groups[g] = pflag.NewFlagSet(g, pflag.ContinueOnError)
		groups[g].SortFlags = false
	}
	for _, x := range new(server.Settings).Table() {
		groups[x.Group].AddFlag(c.Flags().Lookup(x.Name))
	}
	other := pflag.NewFlagSet("other", pflag.ContinueOnError)
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if _, isSetting := f.Value.(*settingFlag); !isSetting {
			other.AddFlag(f)
		}
	})
	text := "Usage:\n  " + c.UseLine() + "\n\nFlags:\n" + other.FlagUsagesWrapped(width)
	for _, g := range registry.SettingGroups() {
		text += "\n" + g + ":\n" + groups[g].FlagUsagesWrapped(width)
	}
	_, err := io.WriteString(out, text)
	return err
}

// serve runs a server until a signal or a successor stops it. SIGHUP starts a successor; SIGINT and SIGTERM stop the
// server.
func serve(settings server.Settings, given map[string]bool, out io.Writer) (err error) {
	log, err := logs.New(os.Stderr, settings.LogLevel, settings.LogJSON)
	if err != nil {
		return err
	}
	setMemoryLimit(&settings, log)
	tuner := newGCTuner()
	handover, listeners, err := handover.Inherit()
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 4)
	s, err := server.Start(server.Config{
		Settings:  settings,
		Given:     given,
		Log:       log,
		Output:    out,
		Fatal:     newFatal(log),
		Listeners: listeners,
		Handover:  handover,
		Program:   buildVersion(),
		Now:       wallClock,
		BeforeServing: func() {
			signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		},
	})
	if err != nil {
		return err
	}
	tuner.countAnswers(s.AnswerBytes)
	end := make(chan struct{})
	defer close(end)
	go tuner.run(end)
	go tuneProcessors(s.Organizations, end)
	// Memory that only the start needed is garbage now. If many clients wait, they come first.
	release := func() {
		debug.FreeOSMemory()
		if err := releaseProgramPages(); err != nil {
			log.Warn("releasing pages of the program failed", "err", err)
		}
	}
	if s.Crowded() {
		defer time.AfterFunc(server.StartupDelay, release).Stop()
	} else {
		release()
	}
	notifySystemd("READY=1\nMAINPID=" + strconv.Itoa(os.Getpid()))
	err = errors.Join(waitForStop(s, signals, log), s.Stop())
	signal.Stop(signals) // a second signal ends the process, even while clients are receiving responses
	return errors.Join(err, s.Finish())
}

// setMemoryLimit sets the memory limit of the process and logs it.
func setMemoryLimit(settings *server.Settings, log *slog.Logger) {
	limit := machine.ChooseMemoryLimit(settings.MemoryLimit)
	if limit.Bytes == math.MaxInt64 {
		log.Info("no memory limit is known; set memory-limit")
		return
	}
	debug.SetMemoryLimit(limit.Bytes)
	log.Info("memory limit", "MiB", limit.Bytes>>20, "from", limit.Source)
}

// waitForStop returns when the server must stop: at a signal, when a successor is ready, or when the server cannot
// accept connections any more.
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

// notifySystemd reports the state of the process to the service manager, if it has asked for reports.
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
		return // the server also works without a service manager
	}
	defer c.Close()
	c.Write([]byte(state))
}
