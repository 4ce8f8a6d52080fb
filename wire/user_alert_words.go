package wire

import "parley/actors/realm"

var alertWordEndpoints = []Endpoint{
	Get("/users/me/alert_words", func(c *Call, v realm.View, _ noParameters) (*alertWordsAnswer, error) {
		return newAlertWordsAnswer(v.AlertWordsOf(v.User)), nil
	}),
	CommandFromForm("POST", "/users/me/alert_words", func(f alertWordsForm) realm.ChangeAlertWords {
		return realm.ChangeAlertWords{Words: f.Words}
	}, newAlertWordsAnswer),
	CommandFromForm("DELETE", "/users/me/alert_words", func(f alertWordsForm) realm.ChangeAlertWords {
		return realm.ChangeAlertWords{Words: f.Words, Remove: true}
	}, newAlertWordsAnswer),
}

var alertWordEvents = []EventKind{
	Event(func(e *realm.AlertWordsChanged, to *Recipient) *alertWordsEvent {
		return &alertWordsEvent{AlertWords: e.Words}
	}),
}

type alertWordsForm struct {
	Words []string `form:"alert_words,required,maxlen=100,maxitems=1000"`
}

type alertWordsAnswer struct {
	AlertWords []string `json:"alert_words"`
}

func newAlertWordsAnswer(words []string) *alertWordsAnswer { return &alertWordsAnswer{words} }

type alertWordsEvent struct {
	_          struct{} `const:"type=alert_words"`
	AlertWords []string `json:"alert_words"`
}
