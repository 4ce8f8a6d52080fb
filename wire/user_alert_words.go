package wire

import "parley/actors/realm"

var alertWordEndpoints = []Endpoint{
	Get("/users/me/alert_words", func(c *Call, v realm.View, _ noParameters) (Answer, error) {
		return alertWordsAnswer(v.AlertWordsOf(v.User)), nil
	}).Returns("{alert_words: [str]}"),
	CommandFromForm("POST", "/users/me/alert_words", func(f alertWordsForm) realm.ChangeAlertWords {
		return realm.ChangeAlertWords{Words: f.Words}
	}, alertWordsAnswer).Returns("{alert_words: [str]}"),
	CommandFromForm("DELETE", "/users/me/alert_words", func(f alertWordsForm) realm.ChangeAlertWords {
		return realm.ChangeAlertWords{Words: f.Words, Remove: true}
	}, alertWordsAnswer).Returns("{alert_words: [str]}"),
}

var alertWordEvents = []EventKind{
	Event(func(e *realm.AlertWordsChanged, to *Recipient) any {
		return obj{"type": "alert_words", "alert_words": nonNil(e.Words)}
	}),
}

type alertWordsForm struct {
	Words []string `form:"alert_words,required,maxlen=100,maxitems=1000"`
}

func alertWordsAnswer(words []string) Answer { return Answer{"alert_words": nonNil(words)} }
