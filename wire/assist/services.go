package assist

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
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
}

type chatAnswer struct {
	Choices []struct {
		Message chatMessage `json:"message"`
	} `json:"choices"`
	Usage json.RawMessage `json:"usage"`
}

// askModel sends a job to the model. It asks for the whole answer at once, because a part of one cannot be cached.
func (a *Assistant) askModel(ctx context.Context, j job) (text string, cost int64, err error) {
	var out chatAnswer
	err = a.post(ctx, a.o.AssistURL, "/chat/completions", a.modelKey, chatRequest{Model: a.o.AssistModel,
		Messages: []chatMessage{{"system", j.instruction}, {"user", j.text}}, MaxTokens: j.written,
		Temperature: 0.2}, &out)
	if err != nil {
		return "", 0, err
	}
	if len(out.Choices) == 0 {
		return "", 0, errNoText
	}
	var usage struct {
		Total int64 `json:"total_tokens"`
	}
	_ = json.Unmarshal(out.Usage, &usage) // the text is of use without it
	return out.Choices[0].Message.Content, usage.Total, nil
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
func (a *Assistant) askTranslator(ctx context.Context, text, language string) (string, int64, error) {
	code, ok := translatorCodes[language]
	if !ok {
		code, _, _ = strings.Cut(language, "-")
	}
	var out struct {
		Text string `json:"translatedText"`
	}
	err := a.post(ctx, a.o.TranslateURL, "/translate", "", translationRequest{text, "auto", code, "text",
		a.translatorKey}, &out)
	return out.Text, 0, err
}

// post sends JSON to a service and decodes its answer.
func (a *Assistant) post(ctx context.Context, base, path, key string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(base, "/")+path,
		bytes.NewReader(text))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "Parley/"+wire.Version)
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := a.client.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return statusError(res.StatusCode)
	}
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return err
	case len(answer) > maxAnswer:
		return fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("the answer is not the expected JSON: %w", err)
	}
	return nil
}
