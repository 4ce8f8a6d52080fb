// Package httpd serves the protocol over HTTP: routes, authentication, rate limits, parameters, answers, files and
// pages. It holds no state of the organizations. It identifies the caller, and the realm decides about permissions.
//
//	          park.Server
//	              |
//	     +--------+----------+
//	     | ordinary request  | event poll, message, presence report
//	     v                   v
//	Server.Handle        fastPath            on the loop that read the request
//	     |                   |
//	 serveRoute              |     parameters, endpoint, authentication, rate limit, body
//	     |                   |
//	wire.Endpoint            |     decodes a form, runs a command or a view, renders the answer
//	     |                   |
//	     +--------+----------+
//	              v
//	         wire.Server           the actors
//	              |
//	              v
//	  answer, or park.Parked.Answer later
//
// The contract:
//
//   - A request is handled by at most one endpoint. The order of the checks in serveRoute is part of the protocol,
//     because it decides which error a client sees.
//   - The ordinary path implements every rule. The fast path only serves requests that these rules clearly accept, and
//     leaves all others to the ordinary path.
//   - Nothing of a fasthttp.RequestCtx outlives its handler. Parameters are copied.
//   - All memory that requests can take is bounded: see the constants named Max..., and park.Config for bodies and
//     connections.
package httpd
