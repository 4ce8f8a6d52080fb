package httpd

import (
	"strings"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/web"
)

// organizationPages are the pages on which visitors create an organization, if the operator allows it.
var organizationPages = []pageRoute{
	{path: "/new", handle: (*Server).newOrganizationPage, posts: true, anywhere: true},
	{path: wire.OrganizationPath + "{token}", handle: (*Server).createOrganizationPage, posts: true, anywhere: true},
}

// newOrganizationPage asks for the address and name of an organization, and sends the link that creates it.
func (s *Server) newOrganizationPage(p *pageRequest) (web.View, error) {
	if !s.options.Tools.OpenOrganizations || s.options.Tools.Organizations == nil || !s.sendsEmail() {
		return web.Failure("Page not found", "This server is not open for new organizations."), errNoPage
	}
	l := realm.EmailedLink{}
	if !p.posted() {
		return web.NewOrganization(l.Email, l.Org, l.Subdomain, ""), nil
	}
	l.Email, l.Org = strings.TrimSpace(p.field("email")), p.field("realm_name")
	l.Subdomain = strings.ToLower(strings.TrimSpace(p.field("realm_subdomain")))
	err := s.countEmailForm(p, l.Email)
	if err == nil {
		err = wire.RequestOrganization(p.visitorCall(), l, p.language.String(), s.now().Unix())
	}
	if err != nil {
		return web.NewOrganization(l.Email, l.Org, l.Subdomain, s.formErrorText(err)), err
	}
	return linkSentPage()
}

// createOrganizationPage creates an organization and logs its owner in there.
func (s *Server) createOrganizationPage(p *pageRequest) (web.View, error) {
	c := p.visitorCall()
	link, err := wire.FindNewOrganization(c, p.token(), s.now().Unix())
	if err != nil {
		return web.Failure("Create an organization", s.errorText(err)), err
	}
	_, site := s.options.Tools.Organizations.Find(link.Subdomain)
	p.policy = formPolicy(site.URL) // the answer redirects there
	if !p.posted() {
		return web.CreateOrganization(link.Org, link.Email, "", ""), nil
	}
	name := p.field("full_name")
	if err = s.countPasswordForm(p); err == nil {
		var at wire.OrganizationAt
		var owner realm.UserID
		if at, owner, err = wire.CreateOrganization(c, link, name, p.field("password")); err == nil {
			p.redirect = at.Site.URL + loginTokenPath + s.loginTokens.add(
				loginToken{realm: at.Realm, user: owner},
				s.now(),
			)
			return web.View{}, nil
		}
	}
	return web.CreateOrganization(link.Org, link.Email, name, s.formErrorText(err)), err
}
