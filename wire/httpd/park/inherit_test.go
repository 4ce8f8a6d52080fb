//go:build unix

package park

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/valyala/fasthttp"
	"golang.org/x/sys/unix"
)

// runSuccessor is the successor in TestStartSuccessor and the service in TestSocketActivation. Both run this test
// binary again. It begins to serve its inherited listener when the named pipe PARK_SUCCESSOR has a byte, and ends with
// the pipe.
func runSuccessor() {
	pipe := os.Getenv("PARK_SUCCESSOR")
	if pipe == "" {
		return
	}
	if pid := os.Getenv("PARK_ACTIVATED"); pid != "" {
		os.Setenv("LISTEN_PID", strconv.Itoa(os.Getpid()))
		os.Setenv("LISTEN_FDS", pid)
	}
	lns, err := InheritListeners()
	if err != nil || len(lns) != 1 {
		fmt.Fprintln(os.Stderr, "successor:", lns, err)
		os.Exit(1)
	}
	if again, err := InheritListeners(); again != nil || err != nil || os.Getenv("LISTEN_FDS") != "" {
		fmt.Fprintln(os.Stderr, "successor: inherits twice")
		os.Exit(1)
	}
	s := New(Config{Handler: func(ctx *fasthttp.RequestCtx) { ctx.WriteString("new") }})
	start, err := os.Open(pipe)
	if err != nil {
		fmt.Fprintln(os.Stderr, "successor:", err)
		os.Exit(1)
	}
	start.Read(make([]byte, 1))
	go s.Serve(lns[0])
	io.Copy(io.Discard, start)
	os.Exit(0)
}

func TestStartSuccessor(t *testing.T) {
	o := serve(t, "epoll", Config{}, func(o *pollOwner, ctx *fasthttp.RequestCtx) {
		if string(ctx.Path()) == "/poll" {
			o.handle(ctx)
			return
		}
		ctx.WriteString("old")
	})
	before := o.dial()
	before.get("/")
	before.expectBody("old")
	before.get("/poll")
	p := o.nextPoll()

	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	successor, handoff, err := StartSuccessor(os.Args[0], os.Args[:1],
		append(os.Environ(), "PARK_SUCCESSOR="+pipe, "LISTEN_FDS=7"), o.ln)
	if err != nil {
		t.Fatal(err)
	}
	defer successor.Kill()
	handoff.Close()                                 // this successor takes no connections
	start, err := os.OpenFile(pipe, os.O_WRONLY, 0) // waits until the successor opens it
	if err != nil {
		t.Fatal(err)
	}
	c := o.dial() // both could accept it, but the successor does not serve yet
	c.get("/")
	c.expectBody("old")
	c.Close()

	down := make(chan error)
	go func() { down <- o.Shutdown(timeoutContext(t)) }()
	receive(t, o.goneCalls, "the poll to be dropped")
	if p.Answer(200, nil) {
		t.Error("answered after gone")
	}
	if err := receive(t, down, "Shutdown"); err != nil {
		t.Fatal(err)
	}
	waiting := o.dial() // no process serves, but the connection is not refused
	waiting.get("/")
	start.Write([]byte{1})
	waiting.expectBody("new")
	start.Close()
	if state, err := successor.Wait(); err != nil || !state.Success() {
		t.Error("successor:", state, err)
	}
}

func TestSocketActivation(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f, err := ln.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PARK_SUCCESSOR="+pipe, "PARK_ACTIVATED=1")
	cmd.ExtraFiles = []*os.File{f}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	f.Close()
	ln.Close()
	start, err := os.OpenFile(pipe, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	start.Write([]byte{1})
	c := (&pollOwner{t: t, ln: ln}).dial()
	c.get("/")
	c.expectBody("new")
	start.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func TestInheritListenersWithout(t *testing.T) {
	for name, env := range map[string][2]string{"nothing": {"", ""}, "another's": {"1", "3"}} {
		t.Setenv("LISTEN_PID", env[0])
		t.Setenv("LISTEN_FDS", env[1])
		if lns, err := InheritListeners(); lns != nil || err != nil {
			t.Errorf("%s: %v %v", name, lns, err)
		}
	}
	for _, count := range []string{"x", "-1", "1000"} {
		t.Setenv(listenersEnv, count)
		if lns, err := InheritListeners(); lns != nil || err == nil {
			t.Errorf("%q: %v %v", count, lns, err)
		}
	}
}

func TestStartSuccessorErrors(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if _, _, err := StartSuccessor("/bin/true", []string{"true"}, nil, plainListener{ln}); err == nil {
		t.Error("a listener without a file was accepted")
	}
	if _, _, err := StartSuccessor("/no/such/program", []string{"none"}, nil, ln); err == nil {
		t.Error("a missing program was started")
	}
}
