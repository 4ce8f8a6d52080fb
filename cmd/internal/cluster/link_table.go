package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"parley/actors/realm"
	"parley/snapshot/codec"
	"parley/wire/httpd"
	"parley/wire/peer"
)

// linkEntry is a message or a call that a node sends to the leader.
type linkEntry struct {
	kind  byte
	name  string
	from  Sender // all that may send it
	limit int    // of its bytes

	receive func(c *Leader, e *edgeLink, data []byte) error // of a message; nil: it is a call
	answer  func(ctx context.Context, c *Leader, e *edgeLink, data []byte, reply func([]byte) error) error
}

// Limits of messages and calls, in bytes.
const (
	// smallLimit is for an organization, a subdomain or the place of a text.
	smallLimit = 32 << 10
	// textsLimit is for the places of maxTexts texts, about 30 bytes each.
	textsLimit = 64 << 10
	// forwardLimit is for a forwarded request: its body and at most 16 KiB of headers, which the sending node limits.
	forwardLimit = httpd.MaxForwardedBody + 64<<10
	// commandLimit is for an operator command: server.maxCommandBytes for its arguments, and its name.
	commandLimit = 1<<20 + smallLimit
	// listLimit is for lists of organizations, event queues or users, and for steps of an import.
	listLimit = peer.MaxMessage
)

// linkTable lists every message and call that a node can send to the leader, with the nodes that may send it. The
// leader refuses all others. Operator commands have a table of their own, in package server.
var linkTable = []linkEntry{
	message(msgOpen, "open", FromServing, smallLimit, func(c *Leader, e *edgeLink, id *realm.ID) error {
		c.open(e, *id)
		return nil
	}),
	message(msgClose, "close", FromServing, smallLimit, func(_ *Leader, e *edgeLink, id *realm.ID) error {
		e.close(*id)
		e.edge.Closed(*id)
		return nil
	}),
	message(msgCloseQueue, "close-queue", FromServing, smallLimit,
		func(_ *Leader, e *edgeLink, x *queueMessage) error {
			e.edge.CloseQueue(x.Realm, x.Queue)
			return nil
		}),
	message(msgTick, "tick", FromServing, smallLimit, func(c *Leader, _ *edgeLink, id *realm.ID) error {
		c.Orgs.Tick(*id)
		return nil
	}),
	message(msgReport, "report", FromServing, listLimit, (*Leader).receiveReport),
	message(msgDigest, "digest", FromServing, smallLimit, (*Leader).receiveDigest),
	message(msgAdopt, "adopt", FromServing, listLimit, func(_ *Leader, e *edgeLink, x *adoptMessage) error {
		e.receiveAdopt(x)
		return nil
	}),
	message(msgHosted, "hosted", FromServing, listLimit, func(_ *Leader, e *edgeLink, x *hostedMessage) error {
		e.edge.ReportQueues(x.Realm, x.Kept)
		return nil
	}),
	message(msgAcks, "acks", FromServing, listLimit, func(_ *Leader, e *edgeLink, x *acksMessage) error {
		e.edge.ReportAcks(x.Realm, x.Acks)
		return nil
	}),
	message(msgOnline, "online", FromServing, listLimit, func(_ *Leader, e *edgeLink, x *onlineMessage) error {
		e.edge.ReportPresence(x.Realm, x.Reports)
		return nil
	}),

	parts(callRows, "rows", FromEdge, smallLimit,
		func(_ context.Context, c *Leader, _ *edgeLink, id *realm.ID, part func(*rowsPart) error) error {
			return c.sendRows(*id, part)
		}),
	raw(callFollow, "follow", FromEdge, smallLimit, (*Leader).follow),
	call(callText, "text", FromEdge, smallLimit, (*Leader).answerText),
	parts(callTexts, "texts", FromEdge, textsLimit,
		func(_ context.Context, c *Leader, _ *edgeLink, x *textsCall, part func(*textsPart) error) error {
			return c.sendTexts(x, part)
		}),
	call(callForward, "forward", FromServing, forwardLimit, (*Leader).answerForward),
	call(callRealm, "realm", FromEdge, smallLimit, func(c *Leader, _ *edgeLink, name *string) (*realm.ID, error) {
		id, _, _ := c.Orgs.RealmByName(*name)
		return &id, nil
	}),
	call(callSeq, "seq", FromServing, smallLimit, func(c *Leader, _ *edgeLink, id *realm.ID) (*realm.Seq, error) {
		seq, err := c.newestSeq(*id)
		return &seq, err
	}),
	call(callQueues, "queues", FromCores, smallLimit, func(*Leader, *edgeLink, *string) (*bool, error) {
		yes := true
		return &yes, nil
	}),
	call(callImport, "import", FromCore, listLimit, (*Leader).answerImport),
	raw(callCommand, "command", FromServing, commandLimit, (*Leader).answerCommand),
}

// message returns the entry of a message of type T.
func message[T any](
	kind byte, name string, from Sender, limit int, receive func(*Leader, *edgeLink, *T) error,
) linkEntry {
	return linkEntry{kind: kind, name: name, from: from, limit: limit,
		receive: func(c *Leader, e *edgeLink, data []byte) error {
			var x T
			if err := decode(data, &x); err != nil {
				return err
			}
			return receive(c, e, &x)
		}}
}

