package actors

import (
	"errors"
	"slices"
	"sync/atomic"

	"parley/actors/delivery"
	"parley/actors/owner"
	"parley/actors/realm"
)

// Metrics are the counters and gauges of the whole server. Each is updated where the counted event happens.
type Metrics struct {
	delivery.Metrics
	owner.Counters
	Views, Busy atomic.Int64
	// Messages that went to the archive, came back from it, and were deleted permanently.
	MessagesArchived, MessagesRestored, MessagesPurged atomic.Int64
	// Messages of users by client program: those of usageClients, and all others.
	sent [len(usageClients) + 1]atomic.Int64
}

// usageClients are the client programs whose messages are counted apart. Clients choose their names, so others are
// counted together.
var usageClients = [...]string{"website", "ZulipElectron", "ZulipFlutter", "ZulipMobile", "ZulipMobile/flutter",
	"ZulipTerminal", "ZulipPython", "Internal"}

// otherClients is the label of the messages of other programs.
const otherClients = "other"

// countSent counts a message of a user, as the usage of its organization does.
func (m *Metrics) countSent(f realm.Fact, r *realm.Realm) {
	sent, is := f.(*realm.MessageSent)
	if !is {
		return
	}
	if u := r.Find(sent.Sender); u == nil || u.System {
		return
	}
	i := slices.Index(usageClients[:], sent.Client)
	if i < 0 {
		i = len(usageClients)
	}
	m.sent[i].Add(1)
}

// eachSent passes the numbers of messages by client program.
func (m *Metrics) eachSent(send func(string, float64)) {
	for i := range m.sent {
		name := otherClients
		if i < len(usageClients) {
			name = usageClients[i]
		}
		send(name, float64(m.sent[i].Load()))
	}
}

// countArchive counts the messages that a fact moves to the archive, restores or purges.
func (m *Metrics) countArchive(f realm.Fact) {
	switch f := f.(type) {
	case *realm.MessagesArchived:
		for _, g := range f.Groups {
			m.MessagesArchived.Add(int64(len(g.IDs)))
		}
	case *realm.MessagesRestored:
		m.MessagesRestored.Add(int64(f.IDs.Len()))
	case *realm.MessagesPurged:
		m.MessagesPurged.Add(int64(len(f.IDs)))
	}
}

// RealmMetrics are the gauges of each realm, and the refusals of all.
type RealmMetrics struct {
	InFlight           map[realm.ID]int64 // commands and views in its mailbox or waiting for the disk
	DurableFacts       map[realm.ID]int64 // the number of its last fact on disk
	SnapshotAgeSeconds map[realm.ID]int64 // since its rows were last written, or it was opened
	Waiting            map[realm.ID]int64 // commands that wait because events are late
	DeliveryLag        map[realm.ID]int64 // the expected wait of new events, in nanoseconds
	RetentionLag       map[realm.ID]int64 // seconds for which messages that are to be deleted have been due
	Archived           map[realm.ID]int64 // messages in the archive
	Usage              realm.UsageNumbers // of all organizations that this node owns, also those that are asleep
	Sleep              SleepStats
	Refusals           map[string]int64 // rejected commands and views, by the protocol's code
}

// RealmMetrics reads the gauges of every realm.
func (srv *Server) RealmMetrics() RealmMetrics {
	m := RealmMetrics{InFlight: map[realm.ID]int64{}, DurableFacts: map[realm.ID]int64{},
		SnapshotAgeSeconds: map[realm.ID]int64{}, RetentionLag: map[realm.ID]int64{}, Archived: map[realm.ID]int64{},
		Waiting: map[realm.ID]int64{}, DeliveryLag: map[realm.ID]int64{}, Refusals: map[string]int64{}}
	m.Sleep = srv.SleepStats()
	now := srv.now().Unix()
	m.Usage = srv.sleepersUsage(now / secondsPerDay)
	srv.eachRealm(func(r *realmHandle) {
		m.InFlight[r.id], m.DurableFacts[r.id] = r.inFlight.Load(), int64(r.durable.Load())
		m.RetentionLag[r.id], m.Archived[r.id] = r.retentionLag.Load(), r.archived.Load()
		m.Waiting[r.id], m.DeliveryLag[r.id] = r.sessions.Flow.State()
		m.SnapshotAgeSeconds[r.id] = max(0, now-r.lastSnapshot.Load())
		if n := r.usage.Load(); n != nil && r.owned.Load() {
			m.Usage.Add(*n)
		}
	})
	srv.refusals.Range(func(code, n any) bool {
		m.Refusals[code.(string)] = n.(*atomic.Int64).Load()
		return true
	})
	return m
}

// countRefusal counts a refusal by its code. There are as many counters as the protocol has codes.
func (srv *Server) countRefusal(err error) {
	code := "INTERNAL"
	var r *realm.Refusal
	if errors.As(err, &r) {
		code = r.Code
	}
	n, ok := srv.refusals.Load(code)
	if !ok {
		n, _ = srv.refusals.LoadOrStore(code, new(atomic.Int64))
	}
	n.(*atomic.Int64).Add(1)
}
