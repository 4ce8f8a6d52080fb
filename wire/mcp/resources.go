package mcp

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/actors/realm"
	"parley/wire"
)

// place is the subject of a resource: a channel, a topic, or a direct conversation.
type place struct {
	Channel int64
	Topic   *string // nil: all topics
	Users   []int64 // of a direct conversation
}

// narrow returns the terms that select the messages of a place.
func (p place) narrow() []term {
	if p.Channel == 0 {
		return []term{{Operator: "dm", Operand: p.Users}}
	}
	out := []term{{Operator: "channel", Operand: p.Channel}}
	if p.Topic != nil {
		out = append(out, term{Operator: "topic", Operand: *p.Topic})
	}
	return out
}

// has reports whether a message in a topic belongs to a place; nil: the topic is not known.
func (p place) has(channel int64, topic *string) bool {
	return p.Channel == channel && (p.Topic == nil || topic == nil || strings.EqualFold(*p.Topic, *topic))
}

const (
	uriPrefix     = "parley://"
	maxURI        = 1000 // bytes; a topic of 60 characters in percent encoding has 720
	resourcePage  = 100  // channels of one answer
	resourceLimit = 50   // messages of a resource
	// maxUsersOfURI is the number of users of a direct conversation in a URI.
	maxUsersOfURI = 50
)

// parseURI returns the place of a resource.
func parseURI(uri string) (place, bool) {
	rest, ok := strings.CutPrefix(uri, uriPrefix)
	if !ok || len(uri) > maxURI || strings.ContainsFunc(uri, unicode.IsControl) {
		return place{}, false
	}
	parts := strings.Split(rest, "/")
	switch {
	case parts[0] == "channel" && (len(parts) == 2 || len(parts) == 4 && parts[2] == "topic"):
		id, err := strconv.ParseInt(parts[1], 10, 32)
		if err != nil || id <= 0 {
			return place{}, false
		}
		p := place{Channel: id}
		if len(parts) == 4 {
			topic, err := url.PathUnescape(parts[3])
			if err != nil || utf8.RuneCountInString(topic) > realm.MaxTopic {
				return place{}, false
			}
			p.Topic = &topic
		}
		return p, true
	case parts[0] == "direct" && len(parts) == 2:
		p := place{}
		for id := range strings.SplitSeq(parts[1], ",") {
			n, err := strconv.ParseInt(id, 10, 32)
			if err != nil || n <= 0 || len(p.Users) == maxUsersOfURI {
				return place{}, false
			}
			p.Users = append(p.Users, n)
		}
		return p, true
	}
	return place{}, false
}

type resourceTemplate struct {
	Template    string `json:"uriTemplate"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Type        string `json:"mimeType"`
}

var resourceTemplates = map[string]any{"resourceTemplates": []resourceTemplate{
	{uriPrefix + "channel/{channel_id}", "channel", "The newest messages of a channel.", "application/json"},
	{uriPrefix + "channel/{channel_id}/topic/{topic}", "topic", "The newest messages of a topic.", "application/json"},
	{uriPrefix + "direct/{user_ids}", "direct conversation",
		"The newest direct messages with users, whose ids are separated by commas.", "application/json"},
}}

type resource struct {
	URI         string `json:"uri"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Type        string `json:"mimeType"`
}

type listParams struct {
	Cursor string `json:"cursor"`
}

// listResources lists the channels, some with each answer.
func (s *Server) listResources(c *wire.Call, raw json.RawMessage) (any, error) {
	var p listParams
	from := 0
	if len(raw) > 0 && json.Unmarshal(raw, &p) != nil {
		return nil, invalidParams("Invalid parameters")
	}
	if p.Cursor != "" {
		var err error
		if from, err = strconv.Atoi(p.Cursor); err != nil || from < 0 {
			return nil, invalidParams("Invalid cursor")
		}
	}
	list, err := s.channels(c)
	if err != nil {
		return nil, err
	}
	out := []resource{}
	from = min(from, len(list))
	for _, x := range list[from:min(len(list), from+resourcePage)] {
		out = append(out, resource{fmt.Sprint(uriPrefix, "channel/", x.ID), x.Name, x.Description, "application/json"})
	}
	answer := map[string]any{"resources": out}
	if from+resourcePage < len(list) {
		answer["nextCursor"] = strconv.Itoa(from + resourcePage)
	}
	return answer, nil
}

type uriParams struct {
	URI string `json:"uri"`
}

func errNoResource() *rpcError { return &rpcError{codeNoResource, "Resource not found"} }

func parsePlace(raw json.RawMessage) (string, place, error) {
	var p uriParams
	if json.Unmarshal(raw, &p) != nil || p.URI == "" {
		return "", place{}, invalidParams("uri is missing")
	}
	x, ok := parseURI(p.URI)
	if !ok {
		return "", place{}, errNoResource()
	}
	return p.URI, x, nil
}

// messagesOf returns the messages of a resource. A resource that the caller cannot read does not exist.
func (s *Server) messagesOf(c *wire.Call, p place, limit int) (any, error) {
	if !mayUse(c, realm.RightRead) {
		return nil, errNoResource()
	}
	a, err := s.messages(c, p.narrow(), 0, limit)
	if err != nil {
		if realm.IsBusy(err) {
			return nil, err
		}
		return nil, errNoResource()
	}
	return a, nil
}

func (s *Server) readResource(c *wire.Call, raw json.RawMessage) (any, error) {
	uri, p, err := parsePlace(raw)
	if err != nil {
		return nil, err
	}
	a, err := s.messagesOf(c, p, resourceLimit)
	if err != nil {
		return nil, err
	}
	return map[string]any{"contents": []map[string]string{
		{"uri": uri, "mimeType": "application/json", "text": untrusted + bounded(a)},
	}}, nil
}

// subscribe adds or removes a subscription of the session.
func (s *Server) subscribe(c *wire.Call, raw json.RawMessage, id string, add bool) (any, error) {
	uri, p, err := parsePlace(raw)
	if err != nil {
		return nil, err
	}
	x := s.sessions.find(c, []byte(id), s.now())
	if x == nil {
		return nil, errNoSession()
	}
	uri = string(encode(uri))
	if !add {
		s.sessions.unsubscribe(x, uri)
		return struct{}{}, nil
	}
	if _, err := s.messagesOf(c, p, 1); err != nil {
		return nil, err
	}
	if err := s.openQueue(c, x); err != nil {
		return nil, err
	}
	if len(p.Users) > 0 { // events name all users of the conversation
		if me := int64(c.Caller.User); !slices.Contains(p.Users, me) {
			p.Users = append(p.Users, me)
		}
		slices.Sort(p.Users)
		p.Users = slices.Clip(slices.Compact(p.Users))
	}
	return struct{}{}, s.sessions.subscribe(x, subscription{uri, p})
}

func errNoSession() error { return &rpcError{codeInvalidRequest, "A subscription needs a session"} }
