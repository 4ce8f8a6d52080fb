package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// scheduleBackup takes an online backup during the phase and records its duration and size. Its cost for senders is
// the difference to the phase before.
func (r *run) scheduleBackup(p *Phase) {
	r.loop.At(r.loop.Now()+seconds(p.Backup), func() {
		if r.server.cmd == nil {
			r.ledger.addViolation("setup", "a phase with a backup needs --self")
			return
		}
		file := filepath.Join(r.server.dir, "backup")
		began := r.loop.Now()
		done := make(chan error, 1)
		go func() {
			out, err := exec.Command(r.server.exe, "backup", file, "--data",
				filepath.Join(r.server.dir, "data")).CombinedOutput()
			if err != nil {
				err = fmt.Errorf("%w: %s", err, out)
			}
			done <- err
		}()
		r.loop.Every(time.Millisecond, func() bool {
			select {
			case err := <-done:
				if err != nil {
					r.ledger.addViolation("backup", "%v", err)
					return false
				}
				took := r.loop.Now() - began
				var size int64
				if s, err := os.Stat(file); err == nil {
					size = s.Size()
				}
				r.logf("backup of %d MB after %v", size>>20, took.Round(time.Millisecond))
				r.result.add(Figure{Name: "backup_s", Unit: "s", Value: took.Seconds(),
					Note: fmt.Sprintf("%d MB, taken during %d concurrent senders", size>>20, p.Closed)})
				os.Remove(file)
				return false
			default:
				return true
			}
		})
	})
}
