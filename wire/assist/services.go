package assist

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"parley/wire"
)

// errNoText is the error of an answer without a text.
var errNoText = errors.New("the answer has no text")

// statusError is a status that is not 200.
type statusError int

func (e statusError) Error() string {
	return fmt.Sprintf("the service answered with status %d", int(e))
}

// chatMessage is a message of OpenAI's chat completions.
type chatMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type chatRequest struct {
	Model       string        `json:"model"`
	Messages    []chatMessage `json:"messages"`
	MaxTokens   int64         `json:"max_tokens"`
	Temperature float64       `json:"temperature"`
	Stream      bool          `json:"stream"`
	Options     *streamOption `json:"stream_options,omitempty"`
}

type chatAnswer struct {
	Choices []struct {
		Message chatMessage `json:"message"`
	} `json:"choices"`
	Usage json.RawMessage `json:"usage"`
}

// askModel sends a job to the model. With show, it asks for the answer in pieces; a service that refuses this is asked
// for the whole.
func (a *Assistant) askModel(ctx context.Context, j job, show func(string)) (text string, cost int64, err error) {
	r := chatRequest{Model: a.o.AssistModel, Messages: []chatMessage{{"system", j.instruction}, {"user", j.text}},
		MaxTokens: j.written, Temperature: 0.2}
	if show != nil {
		text, cost, err = a.askForPieces(ctx, j, r, show)
		var status statusError
		if !errors.As(err, &status) || !slices.Contains(noStreamStatus, int(status)) {
			return text, cost, err
		}
	}
	var out chatAnswer
	if err = a.post(ctx, j, a.o.AssistURL, "/chat/completions", a.modelKey, r, &out); err != nil {
		return "", 0, err
	}
	return out.text()
}

// text returns the text of an answer and its cost.
func (c *chatAnswer) text() (string, int64, error) {
	if len(c.Choices) == 0 {
		return "", 0, errNoText
	}
	return c.Choices[0].Message.Content, totalTokens(c.Usage), nil
}

// totalTokens returns the tokens that a service counts; 0: unknown. The text is of use without them.
func totalTokens(usage json.RawMessage) int64 {
	var u struct {
		Total int64 `json:"total_tokens"`
	}
	_ = json.Unmarshal(usage, &u)
	return u.Total
}

// translatorCodes are the codes of LibreTranslate that are not the first part of the protocol's codes.
var translatorCodes = map[string]string{"zh-hant": "zt", "zh-tw": "zt", "pt-br": "pb", "no": "nb"}

type translationRequest struct {
	Text   string `json:"q"`
	Source string `json:"source"`
	Target string `json:"target"`
	Format string `json:"format"`
	Key    string `json:"api_key,omitempty"`
}

// askTranslator sends a text to the LibreTranslate server.
func (a *Assistant) askTranslator(ctx context.Context, j job, language string) (string, int64, error) {
	code, ok := translatorCodes[language]
	if !ok {
		code, _, _ = strings.Cut(language, "-")
	}
	var out struct {
		Text string `json:"translatedText"`
	}
	err := a.post(ctx, j, a.o.TranslateURL, "/translate", "", translationRequest{j.text, "auto", code, "text",
		a.translatorKey}, &out)
	return out.Text, 0, err
}

// post sends JSON to a service and decodes its answer.
func (a *Assistant) post(ctx context.Context, j job, base, path, key string, body, into any) error {
	res, err := a.send(ctx, j, base, path, key, body)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	return decode(res.Body, maxAnswer, into)
}

// send sends JSON to a service and returns its answer with status 200. The caller closes its body. Nothing is sent for
// an organization that does not allow it at this moment.
func (a *Assistant) send(ctx context.Context, j job, base, path, key string, body any) (*http.Response, error) {
	if a.o.Ask != nil {
		if err := a.o.Ask(j.realm, j.place); err != nil {
			return nil, err
		}
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(base, "/")+path,
		bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "Parley/"+wire.Version)
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := a.client.Do(r)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		res.Body.Close()
		return nil, statusError(res.StatusCode)
	}
	return res, nil
}

// decode reads an answer in JSON of at most limit bytes.
func decode(body io.Reader, limit int, into any) error {
	answer, err := io.ReadAll(io.LimitReader(body, int64(limit)+1))
	switch {
	case err != nil:
		return err
	case len(answer) > limit:
		return fmt.Errorf("the answer has more than %d bytes", limit)
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("the answer is not the expected JSON: %w", err)
	}
	return nil
}
