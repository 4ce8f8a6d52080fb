package bench

import (
	"fmt"
	"syscall"
	"time"
)

// upgradeLimit is how long a successor may take before the harness gives it up.
const upgradeLimit = 60 * time.Second

// planUpgrade has the server replaced by its successor in the middle of the phase. Clients are told nothing: an answer
// that does not come, or a connection that ends, counts as at any other time.
func (r *run) planUpgrade(p *Phase) {
	r.loop.At(r.loop.Now()+seconds(p.Upgrade), func() {
		if r.srv.cmd == nil || r.srv.heir != 0 {
			r.led.breach("setup", "a phase that upgrades the server needs --self, and is the only one")
			return
		}
		begun := r.loop.Now()
		if err := r.srv.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			r.led.breach("setup", "SIGHUP: %v", err)
			return
		}
		r.say("upgrade ordered at %.1f s", (begun - r.meter.begin).Seconds())
		r.loop.Every(time.Millisecond, func() bool {
			select {
			case err := <-r.srv.died:
				r.srv.died <- err
				if err := r.srv.succeeded(); err != nil {
					r.led.breach("upgrade", "%v: %s", err, r.srv.tail())
					return false
				}
				r.smp.moved(r.srv.pid)
				r.result.add(Figure{Name: "upgrade_s", Unit: "s", Value: (r.loop.Now() - begun).Seconds(),
					Note: "from the order to the predecessor's end"})
				return false
			default:
			}
			if r.loop.Now()-begun > upgradeLimit {
				r.led.breach("upgrade", "no successor after %v: %s", upgradeLimit, r.srv.tail())
				return false
			}
			return true
		})
	})
}

// upgradeFigures are the phase's longest waits: those who asked, or were to hear, while nobody served.
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
		Note: fmt.Sprintf("requests of %d pollers and the senders that were not answered with success",
			len(r.pollers))})
}

// succeeded takes note of the process that took the listener over.
func (s *server) succeeded() error {
	pid := listeningPid(s.addr)
	if pid == 0 {
		return fmt.Errorf("the server ended and left no successor")
	}
	s.pid, s.heir = pid, pid
	return nil
}
