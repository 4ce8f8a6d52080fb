package wire

import (
	"slices"

	"parley/actors/realm"
	"parley/wire/form"
)

// A scoped key is refused at each endpoint that its rights do not include. This file says which right an endpoint
// needs. An endpoint that is in no table needs RightRead if it only reads, and RightManage if not: so a new endpoint is
// never open to a key by mistake.

// endpointRights are the rights that endpoints need, where they are not those of their method.
var endpointRights = map[string]string{
	"POST /register":                     realm.RightRead,
	"DELETE /events":                     realm.RightRead,
	"POST /messages/render":              realm.RightRead,
	"POST /messages":                     realm.RightSend,
	"POST /typing":                       realm.RightSend,
	"POST /messages/{message_id}/typing": realm.RightSend,
	"POST /scheduled_messages":           realm.RightSend,
	"PATCH /scheduled_messages/{scheduled_message_id}":  realm.RightSend,
	"DELETE /scheduled_messages/{scheduled_message_id}": realm.RightSend,
	"POST /external/{integration}":                      realm.RightSend,
	"HEAD /external/{integration}":                      realm.RightSend,
	"GET /streams/{stream_id}/email_address":            realm.RightSend,
	"POST /messages/{message_id}/reactions":             realm.RightReact,
	"DELETE /messages/{message_id}/reactions":           realm.RightReact,
	"POST /submessage":                                  realm.RightReact,
	"PATCH /messages/{message_id}":                      realm.RightEdit,
	"DELETE /messages/{message_id}":                     realm.RightEdit,
	"POST /streams/{stream_id}/delete_topic":            realm.RightEdit,
	"POST /user_uploads":                                realm.RightUpload,
	"POST /tus":                                         realm.RightUpload,
	"PATCH /tus/{upload}":                               realm.RightUpload,
	"DELETE /tus/{upload}":                              realm.RightUpload,
	"GET /tus/{upload}":                                 realm.RightUpload,
	"HEAD /tus/{upload}":                                realm.RightUpload,
	"DELETE /attachments/{attachment_id}":               realm.RightUpload,
	"POST /assisted_texts":                              realm.RightRead,
	"DELETE /assisted_texts/{text_key}":                 realm.RightRead,
	"POST /reminders":                                   realm.RightRemind,
	"DELETE /reminders/{reminder_id}":                   realm.RightRemind,
	"POST /messages/flags":                              realm.RightMark,
	"POST /messages/flags/narrow":                       realm.RightMark,
	"POST /mark_all_as_read":                            realm.RightMark,
	"POST /mark_stream_as_read":                         realm.RightMark,
	"POST /mark_topic_as_read":                          realm.RightMark,
	"POST /user_topics":                                 realm.RightMark,
	"PATCH /users/me/subscriptions/muted_topics":        realm.RightMark,
	"GET /calls/bigbluebutton/create":                   realm.RightManage,
	"GET /invites":                                      realm.RightManage, // it has links with which users join
	"GET /export/realm":                                 realm.RightManage, // it has links to the data of all users
}

// credentialEndpoints return or make API keys, or check passwords. They refuse each scoped key: such keys would have
// rights that the scoped key does not have.
var credentialEndpoints = []string{
	"POST /users/me/api_keys", "POST /users/{user_id}/api_keys", "POST /users/me/api_key/regenerate",
	"GET /bots", "POST /bots", "GET /bots/{bot_id}/api_key", "POST /bots/{bot_id}/api_key/regenerate",
	"POST /users/me/confirmation",   // of browser sessions
	"GET /bots/{bot_id}/deliveries", // with the secret of the signatures
	"POST /users/me/data_exports",   // its file has more than the rights of a key
}

// placeEndpoints are the endpoints for keys that are limited to channels: the realm limits what they return to the
// channels and topics of the key, or they return nothing about channels.
var placeEndpoints = []string{
	"GET /messages", "GET /messages/{message_id}", "GET /messages/matches_narrow",
	"GET /messages/{message_id}/read_receipts",
	"POST /messages", "PATCH /messages/{message_id}", "DELETE /messages/{message_id}",
	"POST /messages/{message_id}/reactions", "DELETE /messages/{message_id}/reactions", "POST /submessage",
	"POST /register", "GET /events", "DELETE /events",
	"GET /streams", "GET /streams/{stream_id}", "GET /streams/{stream_id}/members", "GET /get_stream_id",
	"GET /users/me/{stream_id}/topics",
	"GET /users", "GET /users/me", "GET /users/{user_id}", "GET /users/{email}",
	"GET /realm/emoji", "GET /realm/linkifiers",
	"POST /user_uploads", "GET /user_uploads/{realm_id_str}/{filename:*}",
	"GET /thumbnail/status/{realm_id_str}/{filename:*}",
	"POST /reminders", "POST /external/{integration}", "HEAD /external/{integration}",
}

