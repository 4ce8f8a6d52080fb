package wire

import "parley/actors/realm"

// Additional API keys are an extension of the protocol: an account can have several keys, each with a label and
// possibly an expiry. Owners and administrators see and revoke the keys of accounts that do not outrank them, and
// owners of bots the keys of their bots.
var keyEndpoints = []Endpoint{
	Get("/users/me/api_keys", func(c *Call, v realm.View, _ noParameters) (*keysAnswer, error) {
		return listKeys(v, c.Caller.User)
	}).extension(additionalKeys),
	CommandFromCall("POST", "/users/me/api_keys", func(c *Call, f addKeyForm) (realm.AddKey, error) {
		return f.command(c, c.Caller.User)
	}, newNewKeyAnswer).extension(additionalKeys),
	CommandFromCall("DELETE", "/users/me/api_keys/{key_id}", func(c *Call, f keyForm) (realm.RevokeKey, error) {
		return realm.RevokeKey{User: c.Caller.User, Key: f.Key}, nil
	}, emptyAnswer).extension(additionalKeys),
	Get("/users/{user_id}/api_keys", func(_ *Call, v realm.View, f keyHolderForm) (*keysAnswer, error) {
		return listKeys(v, f.User)
	}).extension(additionalKeys),
	CommandFromCall("POST", "/users/{user_id}/api_keys", func(c *Call, f addKeyForOtherForm) (realm.AddKey, error) {
		return f.command(c, f.User)
	}, newNewKeyAnswer).extension(additionalKeys),
	CommandFromForm("DELETE", "/users/{user_id}/api_keys/{key_id}", func(f keyOfOtherForm) realm.RevokeKey {
		return realm.RevokeKey{User: f.User, Key: f.Key}
	}, emptyAnswer).extension(additionalKeys),
}

// additionalKeys is why these endpoints exist.
const additionalKeys = "additional API keys, which Zulip does not have"

// addKeyForm asks for a key. expires_in is its lifetime in seconds; without it the key does not expire. Without scope
// the key has all rights of the account.
type addKeyForm struct {
	Label    string     `form:"label,required,strip"`
	Lifetime int64      `form:"expires_in,min=0,default=0"`
	Password string     `form:"password"` // of the caller; needed with a session for keys of the caller's own account
	Scope    *scopeForm `form:"scope"`
}

// command returns the command for a key of a user.
func (f *addKeyForm) command(c *Call, u realm.UserID) (realm.AddKey, error) {
	scope, err := f.Scope.scope()
	if err == nil && u == c.Caller.User {
		err = c.checkKeyMaker(f.Password)
	}
	return realm.AddKey{User: u, Label: f.Label, Lifetime: f.Lifetime, Scope: scope}, err
}

type addKeyForOtherForm struct {
	User realm.UserID `path:"user_id"`
	addKeyForm
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

type keysAnswer struct {
	Keys    []listedKey `json:"api_keys"`
	MaxKeys int         `json:"max_api_keys"`
}

type listedKey struct {
	ID      int64      `json:"id"`
	Label   string     `json:"label"`
	Created int64      `json:"date_created"`
	Expires int64      `json:"expires_at" zero:"null"`
	Used    int64      `json:"last_used" zero:"null"`
	Scope   *scopeJSON `json:"scope"` // null: all rights of the account
}

func listKeys(v realm.View, u realm.UserID) (*keysAnswer, error) {
	list, err := v.AdditionalKeys(u)
	out := &keysAnswer{MaxKeys: realm.MaxAdditionalKeys}
	for _, k := range list {
		out.Keys = append(out.Keys, listedKey{k.ID, k.Label, k.Created, k.Expires, k.Used, newScope(k.Scope)})
	}
	return out, err
}

// newKeyAnswer has the secret of a new key, which no later answer contains.
type newKeyAnswer struct {
	ID      int64  `json:"id"`
	Key     string `json:"api_key"`
	Expires int64  `json:"expires_at" zero:"null"`
}

func newNewKeyAnswer(k realm.NewKey) *newKeyAnswer { return &newKeyAnswer{k.ID, k.Secret, k.Expires} }
