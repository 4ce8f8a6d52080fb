package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// planBackup takes an online backup while the phase runs, and says how long it took and how large it is. What it costs
// those who send shows beside the phase before it.
func (r *run) planBackup(p *Phase) {
	r.loop.At(r.loop.Now()+seconds(p.Backup), func() {
		if r.srv.cmd == nil {
			r.led.breach("setup", "a phase with a backup needs --self")
			return
		}
		file := filepath.Join(r.srv.dir, "backup")
		began := r.loop.Now()
		done := make(chan error, 1)
		go func() {
			out, err := exec.Command(r.srv.exe, "backup", file, "--data",
				filepath.Join(r.srv.dir, "data")).CombinedOutput()
			if err != nil {
				err = fmt.Errorf("%w: %s", err, out)
			}
			done <- err
		}()
		r.loop.Every(time.Millisecond, func() bool {
			select {
			case err := <-done:
				if err != nil {
					r.led.breach("backup", "%v", err)
					return false
				}
				took := r.loop.Now() - began
				var size int64
				if s, err := os.Stat(file); err == nil {
					size = s.Size()
				}
				r.say("backup of %d MB after %v", size>>20, took.Round(time.Millisecond))
				r.result.add(Figure{Name: "backup_s", Unit: "s", Value: took.Seconds(),
					Note: fmt.Sprintf("%d MB, taken while %d hands send", size>>20, p.Closed)})
				os.Remove(file)
				return false
			default:
				return true
			}
		})
	})
}
