package realm_test

import (
	"flag"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	. "parley/actors/realm"
	"parley/actors/realm/realmtest"
)

var dueMessages = flag.Int("due", 100_000, "how many messages become due at once in BenchmarkRetention")

// BenchmarkRetention lets all messages of a large organization become due at once, with 10,000 connected users. It
// deletes, restores and purges them in the turns that the server would run, and reports the CPU time of these turns:
// other requests of the organization wait that long. The goal is 5 ms.
//
//	go test -run XXX -bench Retention -benchtime 1x ./actors/realm
func BenchmarkRetention(b *testing.B) {
	runtime.LockOSThread() // for the clock of the thread's CPU time
	defer runtime.UnlockOSThread()
	for range b.N {
		r := New(1)
		x := realmtest.FillLargeRealm(r)
		x.WriteMessages(*dueMessages)
		x.AddActivity()
		for i := range UserID(realmtest.LargeUsers) {
			r.Replay(&QueueOpened{Queue: Queue{ID: QueueID(fmt.Sprint("queue-", i)), User: x.First + i,
				At: r.Seq() + 1, Idle: MaxIdle, Subscribers: "partial", Caps: 1<<12 - 1}})
		}
		now := int64(1_800_000_000)
		measure := func(name string, done func() bool) {
			var took []time.Duration
			for !done() {
				now++
				r.SetClock(now)
				for {
					began := realmtest.ThreadCPUTime()
					due := r.Due(now)
					if due == nil {
						break
					}
					if _, _, _, err := RunTurn(r, Caller{System: true}, TurnEnv{Now: now}, due); err != nil {
						b.Fatal(err)
					}
					took = append(took, realmtest.ThreadCPUTime()-began)
				}
			}
			slices.Sort(took)
			b.Logf("%s: %d turns, median %v, p99 %v, longest %v", name, len(took), took[len(took)/2],
				took[len(took)*99/100], took[len(took)-1])
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, name+"-p99-ms")
		}
		r.SetClock(now)
		for r.Due(now) != nil { // marks channels as quiet
			if _, _, _, err := RunTurn(r, Caller{System: true}, TurnEnv{Now: now}, r.Due(now)); err != nil {
				b.Fatal(err)
			}
		}
		r.Replay(&OrganizationChanged{Setting: "message_retention_days", Value: int64(1)})
		measure("delete", func() bool { return r.ArchivedCount() == *dueMessages })
		r.Replay(&OrganizationChanged{Setting: "message_retention_days", Value: int64(-1)})
		restored := 0
		for _, a := range r.ViewAs(Caller{System: true}, now).Archives() {
			if restored < *dueMessages/10 {
				r.Replay(&RestoreBegan{Archive: a.Name, Below: 1 << 40})
				restored += a.Messages
			}
		}
		measure("restore", func() bool { return r.ArchivedCount() == *dueMessages-restored })
		now += 31 * 24 * 3600
		measure("purge", func() bool { return r.ArchivedCount() == 0 })
	}
}
