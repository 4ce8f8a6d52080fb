package calls

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"parley/actors/realm"
	"parley/wire"
)

const (
	// tokenTime is for how long a token lets a user join: the page asks for one when the user clicks.
	tokenTime = 5 * time.Minute
	// apiTokenTime is the time of the tokens of this server's own requests.
	apiTokenTime = time.Minute
	// clockDifference is how much the clock of the LiveKit server can be behind.
	clockDifference = 30 * time.Second
	// requestTime limits a request to LiveKit.
	requestTime = 5 * time.Second
	// maxAnswer limits the answer of LiveKit in bytes: some kB for each person in a room.
	maxAnswer = 4 << 20
)

// claims are the claims of a token for LiveKit.
type claims struct {
	jwt.RegisteredClaims
	Name  string `json:"name,omitempty"`
	Video grants `json:"video"`
}

// grants are the rights of a token.
type grants struct {
	Room         string `json:"room,omitempty"`
	Join         bool   `json:"roomJoin,omitempty"`
	Create       bool   `json:"roomCreate,omitempty"`
	Admin        bool   `json:"roomAdmin,omitempty"`
	CanPublish   bool   `json:"canPublish"`
	CanSubscribe bool   `json:"canSubscribe"`
}

// livekit is a client of a LiveKit server.
type livekit struct {
	address, key, secret string
	http                 http.Client
	now                  func() time.Time
	numbers
}

// sign returns a token. The library signs it, as it checks the tokens of logins.
func (l *livekit) sign(identity, name string, g grants, valid time.Duration) (string, time.Time, error) {
	now := l.now()
	end := now.Add(valid)
	c := claims{Name: name, Video: g, RegisteredClaims: jwt.RegisteredClaims{Issuer: l.key, Subject: identity,
		NotBefore: jwt.NewNumericDate(now.Add(-clockDifference)), ExpiresAt: jwt.NewNumericDate(end)}}
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, c).SignedString([]byte(l.secret))
	return token, end, err
}

// errNoRoom is the error for a room that LiveKit does not have.
var errNoRoom = errors.New("the LiveKit server has no such room")

// ask sends a request to the room service, and counts it. That there is no such room is an answer.
func (l *livekit) ask(ctx context.Context, method, room string, body, into any) error {
	err := l.send(ctx, method, room, body, into)
	if err == nil || errors.Is(err, errNoRoom) {
		l.answered.Add(1)
	} else {
		l.failed.Add(1)
	}
	return err
}

func (l *livekit) send(ctx context.Context, method, room string, body, into any) error {
	token, _, err := l.sign("", "", grants{Room: room, Create: true, Admin: true}, apiTokenTime)
	if err != nil {
		return err
	}
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	address := "http" + strings.TrimPrefix(strings.TrimSuffix(l.address, "/"), "ws") // http of ws, https of wss
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address+"/twirp/livekit.RoomService/"+method,
		bytes.NewReader(text))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("User-Agent", "Parley/"+wire.Version)
	answer, err := l.http.Do(r)
	if err != nil {
		return fmt.Errorf("the LiveKit server does not answer: %w", err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("the LiveKit server does not answer: %w", err)
	case len(data) > maxAnswer:
		return fmt.Errorf("the answer of the LiveKit server has more than %d bytes", maxAnswer)
	case answer.StatusCode == http.StatusNotFound && strings.Contains(string(data), `"not_found"`):
		return errNoRoom
	case answer.StatusCode != http.StatusOK:
		return fmt.Errorf("the LiveKit server answered %s with status %d", method, answer.StatusCode)
	}
	return json.Unmarshal(data, into)
}

// createRoom makes a room, or changes nothing if it exists.
func (l *livekit) createRoom(ctx context.Context, room string) error {
	return l.ask(ctx, "CreateRoom", room, map[string]any{"name": room, "empty_timeout": realm.EmptyCallSeconds,
		"departure_timeout": realm.EmptyCallSeconds, "max_participants": realm.MaxCallPeople}, &struct{}{})
}

// people returns the identities of the people in a room.
func (l *livekit) people(ctx context.Context, room string) (list []string, err error) {
	var answer struct {
		Participants []struct {
			Identity string `json:"identity"`
		} `json:"participants"`
	}
	if err = l.ask(ctx, "ListParticipants", room, map[string]any{"room": room}, &answer); errors.Is(err, errNoRoom) {
		return nil, nil
	}
	for _, p := range answer.Participants {
		list = append(list, p.Identity)
	}
	return list, err
}

// remove removes a person from a room.
func (l *livekit) remove(ctx context.Context, room, identity string) error {
	err := l.ask(ctx, "RemoveParticipant", room, map[string]any{"room": room, "identity": identity}, &struct{}{})
	if errors.Is(err, errNoRoom) {
		return nil
	}
	return err
}

// deleteRoom removes a room and everybody in it.
func (l *livekit) deleteRoom(ctx context.Context, room string) error {
	err := l.ask(ctx, "DeleteRoom", room, map[string]any{"room": room}, &struct{}{})
	if errors.Is(err, errNoRoom) {
		return nil
	}
	return err
}
