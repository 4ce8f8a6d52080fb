package httpd

import "testing"

// A pause begins when the requests before it have ended, also those that a loop has collected but not passed on yet.
func TestPauseWaitsForRunningRequests(t *testing.T) {
	var p pause
	p.enter()
	for range 2 {
		if !p.tryEnter() {
			t.Fatal("a request is refused without a pause")
		}
	}
	idle := p.begin()
	if p.tryEnter() {
		t.Error("a request was let in during a pause")
	}
	waiting := make(chan struct{})
	go func() {
		p.enter()
		close(waiting)
	}()
	p.leave(2) // as the loop does when it passes its commands on
	select {
	case <-idle:
		t.Error("the pause did not wait for a running request")
	default:
	}
	p.leave(1)
	<-idle
	select {
	case <-waiting:
		t.Error("a request did not wait for the end of the pause")
	default:
	}
	p.end()
	<-waiting
	p.leave(1)
	<-p.begin() // nothing is running
	p.end()
}
