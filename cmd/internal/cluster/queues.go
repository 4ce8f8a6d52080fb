package cluster

import (
	"errors"

	"parley/actors/delivery"
	"parley/actors/presence"
	"parley/actors/realm"
	"parley/snapshot/codec"
)

// Messages about event queues. Follower implements actors.OwnerLink, for messages from an edge to the owner. edgeLink
// implements actors.EdgeLink, for messages from the owner to an edge. None of the methods blocks.

// errNoOwner is the error of an adoption while there is no link.
var errNoOwner = errors.New("there is no link to the owner")

// send sends a message to the core. Without a link it is lost.
func (e *Follower) send(m []byte) {
	e.mu.Lock()
	link := e.link
	e.mu.Unlock()
	if link != nil {
		link.Send(m)
	}
}

// CloseQueue asks the owner to close a queue. The replica asks again after a new link was opened.
func (e *Follower) CloseQueue(id realm.ID, q realm.QueueID) {
	e.send(encode(msgCloseQueue, &queueMessage{id, q}))
}

// Tick asks the owner for a fact. The queue asks again.
func (e *Follower) Tick(id realm.ID) { e.send(encode(msgTick, id)) }

// AdoptQueue asks the owner for a queue.
func (e *Follower) AdoptQueue(id realm.ID, a delivery.Adoption, answer func(delivery.Adopted, error)) {
	e.mu.Lock()
	link := e.link
	if link == nil {
		e.mu.Unlock()
		answer(delivery.Adopted{}, errNoOwner)
		return
	}
	e.adopted++
	m := &adoptMessage{e.adopted, id, a}
	e.adoptions[m.ID] = answer
	e.mu.Unlock()
	if a.Through > 0 && a.After == 0 {
		e.Counters.Adoptions.Add(1)
	}
	link.Send(encode(msgAdopt, m))
}

// failAdoptions answers the adoptions that the core did not answer before the link broke.
func (e *Follower) failAdoptions(err error) {
	e.mu.Lock()
	list := e.adoptions
	e.adoptions = map[int64]func(delivery.Adopted, error){}
	e.mu.Unlock()
	for _, answer := range list {
		answer(delivery.Adopted{}, errors.Join(errNoOwner, err))
	}
}

// ReportQueues reports which queues this edge hosts.
func (e *Follower) ReportQueues(id realm.ID, k delivery.HostedQueues) {
	e.send(encode(msgHosted, &hostedMessage{id, k}))
}

// ReportAcks reports the acknowledgements of this edge's clients.
func (e *Follower) ReportAcks(id realm.ID, a delivery.QueueAcks) {
	e.send(encode(msgAcks, &acksMessage{id, a}))
}

// ReportPresence sends the presence reports of the clients of this edge.
func (e *Follower) ReportPresence(id realm.ID, list []presence.Report) {
	e.send(encode(msgOnline, &onlineMessage{id, list}))
}

func (e *Follower) handleAdopted(x *adoptedMessage) (err error) {
	e.mu.Lock()
	answer := e.adoptions[x.ID]
	delete(e.adoptions, x.ID)
	e.mu.Unlock()
	if answer == nil {
		return nil // the link broke in between
	}
	if x.Err != "" {
		err = errors.New(x.Err)
	}
	for _, data := range x.Events {
		t, bad := codec.DecodeUnacked(data)
		x.Adopted.Events, err = append(x.Adopted.Events, t), errors.Join(err, bad)
	}
	answer(x.Adopted, err)
	return nil
}

// receiveAdopt asks the owner for a queue for the node.
func (e *edgeLink) receiveAdopt(x *adoptMessage) {
	if x.Adoption.Through > 0 && x.Adoption.After == 0 {
		e.totals.mu.Lock()
		e.totals.adoptions++
		e.totals.mu.Unlock()
	}
	e.edge.AdoptQueue(x.Realm, x.Adoption, func(a delivery.Adopted, err error) { e.sendAdopted(x.ID, a, err) })
}

func (e *edgeLink) sendAdopted(id int64, a delivery.Adopted, err error) {
	m := &adoptedMessage{ID: id, Adopted: a}
	m.Adopted.Events = nil
	for _, t := range a.Events {
		m.Events = append(m.Events, codec.EncodeUnacked(t))
	}
	if err != nil {
		m.Err = err.Error()
	}
	e.peer.Send(encode(msgAdopted, m))
}

// DropQueues asks the edge to drop queues.
func (e *edgeLink) DropQueues(id realm.ID, list []delivery.DroppedQueue) {
	e.peer.Send(encode(msgDrop, &dropMessage{id, list}))
}

// EvictQueues asks the edge to close queues.
func (e *edgeLink) EvictQueues(id realm.ID, before realm.Seq) {
	e.peer.Send(encode(msgEvict, &evictMessage{id, before}))
}
