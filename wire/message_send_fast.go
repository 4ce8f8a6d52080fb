package wire

import (
	"strings"

	"parley/actors/realm"
	"parley/wire/form"
)

// FastSend is the fast path of POST /messages, for callers that must not block, such as the loop that reads
// requests.
type FastSend struct {
	command realm.SendMessage
	ignored []string
}

// fastSendName is the name of the endpoint in metrics.
const fastSendName = "POST /messages"

var sendingForm = form.Of[sendForm]()

// maxFastSendBytes is the longest text, in bytes, that is rendered while other requests wait: about 50 µs.
const maxFastSendBytes = 2 << 10

// Prepare decodes and renders a message. It reports false, without side effects, if it would block or take long,
// or if the message is out of the ordinary or must be refused. Then the caller uses the endpoint, which knows all
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
	return 200, Success(sendAnswer(v.(realm.SendResult)), s.ignored)
}
