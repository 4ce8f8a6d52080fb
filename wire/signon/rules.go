package signon

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"parley/actors/realm"
)

// Rule gives a role and groups to people with a claim: a claim of an ID token, an attribute of an assertion or of an
// entry in a directory.
type Rule struct {
	Claim string `toml:"claim"`
	// Value is one of the values of the claim, "*" is any.
	Value string `toml:"value"`
	// Role is one of ruleRoles. Of several rules the highest role counts.
	Role   string   `toml:"role"`
	Groups []string `toml:"groups"` // names of groups in the organization
}

// ruleRoles are the roles of rules.
var ruleRoles = map[string]realm.Role{"": 0, "owner": realm.Owner, "administrator": realm.Administrator,
	"moderator": realm.Moderator, "member": realm.Member, "guest": realm.Guest}

const (
	// MaxRules limits the rules of a provider; the numbers of those about a person are in a cookie for a while.
	MaxRules = 200
	// maxClaimValues limits the values of one claim that are compared.
	maxClaimValues = 5000
)

// Claims are the values of claims by name, without those that no rule is about.
type Claims map[string][]string

// checkRules refuses rules that can have no effect.
func (c *Config) checkRules() error {
	if len(c.Rules) > MaxRules {
		return fmt.Errorf("%d rules, the limit is %d", len(c.Rules), MaxRules)
	}
	for i, r := range c.Rules {
		var err error
		switch _, known := ruleRoles[r.Role]; {
		case r.Claim == "" || r.Value == "":
			err = errors.New("claim and value are needed; the value * is any")
		case !known:
			err = fmt.Errorf("role must be one of %s, not %q",
				strings.Join(slices.Sorted(maps.Keys(ruleRoles))[1:], ", "), r.Role)
		case r.Role == "" && len(r.Groups) == 0:
			err = errors.New("it has neither a role nor groups")
		case len(r.Groups) > realm.MaxGivenGroups:
			err = fmt.Errorf("%d groups, the limit is %d", len(r.Groups), realm.MaxGivenGroups)
		}
		if err != nil {
			return fmt.Errorf("rule %d: %w", i+1, err)
		}
	}
	return nil
}

// hasRuleFor reports whether a rule is about a claim.
func (c *Config) hasRuleFor(claim string) bool {
	return slices.ContainsFunc(c.Rules, func(r Rule) bool { return r.Claim == claim })
}

// matching returns the numbers of the rules that are about a person with some claims, nil if there are none. Values of
// directories are names, in which case has no meaning.
func (c *Config) matching(claims Claims) (out []int) {
	for i, r := range c.Rules {
		values := claims[r.Claim]
		if slices.ContainsFunc(values[:min(len(values), maxClaimValues)], func(v string) bool {
			return v == r.Value || r.Value == "*" && v != "" || c.Type == LDAP && strings.EqualFold(v, r.Value)
		}) {
			out = append(out, i)
		}
	}
	return out
}

// Person returns a person as the provider describes them. active is false if the person has left.
func (e *Entry) Person(who Identity, active bool) realm.Person {
	p := realm.Person{Identity: realm.IdentityName{Issuer: who.Issuer, Subject: who.Subject}, Active: active,
		Fields: who.Fields}
	if e.Directory != nil {
		p.Name = strings.Join(strings.Fields(who.Name), " ")
	}
	for _, i := range who.Rules {
		if i < 0 || i >= len(e.config.Rules) { // of a cookie that is older than the file
			continue
		}
		r := e.config.Rules[i]
		if role := ruleRoles[r.Role]; role != 0 && (p.Role == 0 || role < p.Role) {
			p.Role = role
		}
		p.Groups = append(p.Groups, r.Groups...)
	}
	return p
}

// claimsOf returns the values of the claims that rules are about. A name with dots can also be the path of a claim
// inside another one, such as realm_access.roles.
func (c *Config) claimsOf(all map[string]json.RawMessage) Claims {
	out := Claims{}
	for _, r := range c.Rules {
		if _, done := out[r.Claim]; !done {
			if raw, found := findClaim(all, r.Claim); found {
				out[r.Claim] = claimValues(raw)
			}
		}
	}
	return out
}

// lacksClaims reports whether a claim that rules are about is missing.
func (c *Config) lacksClaims(all map[string]json.RawMessage) bool {
	return slices.ContainsFunc(c.Rules, func(r Rule) bool {
		_, found := findClaim(all, r.Claim)
		return !found
	})
}

func findClaim(all map[string]json.RawMessage, path string) (json.RawMessage, bool) {
	if raw, found := all[path]; found {
		return raw, true
	}
	first, rest, more := strings.Cut(path, ".")
	if !more {
		return nil, false
	}
	var inner map[string]json.RawMessage
	if json.Unmarshal(all[first], &inner) != nil {
		return nil, false
	}
	return findClaim(inner, rest)
}

// claimValues returns the values of a claim: texts, numbers and truth values, alone or in a list.
func claimValues(raw json.RawMessage) []string {
	var list []any
	if json.Unmarshal(raw, &list) != nil {
		var one any
		if json.Unmarshal(raw, &one) != nil {
			return nil
		}
		list = []any{one}
	}
	var out []string
	for _, v := range list[:min(len(list), maxClaimValues)] {
		switch v := v.(type) {
		case string:
			out = append(out, v)
		case bool:
			out = append(out, strconv.FormatBool(v))
		case float64:
			out = append(out, strconv.FormatFloat(v, 'f', -1, 64))
		}
	}
	return out
}
