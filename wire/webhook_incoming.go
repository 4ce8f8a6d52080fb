package wire

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"sync"
	"time"

	"parley/actors/realm"
	"parley/wire/form"
	"parley/wire/integrations"
)

// incomingEndpoints receive the requests that other services send to an incoming-webhook bot. The address contains
// the bot's API key and the destination of its messages.
var incomingEndpoints = []Endpoint{
	Custom("POST", "/external/{integration}", receiveWebhook).allowWebhookBots().apiKeyInQuery().
		extension("requests of other services to an incoming-webhook bot"),
	Custom("HEAD", "/external/{integration}", checkWebhookAddress).allowWebhookBots().apiKeyInQuery().
		extension("some services check an address before they use it"),
}

// Integrations are the services that a server understands, with their description for clients.
type Integrations struct {
	set       *integrations.Set
	described Fragments // encoded once, because every registration contains the list
}

// NewIntegrations returns the integrations of a set.
func NewIntegrations(set *integrations.Set) *Integrations {
	list := each(set.Names(), func(name string) integrationJSON { return newIntegration(set.Find(name)) })
	return &Integrations{set, Fragments{sharedFragment(encode(list))}}
}

// includedIntegrations are those that are part of the program.
var includedIntegrations = sync.OnceValue(func() *Integrations {
	set, err := integrations.Included()
	if err != nil {
		panic("wire: the included integrations: " + err.Error()) // a test reads them all
	}
	return NewIntegrations(set)
})

// integrations returns the services of the server.
func (t *Tools) integrations() *Integrations {
	if t == nil || t.Integrations == nil {
		return includedIntegrations()
	}
	return t.Integrations
}

// integrationJSON describes a service for the page where users create bots.
type integrationJSON struct {
	Name    string         `json:"name"`
	Display string         `json:"display_name"`
	Types   []string       `json:"all_event_types" zero:"null"`
	Config  []configOption `json:"config_options"`
	Options []urlOption    `json:"url_options"`
}

type configOption struct {
	Key       string `json:"key"`
	Label     string `json:"label"`
	Validator string `json:"validator"`
}

type urlOption struct {
	Key   string `json:"key"`
	Label string `json:"label"`
	Type  string `json:"input_type"`
}

func newIntegration(s *integrations.Service) integrationJSON {
	out := integrationJSON{Name: s.Name, Display: s.Display, Types: s.EventTypes,
		Options: []urlOption{{"stream", "Channel", "text"}, {"topic", "Topic", "text"}}}
	for _, o := range s.Options {
		out.Options = append(out.Options, urlOption{o.Key, cmp.Or(o.Label, o.Key), cmp.Or(o.Type, "text")})
	}
	if s.Signature != nil {
		out.Config = []configOption{{integrations.SecretKey, "Secret of the signatures of " + s.Display,
			"check_string"}}
	}
	return out
}

// webhookAnswer has the fields that the service expects. Webhook and Event name an event without a message.
type webhookAnswer struct {
	Msg       string  `json:"msg"`
	OK        *bool   `json:"ok,omitzero"`
	Challenge string  `json:"challenge,omitzero"`
	Name      *string `json:"full_name,omitzero"`
	Email     *string `json:"email,omitzero"`
	Code      string  `json:"code,omitzero"`
	Webhook   string  `json:"webhook_name,omitzero"`
	Event     *string `json:"event_type,omitzero"`
}

type incomingWebhookForm struct {
	Integration string           `path:"integration"`
	Key         string           `form:"api_key"`
	Channel     string           `form:"stream,strip"`
	Topic       form.Opt[string] `form:"topic,strip"`
	Only        []string         `form:"only_events"`
	Except      []string         `form:"exclude_events"`
}

