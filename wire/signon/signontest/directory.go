package signontest

import (
	"encoding/binary"
	"net"
	"strings"
	"sync"
	"testing"

	ber "github.com/go-asn1-ber/asn1-ber"
	"github.com/go-ldap/ldap/v3"
)

// Entry is an entry of a test directory. Names of attributes are in lower case.
type Entry struct {
	DN, Password string
	Attributes   map[string][]string
}

// Directory is a running LDAP server for tests, written from RFC 4511 and 2696: simple binds, and searches of the whole
// tree in pages. Like many servers it accepts a bind without a password as an anonymous one.
type Directory struct {
	URL string

	mu      sync.Mutex
	entries []Entry
	closed  bool     // connections are closed at once
	filters []string // of all searches
	binds   []string // DNs of all binds
}

// NewDirectory starts a directory that ends with the test.
func NewDirectory(t testing.TB, entries ...Entry) *Directory {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &Directory{URL: "ldap://" + l.Addr().String(), entries: entries}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go d.serve(c)
		}
	}()
	return d
}

// Set replaces all entries.
func (d *Directory) Set(entries ...Entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.entries = entries
}

// GoDown lets the directory close all new connections, or accept them again.
func (d *Directory) GoDown(down bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = down
}

// Binds returns the DNs of all binds.
func (d *Directory) Binds() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string{}, d.binds...)
}

// Filters returns the filters of all searches.
func (d *Directory) Filters() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string{}, d.filters...)
}

func (d *Directory) serve(c net.Conn) {
	defer c.Close()
	for {
		p, err := ber.ReadPacket(c)
		d.mu.Lock()
		closed := d.closed
		d.mu.Unlock()
		if err != nil || closed || len(p.Children) < 2 {
			return
		}
		id, request := p.Children[0].Value.(int64), p.Children[1]
		answer := func(parts ...*ber.Packet) {
			m := ber.Encode(ber.ClassUniversal, ber.TypeConstructed, ber.TagSequence, nil, "")
			m.AppendChild(ber.NewInteger(ber.ClassUniversal, ber.TypePrimitive, ber.TagInteger, id, ""))
			for _, x := range parts {
				m.AppendChild(x)
			}
			c.Write(m.Bytes())
		}
		switch request.Tag {
		case ldap.ApplicationBindRequest:
			dn, _ := request.Children[1].Value.(string)
			answer(result(ldap.ApplicationBindResponse, d.bind(dn, request.Children[2].Data.String())))
		case ldap.ApplicationSearchRequest:
			d.search(request, p, answer)
		default:
			return
		}
	}
}

// result is the part of an answer with a result code.
func result(tag ber.Tag, code int64) *ber.Packet {
	r := ber.Encode(ber.ClassApplication, ber.TypeConstructed, tag, nil, "")
	r.AppendChild(ber.NewInteger(ber.ClassUniversal, ber.TypePrimitive, ber.TagEnumerated, code, ""))
	r.AppendChild(ber.NewString(ber.ClassUniversal, ber.TypePrimitive, ber.TagOctetString, "", ""))
	r.AppendChild(ber.NewString(ber.ClassUniversal, ber.TypePrimitive, ber.TagOctetString, "", ""))
	return r
}

func (d *Directory) bind(dn, password string) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.binds = append(d.binds, dn)
	if password == "" { // RFC 4513, 5.1.2
		return ldap.LDAPResultSuccess
	}
	for _, e := range d.entries {
		if e.DN == dn && e.Password == password {
			return ldap.LDAPResultSuccess
		}
	}
	return ldap.LDAPResultInvalidCredentials
}

func (d *Directory) search(request, message *ber.Packet, answer func(...*ber.Packet)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	base, _ := request.Children[0].Value.(string)
	filter := request.Children[6]
	text, _ := ldap.DecompileFilter(filter)
	d.filters = append(d.filters, text)
	size, skip := len(d.entries), 0
	limit, _ := request.Children[3].Value.(int64)
	paging := pagingOf(message)
	if paging != nil {
		size = int(paging.PagingSize)
		if len(paging.Cookie) == 8 {
			skip = int(binary.BigEndian.Uint64(paging.Cookie))
		}
	}
	n, code, more := 0, int64(ldap.LDAPResultSuccess), false
	for _, e := range d.entries {
		if !strings.HasSuffix(strings.ToLower(e.DN), strings.ToLower(base)) || !e.matches(filter) {
			continue
		}
		if n++; n <= skip {
			continue
		}
		if n > skip+size {
			more = true
			break
		}
		if limit > 0 && int64(n-skip) > limit {
			code = ldap.LDAPResultSizeLimitExceeded
			break
		}
		answer(e.packet())
	}
	done := result(ldap.ApplicationSearchResultDone, code)
	if paging == nil {
		answer(done)
		return
	}
	next := ldap.NewControlPaging(uint32(size))
	if more {
		next.SetCookie(binary.BigEndian.AppendUint64(nil, uint64(skip+size)))
	}
	controls := ber.Encode(ber.ClassContext, ber.TypeConstructed, 0, nil, "")
	controls.AppendChild(next.Encode())
	answer(done, controls)
}

// pagingOf returns the paging control of a message, or nil.
func pagingOf(message *ber.Packet) *ldap.ControlPaging {
	if len(message.Children) < 3 {
		return nil
	}
	for _, x := range message.Children[2].Children {
		c, err := ldap.DecodeControl(x)
		if p, is := c.(*ldap.ControlPaging); err == nil && is {
			return p
		}
	}
	return nil
}

func (e Entry) packet() *ber.Packet {
	p := ber.Encode(ber.ClassApplication, ber.TypeConstructed, ldap.ApplicationSearchResultEntry, nil, "")
	p.AppendChild(ber.NewString(ber.ClassUniversal, ber.TypePrimitive, ber.TagOctetString, e.DN, ""))
	list := ber.Encode(ber.ClassUniversal, ber.TypeConstructed, ber.TagSequence, nil, "")
	for name, values := range e.Attributes {
		a := ber.Encode(ber.ClassUniversal, ber.TypeConstructed, ber.TagSequence, nil, "")
		a.AppendChild(ber.NewString(ber.ClassUniversal, ber.TypePrimitive, ber.TagOctetString, name, ""))
		set := ber.Encode(ber.ClassUniversal, ber.TypeConstructed, ber.TagSet, nil, "")
		for _, v := range values {
			set.AppendChild(ber.NewString(ber.ClassUniversal, ber.TypePrimitive, ber.TagOctetString, v, ""))
		}
		a.AppendChild(set)
		list.AppendChild(a)
	}
	p.AppendChild(list)
	return p
}

// matches evaluates a filter with and, or, not, equality and presence.
func (e Entry) matches(f *ber.Packet) bool {
	switch f.Tag {
	case ldap.FilterAnd:
		for _, x := range f.Children {
			if !e.matches(x) {
				return false
			}
		}
		return true
	case ldap.FilterOr:
		for _, x := range f.Children {
			if e.matches(x) {
				return true
			}
		}
		return false
	case ldap.FilterNot:
		return !e.matches(f.Children[0])
	case ldap.FilterEqualityMatch:
		want := f.Children[1].Data.String()
		for _, v := range e.Attributes[strings.ToLower(f.Children[0].Data.String())] {
			if strings.EqualFold(v, want) {
				return true
			}
		}
		return false
	case ldap.FilterPresent:
		return len(e.Attributes[strings.ToLower(f.Data.String())]) > 0
	}
	return false
}
