package actors

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"parley/actors/admission"
	"parley/actors/delivery"
	"parley/actors/queue"
	"parley/actors/realm"
	"parley/actors/stream"
)

// stuckReply is the Reply of a client whose answer takes until release is closed: its session actor waits.
type stuckReply struct{ release chan struct{} }

func (r stuckReply) Answer(int, ...[]byte) bool { <-r.release; return true }

// overloadStage is an organization with delivery.DefaultDeliveryLag, whose events are delivered when release is closed.
type overloadStage struct {
	*testing.T
	srv         *Server
	ann, bo, cy realm.UserID
	bot         realm.UserID
	queue       realm.QueueID
	last        int64
	release     chan struct{}
}

func runOverloaded(t *testing.T, play func(s *overloadStage)) {
	runSynctest(t, func(t *testing.T) {
		d := &slowDisk{diskContents: newDiskContents()}
		srv := openServerWith(t, d, Options{DeliveryLag: delivery.DefaultDeliveryLag})
		people := createOrganization(t, srv, "ann", "bo", "cy")
		s := &overloadStage{T: t, srv: srv, ann: people[0], bo: people[1], cy: people[2]}
		bot, err := srv.Turn(1, realm.Caller{User: s.ann, Client: "test"}, func(tn *realm.Turn) (any, error) {
			return realm.CreateBot{
				Name:      "Bot",
				Email:     "bot@example.org",
				ShortName: "bot",
				Type:      realm.GenericBot,
			}.Decide(
				tn,
			)
		})
		if err != nil {
			t.Fatal(err)
		}
		s.bot = bot.(realm.BotMade).ID
		q := mustCall(t, srv, s.bo, "POST /register", params{"event_types": []string{"message"}})
		s.queue, s.last = realm.QueueID(q["queue_id"].(string)), int64(q["last_event_id"].(float64))
		play(s)
		closeServer(t, srv)
	})
}

// stall makes the delivery of the next event wait for s.release.
func (s *overloadStage) stall() {
	s.release = make(chan struct{})
	s.srv.Poll(queue.PollRequest{Realm: 1, User: s.bo, Queue: s.queue, Last: s.last, Reply: stuckReply{s.release}})
	synctest.Wait()
	if a := <-s.send(s.ann, "the one that is stuck"); a.status != 200 {
		s.Fatalf("answered %d %v", a.status, a.body)
	}
	time.Sleep(delivery.DefaultDeliveryLag)
	synctest.Wait()
}

func (s *overloadStage) send(u realm.UserID, text string) responseChan {
	a := call(s.srv, u, "POST /messages", params{"type": "stream", "to": "one", "topic": "t", "content": text})
	synctest.Wait() // so that requests arrive in their order
	return a
}

// order returns the names of answers by the ids of their messages.
func (s *overloadStage) order(answers map[string]responseChan) (names []string) {
	ids := map[string]float64{}
	for name, c := range answers {
		select {
		case a := <-c:
			if a.status != 200 {
				s.Fatalf("%s is answered %d %v", name, a.status, a.body)
			}
			ids[name] = a.body["id"].(float64)
		default:
			s.Fatalf("%s has no answer", name)
		}
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return int(ids[a] - ids[b]) })
	return names
}

// While events are delivered late, commands wait for their turns. Then accounts take turns, however many commands one
// of them has sent, and people come before bots. Views do not wait.
func TestCommandsWaitForDelivery(t *testing.T) {
	runOverloaded(t, func(s *overloadStage) {
		s.stall()
		answers := map[string]responseChan{}
		answers["bot 1"], answers["bot 2"] = s.send(s.bot, "x"), s.send(s.bot, "x")
		for i := range 4 {
			name := fmt.Sprint("ann ", i+1)
			answers[name] = s.send(s.ann, "x")
		}
		answers["cy 1"], answers["cy 2"] = s.send(s.cy, "x"), s.send(s.cy, "x")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		for name, c := range answers {
			if len(c) > 0 {
				t.Errorf("%s did not wait", name)
			}
		}
		if waiting, lag := s.srv.find(1).sessions.Flow.State(); waiting != 8 || lag < int64(5*time.Second) {
			t.Errorf("%d commands wait, the lag is %d ns", waiting, lag)
		}
		mustCall(t, s.srv, s.ann, "GET /messages", params{"anchor": "newest", "num_before": 1, "num_after": 0})
		close(s.release)
		synctest.Wait()
		time.Sleep(time.Second)
		got := fmt.Sprint(s.order(answers))
		if want := "[ann 1 cy 1 ann 2 cy 2 ann 3 ann 4 bot 1 bot 2]"; got != want {
			t.Errorf("order %s, want %s", got, want)
		}
		if n := s.srv.Metrics.CommandsWaiting.Load(); n != 0 {
			t.Errorf("%d commands are counted as waiting", n)
		}
		if a := <-s.send(s.ann, "afterwards"); a.status != 200 {
			t.Errorf("afterwards: %d %v", a.status, a.body)
		}
	})
}

