package httpd

import (
	"testing"

	"parley/actors/admission"
)

// An organization that has half of the places for passwords, drawings or large bodies gets no more; another one does.
func TestOrganizationsShareBudgets(t *testing.T) {
	several := func() bool { return true }
	p := NewPasswords(several)
	p.shares.Take("1", MaxPasswords/2)
	if _, err := p.Check(1, "x", ""); err == nil {
		t.Error("an organization has more than half of the passwords")
	}
	if _, err := p.Hash(1, "correct horse battery staple"); err == nil {
		t.Error("an organization has more than half of the passwords")
	}
	if _, err := p.Check(2, "x", ""); err != nil {
		t.Errorf("a password of another organization: %v", err)
	}
	if p.shares.Used("2") != 0 || p.Waiting() != 0 {
		t.Error("a password that was checked still counts")
	}

	c := newIdenticonCache(several)
	c.shares.Take("1", MaxIdenticonsPending/2)
	if _, ok := c.image("1", identiconKeyOf(1)); ok {
		t.Error("an organization has more than half of the drawings")
	}
	if _, ok := c.image("2", identiconKeyOf(1)); !ok || c.shares.Used("2") != 0 {
		t.Error("a drawing of another organization is refused, or still counts")
	}

	s := &Server{largeBodies: make(chan struct{}, MaxLargeBodies),
		largeBodyShares: admission.NewShares(MaxLargeBodiesWaiting, several)}
	for range MaxLargeBodies {
		s.largeBodies <- struct{}{}
	}
	s.largeBodyShares.Take("1", MaxLargeBodiesWaiting/2)
	if s.acquireLargeBody(1) {
		t.Error("an organization has more than half of the large bodies")
	}
	accepted := make(chan bool)
	go func() { accepted <- s.acquireLargeBody(2) }()
	<-s.largeBodies
	if !<-accepted || s.largeBodyShares.Used("2") != 0 || s.largeBodiesWaiting.Load() != 0 {
		t.Error("a large body of another organization is refused, or still waits")
	}
}