// receiveWebhook sends the messages of a service to the channel in the address, by name or id, or else to the bot's
// owner. If the channel does not exist, the bot's owner gets a warning and the service a success, because the service
// cannot repair it.
func receiveWebhook(c *Call, f incomingWebhookForm) (*webhookAnswer, error) {
	c.ignored = nil // the parameters of the service's own form
	service := c.Tools.integrations().set.Find(f.Integration)
	if service == nil {
		return nil, errUnknownIntegration
	}
	c.Caller.Client = service.Client
	request := integrations.Request{Body: c.Body(), ContentType: c.Header("Content-Type"), Header: c.Header,
		Params: url.Values{}, Person: func(address string) string { return personAt(c, address) }}
	c.Params.EachQuery(func(name, value string) { request.Params[name] = []string{value} })
	if err := checkSignature(c, service, request); err != nil {
		return nil, err
	}
	result, err := service.Handle(request, integrations.Filter{Only: f.Only, Except: f.Except})
	if err != nil {
		return webhookError(c, service, err)
	}
	for _, m := range result.Messages {
		if err := sendWebhookMessage(c, f, m); err != nil {
			return nil, err
		}
	}
	return newWebhookAnswer(c, result)
}

// personAt returns the name of the active user whose address the caller may see, or "".
func personAt(c *Call, address string) string {
	name, _ := Read(c, func(v realm.View) (string, error) {
		if u := v.FindByShownEmail(address); u != nil && u.Active {
			return u.Name, nil
		}
		return "", nil
	})
	return name
}

type webhookAddressForm struct {
	Integration string `path:"integration"`
}

// checkWebhookAddress answers a service that checks an address before it uses it, as Trello does.
func checkWebhookAddress(c *Call, f webhookAddressForm) (a noFields, _ error) {
	c.ignored = nil // the parameters of the address
	if c.Tools.integrations().set.Find(f.Integration) == nil {
		return a, errUnknownIntegration
	}
	return a, nil
}

// errUnknownIntegration refuses an address without a service.
var errUnknownIntegration = realm.Missing("Unknown integration")

// newWebhookAnswer returns the answer that a service expects.
func newWebhookAnswer(c *Call, result integrations.Result) (*webhookAnswer, error) {
	a := &webhookAnswer{Challenge: result.Answer.Challenge}
	if ok := result.Answer.OK; ok != "" {
		a.OK = ptr(ok == "true")
	}
	if !result.Identify {
		return a, nil
	}
	return Read(c, func(v realm.View) (*webhookAnswer, error) {
		a.Name, a.Email = ptr(v.Me().Name), ptr(apiEmail(v.UserInfo(v.User), c.Site))
		return a, nil
	})
}

// sendWebhookMessage sends one message of a service.
func sendWebhookMessage(c *Call, f incomingWebhookForm, m integrations.Message) error {
	channel := unescapedTwice(f.Channel)
	topic := m.Topic
	if f.Topic.Set && f.Topic.Value != "" {
		topic = unescapedTwice(f.Topic.Value)
	}
	cmd := realm.SendMessage{ToChannel: channel != "", ChannelName: channel, Topic: topic}
	if id, err := strconv.ParseInt(channel, 10, 64); err == nil {
		cmd.Channel = realm.ChannelID(id)
	}
	if channel == "" {
		owner, err := Read(c, func(v realm.View) (realm.UserID, error) {
			if me := v.Me(); me.IsBot() {
				return me.BotOwner, nil
			}
			return v.User, nil
		})
		if err != nil {
			return err
		}
		cmd.People = []realm.Principal{{ID: owner}}
	}
	text, err := realm.NormalizeContent(m.Text)
	if err != nil {
		return err
	}
	if cmd.Body, cmd.Content, err = render(c, text); err != nil {
		return err
	}
	if _, err = Execute(c, cmd); isNoSuchChannel(err) && c.Account.Bot != realm.Human {
		err = warnBotOwner(c, cmd)
	}
	return err
}

