package wire

import "parley/actors/realm"

// Additional API keys are an extension of the protocol: an account can have several keys, each with a label and
// possibly an expiry. Owners and administrators see and revoke the keys of accounts that do not outrank them, and
// owners of bots the keys of their bots.
var keyEndpoints = []Endpoint{
	Get("/users/me/api_keys", func(c *Call, v realm.View, _ noParameters) (Answer, error) {
		return listKeys(v, c.Caller.User)
	}).Returns(keyListShape).extension(additionalKeys),
	CommandFromCall("POST", "/users/me/api_keys", func(c *Call, f addKeyForm) (realm.AddKey, error) {
		return realm.AddKey{User: c.Caller.User, Label: f.Label, Lifetime: f.Lifetime}, c.checkKeyMaker(f.Password)
	}, newKeyAnswer).Returns(newKeyShape).extension(additionalKeys),
	CommandFromCall("DELETE", "/users/me/api_keys/{key_id}", func(c *Call, f keyForm) (realm.RevokeKey, error) {
		return realm.RevokeKey{User: c.Caller.User, Key: f.Key}, nil
	}, emptyAnswer).extension(additionalKeys),
	Get("/users/{user_id}/api_keys", func(_ *Call, v realm.View, f keyHolderForm) (Answer, error) {
		return listKeys(v, f.User)
	}).Returns(keyListShape).extension(additionalKeys),
	CommandFromCall("POST", "/users/{user_id}/api_keys", func(c *Call, f addKeyForOtherForm) (realm.AddKey, error) {
		var err error
		if f.User == c.Caller.User {
			err = c.checkKeyMaker(f.Password)
		}
		return realm.AddKey{User: f.User, Label: f.Label, Lifetime: f.Lifetime}, err
	}, newKeyAnswer).Returns(newKeyShape).extension(additionalKeys),
	CommandFromForm("DELETE", "/users/{user_id}/api_keys/{key_id}", func(f keyOfOtherForm) realm.RevokeKey {
		return realm.RevokeKey{User: f.User, Key: f.Key}
	}, emptyAnswer).extension(additionalKeys),
}

const (
	// additionalKeys is why these endpoints exist.
	additionalKeys = "additional API keys, which Zulip does not have"

	keyListShape = "{api_keys: [{id: int, label: str, date_created: int, expires_at: int?, last_used: int?}], " +
		"max_api_keys: int}"
	newKeyShape = "{id: int, api_key: str, expires_at: int?}"
)

// addKeyForm asks for a key. expires_in is its lifetime in seconds; without it the key does not expire.
type addKeyForm struct {
	Label    string `form:"label,required,strip"`
	Lifetime int64  `form:"expires_in,min=0,default=0"`
	Password string `form:"password"` // of the caller; needed with a session
}

type addKeyForOtherForm struct {
	User     realm.UserID `path:"user_id"`
	Label    string       `form:"label,required,strip"`
	Lifetime int64        `form:"expires_in,min=0,default=0"`
	Password string       `form:"password"` // of the caller; needed with a session and the caller's own id
}

type keyForm struct {
	Key int64 `path:"key_id"`
}

type keyHolderForm struct {
	User realm.UserID `path:"user_id"`
}

type keyOfOtherForm struct {
	User realm.UserID `path:"user_id"`
	Key  int64        `path:"key_id"`
}

func listKeys(v realm.View, u realm.UserID) (Answer, error) {
	list, err := v.AdditionalKeys(u)
	out := []any{}
	for _, k := range list {
		out = append(out, obj{"id": k.ID, "label": k.Label, "date_created": k.Created,
			"expires_at": nullIfZero(k.Expires), "last_used": nullIfZero(k.Used)})
	}
	return Answer{"api_keys": out, "max_api_keys": realm.MaxAdditionalKeys}, err
}

// newKeyAnswer answers with the secret of a new key, which no later answer contains.
func newKeyAnswer(k realm.NewKey) Answer {
	return Answer{"id": k.ID, "api_key": k.Secret, "expires_at": nullIfZero(k.Expires)}
}

// nullIfZero returns a time as the protocol has it: null for none.
func nullIfZero(at int64) any {
	if at == 0 {
		return nil
	}
	return at
}
