package actors

import (
	"parley/actors/calendar"
	"parley/actors/realm"
)

// Renderer renders texts that become part of facts: messages of the server itself, descriptions and topics. Its methods
// are called inside a turn. Package wire implements it.
type Renderer interface {
	RenderInTurn(text string, v realm.View, site realm.Site) (realm.Body, realm.ContentInfo)
	RenderDescription(text string, v realm.View, site realm.Site) string
	TopicLinks(topic string, v realm.View, site realm.Site) []realm.TopicLink
	// ForgetRealm drops the renderer's cache of a realm: it may come from facts that were not stored.
	ForgetRealm(realm.ID)
}

// turnEnv returns the access that a realm's turns have to the outside world. The actor sets the time for each turn.
func (srv *Server) turnEnv(r *realmHandle) realm.TurnEnv {
	return realm.TurnEnv{
		Now: srv.now().Unix(), Token: srv.runtime.Token, UUID: srv.runtime.UUID, Hash: HashKey,
		APIKey:          func(u realm.UserID, epoch int64) string { return srv.apiKey(r.id, u, epoch) },
		PushEnabled:     srv.pushEnabled.Load(),
		PushBouncer:     srv.bouncerEnabled.Load(),
		InviteLinkToken: func(id int64) string { return srv.LinkToken(r.id, id) },
		NextRepeat:      calendar.Next,
		RenderMessage: func(text string, v realm.View) (realm.Body, realm.ContentInfo) {
			return srv.renderer.RenderInTurn(text, v, r.sessions.Site)
		},
		RenderDescription: func(text string, v realm.View) string {
			return srv.renderer.RenderDescription(text, v, r.sessions.Site)
		},
		TopicLinks: func(topic string, v realm.View) []realm.TopicLink {
			return srv.renderer.TopicLinks(topic, v, r.sessions.Site)
		},
	}
}
