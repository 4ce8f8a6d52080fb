package offsite

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"parley/actors/registry"
	"parley/cmd/internal/datadir"
)

// StatusFile is the name of a file in the data directory with the results of the backups. The command that makes them
// writes it; the server reads it for its metrics, and parley doctor too.
const StatusFile = "backups.json"

// Status is the results of the backups of a data directory.
type Status struct {
	Interval  int64  `json:"interval"` // seconds between backups; 0: they are not made regularly
	Started   int64  `json:"started"`  // Unix seconds when regular backups were started
	Newest    int64  `json:"newest"`   // Unix seconds when the newest backup was begun; 0: there is none
	Place     string `json:"place,omitempty"`
	Name      string `json:"name,omitempty"`
	Files     int64  `json:"files"`
	Bytes     int64  `json:"bytes"` // of the files of the newest backup
	Sent      int64  `json:"sent"`  // bytes that all backups of this directory have sent
	Failures  int64  `json:"failures"`
	Failed    int64  `json:"failed,omitempty"` // Unix seconds of the first failure since the newest backup
	Error     string `json:"error,omitempty"`
	Collected int64  `json:"collected"` // Unix seconds when unused objects were last removed
}

// ReadStatus returns the results of the backups of a data directory. It is the zero value if there are none.
func ReadStatus(data string) (s Status) {
	text, err := os.ReadFile(filepath.Join(data, StatusFile))
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		return Status{}
	}
	return s
}

// write replaces the file.
func (s Status) write(data string) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	path := filepath.Join(data, StatusFile)
	if err := datadir.WriteAndSync(path+".new", append(text, '\n')); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// Every returns the interval of the backups; 0: they are not made regularly.
func (s Status) Every() time.Duration { return time.Duration(s.Interval) * time.Second }

// Overdue returns how long the next backup is overdue: the time since the newest one, or since the start of the
// regular ones, beyond their interval. It is 0 if there are no regular backups.
func (s Status) Overdue(now time.Time) time.Duration {
	if s.Interval == 0 {
		return 0
	}
	return max(0, now.Sub(time.Unix(max(s.Newest, s.Started), 0))-s.Every())
}

// Metrics returns the metrics of the backups.
func (s Status) Metrics() []registry.Metric {
	return []registry.Metric{
		{
			Name:    "parley_backup_newest_timestamp_seconds",
			Meaning: "When the newest backup in a bucket was begun, in Unix time; 0: there is none.",
			Read:    func() int64 { return s.Newest },
		},
		{
			Name:    "parley_backup_interval_seconds",
			Meaning: "Interval of the backups to a bucket; 0: they are not made regularly.",
			Read:    func() int64 { return s.Interval },
		},
		{
			Name:    "parley_backup_overdue_seconds",
			Meaning: "How long the next backup to a bucket is overdue.",
			Read:    func() int64 { return int64(s.Overdue(time.Now()).Seconds()) },
		},
		{
			Name:    "parley_backup_failures",
			Meaning: "Attempts to make a backup in a bucket that failed since the newest one.",
			Read:    func() int64 { return s.Failures },
		},
		{
			Name:    "parley_backup_bytes",
			Meaning: "Size of the files of the newest backup in a bucket.",
			Read:    func() int64 { return s.Bytes },
		},
		{
			Name: "parley_backup_sent_bytes_total", Counter: true,
			Meaning: "Bytes that backups have sent to a bucket.",
			Read:    func() int64 { return s.Sent },
		},
	}
}
