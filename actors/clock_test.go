package actors

import (
	"strings"
	"testing"

	"parley/actors/presence"
	"parley/actors/realm"
	"parley/wire"
)

// What a jump of the wall clock means. Queues, heartbeats and budgets of requests go by a clock that nobody sets: a jump
// means nothing to them. What has a date goes by the wall clock: reminders and scheduled messages are due when it says so
// (a message that is ten minutes late by then fails, and its author is told), invitations and signed addresses end when it
// says so and are good again when it was wrong. Presence that lies in the future is brought back to now.

const day = 86400

// newClockRun is a tale in which only the test acts.
func newClockRun(t *testing.T) *seededRun {
	x := newSeededRun(t, newSeededBase(t), 1)
	x.open()
	for _, u := range x.base.people {
		x.register(u, realm.MaxIdle)
	}
	x.settleAll()
	return x
}

// settleAll lets everything under way come to its end.
func (x *seededRun) settleAll() {
	x.runUntilIdle()
	x.collectAnswers()
}

// mustDo is a command that must succeed.
func mustDo[A any](x *seededRun, u realm.UserID, c realm.Command[A]) (out A) {
	x.t.Helper()
	x.do(u, decideOf(c), func(a answer) {
		if a.err != nil {
			x.t.Fatal(a.err)
		}
		out = a.v.(A)
	})
	x.settleAll()
	return out
}

// fetch asks for what a queue has, and returns the answer.
func (x *seededRun) fetch(q *seededQueue) string {
	r := &seededReply{}
	x.house.Poll(wire.PollRequest{Realm: 1, User: q.user, Queue: q.reg.ID, Last: q.last, DontBlock: true, Reply: r})
	x.runUntilIdle()
	return string(r.body)
}

func (x *seededRun) queueOf(u realm.UserID, idle int64) *seededQueue {
	x.register(u, idle)
	x.settleAll()
	return x.queues[len(x.queues)-1]
}

// jump sets the wall clock, and lets the house notice.
func (x *seededRun) jump(seconds int64) {
	x.wall += seconds
	x.advance(1)
	x.settleAll()
}

func TestClockJumpsEndNoQueue(t *testing.T) {
	for what, jumps := range map[string][]int64{"forward": {day}, "back": {-day}, "there and back": {day, -day, -day, day}} {
		for _, restart := range []bool{false, true} {
			x := newClockRun(t)
			ann := x.base.people[0]
			q, waiting := x.queueOf(ann, 600), x.queueOf(ann, 60)
			poll := &seededReply{}
			x.house.Poll(wire.PollRequest{Realm: 1, User: ann, Queue: waiting.reg.ID, Last: -1, Reply: poll})
			x.settleAll()
			for _, j := range jumps {
				x.jump(j)
				if restart {
					x.crash()
					x.settleAll()
				}
				if a := x.fetch(q); strings.Contains(a, "BAD_EVENT_QUEUE_ID") {
					t.Errorf("%s, restart %v: the queue is gone after a jump of %d s: %s", what, restart, j, a)
				}
			}
			if !restart {
				if poll.answered {
					t.Errorf("%s: a waiting poll was answered because of a jump: %s", what, poll.body)
				}
				x.advance(60)
				x.settleAll()
				if !strings.Contains(string(poll.body), "heartbeat") {
					t.Errorf("%s: no heartbeat within a minute: %s", what, poll.body)
				}
			}
			x.advance(599)
			x.settleAll()
			if a := x.fetch(x.queues[0]); strings.Contains(a, "BAD_EVENT_QUEUE_ID") {
				t.Errorf("%s: another queue went along: %s", what, a)
			}
			x.advance(601)
			x.settleAll()
			if a := x.fetch(q); !strings.Contains(a, "BAD_EVENT_QUEUE_ID") {
				t.Errorf("%s, restart %v: the queue outlives its time: %s", what, restart, a)
			}
		}
	}
}

func TestClockJumpsAndDueWork(t *testing.T) {
	x := newClockRun(t)
	ann, q := x.base.people[0], x.queues[0]
	message := func(text string) realm.SendMessage {
		return realm.SendMessage{ToChannel: true, Channel: x.base.open, Topic: "later", Body: realm.Body{Text: text, HTML: text}}
	}
	sent := mustDo(x, ann, message("remember this"))
	mustDo(x, ann, realm.ScheduleMessage{Message: message("passed over"), At: x.wall + 3600})
	mustDo(x, ann, realm.ScheduleMessage{Message: message("just in time"), At: x.wall + day - 300})
	mustDo(x, ann, realm.ScheduleMessage{Message: message("not yet"), At: x.wall + 2*day})
	mustDo(x, ann, realm.AddReminder{Message: sent.ID, At: x.wall + 3600, Note: "the note", Text: "remember this"})
	owner, minutes := mustDo(x, 0, realm.CreateUser{Email: "owner@example.org", Name: "Owner", Role: realm.Owner, Key: "owner"}), int64(12*60)
	link := mustDo(x, owner, realm.MakeInviteLink{InviteOptions: realm.InviteOptions{Role: realm.Member, Minutes: &minutes}})
	open := func() bool {
		var err error
		x.do(0, func(t *realm.Turn) (any, error) {
			_, err = t.FindInvite(HashKey(link))
			return nil, nil
		}, func(answer) {})
		x.settleAll()
		return err == nil
	}
	if !open() {
		t.Fatal("the link does not open")
	}

	x.jump(-day)
	if texts := x.readableTexts(); !texts["remember this"] || len(texts) > 1 {
		t.Errorf("messages after a jump back: %v", texts)
	}
	if !open() {
		t.Error("a jump back ends an invitation")
	}
	x.jump(2 * day)
	a := x.fetch(q)
	for what, want := range map[string]string{"a message that is due": `"content":"just in time"`, "the failure of one that is a day late": `"failed":true`, "the reminder": "the note"} {
		if !strings.Contains(a, want) {
			t.Errorf("after a jump of a day nobody hears of %s: %s", what, a)
		}
	}
	texts := x.readableTexts()
	if !texts["just in time"] || texts["passed over"] || texts["not yet"] {
		t.Errorf("messages after the jump: %v", texts)
	}
	if open() {
		t.Error("an invitation outlives its date")
	}
	x.crash()
	x.jump(-day)
	if !open() {
		t.Error("the clock was wrong; the invitation is lost")
	}
}

// readableTexts is the texts of all messages.
func (x *seededRun) readableTexts() map[string]bool {
	texts := map[string]bool{}
	for ref := range x.platter.texts {
		b, ok := x.house.Text(1, ref)
		texts[b.Text] = ok
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
