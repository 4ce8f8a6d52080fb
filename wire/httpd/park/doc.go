// Package park is the connection layer of the HTTP server. fasthttp parses requests and writes ordinary answers. This
// package owns the connections, so that a request can be parked: its handler returns, and the answer follows later
// from any goroutine. In between the connection holds no goroutine, no stack and no buffers, only a few hundred bytes.
// Idle keep-alive connections rest in the same way. The owner of a parked request is notified when its client leaves.
//
// The life of a connection in an epoll:
//
//	accept, or handed off by a predecessor
//	   |
//	   v          input                      head complete, checked
//	resting ---------------> readHead ----------------------------------+
//	   ^   |                                                            |
//	   |   | input that begins like FastPathTargets                   v
//	   |   +-----------------------> FastPath, on the loop          Handler, in a goroutine
//	   |                               |           |                 |        |
//	   |        refused by FastPath    |           | Park            | Park   | returns
//	   |        (to readHead) <--------+           v                 v        v
//	   |                                           parked  <---------+     answer written
//	   |                                             |                        |
//	   |   Parked.Answer: one write without waiting  |                        |
//	   +---------------------------------------------+------------------------+
//	   |
//	   +--> closed: client left (gone is called), timeout, refusal, or Shutdown without a handoff
//	   +--> handed off to the successor: Shutdown after PrepareShutdown with a handoff
//
// The contract:
//
//   - Answers leave a connection in the order of its requests. Requests pipelined behind a parked one wait.
//   - Parked.Answer never blocks. It writes once without waiting. The rest is written in the background, within
//     WriteTimeout and MaxPending, or the connection is dropped. An answer may be lost with its connection even
//     after Answer returned true, so store its content until the client acknowledges it.
//   - A parked request ends once. Either an Answer returns true, or gone is called, or an Answer returns false because
//     the connection failed at that moment; then gone is not called. Every later Answer returns false.
//   - A client that shuts down its sending side while it is parked counts as gone: TCP cannot distinguish it from a
//     client that has left.
//   - A request reaches fasthttp only after a head check that is stricter than fasthttp and net/http (head.go).
//     fasthttp gets exactly one request at a time, framed by this check. So no proxy before this server and no
//     parser in it can read the same bytes as different requests. Refusals are JSON in the protocol's error form,
//     and end the connection.
//   - Bodies are read before the handler runs, and multipart bodies are not parsed. Where Config.StreamsBody says
//     so, the handler reads the body itself from RequestBodyStream: such a request holds buffers but never its whole
//     body. If the handler leaves a part unread, the connection may end with the answer.
//   - Handlers must not hijack connections. Nothing of a RequestCtx, including its Conn, outlives its handler.
//
// On Linux, TCP connections are in an edge-triggered epoll, also those with TLS. Those that repeat a poll are in a
// second one, from which a loop reads a few before it looks for other requests. Other listeners and other systems use
// one blocked goroutine for each connection, with the same API. Decisions and measurements:
// .github/docs/decisions/park.md and fast-path.md.
package park
