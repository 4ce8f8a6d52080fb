package server

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
)

// A taken port is explained with the process that has it and with the commands that choose another.
func TestTakenPortNamesTheProcess(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := &Server{}
	s.Settings.Listen = l.Addr().String()
	err = s.listen()
	port := l.Addr().(*net.TCPAddr).Port
	for _, part := range []string{fmt.Sprintf("process %d (", os.Getpid()), fmt.Sprintf("on port %d already", port),
		fmt.Sprintf("--listen 127.0.0.1:%d", port+1), fmt.Sprintf("make run PORT=%d", port+1)} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not say %q", err, part)
		}
	}
}

// The service manager starts a server again as often as needed: one that found no space starts when there is some.
func TestUnitFileHasNoLimitOfStarts(t *testing.T) {
	unit, err := os.ReadFile("../../../.deploy/parley.service")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"StartLimitIntervalSec=0", "Restart=on-failure"} {
		if !strings.Contains("\n"+string(unit), "\n"+line+"\n") {
			t.Errorf("parley.service has no line %s", line)
		}
	}
	if strings.Contains(string(unit), "StartLimitBurst") {
		t.Error("parley.service has a limit of starts")
	}
}