// raw returns the entry of a call of type T whose answer is bytes.
func raw[T any](kind byte, name string, from Sender, limit int,
	answer func(*Leader, context.Context, *edgeLink, *T, func([]byte) error) error,
) linkEntry {
	return linkEntry{kind: kind, name: name, from: from, limit: limit,
		answer: func(ctx context.Context, c *Leader, e *edgeLink, data []byte, reply func([]byte) error) error {
			var x T
			if err := decode(data, &x); err != nil {
				return err
			}
			return answer(c, ctx, e, &x, reply)
		}}
}

// parts returns the entry of a call of type T whose answer consists of parts of type A.
func parts[T, A any](kind byte, name string, from Sender, limit int,
	answer func(context.Context, *Leader, *edgeLink, *T, func(*A) error) error,
) linkEntry {
	return raw(kind, name, from, limit,
		func(c *Leader, ctx context.Context, e *edgeLink, x *T, reply func([]byte) error) error {
			return answer(ctx, c, e, x, func(a *A) error { return reply(codec.EncodeRow(a)) })
		})
}

// call returns the entry of a call of type T with an answer of type A.
func call[T, A any](
	kind byte, name string, from Sender, limit int, answer func(*Leader, *edgeLink, *T) (*A, error),
) linkEntry {
	return parts(kind, name, from, limit,
		func(_ context.Context, c *Leader, e *edgeLink, x *T, part func(*A) error) error {
			a, err := answer(c, e, x)
			if err != nil {
				return err
			}
			return part(a)
		})
}

// findEntry returns the entry of a message or call; nil: it is unknown.
func findEntry(kind byte, isCall bool) *linkEntry {
	for i := range linkTable {
		if x := &linkTable[i]; x.kind == kind && (x.receive == nil) == isCall {
			return x
		}
	}
	return nil
}

// errUnknownCall is the answer to a call that this release does not know.
var errUnknownCall = errors.New("unknown call")

// permit returns the entry of a message or call if the node may send it now.
func (c *Leader) permit(p *peer.Peer, m []byte, isCall bool) (*linkEntry, error) {
	if len(m) == 0 {
		return nil, errors.New("an empty message of another node")
	}
	x := findEntry(m[0], isCall)
	if x == nil {
		return nil, fmt.Errorf("%w %d", errUnknownCall, m[0])
	}
	if is := c.sender(p); !x.from.Includes(is) {
		return nil, Refuse(p.Node, is, "the message "+x.name)
	}
	if len(m) > x.limit {
		return nil, fmt.Errorf("the message %s has %d bytes, more than %d", x.name, len(m), x.limit)
	}
	return x, nil
}

// sender returns the present kind of the node at the other end of a link.
func (c *Leader) sender(p *peer.Peer) Sender {
	return c.Directory.senderOf(p.Node, p.Role, func(node string) bool {
		e, ok := p.Link.(*edgeLink)
		if ok && e.voter.Load() {
			return true
		}
		has := c.HasVote(node)
		if ok && has {
			e.voter.Store(true) // a core keeps its vote until it is removed
		}
		return has
	})
}

// Receive handles a message of another node. A node that sends a forbidden message is cut off. Messages that this
// release does not know are dropped, because newer releases may send them.
func (c *Leader) Receive(p *peer.Peer, m []byte) {
	x, err := c.permit(p, m, false)
	if errors.Is(err, errUnknownCall) {
		c.Log.Warn("message of another node refused", "node", p.Node, "err", err)
		return
	}
	if err == nil {
		err = x.receive(c, p.Link.(*edgeLink), m[1:])
	}
	if err != nil {
		p.Cut(err)
	}
}

// Call answers a call of another node.
func (c *Leader) Call(ctx context.Context, p *peer.Peer, m []byte, reply func([]byte) error) error {
	x, err := c.permit(p, m, true)
	if err != nil {
		var refused *RefusedError
		if errors.As(err, &refused) {
			c.Log.Warn("call of another node refused", "node", p.Node, "err", err)
		}
		return err
	}
	return x.answer(ctx, c, p.Link.(*edgeLink), m[1:], reply)
}

func (c *Leader) answerText(_ *edgeLink, x *textCall) (*textAnswer, error) {
	body, found, err := c.Orgs.Text(x.Realm, x.Ref)
	return &textAnswer{found, body}, err
}

func (c *Leader) answerForward(e *edgeLink, x *forwardCall) (*forwardAnswer, error) {
	x.Edge = c.edgeOf(e, x)
	a, err := c.HTTP.ServeForwarded(httpd.ForwardedRequest(*x))
	if err != nil {
		c.ServeFailed.Add(1)
		return nil, err
	}
	c.Served.Add(1)
	return (*forwardAnswer)(&a), nil
}

// SentCommand is an operator command that another node sends.
type SentCommand struct {
	Node string
	From Sender
	Name string
	Args map[string]string
}

func (c *Leader) answerCommand(_ context.Context, e *edgeLink, x *commandCall, reply func([]byte) error) error {
	e.commands.Add(1)
	defer e.commands.Add(-1)
	v, err := c.Command(SentCommand{e.peer.Node, c.sender(e.peer), x.Name, x.Args})
	if err != nil {
		return err
	}
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return reply(data)
}
