package wire

import (
	"parley/actors/realm"
	"parley/wire/form"
)

var storageEndpoints = []Endpoint{
	Custom("GET", "/bot_storage", getBotStorage),
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

type storageAnswer struct {
	Storage map[string]string `json:"storage"`
}

func getBotStorage(c *Call, f storageKeysForm) (*storageAnswer, error) {
	values, err := Read(c, func(v realm.View) (map[string]string, error) { return v.BotStorageValues(f.keys()) })
	if err != nil {
		return nil, err
	}
	n := 0
	for name, value := range values {
		n += len(name) + len(value)
	}
	if n > memoryStep { // a bot can store ten million characters
		err = c.reserveMemory(n)
	}
	return &storageAnswer{values}, err
}

// keys returns the requested keys, or nil for all of them.
func (f storageKeysForm) keys() []string {
	if !f.Keys.Set {
		return nil
	}
	return nonNil(f.Keys.Value)
}
