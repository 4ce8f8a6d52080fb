package bench

import (
	"fmt"
	"time"
)

// planKill ends the server in the middle of the phase and starts it again while clients keep coming.
func (r *run) planKill(p *Phase) {
	var kill func()
	kill = func() {
		if r.crowd != nil && r.pool.Under() > 0 {
			// The crowd's model must know every outcome, so the server dies between two actions: what was answered
			// must be there afterwards, whole.
			r.hold = true
			r.loop.At(r.loop.Now()+100*time.Microsecond, kill)
			return
		}
		r.hold = false
		if r.srv.cmd == nil {
			r.led.breach("setup", "a phase that kills the server needs --self")
			return
		}
		r.down, r.firstBack, r.longBacks, r.longestBack = true, 0, 0, 0
		killed := r.loop.Now()
		r.killed, r.busyBefore = killed, r.loop.Busy()
		if err := r.srv.kill9(); err != nil {
			r.led.breach("setup", "kill -9: %v", err)
			return
		}
		r.say("killed -9 at %.1f s", (killed - r.meter.begin).Seconds())
		r.pool.Renew()
		up := make(chan error, 1)
		go func() { up <- r.srv.start() }()
		r.loop.Every(time.Millisecond, func() bool {
			select {
			case err := <-up:
				if err != nil {
					r.led.breach("recovery", "%v", err)
					return false
				}
				r.smp.moved(r.srv.pid)
				r.down, r.recovering = false, true
				r.cameBack(r.loop.Now())
				return false
			default:
				return true
			}
		})
	}
	r.loop.At(r.loop.Now()+seconds(p.Kill), kill)
}

// cameBack watches how long everybody needs to be answered again, once the server listens. Messages keep flowing, so
// being answered means that the poll arrived, found its queue and was told something new.
func (r *run) cameBack(answered time.Duration) {
	// Pollers may have been faster than the process that waits for the server's first answer.
	listening := answered
	if r.firstBack != 0 && r.firstBack < listening {
		listening = r.firstBack
	}
	r.lastBack = max(r.lastBack, listening)
	n := len(r.pollers)
	r.say("answers again after %v; %d of %d pollers still to come back", r.srv.started.Round(time.Millisecond), r.away,
		n)
	r.result.add(Figure{Name: "restart_answers_s", Unit: "s", Value: (listening - r.killed).Seconds(),
		Note: "kill -9 to the first answer, process start and recovery included"})
	// One message everybody hears, so that no poller has to wait for a heartbeat to be counted back.
	if i := r.channelNamed("largest"); i >= 0 && r.crowd == nil {
		r.actSend(i, answered, nil, nil)
	}
	r.loop.Every(10*time.Millisecond, func() bool {
		if r.away > 0 && r.loop.Now()-listening < backLimit {
			return true
		}
		r.recovering = false
		cpu, _ := process{r.srv.pid}.cpu()
		r.result.add(Figure{Name: "all_polling_again_s", Unit: "s", Value: (r.lastBack - listening).Seconds(),
			Note: fmt.Sprintf("from the server's first answer until the last of %d pollers had been told something "+
				"on its old queue, for which the server took %.2f s of CPU since its start, the generator %.2f s since "+
				"the kill", n, cpu.Seconds(), (r.loop.Busy() - r.busyBefore).Seconds())})
		r.result.add(Figure{Name: "back_over_1s", Value: float64(r.longBacks),
			Note: fmt.Sprintf("polls that took longer than %v from being sent to something told, recovery "+
				"included; the longest %v", longBack, r.longestBack.Round(time.Millisecond))})
		if r.away > 0 {
			r.led.breach("recovery", "%d pollers had no answer %v after the server listened", r.away, backLimit)
		}
		return false
	})
}