// Right returns the right that a scoped key needs for the endpoint, "" if no scoped key is allowed to use it.
func (e *Endpoint) Right() string {
	if slices.Contains(credentialEndpoints, e.name) {
		return ""
	}
	if right := endpointRights[e.name]; right != "" {
		return right
	}
	if e.Method == "GET" || e.Method == "HEAD" || e.Method == "OPTIONS" {
		return realm.RightRead
	}
	return realm.RightManage
}

// scopedKey returns the scoped key that the call was sent with, or nil.
func (c *Call) scopedKey() *realm.KeyInfo {
	if c.Account == nil {
		return nil
	}
	if k := c.Account.AdditionalKey(c.Caller.Key); k != nil && k.Scope != nil {
		return k
	}
	return nil
}

// KeyScope returns the scope of the API key that the call was sent with; nil: all rights of the account.
func (c *Call) KeyScope() *realm.KeyScope {
	if k := c.scopedKey(); k != nil {
		return k.Scope
	}
	return nil
}

// CheckPollScope refuses a call whose key is not allowed to poll event queues. Run checks the keys of other calls;
// polls on a loop and streams of agents do not use it.
func CheckPollScope(c *Call) error { return namedEndpoints["GET /events"].checkScope(c) }

// checkScope refuses a call outside the scope of its key.
func (e *Endpoint) checkScope(c *Call) error {
	s := c.KeyScope()
	if s == nil {
		return nil
	}
	if !s.HasAddress(c.Address) {
		return realm.ErrKeyScope("This API key is not allowed to be used from this network.")
	}
	switch right := e.Right(); {
	case right == "":
		return realm.ErrKeyScope("A limited API key cannot read or create API keys.")
	case !s.Has(right):
		return realm.ErrKeyScope("This API key does not have the right '" + right + "'.")
	case !s.HasEndpoint(e.name), s.Limited() && !slices.Contains(placeEndpoints, e.name):
		return realm.ErrKeyScope("This API key is not allowed to use this endpoint.")
	}
	return nil
}

// scopeForm limits a new key.
type scopeForm struct {
	Rights    []string              `form:"rights,required,maxitems=20"`
	Channels  form.Opt[[]placeForm] `form:"channels,maxitems=50"`
	Direct    bool                  `form:"direct_messages"`
	Endpoints form.Opt[[]string]    `form:"endpoints,maxitems=50,maxlen=100"`
	Networks  form.Opt[[]string]    `form:"networks,maxitems=20,maxlen=50"`
}

type placeForm struct {
	Channel realm.ChannelID `form:"channel_id,required"`
	Topic   *string         `form:"topic"` // nil: all topics
}

// scope returns the scope of a form; a nil form is the whole account.
func (f *scopeForm) scope() (*realm.KeyScope, error) {
	if f == nil {
		return nil, nil
	}
	s := &realm.KeyScope{Rights: f.Rights, Direct: f.Direct}
	if f.Channels.Set {
		s.Places = []realm.KeyPlace{}
		for _, p := range f.Channels.Value {
			s.Places = append(s.Places, realm.KeyPlace{Channel: p.Channel, Topic: p.Topic})
		}
	}
	if f.Endpoints.Set {
		s.Endpoints = f.Endpoints.Value
	}
	if f.Networks.Set {
		s.Networks = f.Networks.Value
	}
	return s, CheckEndpointNames(s.Endpoints)
}

// namedEndpoints has each endpoint by its name. init fills it, because the endpoints refer to it.
var namedEndpoints = map[string]*Endpoint{}

func init() {
	for i := range endpoints {
		namedEndpoints[endpoints[i].name] = &endpoints[i]
	}
}

// CheckEndpointNames refuses names that no endpoint has.
func CheckEndpointNames(names []string) error {
	for _, n := range names {
		if namedEndpoints[n] == nil {
			return realm.BadRequest("There is no endpoint '%s'. An endpoint is named like this: "+
				"GET /messages/{message_id}", n)
		}
	}
	return nil
}

// scopeJSON is the scope of a key in a list.
type scopeJSON struct {
	Rights    []string    `json:"rights"`
	Channels  []placeJSON `json:"channels" zero:"null"`
	Direct    bool        `json:"direct_messages"`
	Endpoints []string    `json:"endpoints" zero:"null"`
	Networks  []string    `json:"networks" zero:"null"`
}

type placeJSON struct {
	Channel realm.ChannelID `json:"channel_id"`
	Topic   *string         `json:"topic"` // null: all topics
}

func newScope(s *realm.KeyScope) *scopeJSON {
	if s == nil {
		return nil
	}
	out := &scopeJSON{Rights: s.Rights, Direct: s.Direct, Endpoints: s.Endpoints, Networks: s.Networks}
	if s.Places != nil {
		out.Channels = []placeJSON{}
	}
	for _, p := range s.Places {
		out.Channels = append(out.Channels, placeJSON(p))
	}
	return out
}
