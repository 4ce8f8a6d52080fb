package wire

import (
	"strings"

	"parley/actors/realm"
	"parley/wire/form"
)

// FastSend is POST /messages for callers that must not wait, such as the loop that reads requests.
type FastSend struct {
	command realm.SendMessage
	ignored []string
}

// fastSendName is the endpoint's name, so that metrics count both together.
const fastSendName = "POST /messages"

var sendingForm = form.Of[sendForm]()

// maxFastSendBytes is the longest text that is rendered while other requests wait: about 50 µs.
const maxFastSendBytes = 2 << 10

// Prepare decodes and renders a message. It returns false and does nothing if it would have to wait or take long. The
// same holds if the request is unusual or would be refused. Then the endpoint handles the request, which implements all
// rules.
func (s *FastSend) Prepare(c *Call) bool {
	if c.Account == nil || c.Account.Bot != realm.Human {
		return false
	}
	var f sendForm
	if err := sendingForm.Decode(c.Params, &f); err != nil {
		return false
	}
	if !f.To.IsSet() || f.Widget.Set || len(f.Content) > maxFastSendBytes || strings.Contains(f.Content, "$$") ||
		strings.Contains(f.Content, "```") || strings.Contains(f.Content, "~~~") {
		return false
	}
	cmd, text, err := f.commandWithoutBody(c)
	if err != nil {
		return false
	}
	if cmd.Body, cmd.Content, err = c.Tools.Renderer.renderWithoutWaiting(c, text); err != nil {
		return false
	}
	c.Caller.Operation = fastSendName
	s.command, s.ignored = cmd, sendingForm.Ignored(c.Params)
	return true
}

// Decide runs the command in its turn.
func (s *FastSend) Decide(t *realm.Turn) (any, error) { return s.command.Decide(t) }

// Response returns the status and body of the answer.
func (s *FastSend) Response(v any, err error) (status int, body []byte) {
	if err != nil {
		return Failure(err)
	}
	return 200, Success(newSentAnswer(v.(realm.SendResult)), s.ignored)
}
