package actors

import (
	"fmt"
	"runtime"
	"testing"

	"parley/actors/realm"
	"parley/actors/realm/realmtest"
)

const (
	benchSessions  = 10_000
	benchUserAgent = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 " +
		"Safari/537.36"
	maxSessionMemory = 1 << 10 // bytes of one session in the organization and in the table of accounts
	benchLoginTime   = 1_795_000_000
)

// BenchmarkLogins measures the lookup of a caller by API key, and by one of ten thousand browser sessions, and how much
// memory a session takes.
//
//	go test -run - -bench Logins ./actors
func BenchmarkLogins(b *testing.B) {
	r := realm.New(1)
	large := realmtest.FillLargeRealm(r)
	table := newAccountTable()
	table.addRealm(r)
	before := liveMemory()
	secret := func(i int) string { return fmt.Sprintf("%032d", i) }
	for i := range benchSessions {
		s := realm.BrowserSession{ID: int64(i + 1), Hash: HashKey(secret(i)), Opened: benchLoginTime,
			Used: benchLoginTime, Agent: benchUserAgent + fmt.Sprint(i%realmtest.LargeUsers), Address: "192.0.2.17"}
		user := large.First + realm.UserID(i%realmtest.LargeUsers)
		r.Replay(&realm.BrowserSessionOpened{User: user, Session: s})
		table.update(r, user)
	}
	memory := float64(liveMemory()-before) / benchSessions
	if memory > maxSessionMemory {
		b.Errorf("a session takes %.0f bytes, want at most %d", memory, maxSessionMemory)
	}
	srv := &Server{accounts: table}
	keys := make([]string, benchSessions)
	for i := range keys {
		keys[i] = fmt.Sprintf("k%031d", i)
		table.byKey[HashKey(keys[i])] = table.byUser[userKey{1, large.First + realm.UserID(i%realmtest.LargeUsers)}]
	}
	b.Run("key", func(b *testing.B) {
		b.ReportAllocs()
		for i := range b.N {
			if _, ok := srv.AccountByKeyHash(HashKey(keys[i%benchSessions])); !ok {
				b.Fatal("no account")
			}
		}
	})
	secrets := make([]string, benchSessions)
	for i := range secrets {
		secrets[i] = secret(i)
	}
	b.Run("session", func(b *testing.B) {
		b.ReportAllocs()
		for i := range b.N {
			if _, s := srv.AccountBySessionHash(HashKey(secrets[i%benchSessions])); s == nil {
				b.Fatal("no session")
			}
		}
		b.ReportMetric(memory, "B/session")
	})
	runtime.KeepAlive(r)
}

// liveMemory returns the bytes of all objects that are in use.
func liveMemory() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
