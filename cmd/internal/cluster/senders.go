package cluster

import (
	"fmt"
	"slices"
	"strings"

	"parley/wire/peer"
)

// Sender is the kind of a node for the receiver of its message: the role in its certificate, and its present state in
// the membership. A set of senders has the bits of all.
type Sender uint8

// The senders.
const (
	FromCore     Sender = 1 << iota // a core with a vote
	FromEdge                        // an edge
	FromStarting                    // a core that has joined and has no vote yet
	FromRemoved                     // a node that was removed, or that is not a member
)

// Sets of senders.
const (
	FromCores   = FromCore | FromStarting
	FromServing = FromCores | FromEdge // the nodes that serve clients
	FromAll     = FromServing | FromRemoved
)

var senderNames = []struct {
	sender Sender
	name   string
}{
	{FromCore, "a core"}, {FromEdge, "an edge"}, {FromStarting, "a core without a vote"},
	{FromRemoved, "not a member of the cluster"},
}

// String returns the names of the senders.
func (s Sender) String() string {
	var list []string
	for _, x := range senderNames {
		if s&x.sender != 0 {
			list = append(list, x.name)
		}
	}
	return strings.Join(list, ", ")
}

// Includes reports whether the set has a sender.
func (s Sender) Includes(x Sender) bool { return s&x != 0 }

// protocolSenders are the nodes that may use a protocol of a core. JoinProtocol needs no certificate, but a token.
var protocolSenders = map[string]Sender{
	peer.LinkProtocol:  FromServing, // then linkTable decides
	peer.HTTPProtocol:  FromServing,
	peer.RaftProtocol:  FromCores,
	peer.FilesProtocol: FromCore,
}

// RefusedError is the answer to a node that sends a forbidden message.
type RefusedError struct{ text string }

func (e *RefusedError) Error() string { return e.text }

// LinkCode returns the code of the error on a link.
func (e *RefusedError) LinkCode() uint32 { return CodeRefused }

// CodeRefused is the code of a RefusedError on a link.
const CodeRefused = 7

// Refuse returns the error for a node that is not one of those that may send something.
func Refuse(node string, is Sender, what string) *RefusedError {
	if is == FromRemoved {
		return &RefusedError{fmt.Sprintf("node %s is not a member of the cluster, or was removed: %s is refused", node,
			what)}
	}
	return &RefusedError{fmt.Sprintf("node %s is %s and may not send %s: use the data directory of a core that has a "+
		"vote", node, is, what)}
}

// senderOf returns the kind of a node, by the role in its certificate and the membership. hasVote reports whether a
// core has a vote.
func (d *Directory) senderOf(node string, role peer.Role, hasVote func(string) bool) Sender {
	m, ok := d.member(node)
	switch {
	case !ok || m.Removed != 0 || m.Role != role:
		return FromRemoved
	case role == peer.Edge:
		return FromEdge
	case role != peer.Core:
		return FromRemoved
	case hasVote(node):
		return FromCore
	}
	return FromStarting
}

// mayUseRaft reports whether a node may send entries and ask for votes. A core that is behind may not know the newest
// cores yet, and must accept entries from them: their certificates say that they are cores.
func (d *Directory) mayUseRaft(node string, role peer.Role) bool {
	is := FromStarting
	switch {
	case role == peer.Edge:
		is = FromEdge
	case role != peer.Core || d.IsRemoved(node):
		is = FromRemoved
	}
	return protocolSenders[peer.RaftProtocol].Includes(is)
}

// publish makes the present members visible to senderOf and IsRemoved, which do not wait for a change that is being
// stored. d.mu is locked, or no other goroutine uses d.
func (d *Directory) publish() {
	all := make(map[string]Member, len(d.Members)+len(d.RemovedCores))
	for _, node := range d.RemovedCores {
		all[node] = Member{Node: node, Role: peer.Core, Removed: 1}
	}
	for _, m := range d.Members {
		all[m.Node] = m
	}
	d.current.Store(&all)
}

// member returns a node that is or was a member.
func (d *Directory) member(node string) (m Member, ok bool) {
	if all := d.current.Load(); all != nil {
		m, ok = (*all)[node]
	}
	return m, ok
}

// IsRemoved reports whether a node was removed from the cluster, as far as this node knows.
func (d *Directory) IsRemoved(node string) bool {
	m, ok := d.member(node)
	return ok && m.Removed != 0
}

// removedCores returns the cores that were removed.
func (d *Directory) removedCores() (list []string) {
	if all := d.current.Load(); all != nil {
		for _, m := range *all {
			if m.Role == peer.Core && m.Removed != 0 {
				list = append(list, m.Node)
			}
		}
	}
	slices.Sort(list)
	return list
}
