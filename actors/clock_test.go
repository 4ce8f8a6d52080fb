package actors

import (
	"strings"
	"testing"

	"parley/actors/presence"
	"parley/actors/realm"
	"parley/actors/stream"
	"parley/wire"
)

// A jump of the wall clock has these effects. Event queues, heartbeats and rate limits go by a clock that never jumps,
// so nothing changes for them. Dates go by the wall clock: reminders and scheduled messages are due when it says so (a
// message that is ten minutes late by then fails, and its author is told). Invitations and signed URLs end when it says
// so and are valid again after it was corrected. Presence that is in the future is set to now.
const day = 86400

// newClockRun returns a run in which only the test acts.
func newClockRun(t *testing.T) *seededRun {
	run := newSeededRun(t, newSeededBase(t), 1)
	run.open()
	for _, u := range run.base.people {
		run.register(u, realm.MaxIdle)
	}
	run.settleAll()
	return run
}

// settleAll runs everything that is in progress.
func (run *seededRun) settleAll() {
	run.runUntilIdle()
	run.collectAnswers()
}

// mustDo runs a command that must succeed.
func mustDo[A any](run *seededRun, u realm.UserID, c realm.Command[A]) (out A) {
	run.t.Helper()
	run.do(u, decideOf(c), func(a stream.Result) {
		if a.Err != nil {
			run.t.Fatal(a.Err)
		}
		out = a.Value.(A)
	})
	run.settleAll()
	return out
}

// fetch polls a queue without waiting and returns the answer.
func (run *seededRun) fetch(q *seededQueue) string {
	r := &seededReply{}
	run.srv.Poll(wire.PollRequest{Realm: 1, User: q.user, Queue: q.reg.ID, Last: q.last, DontBlock: true, Reply: r})
	run.runUntilIdle()
	return string(r.body)
}

func (run *seededRun) queueOf(u realm.UserID, idle int64) *seededQueue {
	run.register(u, idle)
	run.settleAll()
	return run.queues[len(run.queues)-1]
}

// jump sets the wall clock and lets the server notice.
func (run *seededRun) jump(seconds int64) {
	run.wallClock += seconds
	run.advance(1)
	run.settleAll()
}

func TestClockJumpsEndNoQueue(t *testing.T) {
	for what, jumps := range map[string][]int64{"forward": {day}, "back": {-day}, "there and back": {day, -day, -day,
		day}} {
		for _, restart := range []bool{false, true} {
			run := newClockRun(t)
			ann := run.base.people[0]
			q, waiting := run.queueOf(ann, 600), run.queueOf(ann, 60)
			poll := &seededReply{}
			run.srv.Poll(wire.PollRequest{Realm: 1, User: ann, Queue: waiting.reg.ID, Last: -1, Reply: poll})
			run.settleAll()
			for _, j := range jumps {
				run.jump(j)
				if restart {
					run.crash()
					run.settleAll()
				}
				if a := run.fetch(q); strings.Contains(a, "BAD_EVENT_QUEUE_ID") {
					t.Errorf("%s, restart %v: the queue is gone after a jump of %d s: %s", what, restart, j, a)
				}
			}
			if !restart {
				if poll.answered {
					t.Errorf("%s: a waiting poll was answered because of a jump: %s", what, poll.body)
				}
				run.advance(60)
				run.settleAll()
				if !strings.Contains(string(poll.body), "heartbeat") {
					t.Errorf("%s: no heartbeat within a minute: %s", what, poll.body)
				}
			}
			run.advance(599)
			run.settleAll()
			if a := run.fetch(run.queues[0]); strings.Contains(a, "BAD_EVENT_QUEUE_ID") {
				t.Errorf("%s: another queue went along: %s", what, a)
			}
			run.advance(601)
			run.settleAll()
			if a := run.fetch(q); !strings.Contains(a, "BAD_EVENT_QUEUE_ID") {
				t.Errorf("%s, restart %v: the queue outlives its time: %s", what, restart, a)
			}
		}
	}
}

func TestClockJumpsAndDueWork(t *testing.T) {
	run := newClockRun(t)
	ann, q := run.base.people[0], run.queues[0]
	message := func(text string) realm.SendMessage {
		return realm.SendMessage{
			ToChannel: true,
			Channel:   run.base.open,
			Topic:     "later",
			Body:      realm.Body{Text: text, HTML: text},
		}
	}
	sent := mustDo(run, ann, message("remember this"))
	mustDo(run, ann, realm.ScheduleMessage{Message: message("passed over"), At: run.wallClock + 3600})
	mustDo(run, ann, realm.ScheduleMessage{Message: message("just in time"), At: run.wallClock + day - 300})
	mustDo(run, ann, realm.ScheduleMessage{Message: message("not yet"), At: run.wallClock + 2*day})
	mustDo(run, ann, realm.AddReminder{
		Message: sent.ID,
		At:      run.wallClock + 3600,
		Note:    "the note",
		Text:    "remember this",
	})
	owner, minutes := mustDo(run, 0, realm.CreateUser{Email: "owner@example.org", Name: "Owner", Role: realm.Owner,
		Key: "owner"}), int64(12*60)
	link := mustDo(run, owner, realm.MakeInviteLink{InviteOptions: realm.InviteOptions{
		Role:    realm.Member,
		Minutes: &minutes,
	}})
	open := func() bool {
		var err error
		run.do(0, func(t *realm.Turn) (any, error) {
			_, err = t.FindInvite(HashKey(link))
			return nil, nil
		}, func(stream.Result) {})
		run.settleAll()
		return err == nil
	}
	if !open() {
		t.Fatal("the link does not open")
	}

	run.jump(-day)
	if texts := run.readableTexts(); !texts["remember this"] || len(texts) > 1 {
		t.Errorf("messages after a jump back: %v", texts)
	}
	if !open() {
		t.Error("a jump back ends an invitation")
	}
	run.jump(2 * day)
	a := run.fetch(q)
	for what, want := range map[string]string{"a message that is due": `"content":"just in time"`,
		"the failure of one that is a day late": `"failed":true`, "the reminder": "the note"} {
		if !strings.Contains(a, want) {
			t.Errorf("after a jump of a day nobody hears of %s: %s", what, a)
		}
	}
	texts := run.readableTexts()
	if !texts["just in time"] || texts["passed over"] || texts["not yet"] {
		t.Errorf("messages after the jump: %v", texts)
	}
	if open() {
		t.Error("an invitation outlives its date")
	}
	run.crash()
	run.jump(-day)
	if !open() {
		t.Error("the clock was wrong; the invitation is lost")
	}
}

// readableTexts returns the texts of all messages.
func (run *seededRun) readableTexts() map[string]bool {
	texts := map[string]bool{}
	for ref := range run.contents.texts {
		b, ok, err := run.srv.Text(1, ref)
		texts[b.Text] = ok && err == nil
	}
	return texts
}

func TestPresenceAfterClockSetBack(t *testing.T) {
	b := presence.New()
	b.Report(7, true, 1_700_000_000+day)
	row, _ := b.Report(7, true, 1_700_000_000)
	if row.Active != 1_700_000_000 || row.Connected != 1_700_000_000 {
		t.Errorf("active at %d, connected at %d: in the future", row.Active, row.Connected)
	}
	if row, _ := b.Report(7, true, 1_700_000_000+60); row.Active != 1_700_000_000+60 {
		t.Errorf("a minute later active at %d", row.Active)
	}
}
