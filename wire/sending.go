package wire

import (
	"strconv"
	"strings"

	"parley/actors/realm"
	"parley/wire/form"
)

// Sending is a message on its way that nobody waits for: POST /messages for who must not wait for anything, such as the
// loop that reads requests.
type Sending struct {
	command realm.SendMessage
	ignored []string
}

// sendsQuickly names what it does like the endpoint.
const sendsQuickly = "POST /messages"

var sendingForm = form.Of[sendForm]()

// longSending is how long a text may be that is rendered where others wait for it, in bytes: some 50 µs.
const longSending = 2 << 10

// Prepare reads and renders a message. It reports false, and has done nothing, where something would have to be waited
// for or takes long, and where anything is out of the ordinary or to be refused: then the endpoint is to be asked, which
// knows all rules.
func (s *Sending) Prepare(c *Call) bool {
	if c.Account == nil || c.Account.Bot != realm.Human {
		return false
	}
	var f sendForm
	if err := sendingForm.Decode(c.Params, &f); err != nil {
		return false
	}
	if !f.To.Given() || f.Widget.Set || len(f.Content) > longSending || strings.Contains(f.Content, "$$") || strings.Contains(f.Content, "```") || strings.Contains(f.Content, "~~~") {
		return false
	}
	cmd, text, err := f.plan(c)
	if err != nil {
		return false
	}
	if cmd.Body, cmd.Content, err = c.Tools.Renderer.atOnce(c, text); err != nil {
		return false
	}
	c.Caller.Doing = sendsQuickly
	s.command, s.ignored = cmd, sendingForm.Ignored(c.Params)
	return true
}

// Decide is the turn.
func (s *Sending) Decide(t *realm.Turn) (any, error) { return s.command.Decide(t) }

// Outcome is the answer's status and body.
func (s *Sending) Outcome(v any, err error) (status int, body []byte) {
	if err != nil {
		return Failure(err)
	}
	x := v.(realm.Sent)
	if len(s.ignored) > 0 {
		return 200, Success(sent(x), s.ignored)
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
