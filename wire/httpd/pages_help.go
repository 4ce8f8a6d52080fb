package httpd

import (
	"parley/actors/realm"
	"parley/wire"
	"parley/wire/web"
)

// helpPages are the pages with which operators log in as users that asked for help.
var helpPages = []pageRoute{{path: wire.HelpPath + "{token}", handle: (*Server).helpPage, posts: true}}

// helpPage asks an operator whether they want to log in as a user; its button does that. Opening the link changes
// nothing, because other programs may open it, too.
func (s *Server) helpPage(p *pageRequest) (web.View, error) {
	const title = "Log in to help"
	c := p.visitorCall()
	hash := s.options.Tools.HashKey(p.token())
	a, session := s.options.Server.AccountBySessionHash(hash)
	if session == nil || !session.IsHelp() || session.Agent != "" || a.Realm != c.Realm || !a.Active ||
		s.now().Unix() >= session.Expires() {
		err := realm.ErrHelpLink()
		return web.Failure(title, s.errorText(err)), err
	}
	if !p.posted() {
		return web.Confirm(title, "Log in as "+a.Email+" to help? The user sees this login and can end it.",
			"Log in"), nil
	}
	c.Account, c.Session, c.Caller.User, c.Caller.Session = a, session, a.User, hash
	opened, err := wire.Execute(c, realm.BeginHelpSession{Agent: c.Agent, Address: c.Address})
	if err != nil {
		return web.Failure(title, s.errorText(err)), err
	}
	s.logIn(p.ctx, p.call, opened)
	p.redirect = "/"
	return web.View{}, nil
}
