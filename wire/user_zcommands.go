package wire

import (
	"strings"

	"parley/actors/realm"
)

type zcommandForm struct {
	Command string `form:"command,required"`
}

type zcommandAnswer struct {
	Message string `json:"msg"`
}

// zcommand runs a slash command of the protocol.
func zcommand(c *Call, f zcommandForm) (*zcommandAnswer, error) {
	word, ok := strings.CutPrefix(f.Command, "/")
	if !ok {
		return nil, realm.BadRequest("There should be a leading slash in the zcommand.")
	}
	change := func(msg, name string, value any) (*zcommandAnswer, error) {
		_, err := Execute(c, realm.ChangeSettings{Values: []realm.SettingValue{{Name: name, Value: value}}})
		return &zcommandAnswer{msg}, err
	}
	switch word {
	case "ping":
		return nil, nil
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
