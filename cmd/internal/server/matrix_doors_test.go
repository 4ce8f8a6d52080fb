package server

import (
	"fmt"
	"strings"
	"testing"

	"parley/wire"
)

// matrixAuthentication knocks at every endpoint with nothing but who one is. Whoever may not come in is told so before anything
// else is looked at: neither parameters nor what they name.
func matrixAuthentication(t *testing.T, l *coverage) {
	s := newMatrixStage(t, l)
	s.must(s.keeper, "DELETE", fmt.Sprintf("/users/%d", s.by["gone"].id))
	keyless := &matrixUser{name: "visitor", host: theirHost}
	member, owner := s.by["member"], s.by["owner"]
	impostor := &matrixUser{name: "member with another's key", email: member.email, key: owner.key, host: ourHost}
	guesser := &matrixUser{name: "member with a guessed key", email: member.email, key: strings.Repeat("a", len(member.key)), host: ourHost}
	hasty := &matrixUser{name: "member with half a key", email: member.email, key: member.key[:16], host: ourHost}
	strangers := s.outsiders()
	visitor, elsewhere := strangers[0], strangers[1]
	everybody := append(append([]*matrixUser{}, s.people...), visitor, elsewhere, s.by["webhook bot"], impostor, guesser, hasty)
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
		knock := func(p *matrixUser) string { return s.call(p, e.Method, path).msg() }
		name := e.Method + " " + e.Path
		switch {
		case e.Dev, e.APIKeyInQuery:
			continue
		case e.Open: // it does not ask who calls, and so cannot tell one from another
			want := s.send(visitor, e.Method, path).msg()
			for _, p := range everybody {
				s.check(knock(p), want, "%s: knocks at the open %s", p.name, name)
			}
			continue
		}
		for _, p := range []*matrixUser{s.by["gone"], elsewhere} {
			s.check(knock(p), loginError(p, false), "%s: knocks at %s", p.name, name)
		}
		for _, p := range []*matrixUser{impostor, guesser} {
			s.check(knock(p), "Invalid API key", "%s: knocks at %s", p.name, name)
		}
		s.check(knock(hasty), "Malformed API key", "%s: knocks at %s", hasty.name, name)
		s.check(knock(keyless), noLogin, "%s where none are let in: knocks at %s", keyless.name, name)
		if !e.Visitors {
			s.check(knock(visitor), noLogin, "%s: knocks at %s", visitor.name, name)
		}
		if bot := s.by["webhook bot"]; !e.AllowWebhookBots {
			s.check(knock(bot), "This API is not available to incoming webhook bots.", "%s: knocks at %s", bot.name, name)
		}
	}
	s.summary()
}
