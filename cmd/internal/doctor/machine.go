package doctor

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/cmd/internal/offsite"

	"golang.org/x/sys/unix"
)

const (
	// maxSync is the longest median time of one sync to disk. A send waits for one, and users begin to notice
	// 20 ms with the network's time added.
	maxSync = 20 * time.Millisecond
	// syncTries is how many syncs are measured.
	syncTries = 15
	// syncBytes is the size of one sync: about one batch of facts.
	syncBytes = 4096
	// minOpenFiles is how many files the server may open at least: one for each connection.
	minOpenFiles = 10_000
	// minBacklog is how many connections the kernel keeps until the server accepts them: as many come after a restart.
	minBacklog = 1024
	// maxBackupAge is the largest age of the newest backup: a day and some hours of delay.
	maxBackupAge = 30 * time.Hour
)

// complete sets the functions that tests have not replaced.
func (c *Config) complete() {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Dial == nil {
		c.Dial = new(net.Dialer).DialContext
	}
	if c.LookupTXT == nil {
		c.LookupTXT = net.DefaultResolver.LookupTXT
	}
	if c.FreeBytes == nil {
		c.FreeBytes = freeBytes
	}
	if c.SyncTime == nil {
		c.SyncTime = syncTime
	}
	if c.OpenFiles == nil {
		c.OpenFiles = func() (uint64, error) {
			var l unix.Rlimit
			err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l)
			return l.Max, err
		}
	}
	if c.ClockSynced == nil {
		c.ClockSynced = func() (bool, error) {
			state, err := unix.Adjtimex(&unix.Timex{})
			return state != unix.TIME_ERROR, err
		}
	}
	if c.ListenBacklog == nil {
		c.ListenBacklog = func() (int, error) {
			text, err := os.ReadFile("/proc/sys/net/core/somaxconn")
			if err != nil {
				return 0, err
			}
			return strconv.Atoi(strings.TrimSpace(string(text)))
		}
	}
}

func checkClock(_ context.Context, c *Config) Finding {
	synced, err := c.ClockSynced()
	if err != nil {
		return ok("the kernel does not say whether the clock is synchronized: %v", err)
	}
	if !synced {
		return fault("start a time service, such as systemd-timesyncd or chrony", "the clock of this machine is not "+
			"synchronized")
	}
	return ok("synchronized")
}

func freeBytes(dir string) (uint64, error) {
	var s unix.Statfs_t
	err := unix.Statfs(dir, &s)
	return s.Bavail * uint64(s.Bsize), err
}

func checkSpace(_ context.Context, c *Config) Finding {
	free, err := c.FreeBytes(c.Data)
	if err != nil {
		return fault("create the data directory or correct --data", "%s: %v", c.Data, err)
	}
	if free < 2*c.MinFree {
		return fault("free or add disk space; below disk-min-free no files are stored", "%s has %d MiB of free space, "+
			"disk-min-free is %d MiB", c.Data, free>>20, c.MinFree>>20)
	}
	return ok("%d MiB are free", free>>20)
}

// syncTime returns the median time of writing a little and syncing it.
func syncTime(dir string) (median time.Duration, err error) {
	f, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	var took []time.Duration
	for range syncTries {
		began := time.Now()
		if _, err := f.Write(make([]byte, syncBytes)); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

func checkSync(_ context.Context, c *Config) Finding {
	took, err := c.SyncTime(c.Data)
	if err != nil {
		return fault("run this as the server's user or as root", "cannot write to %s: %v", c.Data, err)
	}
	if took > maxSync {
		return fault("move the data directory to an SSD with protection against power loss, or to a faster volume",
			"one sync to disk takes %v; every send waits for one", took.Round(10*time.Microsecond))
	}
	return ok("one sync to disk takes %v", took.Round(10*time.Microsecond))
}

func checkOpenFiles(_ context.Context, c *Config) Finding {
	n, err := c.OpenFiles()
	if err != nil {
		return ok("the limit is not known: %v", err)
	}
	if n < minOpenFiles {
		return fault("set LimitNOFILE=200000 in the unit, or ulimit -n", "a process may open only %d files, and each "+
			"connection is one", n)
	}
	return ok("a process may open %d files", n)
}

func checkBacklog(_ context.Context, c *Config) Finding {
	n, err := c.ListenBacklog()
	if err != nil {
		return ok("the limit is not known: %v", err)
	}
	if n < minBacklog {
		return fault("sysctl -w net.core.somaxconn=4096", "the kernel keeps only %d connections until the server "+
			"accepts them", n)
	}
	return ok("the kernel keeps %d connections until the server accepts them", n)
}

func checkBackups(_ context.Context, c *Config) Finding {
	if s := offsite.ReadStatus(c.Data); c.Backups == "" && s.Interval > 0 {
		return checkBucketBackups(s, c.Now())
	}
	if c.Backups == "" {
		return ok("not examined: --backups names the folder")
	}
	var newest fs.FileInfo
	err := filepath.WalkDir(c.Backups, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil && (newest == nil || cmp.Compare(info.ModTime().UnixNano(), newest.ModTime().UnixNano()) > 0) {
			newest = info
		}
		return err
	})
	remedy := "run parley backup daily, and parley verify on its result"
	switch {
	case err != nil:
		return fault(remedy, "%v", err)
	case newest == nil:
		return fault(remedy, "%s has no backup", c.Backups)
	}
	if age := c.Now().Sub(newest.ModTime()); age > maxBackupAge {
		return fault(remedy, "the newest backup, %s, is %d hours old", newest.Name(), int(age.Hours()))
	}
	return ok("%s is of %s", newest.Name(), newest.ModTime().UTC().Format(time.RFC3339))
}

// contains checks that a file has a text that files of its kind have.
func contains(path, want string) error {
	data, err := os.ReadFile(path)
	if err == nil && !bytes.Contains(data, []byte(want)) {
		err = fmt.Errorf("%s has no %s", path, want)
	}
	return err
}

// checkBucketBackups examines the backups that parley backup --to makes regularly.
func checkBucketBackups(s offsite.Status, now time.Time) Finding {
	newest := "never"
	if s.Newest > 0 {
		newest = time.Unix(s.Newest, 0).UTC().Format(time.RFC3339)
	}
	switch {
	case s.Error != "":
		return fault("mend the reason; parley backup tries again by itself", "the last %d attempts to make a backup "+
			"in %s failed, the newest one is of %s: %s", s.Failures, s.Place, newest, s.Error)
	case s.Overdue(now) > s.Every():
		return fault("start parley-backup.service, or see its log", "a backup is made every %v, but the newest "+
			"one is of %s", s.Every(), newest)
	}
	return ok("%s in %s is of %s", s.Name, s.Place, newest)
}