// A command is refused only if its account has too many that wait, or if it has waited too long. A refused message is
// not stored.
func TestWaitingCommandsAreBounded(t *testing.T) {
	runOverloaded(t, func(s *overloadStage) {
		s.stall()
		var flood []responseChan
		for range delivery.MaxWaitingOfAccount {
			flood = append(flood, s.send(s.ann, "flood"))
		}
		refused := func(what string, c responseChan) {
			t.Helper()
			select {
			case a := <-c:
				if a.status != 503 || a.body["code"] != "SERVER_OVERLOADED" {
					t.Errorf("%s: %d %v", what, a.status, a.body)
				}
			default:
				t.Errorf("%s is not refused", what)
			}
		}
		refused("one too many", s.send(s.ann, "flood"))
		time.Sleep(delivery.MaxCommandWait / 2)
		late := s.send(s.cy, "late")
		time.Sleep(delivery.MaxCommandWait/2 + 2*time.Second)
		synctest.Wait()
		for _, c := range flood {
			refused("a command that waited too long", c)
		}
		if len(late) > 0 {
			t.Error("a command that waited for a shorter time has an answer")
		}
		if n := s.srv.Metrics.CommandsRefused.Load(); n != delivery.MaxWaitingOfAccount+1 {
			t.Errorf("%d commands are counted as refused", n)
		}
		close(s.release)
		synctest.Wait()
		time.Sleep(time.Second)
		if a := <-late; a.status != 200 {
			t.Errorf("the other one: %d %v", a.status, a.body)
		}
		page := params{"anchor": "newest", "num_before": 100, "num_after": 0, "apply_markdown": false}
		found := mustCall(t, s.srv, s.ann, "GET /messages", page)["messages"].([]any)
		for _, m := range found {
			if m.(map[string]any)["content"] == "flood" {
				t.Error("a refused message is stored")
			}
		}
	})
}

// A client that registers while events wait finds its queue: the answer leaves behind the events before it.
func TestRegisterDuringOverload(t *testing.T) {
	runOverloaded(t, func(s *overloadStage) {
		s.release = make(chan struct{})
		s.srv.Poll(queue.PollRequest{Realm: 1, User: s.bo, Queue: s.queue, Last: s.last, Reply: stuckReply{s.release}})
		synctest.Wait()
		s.send(s.ann, "stuck")
		late := make([]realm.UserID, delivery.DeliveryWindow) // recipients that the stuck session actor does not reach
		for i := range late {
			late[i] = s.bo
		}
		s.srv.find(1).sessions.Flow.Release(&stream.Output{Publications: []realm.Publication{
			{Ephemeral: true, Notices: []realm.Notice{{To: late, Event: &realm.Ticked{}}}}}})
		registered := call(s.srv, s.cy, "POST /register", params{"event_types": []string{"message"}})
		synctest.Wait()
		if len(registered) > 0 {
			t.Error("answered before the session actor knows the queue")
		}
		close(s.release)
		synctest.Wait()
		a := <-registered
		mustCall(t, s.srv, s.cy, "GET /events", params{"queue_id": a.body["queue_id"],
			"last_event_id": a.body["last_event_id"], "dont_block": true})
	})
}

// After a restart, clients find many events in their queues and have needed some time to come back. That does not make
// commands wait.
func TestCommandsDoNotWaitAfterRestart(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		d := &slowDisk{diskContents: newDiskContents()}
		srv := openServerWith(t, d, Options{DeliveryLag: delivery.DefaultDeliveryLag})
		people := createOrganization(t, srv, "ann", "bo")
		ann, bo := people[0], people[1]
		q := mustCall(t, srv, bo, "POST /register", params{"event_types": []string{"message"}})
		send := func() responseChan {
			return call(srv, ann, "POST /messages",
				params{"type": "stream", "to": "one", "topic": "t", "content": "x"})
		}
		for range admission.MinBacklog {
			if a := <-send(); a.status != 200 {
				t.Fatalf("before: %d %v", a.status, a.body)
			}
		}
		closeServer(t, srv)
		srv = openServerWith(t, d, Options{DeliveryLag: delivery.DefaultDeliveryLag})
		<-send()
		time.Sleep(2 * time.Second)
		poll := params{"queue_id": q["queue_id"], "last_event_id": q["last_event_id"]}
		if n := len(mustCall(t, srv, bo, "GET /events", poll)["events"].([]any)); n <= admission.MinBacklog {
			t.Errorf("%d events", n)
		}
		for range 10 {
			sent := send()
			synctest.Wait()
			if len(sent) == 0 {
				t.Fatal("a message waits although no events are late")
			}
			time.Sleep(50 * time.Millisecond)
		}
		closeServer(t, srv)
	})
}
