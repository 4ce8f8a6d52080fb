package wire

import "parley/actors/realm"

var alertWordEndpoints = []Endpoint{
	Get("/users/me/alert_words", func(c *Call, v realm.View, _ none) (Answer, error) {
		return alertWordsAnswer(v.AlertWordsOf(v.User)), nil
	}).Says("{alert_words: [str]}"),
	Do("POST", "/users/me/alert_words", func(f alertWordsForm) realm.ChangeAlertWords {
		return realm.ChangeAlertWords{Words: f.Words}
	}, alertWordsAnswer).Says("{alert_words: [str]}"),
	Do("DELETE", "/users/me/alert_words", func(f alertWordsForm) realm.ChangeAlertWords {
		return realm.ChangeAlertWords{Words: f.Words, Remove: true}
	}, alertWordsAnswer).Says("{alert_words: [str]}"),
}

var alertWordEvents = []EventKind{
	Event(func(e *realm.AlertWordsChanged, to *To) any {
		return obj{"type": "alert_words", "alert_words": nonNil(e.Words)}
	}),
}

type alertWordsForm struct {
	Words []string `form:"alert_words,required,maxlen=100,maxitems=1000"`
}

func alertWordsAnswer(words []string) Answer { return Answer{"alert_words": nonNil(words)} }
