package httpd

import (
	"parley/actors/realm"
	"parley/wire"
	"parley/wire/web"
)

// linkPages are the pages that links in emails open.
var linkPages = []pageRoute{
	{path: wire.JoinPath + "{token}", handle: (*Server).joinPage, posts: true, anywhere: true},
	{path: wire.ConfirmAddressPath + "{token}", handle: (*Server).confirmAddressPage, posts: true, anywhere: true},
}

// visitorCall returns the call of a page for which a session makes no difference.
func (p *pageRequest) visitorCall() *wire.Call {
	c := *p.call
	c.Account, c.Session, c.Caller = nil, nil, realm.Caller{Client: c.Caller.Client}
	return &c
}

// confirmAddressPage asks for confirmation of a new email address; its button confirms. Opening the link changes
// nothing: programs that check the links of emails open it, too.
func (s *Server) confirmAddressPage(p *pageRequest) (web.View, error) {
	const title = "New address"
	c := p.visitorCall()
	if p.posted() {
		address, err := wire.ConfirmAddress(c, p.token())
		if err != nil {
			return web.Failure(title, s.errorText(err)), err
		}
		return web.Message(title, "From now on, log in as "+address+"."), nil
	}
	change, err := wire.FindAddressChange(c, p.token())
	if err != nil {
		return web.Failure(title, s.errorText(err)), err
	}
	return web.Confirm(title, "Use "+change.To+" as your address from now on?", "Confirm"), nil
}

// joinPage is the page of an invitation: it makes the account of the invited person.
func (s *Server) joinPage(p *pageRequest) (web.View, error) {
	c := p.visitorCall()
	invited, err := wire.FindInvite(c, p.token())
	if err != nil {
		return web.Failure("Invitation", s.errorText(err)), err
	}
	f := web.JoinForm{Inviter: invited.Inviter, Multi: invited.Multi, Email: invited.Email,
		Providers: providerButtons(c.Site, wire.ProviderLoginPath, "", appLogin{}, p.token())}
	if !p.posted() {
		return web.Join(invited.Org, f), nil
	}
	f.Name = p.field("full_name")
	if f.Multi {
		f.Email = p.field("email")
	}
	if err = s.countPasswordForm(p); err == nil {
		var id realm.UserID
		if id, err = wire.JoinByInvite(c, p.token(), f.Email, f.Name, p.field("password")); err == nil {
			return s.finishLogin(p, passedLogin{user: id, method: "invitation", next: "/"})
		}
	}
	view := web.Join(invited.Org, f)
	view.Error = s.formErrorText(err)
	return view, err
}
