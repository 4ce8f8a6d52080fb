package wire

import (
	"strconv"
	"strings"

	"parley/actors/realm"
	"parley/wire/form"
)

// FastSend is a message on its way that nobody waits for: POST /messages for who must not wait for anything, such as the
// loop that reads requests.
type FastSend struct {
	command realm.SendMessage
	ignored []string
}

// fastSendName names what it does like the endpoint.
const fastSendName = "POST /messages"

var sendingForm = form.Of[sendForm]()

// maxFastSendBytes is how long a text may be that is rendered where others wait for it, in bytes: some 50 µs.
const maxFastSendBytes = 2 << 10

// Prepare reads and renders a message. It reports false, and has done nothing, where something would have to be waited
// for or takes long, and where anything is out of the ordinary or to be refused: then the endpoint is to be asked, which
// knows all rules.
func (s *FastSend) Prepare(c *Call) bool {
	if c.Account == nil || c.Account.Bot != realm.Human {
		return false
	}
	var f sendForm
	if err := sendingForm.Decode(c.Params, &f); err != nil {
		return false
	}
	if !f.To.IsSet() || f.Widget.Set || len(f.Content) > maxFastSendBytes || strings.Contains(f.Content, "$$") || strings.Contains(f.Content, "```") || strings.Contains(f.Content, "~~~") {
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

// Decide is the turn.
func (s *FastSend) Decide(t *realm.Turn) (any, error) { return s.command.Decide(t) }

// Response is the answer's status and body.
func (s *FastSend) Response(v any, err error) (status int, body []byte) {
	if err != nil {
		return Failure(err)
	}
	x := v.(realm.SendResult)
	if len(s.ignored) > 0 {
		return 200, Success(sendAnswer(x), s.ignored)
	}
	b := make([]byte, 0, 80)
	b = append(b, '{')
	if x.Policy != 0 {
		b = append(b, `"automatic_new_visibility_policy":`...)
		b = append(strconv.AppendInt(b, int64(x.Policy), 10), ',')
	}
	b = append(b, `"id":`...)
	b = strconv.AppendInt(b, int64(x.ID), 10)
	return 200, append(b, `,"msg":"","result":"success"}`+"\n"...)
}
