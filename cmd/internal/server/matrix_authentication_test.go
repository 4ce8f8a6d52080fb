package server

import (
	"fmt"
	"strings"
	"testing"

	"parley/wire"
)

// openParams are the required parameters of endpoints that do not authenticate callers.
var openParams = map[string]pairs{
	"POST /fetch_api_key": {"username", "nobody@" + ourHost, "password", "wrong"},
	"POST /remotes/push/e2ee/register": {"realm_uuid", "x", "token_id", "x", "encrypted_push_registration", "x",
		"bouncer_public_key", "x"},
}

// matrixAuthentication sends requests without parameters to every endpoint; only open ones get their required
// parameters. A caller that is not let in gets that error before parameters or the objects they name are looked at.
func matrixAuthentication(t *testing.T, l *coverage) {
	s := newMatrixStage(t, l)
	s.must(s.keeper, "DELETE", fmt.Sprintf("/users/%d", s.by["gone"].id))
	keyless := &matrixUser{name: "visitor", host: theirHost}
	member, owner := s.by["member"], s.by["owner"]
	impostor := &matrixUser{name: "member with another's key", email: member.email, key: owner.key, host: ourHost}
	guesser := &matrixUser{name: "member with a guessed key", email: member.email,
		key: strings.Repeat("a", len(member.key)), host: ourHost}
	hasty := &matrixUser{name: "member with half a key", email: member.email, key: member.key[:16], host: ourHost}
	forger := &matrixUser{name: "a page of another site", host: ourHost}
	if owner.session != nil {
		forger.session = &matrixSession{secret: owner.session.secret, csrf: owner.session.csrf, withoutToken: true}
	}
	strangers := s.outsiders()
	visitor, elsewhere := strangers[0], strangers[1]
	everybody := append(append([]*matrixUser{}, s.people...), visitor, elsewhere, s.by["webhook bot"], impostor,
		guesser, hasty)
	for _, e := range wire.Endpoints() {
		path := e.Path
		for strings.Contains(path, "{") {
			from, to := strings.Index(path, "{"), strings.Index(path, "}")
			fill := "1"
			if path[from:to+1] == "{email}" {
				fill = "nobody@" + ourHost
			}
			path = path[:from] + fill + path[to+1:]
		}
		name := e.Method + " " + e.Path
		params := openParams[name]
		ask := func(p *matrixUser) string { return s.call(p, e.Method, path, params...).msg() }
		switch {
		case e.Dev, e.APIKeyInQuery:
			continue
		case e.Open: // it does not authenticate callers, so all get the same answer
			want := s.send(visitor, e.Method, path, params...).msg()
			for _, p := range everybody {
				s.check(ask(p), want, "%s: asks the open %s", p.name, name)
			}
			continue
		}
		for _, p := range []*matrixUser{s.by["gone"], elsewhere} {
			if p.isVisitor() && e.Visitors {
				s.check(ask(p), s.send(visitor, e.Method, path).msg(), "%s: asks %s as a visitor", p.name, name)
				continue
			}
			s.check(ask(p), loginError(p, false), "%s: asks %s", p.name, name)
		}
		for _, p := range []*matrixUser{impostor, guesser} {
			s.check(ask(p), "Invalid API key", "%s: asks %s", p.name, name)
		}
		if forger.session != nil && e.Method != "GET" && forger.prefix(e.Method, path) == "/json" {
			s.check(ask(forger), "CSRF error: CSRF token missing.", "%s: asks %s", forger.name, name)
		}
		s.check(ask(hasty), "Malformed API key", "%s: asks %s", hasty.name, name)
		s.check(ask(keyless), noLogin, "%s where visitors are not let in: asks %s", keyless.name, name)
		if !e.Visitors {
			s.check(ask(visitor), noLogin, "%s: asks %s", visitor.name, name)
		}
		if bot := s.by["webhook bot"]; !e.AllowWebhookBots {
			s.check(ask(bot), "This API is not available to incoming webhook bots.", "%s: asks %s", bot.name, name)
		}
	}
	s.summary()
}
