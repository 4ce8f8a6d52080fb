package wire

import (
	"strings"

	"parley/actors/realm"
)

type reportForm struct {
	Message     realm.MessageID `path:"message_id"`
	Type        string          `form:"report_type,required,in=spam|harassment|inappropriate|norms|other"`
	Description string          `form:"description,strip,maxlen=1000"`
}

// reportMessage reports a message with its text to the moderators.
func reportMessage(c *Call, f reportForm) (Answer, error) {
	if f.Type == "other" && f.Description == "" {
		return nil, realm.BadRequest("An explanation is required.")
	}
	err := checkPermission(c, func(v realm.View) error {
		_, err := v.ModerationChannel()
		return err
	})
	if err != nil {
		return nil, err
	}
	_, text, err := readText(c, f.Message)
	if err != nil {
		return nil, err
	}
	_, err = Execute(c, realm.ReportMessage{Message: f.Message, Type: f.Type, Description: f.Description, Text: text})
	return Answer{}, err
}

type zcommandForm struct {
	Command string `form:"command,required"`
}

// zcommand runs a slash command of the protocol.
func zcommand(c *Call, f zcommandForm) (Answer, error) {
	word, ok := strings.CutPrefix(f.Command, "/")
	if !ok {
		return nil, realm.BadRequest("There should be a leading slash in the zcommand.")
	}
	change := func(msg, name string, value any) (Answer, error) {
		_, err := Execute(c, realm.ChangeSettings{Values: []realm.SettingValue{{Name: name, Value: value}}})
		return Answer{"msg": msg}, err
	}
	switch word {
	case "ping":
		return Answer{}, nil
	case "dark", "night":
		return change("Changed to dark theme.", "color_scheme", int64(2))
	case "light", "day":
		return change("Changed to light theme.", "color_scheme", int64(3))
	case "fluid-width":
		return change("Changed to fluid-width mode.", "fluid_layout_width", true)
	case "fixed-width":
		return change("Changed to fixed-width mode.", "fluid_layout_width", false)
	}
	return nil, realm.BadRequest("No such command: %s", word)
}

// reportTypes returns the reasons for a report, as registrations list them.
func reportTypes() []any {
	out := []any{}
	for _, r := range realm.ReportTypes {
		out = append(out, obj{"key": r.Key, "name": r.Name})
	}
	return out
}
