package wire

import "parley/actors/realm"

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

// reportTypes returns the reasons for a report, as registrations list them.
func reportTypes() []any {
	out := []any{}
	for _, r := range realm.ReportTypes {
		out = append(out, obj{"key": r.Key, "name": r.Name})
	}
	return out
}
