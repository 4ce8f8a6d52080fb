package wire

import "parley/actors/realm"

type reportForm struct {
	Message     realm.MessageID `path:"message_id"`
	Type        string          `form:"report_type,required,in=spam|harassment|inappropriate|norms|other"`
	Description string          `form:"description,strip,maxlen=1000"`
}

// reportMessage reports a message with its text to the moderators.
func reportMessage(c *Call, f reportForm) (a noFields, _ error) {
	if f.Type == "other" && f.Description == "" {
		return a, realm.BadRequest("An explanation is required.")
	}
	err := checkPermission(c, func(v realm.View) error {
		_, err := v.ModerationChannel()
		return err
	})
	if err != nil {
		return a, err
	}
	_, text, err := readText(c, f.Message)
	if err != nil {
		return a, err
	}
	_, err = Execute(c, realm.ReportMessage{Message: f.Message, Type: f.Type, Description: f.Description, Text: text})
	return a, err
}

// reportTypes returns the reasons for a report, as registrations list them.
func reportTypes() []reportType {
	return each(realm.ReportTypes, func(r realm.ReportType) reportType { return reportType{r.Key, r.Name} })
}

type reportType struct {
	Key  string `json:"key"`
	Name string `json:"name"`
}