// unescapedTwice undoes a second percent-encoding, which some services apply to the address that a user enters.
func unescapedTwice(s string) string {
	if plain, err := url.PathUnescape(s); err == nil {
		return plain
	}
	return s
}

// checkSignature checks the signature of a request if the bot's owner has entered the service's secret.
func checkSignature(c *Call, s *integrations.Service, r integrations.Request) error {
	if s.Signature == nil || c.Account == nil || c.Account.Bot != realm.IncomingWebhook {
		return nil
	}
	secret, err := Read(c, func(v realm.View) (string, error) {
		if d := v.BotOf(v.User); len(d.Services) > 0 {
			return d.Services[0].Config[integrations.SecretKey], nil
		}
		return "", nil
	})
	if err != nil || secret == "" {
		return err
	}
	if s.Signature.Verify(r, secret, time.Now()) != nil {
		return realm.Refuse(realm.Unauthenticated, "UNAUTHORIZED",
			"The signature of the request does not fit the secret")
	}
	return nil
}

// webhookError returns the answer to a request that became no message. An event that the server has no text for is a
// success, so that the service continues to send others. The bot's owner gets a warning with the request, once a day
// for each fault and kind of event.
func webhookError(c *Call, s *integrations.Service, err error) (*webhookAnswer, error) {
	var (
		unsupported *integrations.Unsupported
		malformed   *integrations.Malformed
		missing     *integrations.Missing
		header      *integrations.MissingHeader
		refused     *integrations.Refused
	)
	event := ""
	if s.EventHeader != "" {
		event = " " + codeText(c.Header(s.EventHeader))
	}
	warn := func(kind, request string) error {
		_, err := Execute(c, realm.WarnBotOwnerOfPayload{
			Service: s.Name, Display: s.Display, Kind: kind + event, What: request,
			Request: integrations.Quoted(c.Body())})
		return err
	}
	switch {
	case errors.As(err, &unsupported):
		if err := warn("event "+unsupported.Event, "the event `"+codeText(unsupported.Event)+
			"`, for which there is no message"); err != nil {
			return nil, err
		}
		return &webhookAnswer{Code: "UNSUPPORTED_WEBHOOK_EVENT_TYPE", Webhook: s.Webhook, Event: &unsupported.Event,
			Msg: "The '" + unsupported.Event + "' event isn't currently supported by the " + s.Webhook +
				" webhook; ignoring"}, nil
	case errors.As(err, &malformed):
		if err := warn("malformed", "a request whose body could not be read"); err != nil {
			return nil, err
		}
		return nil, realm.Refuse(realm.Invalid, "INVALID_JSON", malformed.Message)
	case errors.As(err, &missing):
		if err := warn("parameter "+missing.Parameter, "a request without the parameter `"+missing.Parameter+
			"`"); err != nil {
			return nil, err
		}
		return nil, form.Missing(missing.Parameter)
	case errors.As(err, &header):
		if err := warn("header "+header.Header, "a request without the header `"+header.Header+"`"); err != nil {
			return nil, err
		}
		return nil, realm.BadRequest("Missing the HTTP event header '%s'", header.Header)
	case errors.As(err, &refused):
		if err := warn("refused", "a request that lacks needed data"); err != nil {
			return nil, err
		}
		return nil, realm.BadRequest("%s", refused.Message)
	}
	if err := warn("anomaly", "a request that is not as the service's requests are"); err != nil {
		return nil, err
	}
	return nil, realm.Refuse(realm.Invalid, "ANOMALOUS_WEBHOOK_PAYLOAD", "Unable to parse request: Did "+s.Webhook+
		" generate this event?").With("webhook_name", s.Webhook)
}

// codeText returns a text for the inside of backticks.
func codeText(s string) string {
	b, _ := json.Marshal(s) // escapes line ends and control characters
	out := []rune{}
	for _, r := range string(b[1 : len(b)-1]) {
		if r != '`' && len(out) < 60 {
			out = append(out, r)
		}
	}
	return string(out)
}
