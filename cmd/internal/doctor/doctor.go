package doctor

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Config is the subject of an examination. Empty values are not set up, so they are not examined.
type Config struct {
	Data, URL, Listen, DebugListen, TrustedProxies string

	TLSCert, TLSKey, ACME string

	SMTPHost, SMTPUser, SMTPPassword, SMTPFrom, SMTPTLS string
	SMTPPort                                            int
	DKIMName, DKIMText                                  string // the DNS record of the key that signs emails

	APNsKey, FCMAccount, Bouncer string

	Bucket  func(ctx context.Context) error // writes, reads and removes an object; nil: files are in the data directory
	Backups string                          // folder or file of the backups
	MinFree uint64                          // bytes below which the server stores no files
	Demo    bool

	SettingsError error // why the server refuses the settings; nil: it does not

	// Roots are the trusted certificate authorities; nil: those of the system. Tests replace these and the next ones.
	Roots         *x509.CertPool
	Dial          func(ctx context.Context, network, address string) (net.Conn, error)
	LookupTXT     func(ctx context.Context, name string) ([]string, error)
	Now           func() time.Time
	FreeBytes     func(dir string) (uint64, error)
	SyncTime      func(dir string) (time.Duration, error)
	OpenFiles     func() (uint64, error)
	ClockSynced   func() (bool, error)
	ListenBacklog func() (int, error)
}

// Finding is the result of one examination.
type Finding struct {
	Check  string // name of the examination
	Fault  string // "": none
	Remedy string // of the fault
	Note   string // the state, if there is no fault
}

// checkTimeout limits one examination: a name server or mail server may not answer.
const checkTimeout = 10 * time.Second

// checks are the examinations in the order of the report.
var checks = []struct {
	name string
	run  func(ctx context.Context, c *Config) Finding
}{
	{"settings", checkSettings},
	{"exposure", checkExposure},
	{"DNS", checkDNS},
	{"TLS", checkTLS},
	{"TLS files", checkTLSFiles},
	{"SMTP", checkSMTP},
	{"mail DNS", checkMailDNS},
	{"clock", checkClock},
	{"disk space", checkSpace},
	{"disk speed", checkSync},
	{"open files", checkOpenFiles},
	{"connections", checkBacklog},
	{"push", checkPush},
	{"bucket", checkBucket},
	{"backups", checkBackups},
}

// Examine runs all examinations at the same time and returns their results in a fixed order.
func Examine(ctx context.Context, c Config) []Finding {
	c.complete()
	out := make([]Finding, len(checks))
	var wg sync.WaitGroup
	for i, x := range checks {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, checkTimeout)
			defer cancel()
			out[i] = x.run(ctx, &c)
			out[i].Check = x.name
		})
	}
	wg.Wait()
	return out
}

// Report prints the results and returns the number of faults.
func Report(out io.Writer, list []Finding) (faults int) {
	for _, f := range list {
		if f.Fault == "" {
			fmt.Fprintf(out, "ok     %-12s %s\n", f.Check, f.Note)
			continue
		}
		faults++
		fmt.Fprintf(out, "FAULT  %-12s %s\n       %-12s remedy: %s\n", f.Check, f.Fault, "", f.Remedy)
	}
	return faults
}

func ok(format string, args ...any) Finding { return Finding{Note: fmt.Sprintf(format, args...)} }

func fault(remedy, format string, args ...any) Finding {
	return Finding{Fault: fmt.Sprintf(format, args...), Remedy: remedy}
}
