package peer

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Limits of the connections to a node whose other side has not shown a certificate yet. Anyone who reaches the address
// can open such connections. None of them waits for another one: if there are too many, the one that is least likely
// to be that of a node is closed. A node sends its ClientHello at once.
const (
	// HelloTimeout is how long a connection may take until its ClientHello has arrived. Nodes send it with their first
	// packet, so this is enough for a slow network that loses a packet.
	HelloTimeout = time.Second
	// HandshakeTimeout limits the TLS handshake.
	HandshakeTimeout = 5 * time.Second
	// MaxHandshakes limits the connections of which the handshake is not finished, from addresses at which no node is
	// known. Each takes about 30 kB.
	MaxHandshakes = 64
	// MaxHandshakesPerAddress is how many of them one IPv4 address or IPv6 /64 has: new nodes come one by one.
	MaxHandshakesPerAddress = 16
	// MaxMemberHandshakes and MaxMemberHandshakesPerAddress are the same for the addresses of nodes that have shown
	// their certificates before. These places are reserved: connections from other addresses do not use them. A node
	// can open httpd.MaxOwnerConnections, 256, connections for files at once, besides its other ones.
	MaxMemberHandshakes           = 1024
	MaxMemberHandshakesPerAddress = 320
	// maxMemberAddresses limits the remembered addresses of nodes. The one that was used least recently is forgotten.
	maxMemberAddresses = 1024
)

// place is a connection that has not shown a certificate yet.
type place struct {
	conn    net.Conn
	from    netip.Prefix
	greeted bool // its first message has arrived
}

// places are the connections that have not shown a certificate yet, with a limit for all and one for each address.
type places struct {
	max, perAddress int

	mu     sync.Mutex
	list   []*place // oldest first
	closed int64    // connections that were closed to make room
}

// enter adds a connection. It never waits. If there are too many, it closes another one: of the address with too many,
// or else of the address with most. It takes the oldest one that has sent nothing, or else the oldest one.
func (s *places) enter(c net.Conn) *place {
	p := &place{conn: c, from: networkOf(c.RemoteAddr())}
	s.mu.Lock()
	defer s.mu.Unlock()
	count := map[netip.Prefix]int{}
	for _, x := range s.list {
		count[x.from]++
	}
	if count[p.from] >= s.perAddress {
		s.closeOldest(p.from)
	} else if len(s.list) >= s.max {
		most := p.from
		for from, n := range count {
			if n > count[most] {
				most = from
			}
		}
		s.closeOldest(most)
	}
	s.list = append(s.list, p)
	return p
}

// closeOldest closes one of the connections of an address. s.mu is locked.
func (s *places) closeOldest(from netip.Prefix) {
	i := slices.IndexFunc(s.list, func(x *place) bool { return x.from == from && !x.greeted })
	if i < 0 {
		i = slices.IndexFunc(s.list, func(x *place) bool { return x.from == from })
	}
	if i < 0 { // a new address, and each other one has none
		i = 0
	}
	s.list[i].conn.Close()
	s.list = slices.Delete(s.list, i, i+1)
	s.closed++
}

// greet records that the first message of a connection has arrived.
func (s *places) greet(p *place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.greeted = true
}

// leave removes a connection that has shown its certificate, or has ended.
func (s *places) leave(p *place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.list, p); i >= 0 {
		s.list = slices.Delete(s.list, i, i+1)
	}
}

// size returns how many connections there are, and how many were closed to make room.
func (s *places) size() (now int, closed int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.list), s.closed
}

// networkOf returns the network of an address: the IPv4 address or the IPv6 /64.
func networkOf(a net.Addr) netip.Prefix {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	ip, bits := t.AddrPort().Addr().Unmap(), 32
	if ip.Is6() {
		bits = 64
	}
	n, _ := ip.WithZone("").Prefix(bits)
	return n
}

// memberAddresses are the networks from which nodes have shown their certificates.
type memberAddresses struct {
	mu   sync.Mutex
	used map[netip.Prefix]time.Time
}

// add records an address of a node.
func (m *memberAddresses) add(a net.Addr) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.used == nil {
		m.used = map[netip.Prefix]time.Time{}
	}
	m.used[networkOf(a)] = time.Now()
	if len(m.used) <= maxMemberAddresses {
		return
	}
	var oldest netip.Prefix
	for n, at := range m.used {
		if first, has := m.used[oldest]; !has || at.Before(first) {
			oldest = n
		}
	}
	delete(m.used, oldest)
}

// has reports whether a node has had the address.
func (m *memberAddresses) has(a net.Addr) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, has := m.used[networkOf(a)]
	return has
}
