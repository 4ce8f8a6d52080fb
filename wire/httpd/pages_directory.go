package httpd

import (
	"context"
	"errors"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/signon"
	"parley/wire/web"
)

// askDirectories returns the person with a name and a password in the directories of an organization, in the order of
// the file; nil if there is none. A directory that fails is an error only if no other one knows the person.
func (s *Server) askDirectories(c *wire.Call, name, password string) (found *wire.DirectoryPerson, err error) {
	var failure error
	for _, e := range s.options.SignOn.Directories(c.Site.Name) {
		var who signon.Identity
		err := s.callProvider(c.Realm, func(ctx context.Context) (err error) {
			who, err = e.Directory.LogIn(ctx, name, password)
			return err
		})
		switch {
		case errors.Is(err, signon.ErrNoEntry):
		case err != nil:
			s.options.Log.Warn("a directory does not answer a login", "realm", c.Realm, "method", e.Type+":"+e.Name,
				"err", err)
			failure = err
		default:
			return &wire.DirectoryPerson{Person: e.Person(who, true), Email: who.Email, FullName: signUpName(who),
				Provider: realm.LoginProvider{Type: e.Type, Name: e.Name, Display: e.Display}, Rules: who.Rules}, nil
		}
	}
	var failed *signon.Error
	if errors.As(failure, &failed) {
		return nil, realm.BadRequest("%s", failed.Reason)
	}
	return nil, failure
}

// logInByDirectory logs in a person that a directory has identified, like one at a provider with pages.
func (s *Server) logInByDirectory(
	p *pageRequest, app appLogin, d *wire.DirectoryPerson, next string,
) (web.View, error) {
	e := s.options.SignOn.Find(p.call.Site.Name, d.Provider.Type, d.Provider.Name)
	if e == nil {
		return pageNotFound()
	}
	who := signon.Identity{Issuer: d.Identity.Issuer, Subject: d.Identity.Subject, Email: d.Email,
		Verified: d.Email != "", Name: d.FullName, Rules: d.Rules, Fields: d.Fields}
	return s.acceptIdentity(p, e, signOnFlow{Type: e.Type, Name: e.Name, Next: next, Mobile: app.mobile,
		Desktop: app.desktop}, who)
}
