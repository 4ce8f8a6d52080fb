package mailbox

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// recordingInvoker handles messages, each in a millisecond, and records them.
type recordingInvoker struct {
	actor.MessageInvoker
	mu  *sync.Mutex
	all *[]string
}

func (r recordingInvoker) InvokeUserMessage(m any) {
	time.Sleep(time.Millisecond)
	r.mu.Lock()
	defer r.mu.Unlock()
	*r.all = append(*r.all, m.(string))
}

func (r recordingInvoker) InvokeSystemMessage(m any) { r.InvokeUserMessage(m) }

// Organizations take turns: one with many messages for many session actors delays another one by one turn.
func TestOrganizationsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := &sessionPool{}
		pool.wake.L = &pool.mu
		var mu sync.Mutex
		var handled []string
		mailbox := func(turns *realmTurns) *sessionMailbox {
			m := &sessionMailbox{}
			m.RegisterHandlers(recordingInvoker{mu: &mu, all: &handled}, turns)
			return m
		}
		busy, quiet := &realmTurns{pool: pool, idle: time.Now()}, &realmTurns{pool: pool, idle: time.Now()}
		var sessionActors []*sessionMailbox
		for k := range 3 {
			m := mailbox(busy)
			sessionActors = append(sessionActors, m)
			for i := range 20 {
				m.PostUserMessage(fmt.Sprintf("busy %d.%d", k, i))
			}
		}
		one := mailbox(quiet)
		one.PostUserMessage("quiet 1")
		one.PostUserMessage("quiet 2")
		one.PostSystemMessage("quiet system")
		if n := sessionActors[0].UserMessageCount(); n != 20 {
			t.Errorf("%d messages wait, want 20", n)
		}
		go pool.work()
		time.Sleep(time.Second)
		synctest.Wait()
		got := strings.Join(handled[:7], ", ")
		if want := "busy 0.0, quiet system, busy 1.0, quiet 1, busy 2.0, quiet 2, busy 0.1"; got != want {
			t.Errorf("handled %s, want %s", got, want)
		}
		if len(handled) != 63 {
			t.Errorf("%d messages handled, want 63", len(handled))
		}
		pool.close()
	})
}

// recordingInvokerOf handles messages, each in the time that it says.
type recordingInvokerOf struct {
	recordingInvoker
	takes time.Duration
}

func (r recordingInvokerOf) InvokeUserMessage(m any) {
	time.Sleep(r.takes)
	r.mu.Lock()
	defer r.mu.Unlock()
	*r.all = append(*r.all, m.(string))
}

// small is how many session actors an organization has in these tests.
const small = 16

// An event of a small organization reaches all its session actors in one turn, also if it has polling clients at each
// of them and so needs more time than a busy organization has at once. When each actor waited for a turn of its own, a
// busy organization delayed the event by sixteen turns.
func TestSmallOrganizationNeedsOneTurn(t *testing.T) {
	for _, takes := range []time.Duration{0, 200 * time.Microsecond} {
		synctest.Test(t, func(t *testing.T) {
			pool := &sessionPool{}
			pool.wake.L = &pool.mu
			var mu sync.Mutex
			var handled []string
			busy, quiet := &realmTurns{pool: pool, idle: time.Now()}, &realmTurns{pool: pool, idle: time.Now()}
			for range small {
				m := &sessionMailbox{}
				m.RegisterHandlers(recordingInvoker{mu: &mu, all: &handled}, busy)
				m.PostUserMessage("busy")
				m.PostUserMessage("busy")
			}
			time.Sleep(200 * takes) // 40 ms without anything to do
			for range small {
				m := &sessionMailbox{}
				m.RegisterHandlers(recordingInvokerOf{recordingInvoker{mu: &mu, all: &handled}, takes}, quiet)
				m.PostUserMessage("quiet")
			}
			go pool.work()
			time.Sleep(time.Second)
			synctest.Wait()
			last := 0
			for i, m := range handled {
				if m == "quiet" {
					last = i
				}
			}
			if last > small {
				t.Errorf("the small organization got through after %d messages: %v", last, handled)
			}
			if len(handled) != 3*small {
				t.Errorf("%d messages handled", len(handled))
			}
			pool.close()
		})
	}
}
