package bench

import (
	"fmt"
	"time"
)

// scheduleKill kills the server in the middle of the phase and starts it again while clients reconnect.
func (r *run) scheduleKill(p *Phase) {
	var kill func()
	kill = func() {
		if r.crowd != nil && r.pool.Pending() > 0 {
			// The crowd's model must know each outcome, so the server is killed between two actions: everything that
			// was answered must be there afterwards.
			r.crowdPaused = true
			r.loop.At(r.loop.Now()+100*time.Microsecond, kill)
			return
		}
		r.crowdPaused = false
		if r.server.cmd == nil {
			r.ledger.addViolation("setup", "a phase that kills the server needs --self")
			return
		}
		r.serverDown, r.firstReturn, r.longReturns, r.longestReturn = true, 0, 0, 0
		killed := r.loop.Now()
		r.killedAt, r.busyAtKill = killed, r.loop.Busy()
		if err := r.server.kill(); err != nil {
			r.ledger.addViolation("setup", "kill -9: %v", err)
			return
		}
		r.logf("killed -9 at %.1f s", (killed - r.meter.begin).Seconds())
		r.pool.Reconnect()
		up := make(chan error, 1)
		go func() { up <- r.server.start() }()
		r.loop.Every(time.Millisecond, func() bool {
			select {
			case err := <-up:
				if err != nil {
					r.ledger.addViolation("recovery", "%v", err)
					return false
				}
				r.sampler.setPID(r.server.pid)
				r.serverDown, r.recovering = false, true
				r.watchRecovery(r.loop.Now())
				return false
			default:
				return true
			}
		})
	}
	r.loop.At(r.loop.Now()+seconds(p.Kill), kill)
}

// watchRecovery measures how long it takes until all pollers have an answer, once the server listens. Messages keep
// flowing, so an answer means that the poll arrived, found its queue and got a new event.
func (r *run) watchRecovery(answered time.Duration) {
	// Pollers can be faster than the goroutine that waits for the server's first answer.
	listening := answered
	if r.firstReturn != 0 && r.firstReturn < listening {
		listening = r.firstReturn
	}
	r.lastReturn = max(r.lastReturn, listening)
	n := len(r.pollers)
	r.logf("answers again after %v; %d of %d pollers still without an answer",
		r.server.startTook.Round(time.Millisecond), r.pollersAway,
		n)
	r.result.add(Figure{Name: "restart_answers_s", Unit: "s", Value: (listening - r.killedAt).Seconds(),
		Note: "kill -9 to the first answer, process start and recovery included"})
	// One message to the largest channel, so that no poller has to wait for a heartbeat to count as returned.
	if i := r.channelNamed("largest"); i >= 0 && r.crowd == nil {
		r.startSend(i, answered, nil, nil)
	}
	r.loop.Every(10*time.Millisecond, func() bool {
		if r.pollersAway > 0 && r.loop.Now()-listening < recoveryLimit {
			return true
		}
		r.recovering = false
		cpu, _ := process{r.server.pid}.cpu()
		r.result.add(Figure{Name: "all_polling_again_s", Unit: "s", Value: (r.lastReturn - listening).Seconds(),
			Note: fmt.Sprintf("from the server's first answer until the last of %d pollers got a new event "+
				"on its old queue, during which the server used %.2f s of CPU since its start, the generator %.2f "+
				"s since "+
				"the kill", n, cpu.Seconds(), (r.loop.Busy() - r.busyAtKill).Seconds())})
		r.result.add(Figure{Name: "back_over_1s", Value: float64(r.longReturns),
			Note: fmt.Sprintf("polls that took longer than %v from request to event, recovery "+
				"included; the longest %v", longReturn, r.longestReturn.Round(time.Millisecond))})
		if r.pollersAway > 0 {
			r.ledger.addViolation("recovery", "%d pollers had no answer within %v after the server listened",
				r.pollersAway, recoveryLimit)
		}
		return false
	})
}
