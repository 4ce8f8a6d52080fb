package cluster

import (
	"parley/snapshot/codec"
	"parley/wire/httpd"
	"parley/wire/peer"
)

// forwardedSends begins the forwarded messages of another node; see httpd.ForwardedSends.
type forwardedSends struct {
	leader *Leader
	peer   *peer.Peer
	sends  *httpd.ForwardedSends
}

// ShareCalls returns how the short calls of another node begin.
func (c *Leader) ShareCalls(p *peer.Peer) peer.SharedCalls {
	return &forwardedSends{c, p, c.HTTP.NewForwardedSends()}
}

// Begin begins a call if it is a forwarded message that the node may send now.
func (x *forwardedSends) Begin(m []byte, done func(answer []byte, err error)) bool {
	if len(m) == 0 || m[0] != callForward {
		return false
	}
	if _, err := x.leader.permit(x.peer, m, true); err != nil {
		return false
	}
	var r forwardCall
	if decode(m[1:], &r) != nil {
		return false
	}
	r.Edge = x.leader.edgeOf(x.peer.Link.(*edgeLink), &r)
	return x.sends.Begin(httpd.ForwardedRequest(r), func(a httpd.ForwardedAnswer, err error) {
		if err != nil {
			x.leader.ServeFailed.Add(1)
			done(nil, err)
			return
		}
		x.leader.Served.Add(1)
		done(codec.EncodeRow((*forwardAnswer)(&a)), nil)
	})
}

// Flush passes the messages to their organizations.
func (x *forwardedSends) Flush() { x.sends.Flush() }

// edgeOf returns the key of the connection over which a node has sent a request of a client whose event queues it
// hosts; "": the node hosts none.
func (c *Leader) edgeOf(e *edgeLink, x *forwardCall) string {
	if p := e.peer; p.Role == peer.Edge || x.QueueOnly && p.Node != c.Directory.Node {
		return e.edge.Key()
	}
	return ""
}
