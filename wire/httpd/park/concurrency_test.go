package park

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// TestConcurrentClients combines the scenes of the other tests, all at the same time. Clients poll, post,
// pipeline, split their requests anywhere and leave at any moment, while owners answer early, late or never.
// Every client that stays gets its answers in order, and every parked request ends in exactly one way.
func TestConcurrentClients(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	onEachKind(t, func(t *testing.T, kind string) {
		var answered, refused, left, parked atomic.Int64
		var owners sync.WaitGroup
		o := serve(t, kind, Config{}, func(o *pollOwner, ctx *fasthttp.RequestCtx) {
			text := append([]byte(nil), ctx.QueryArgs().Peek("say")...)
			how := string(ctx.QueryArgs().Peek("how"))
			if how == "plain" {
				ctx.Write(text)
				ctx.Write(ctx.PostBody())
				return
			}
			text = append(text, ctx.PostBody()...)
			parked.Add(1)
			over := new(atomic.Int32) // number of ends
			p := o.Park(ctx, func() {
				left.Add(1)
				if over.Add(1) > 1 {
					t.Error("gone was called after another end")
				}
			})
			answer := func() {
				if !p.Answer(200, text) {
					refused.Add(1)
					return
				}
				answered.Add(1)
				if over.Add(1) > 1 {
					t.Error("answered after another end")
				}
			}
			switch how {
			case "now":
				answer()
			case "soon":
				owners.Go(answer)
			case "late":
				owners.Go(func() {
					for range 50 {
						runtime.Gosched()
					}
					answer()
				})
			}
		})
		var clients sync.WaitGroup
		for id := range 40 {
			clients.Go(func() {
				r := rand.New(rand.NewPCG(seed, uint64(id)))
				for range 4 {
					if err := runClient(o, r, id); err != nil {
						t.Errorf("client %d: %v", id, err)
						return
					}
				}
			})
		}
		clients.Wait()
		waitUntil(t, "every parked request to end", func() bool { return o.Stats().Open == 0 && o.Stats().Parked == 0 })
		owners.Wait() // only now: handlers may have added more until then
		waitUntil(t, "all gone calls", func() bool { return left.Load() == o.Stats().Gone })
		if st := o.Stats(); st.Parks != parked.Load() || st.Answers != answered.Load() || st.Active != 0 ||
			st.Bodies != 0 || st.Pending != 0 {
			t.Errorf("%+v", st)
		}
		t.Logf("%d parked, %d answered, %d refused, %d gone", parked.Load(), answered.Load(), refused.Load(),
			left.Load())
	})
}

// runClient runs one connection from beginning to end.
func runClient(o *pollOwner, r *rand.Rand, id int) error {
	c := o.dial()
	defer c.Close()
	for round := range 30 {
		if r.IntN(40) == 0 { // leave with an answer outstanding
			c.Write([]byte("GET /?how=" + []string{"never", "soon", "late"}[r.IntN(3)] +
				"&say=x HTTP/1.1\r\nHost: x\r\n\r\n"))
			return nil
		}
		var out strings.Builder
		var want []string
		for k := range 1 + r.IntN(4)*r.IntN(2) {
			how := []string{"plain", "now", "soon", "late"}[r.IntN(4)]
			say := fmt.Sprintf("%d.%d.%d;", id, round, k)
			body := strings.Repeat("b", r.IntN(3)*r.IntN(3000))
			switch r.IntN(3) {
			case 0:
				fmt.Fprintf(&out, "GET /?how=%s&say=%s HTTP/1.1\r\nHost: x\r\n\r\n", how, say)
				body = ""
			case 1:
				fmt.Fprintf(&out, "POST /?how=%s&say=%s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", how,
					say, len(body), body)
			case 2:
				fmt.Fprintf(&out, "POST /?how=%s&say=%s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
					how, say)
				for rest := body; rest != ""; {
					n := 1 + r.IntN(len(rest))
					fmt.Fprintf(&out, "%x\r\n%s\r\n", n, rest[:n])
					rest = rest[n:]
				}
				out.WriteString("0\r\n\r\n")
			}
			want = append(want, say+body)
		}
		for rest := out.String(); rest != ""; {
			n := len(rest)
			if r.IntN(2) == 0 {
				n = 1 + r.IntN(n)
			}
			if _, err := c.Write([]byte(rest[:n])); err != nil {
				return err
			}
			rest = rest[n:]
			if r.IntN(4) == 0 {
				runtime.Gosched()
			}
		}
		for _, text := range want {
			resp, err := http.ReadResponse(c.r, nil)
			if err != nil {
				return fmt.Errorf("round %d: %w", round, err)
			}
			got := make([]byte, resp.ContentLength)
			if _, err := io.ReadFull(c.r, got); err != nil {
				return err
			}
			if string(got) != text {
				return fmt.Errorf("round %d: received %.40q, want %.40q", round, got, text)
			}
		}
	}
	return nil
}
