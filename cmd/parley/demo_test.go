package main

import (
	"net/http"
	"regexp"
	"testing"
)

var demoKey = regexp.MustCompile(`curl -su (\S+):(\S+) `)

// TestDemoPrintsAccountsAtEachStart starts a demo organization twice. Both starts print an example request whose key is
// valid, also after the kill.
func TestDemoPrintsAccountsAtEachStart(t *testing.T) {
	data := t.TempDir()
	for start := 1; start <= 2; start++ {
		p := startProgram(t, parleyCommand("serve", "--data", data, "--listen", "127.0.0.1:0", "--demo"))
		url := p.serving()
		login := demoKey.FindStringSubmatch(p.output())
		if login == nil {
			t.Fatalf("start %d prints no example request", start)
		}
		r, err := http.NewRequest("GET", url+"/api/v1/users/me", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.SetBasicAuth(login[1], login[2])
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Errorf("start %d: the printed key got %s", start, answer.Status)
		}
		p.kill()
	}
}
