package park_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/valyala/fasthttp"

	"parley/wire/httpd/park"
)

// A handler parks a poll and returns. Another goroutine answers the poll when there is an event.
func ExampleServer_Park() {
	polls := make(chan *park.Parked, 1)
	var server *park.Server
	server = park.New(park.Config{Handler: func(ctx *fasthttp.RequestCtx) {
		polls <- server.Park(ctx, func() { fmt.Println("the client has left") })
	}})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	go server.Serve(listener)
	defer server.Shutdown(context.Background())

	go func() {
		poll := <-polls // an event happens
		poll.Answer(200, []byte(`{"events":[`), []byte(`{"id":1}`), []byte(`]}`))
	}()
	res, err := http.Get("http://" + listener.Addr().String() + "/events")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	fmt.Println(res.StatusCode, string(body), err)
	// Output: 200 {"events":[{"id":1}]} <nil>
}
