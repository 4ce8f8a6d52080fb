package httpd

import (
	"bytes"
	"net"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"
)

// headerCluster is a cluster whose owner is at the other end of a listener.
type headerCluster struct {
	Cluster
	owner *fasthttputil.InmemoryListener
}

func (c headerCluster) NewRequest() string           { return "edge-1" }
func (c headerCluster) DialOwner() (net.Conn, error) { return c.owner.Dial() }

// A client cannot send the headers that only nodes send: the owner gets each of those that the node sets once, with the
// value of the node, and no other.
func TestClientSendsNoNodeHeaders(t *testing.T) {
	l := fasthttputil.NewInmemoryListener()
	defer l.Close()
	got := make(chan []string, 1)
	go fasthttp.Serve(l, func(ctx *fasthttp.RequestCtx) {
		var list []string
		for k, v := range ctx.Request.Header.All() {
			if bytes.HasPrefix(k, []byte(nodeHeaderPrefix)) {
				list = append(list, string(k)+"="+string(v))
			}
		}
		got <- list
	})
	c := headerCluster{owner: l}
	s := &Server{options: Options{Cluster: c}, owner: newOwnerClient(c.DialOwner)}
	var request fasthttp.Request
	request.SetRequestURI("/user_uploads/1/x")
	request.Header.SetHost("localhost")
	for _, name := range []string{remoteHeader, requestHeader, realmHeader, seqHeader, nodeHeaderPrefix + "Other",
		strings.ToLower(nodeHeaderPrefix) + "another"} {
		request.Header.Add(name, "client")
		request.Header.Add(name, "client again")
	}
	var ctx fasthttp.RequestCtx
	ctx.Init(&request, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}, nil)
	if err := s.streamToOwner(&ctx, 7); err != nil {
		t.Fatal(err)
	}
	list := strings.Join(<-got, " ")
	if strings.Contains(list, "client") || strings.Count(list, "=") != 3 ||
		!strings.Contains(list, realmHeader+"=7") || !strings.Contains(list, requestHeader+"=edge-1") {
		t.Errorf("the owner gets %s", list)
	}
}
