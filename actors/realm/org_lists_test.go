package realm_test

import (
	"slices"
	"strings"
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

func TestDomainRestrictions(t *testing.T) {
	s := New(t)
	olive, adam, ann := s.Join("Olive", realm.Owner), s.Join("Adam", realm.Administrator), s.Join("Ann")
	ExpectRefusal(s, adam, realm.AddDomain{Domain: "example.com"}, "Must be an organization owner")
	for domain, why := range map[string]string{
		"": "Domain can't be empty.", "localhost": "Domain must have at least one dot (.)",
		strings.Repeat("a.", 127) + "com": "Domain is too long",
		".example.com":                    "Domain cannot start or end with a dot (.)",
		"a..example":                      "Consecutive '.' are not allowed.",
		"-a.example":                      "Subdomains cannot start or end with a '-'.",
		"ex_ample.com":                    "Domain can only have letters, numbers, '.' and '-'s.",
	} {
		ExpectRefusal(s, olive, realm.AddDomain{Domain: domain}, "Invalid domain: "+why)
	}
	d := Do(s, olive, realm.AddDomain{Domain: " Example.COM "})
	if d.ID != 1 || d.Name != "example.com" {
		t.Fatalf("the new domain is %+v", d)
	}
	for _, u := range []realm.UserID{olive, adam, ann} {
		s.ExpectEvents(u, "realm_domains")
	}
	ExpectRefusal(s, olive, realm.AddDomain{Domain: "EXAMPLE.com"},
		"The domain example.com is already a part of your organization.")
	restricted := []realm.SettingValue{{Name: "emails_restricted_to_domains", Value: true}}
	Do(s, olive, realm.ChangeOrganization{Values: restricted})

	refused := func(email, why string) {
		t.Helper()
		Do(s, System, realm.Grant{User: olive, CreateUsers: true})
		ExpectRefusal(s, olive, realm.CreateUser{Name: "New One", Email: email}, why)
	}
	refused("new@sub.example.com", "Email 'new@sub.example.com' not allowed in this organization")
	refused("new+x@example.com", "Email addresses containing + are not allowed.")
	Do(s, olive, realm.EditDomain{Domain: "example.com", Subdomains: true})
	s.ExpectEvents(ann, "realm_domains")
	Do(s, olive, realm.EditDomain{Domain: "example.com", Subdomains: true})
	s.ExpectNoEvents(olive, ann)
	Do(s, olive, realm.CreateUser{Name: "New One", Email: "new@sub.example.com"})
	refused("new@notexample.com", "Email 'new@notexample.com' not allowed in this organization")

	ExpectRefusal(s, olive, realm.RemoveDomain{Domain: "example.org"}, "No entry found for domain example.org.")
	Do(s, olive, realm.RemoveDomain{Domain: "example.com"})
	// Without a domain no one could join, so the restriction is removed too.
	s.ExpectEvents(ann, "realm_domains", "realm")
	if s.Realm.OrgBool("emails_restricted_to_domains") {
		t.Error("restricted to domains without any domain")
	}
	refused("x@mailinator.com", "Disposable email addresses are not allowed in this organization")
}

// The rules about addresses are the same wherever an account gets one: at a sign-up, before the link is sent and when
// it is used, at an invitation by email, at one by a reusable link, and at a change of address, before the link and
// after.
func TestAddressRulesEverywhere(t *testing.T) {
	for _, c := range []struct {
		name, email          string
		restricted, allowsIt bool
	}{
		{"the domain", "a@example.com", true, true},
		{"the domain in capitals", "B@EXAMPLE.COM", true, true},
		{"a subdomain of a domain without subdomains", "c@team.example.com", true, false},
		{"a subdomain of a domain with subdomains", "d@team.example.net", true, true},
		{"a domain that ends like one with subdomains", "e@teamexample.net", true, false},
		{"another domain", "f@example.org", true, false},
		{"an alias", "g+alias@example.com", true, false},
		{"an alias without a restriction", "h+alias@example.com", false, true},
		{"a disposable address", "i@mailinator.com", false, false},
		{"a disposable address in a subdomain", "j@x.mailinator.com", false, false},
		{"any other address", "k@example.org", false, true},
	} {
		t.Run(c.name, func(t *testing.T) { checkAddressRules(t, c.email, c.restricted, c.allowsIt) })
	}
}

func checkAddressRules(t *testing.T, email string, restricted, allowed bool) {
	s := New(t)
	olive := s.Join("Olive", realm.Owner)
	Do(s, olive, realm.AddDomain{Domain: "example.com"})
	Do(s, olive, realm.AddDomain{Domain: "example.net", Subdomains: true})
	Do(s, olive, realm.ChangeOrganization{Values: []realm.SettingValue{
		{Name: "invite_required", Value: false}, {Name: "disallow_disposable_email_addresses", Value: true}}})
	// These were sent before the restriction.
	link := realm.EmailedLink{Kind: realm.SignUpLink, Email: email, Until: s.Now + realm.SignUpValidity}
	change := realm.EmailChange{User: olive, From: s.Realm.Find(olive).Email, To: email, Until: s.Now + 3600}
	reusable := Do(s, olive, realm.MakeInviteLink{InviteOptions: realm.InviteOptions{Role: realm.Member}})
	if restricted {
		Do(s, olive, realm.ChangeOrganization{Values: []realm.SettingValue{
			{Name: "emails_restricted_to_domains", Value: true}}})
	}
	expect := func(what string, err error) {
		t.Helper()
		if (err == nil) != allowed {
			t.Errorf("%s: %v, allowed %v", what, err, allowed)
		}
	}
	_, err := Try(s, System, realm.RequestSignUp{Email: email,
		Compose: func(l realm.EmailedLink, _ bool, _ realm.Letterhead) realm.Email { return realm.Email{To: l.Email} }})
	expect("asking to sign up", err)
	invited, err := Try(s, olive, realm.InviteByMail{Emails: email,
		InviteOptions: realm.InviteOptions{Role: realm.Member}})
	if err == nil && invited.Failure != nil {
		err = invited.Failure
	}
	expect("inviting", err)
	expect("the page of the sign-up link", s.ViewAs(System).CheckSignUp(link))
	_, err = Try(s, olive, realm.ChangeSettings{Email: &email,
		Confirm: func(c realm.EmailChange, _ realm.Letterhead) realm.Email { return realm.Email{To: c.To} }})
	expect("asking for the address", err)
	_, err = Try(s, System, realm.ConfirmEmailChange{EmailChange: change})
	expect("confirming the address", err)
	if allowed { // it is free again
		Do(s, System, realm.ConfirmEmailChange{EmailChange: realm.EmailChange{User: olive, From: email,
			To: "olive2@example.com", Until: s.Now + 3600}})
	}
	_, err = Try(s, System, realm.AcceptInvite{Hash: hashOf(reusable), Email: email, Name: "By Link"})
	expect("joining by a reusable link", err)
	other := link
	other.Email = "x" + email
	_, err = Try(s, System, realm.SignUp{Link: other, Name: "By Sign-up"})
	expect("signing up", err)
}

func TestPlaygrounds(t *testing.T) {
	s := New(t)
	adam, gus := s.Join("Adam", realm.Administrator), s.Join("Gus", realm.Guest)
	p := realm.AddPlayground{Name: " Go playground ", Language: "Go", Template: "https://play.example.com/?code={code}"}
	ExpectRefusal(s, gus, p, "Must be an organization administrator")
	id := Do(s, adam, p)
	got := ListEventsOf[*realm.PlaygroundsChanged](s, gus)
	if len(got) != 1 || len(got[0].List) != 1 || got[0].List[0].Name != "Go playground" {
		t.Fatalf("a guest got %v", got)
	}
	ExpectRefusal(s, adam, p, "Realm playground with this Realm, Pygments language and Name already exists.")
	p.Language = "C/C"
	ExpectRefusal(s, adam, p, "Invalid characters in pygments language")
	p.Language, p.TemplateError = "C++", realm.BadRequest("a fault of the template")
	ExpectRefusal(s, adam, p, "a fault of the template")
	ExpectRefusal(s, adam, realm.RemovePlayground{ID: id + 1}, "Invalid playground")
	Do(s, adam, realm.RemovePlayground{ID: id})
	s.ExpectEvents(gus, "realm_playgrounds")
	p.TemplateError = nil
	if next := Do(s, adam, p); next != id+1 {
		t.Errorf("the next id is %d: an id was used twice", next)
	}
}

func TestLinkifierOrder(t *testing.T) {
	s := New(t)
	adam, gus := s.Join("Adam", realm.Administrator), s.Join("Gus", realm.Guest)
	save := func(pattern string) int64 {
		l := realm.Linkifier{Pattern: pattern, Template: "https://example.com"}
		return Do(s, adam, realm.SaveLinkifier{Linkifier: l})
	}
	a, b := save("a"), save("b")
	s.ExpectEvents(gus, "realm_linkifiers")
	ExpectRefusal(s, gus, realm.RemoveLinkifier{ID: a}, "Must be an organization administrator")
	ExpectRefusal(s, adam, realm.SaveLinkifier{Linkifier: realm.Linkifier{Pattern: "a", Template: "x"}},
		"Linkifier with this Realm and Pattern already exists.")
	ExpectRefusal(s, adam, realm.SaveLinkifier{Linkifier: realm.Linkifier{ID: 9, Pattern: "c", Template: "x"}},
		"Linkifier not found.")
	for _, ids := range [][]int64{{a}, {a, a}, {a, b, b}, {}} {
		ExpectRefusal(s, adam, realm.OrderLinkifiers{IDs: ids},
			"The ordered list must enumerate all existing linkifiers exactly once")
	}
	Do(s, adam, realm.OrderLinkifiers{IDs: []int64{b, a}})
	Do(s, adam, realm.SaveLinkifier{
		Linkifier: realm.Linkifier{ID: b, Pattern: "bb", Template: "https://example.com/b"},
	})
	c := save("c")
	if got := s.Realm.Linkifiers(); got[0].ID != b || got[0].Pattern != "bb" || got[1].ID != a || got[2].ID != c {
		t.Errorf("the order is %+v", got)
	}
	if d := s.Realm.MarkdownConfig(); len(d.Linkifiers) != 3 || d.Linkifiers[0].Pattern != "bb" {
		t.Errorf("texts are rendered with %+v", d.Linkifiers)
	}
	Do(s, adam, realm.RemoveLinkifier{ID: a})
	s.ExpectEvents(gus, "realm_linkifiers")
}

// TestOwnerOnlySettings holds that an administrator cannot change a setting that only owners may change, not even to a
// value that would be refused, and that an owner can. The names are those of the protocol.
func TestOwnerOnlySettings(t *testing.T) {
	s := New(t)
	olive, ada := s.Join("Olive", realm.Owner), s.Join("Ada", realm.Administrator)
	owners := []string{
		"assistant_enabled",
		"allow_browser_push", "allow_external_pictures", "allow_livekit_calls", "allow_message_emails",
		"allow_mobile_push", "allow_outgoing_webhooks",
		"disallow_disposable_email_addresses", "emails_restricted_to_domains", "invite_required",
		"meaning_search_enabled", "message_retention_days",
		"waiting_period_threshold",
		"can_create_groups", "can_invite_users_group", "can_manage_all_groups", "can_manage_billing_group",
		"create_multiuse_invite_group",
	}
	check := func(name string, c realm.ChangeOrganization) {
		if slices.Contains(owners, name) {
			ExpectRefusal(s, ada, c, "Must be an organization owner")
		} else {
			Do(s, ada, c)
		}
		Do(s, olive, c)
	}
	for _, x := range realm.OrgSettings {
		if !x.Hidden {
			value := s.Realm.OrgSetting(x.Name)
			check(x.Name, realm.ChangeOrganization{Values: []realm.SettingValue{{Name: x.Name, Value: value}}})
		}
	}
	for _, x := range realm.OrgGroupSettings {
		change := realm.GroupChange{Name: x.Name, New: s.Realm.OrgGroup(x.Name)}
		check(x.Name, realm.ChangeOrganization{Groups: []realm.GroupChange{change}})
		change.New = realm.GroupValue{Group: -1}
		if slices.Contains(owners, x.Name) {
			ExpectRefusal(s, ada, realm.ChangeOrganization{Groups: []realm.GroupChange{change}},
				"Must be an organization owner")
		}
	}
	passwords := true
	ExpectRefusal(s, ada, realm.ChangeOrganization{Passwords: &passwords}, "Must be an organization owner")
	Do(s, olive, realm.ChangeOrganization{Passwords: &passwords})
}
