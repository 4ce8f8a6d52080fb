package assist

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// A model sends an answer in pieces as server-sent events. The data of each is a chatPiece; that of the last is [DONE].

// noStreamStatus are the answers of services that do not send pieces, or do not know an option of the request.
var noStreamStatus = []int{http.StatusBadRequest, http.StatusNotFound, http.StatusUnsupportedMediaType,
	http.StatusUnprocessableEntity, http.StatusNotImplemented}

// streamOption asks for a last piece with the tokens.
type streamOption struct {
	Usage bool `json:"include_usage"`
}

// chatPiece is a piece of an answer in OpenAI's chat completions.
type chatPiece struct {
	Choices []struct {
		Delta struct {
			Content string `json:"content"`
		} `json:"delta"`
		Finished string `json:"finish_reason"`
	} `json:"choices"`
	Usage json.RawMessage `json:"usage"`
	Error json.RawMessage `json:"error"`
}

var (
	errPause  = errors.New("the service sent a part of an answer, and then nothing")
	errBroken = errors.New("the answer ends in the middle")
)

// askForPieces asks the model for an answer in pieces, and calls show with the text so far. A service may send the
// whole as well.
func (a *Assistant) askForPieces(
	ctx context.Context, j job, r chatRequest, show func(string),
) (string, int64, error) {
	r.Stream, r.Options = true, &streamOption{true}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	res, err := a.send(ctx, j, a.o.AssistURL, "/chat/completions", a.modelKey, r)
	if err != nil {
		return "", 0, err
	}
	defer res.Body.Close()
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind != "text/event-stream" {
		var out chatAnswer
		if err := decode(res.Body, maxAnswer, &out); err != nil {
			return "", 0, err
		}
		return out.text()
	}
	pause := time.AfterFunc(a.o.Timeout, func() { stop(errPause) })
	defer pause.Stop()
	var s stream
	lines := bufio.NewScanner(io.LimitReader(res.Body, maxStream))
	lines.Buffer(nil, maxAnswer)
	for !s.ended && lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data:"))
		if !ok {
			continue // a comment, the name of an event, or the end of one
		}
		pause.Reset(a.pause)
		more, err := s.add(bytes.TrimSpace(data))
		if err != nil {
			return "", 0, err
		}
		if more {
			show(s.text.String())
		}
	}
	if s.finished { // whatever comes after it
		return s.text.String(), s.cost, nil
	}
	if err = lines.Err(); err == nil {
		err = errBroken
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return "", 0, err
}

// stream collects the pieces of an answer.
type stream struct {
	text       strings.Builder
	characters int
	cost       int64
	finished   bool // the text is complete
	ended      bool // nothing of use follows
}

// add adds the data of an event, and reports whether there is more text.
func (s *stream) add(data []byte) (more bool, err error) {
	if string(data) == "[DONE]" {
		s.finished, s.ended = true, true
		return false, nil
	}
	var p chatPiece
	if err := json.Unmarshal(data, &p); err != nil {
		return false, fmt.Errorf("a piece of the answer is not the expected JSON: %w", err)
	}
	if len(p.Error) > 0 && string(p.Error) != "null" {
		return false, errors.New("the service sent an error in the middle of an answer")
	}
	if n := totalTokens(p.Usage); n != 0 {
		s.cost = n
	}
	if len(p.Choices) == 0 || s.finished {
		return false, nil
	}
	c := p.Choices[0]
	if c.Finished == "error" {
		return false, errBroken
	}
	s.text.WriteString(c.Delta.Content)
	s.characters += utf8.RuneCountInString(c.Delta.Content)
	s.finished = c.Finished != ""
	if s.characters > maxText { // the rest would be cut
		s.finished, s.ended = true, true
	}
	return c.Delta.Content != "", nil
}
