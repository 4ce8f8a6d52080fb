package signon

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"parley/actors/realm"
)

// Public is the part of the configuration that everybody may know. An edge has nothing else: it makes no logins.
type Public struct {
	Providers []PublicProvider
	Policies  map[string]realm.LoginPolicy // by subdomain, or allOthers

	lists sync.Map // *realm.LoginProviders by subdomain: equal sites have equal pointers
}

// PublicProvider is a provider and the organizations that use it.
type PublicProvider struct {
	realm.LoginProvider
	Organizations []string // nil: all
}

// Public returns the part of the configuration that everybody may know.
func (p *Providers) Public() *Public {
	out := &Public{Policies: p.policies}
	for _, e := range p.list {
		out.Providers = append(out.Providers, PublicProvider{
			realm.LoginProvider{Type: e.Type, Name: e.Name, Display: e.Display, Icon: e.iconPath()},
			e.config.Organizations})
	}
	return out
}

// Complete adds the providers and the rules of an organization to its site.
func (p *Public) Complete(s *realm.Site) {
	list, known := p.lists.Load(s.Name)
	if !known {
		own := &realm.LoginProviders{}
		for _, x := range p.Providers {
			if x.Organizations == nil || slices.Contains(x.Organizations, s.Name) {
				own.List = append(own.List, x.LoginProvider)
			}
		}
		list, _ = p.lists.LoadOrStore(s.Name, own)
	}
	s.Logins = list.(*realm.LoginProviders)
	policy, own := p.Policies[s.Name]
	if !own {
		policy = p.Policies[allOthers]
	}
	s.Policy = policy
}

// Text returns the configuration for other nodes.
func (p *Public) Text() string {
	text, err := json.Marshal(p)
	if err != nil {
		panic("BUG: encode login providers: " + err.Error())
	}
	return string(text)
}

// ParsePublic returns the configuration of a Text. The text "" has neither providers nor rules.
func ParsePublic(text string) (*Public, error) {
	p := &Public{}
	if text == "" {
		return p, nil
	}
	if err := json.Unmarshal([]byte(text), p); err != nil {
		return nil, fmt.Errorf("login providers of the core: %w", err)
	}
	return p, nil
}
