package actors

import (
	"context"
	"net"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"parley/snapshot"
	"parley/snapshot/replicated"
)

// benchSenders is how many clients send at a time: enough that many sends share a commit.
const benchSenders = 64

// BenchmarkClusterSend measures sends on a real disk, each acknowledged when it is durable: by a single node, by a
// cluster of one voter, and by one of three in this process. cpu-µs/op is the processor time of all nodes.
func BenchmarkClusterSend(b *testing.B) {
	for _, nodes := range []int{0, 1, 3} {
		name := "single"
		if nodes > 0 {
			name = strconv.Itoa(nodes) + "-voters"
		}
		b.Run(name, func(b *testing.B) { benchmarkSends(b, nodes) })
	}
}

func benchmarkSends(b *testing.B, nodes int) {
	srv := openSender(b, nodes)
	people := createOrganization(b, srv, "ann", "bo")
	cpu := processorTime(b)
	b.ResetTimer()
	began := time.Now()
	var senders sync.WaitGroup
	for k := range benchSenders {
		senders.Go(func() {
			for i := k; i < b.N; i += benchSenders {
				_, err := sendAs(srv, people[0], people[1], "", "a message of usual length, as people write them")
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	senders.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "sends/s")
	b.ReportMetric(float64(processorTime(b)-cpu)/float64(time.Microsecond)/float64(b.N), "cpu-µs/op")
}

// processorTime returns the processor time of this process.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// openSender opens a single node, or the nodes of a cluster, and returns the server that owns the organizations.
func openSender(b *testing.B, nodes int) *Server {
	b.Helper()
	dir := b.TempDir()
	if nodes == 0 {
		s, err := snapshot.Open(dir, snapshot.Options{})
		if err != nil {
			b.Fatal(err)
		}
		srv := openServer(b, snapshot.Disk{Store: s})
		b.Cleanup(func() { s.Close() })
		b.Cleanup(func() { closeAfterBench(b, srv) })
		return srv
	}
	var owner *Server
	var first *replicated.Node
	for i := range nodes {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		o := replicated.Options{ID: strconv.Itoa(i), Address: l.Addr().String(), Links: benchLinks{l},
			Store: snapshot.Options{FS: vfs.Default, Kept: snapshot.FollowedKept}}
		data := filepath.Join(dir, o.ID)
		if i == 0 {
			err = replicated.Bootstrap(data, o)
		} else {
			err = replicated.PrepareJoin(data, o)
		}
		if err != nil {
			b.Fatal(err)
		}
		n, err := replicated.Open(data, o)
		if err != nil {
			b.Fatal(err)
		}
		srv := openServerWith(b, n.Journal(), Options{Cluster: n.Journal(), Fatal: func(error) {}})
		b.Cleanup(func() { n.Close() })
		b.Cleanup(func() { closeAfterBench(b, srv) })
		leads := make(chan bool, 1)
		if i == 0 {
			n.OnLeadership(func(on bool) { srv.SetLeader(on); leads <- on })
			<-leads
			owner, first = srv, n
			continue
		}
		n.OnLeadership(srv.SetLeader)
		if err := first.Add(o.ID, o.Address); err != nil {
			b.Fatal(err)
		}
		if err := first.Promote(o.ID); err != nil {
			b.Fatal(err)
		}
	}
	return owner
}

// benchLinks dials loopback connections.
type benchLinks struct{ net.Listener }

func (benchLinks) Dial(to string, timeout time.Duration) (net.Conn, error) {
	return net.DialTimeout("tcp", to, timeout)
}

func closeAfterBench(b *testing.B, srv *Server) {
	if err := srv.Close(context.Background()); err != nil {
		b.Error(err)
	}
}
