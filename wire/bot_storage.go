package wire

import (
	"parley/actors/realm"
	"parley/wire/form"
)

var storageEndpoints = []Endpoint{
	Get("/bot_storage", func(c *Call, v realm.View, f storageKeysForm) (Answer, error) {
		s, err := v.BotStorageValues(f.keys())
		return Answer{"storage": s}, err
	}).Returns("{storage: {*: str}}"),
	CommandFromForm("PUT", "/bot_storage", func(f storageForm) realm.ChangeBotStorage {
		return realm.ChangeBotStorage{Values: f.Storage}
	}, emptyAnswer),
	CommandFromForm("DELETE", "/bot_storage", func(f storageKeysForm) realm.ChangeBotStorage {
		return realm.ChangeBotStorage{Forget: true, Keys: f.keys()}
	}, emptyAnswer),
}

type storageForm struct {
	Storage map[string]string `form:"storage,required"`
}

type storageKeysForm struct {
	Keys form.Opt[[]string] `form:"keys"`
}

// keys returns the requested keys, or nil for all of them.
func (f storageKeysForm) keys() []string {
	if !f.Keys.Set {
		return nil
	}
	return nonNil(f.Keys.Value)
}
