package bench

import (
	"fmt"
	"syscall"
	"time"
)

// upgradeLimit is the longest time a successor may take.
const upgradeLimit = 60 * time.Second

// scheduleUpgrade has the server replaced by its successor in the middle of the phase. Clients get no warning: a
// missing answer or a closed connection counts as at any other time.
func (r *run) scheduleUpgrade(p *Phase) {
	r.loop.At(r.loop.Now()+seconds(p.Upgrade), func() {
		if r.server.cmd == nil || r.server.successorPID != 0 {
			r.ledger.addViolation("setup", "a phase that upgrades the server needs --self and can happen only once")
			return
		}
		begun := r.loop.Now()
		if err := r.server.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			r.ledger.addViolation("setup", "SIGHUP: %v", err)
			return
		}
		r.logf("upgrade requested at %.1f s", (begun - r.meter.begin).Seconds())
		r.loop.Every(time.Millisecond, func() bool {
			select {
			case err := <-r.server.exited:
				r.server.exited <- err
				if err := r.server.findSuccessor(); err != nil {
					r.ledger.addViolation("upgrade", "%v: %s", err, r.server.logTail())
					return false
				}
				r.sampler.setPID(r.server.pid)
				r.result.add(Figure{Name: "upgrade_s", Unit: "s", Value: (r.loop.Now() - begun).Seconds(),
					Note: "from the request to the predecessor's exit"})
				return false
			default:
			}
			if r.loop.Now()-begun > upgradeLimit {
				r.ledger.addViolation("upgrade", "no successor after %v: %s", upgradeLimit, r.server.logTail())
				return false
			}
			return true
		})
	})
}

// upgradeFigures adds the longest waits of the phase, of senders and of pollers, and the number of failed requests.
func (r *run) upgradeFigures(p *Phase, m *meter) {
	add := func(name string, h interface{ ValueAtQuantile(float64) int64 }) {
		r.result.add(Figure{Name: p.Name + "." + name + "_p999", Unit: "ms", Value: ms(h.ValueAtQuantile(99.9))})
	}
	if h := m.kinds[kindSend].latency; h != nil {
		add("send", h)
	}
	add("seen", m.seen)
	var failed int64
	for k := range m.kinds {
		for _, n := range m.kinds[k].status {
			failed += n
		}
	}
	r.result.add(Figure{Name: p.Name + ".failed", Unit: "", Value: float64(failed),
		Note: fmt.Sprintf("requests of %d pollers and the senders without a successful answer",
			len(r.pollers))})
}

// findSuccessor finds the process that took over the listener.
func (s *server) findSuccessor() error {
	pid := listeningPid(s.addr)
	if pid == 0 {
		return fmt.Errorf("the server exited without a successor")
	}
	s.pid, s.successorPID = pid, pid
	return nil
}
