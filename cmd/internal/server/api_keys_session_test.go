package server

import (
	"maps"
	"net/url"
	"testing"

	"parley/actors/realm"
)

// A browser session makes and shows no API key of its account without the password, at any address that returns one. A
// wrong password, an empty one and none are refused; after the right one, the session can go on for ten minutes. API
// keys need no password.
func TestSessionMakesNoKeyWithoutPassword(t *testing.T) {
	d := startDemo(t)
	const password = "purple otter 42 lamp"
	hash, err := d.passwords.Hash(1, password)
	if err != nil {
		t.Fatal(err)
	}
	logIn := func() (user realm.UserID, ask func(path string, form url.Values) browserAnswer) {
		a := d.browse("POST", "/api/v1/dev_fetch_api_key", url.Values{"username": {"ann@example.org"}}, "", nil)
		return realm.UserID(a.body["user_id"].(float64)), func(path string, form url.Values) browserAnswer {
			return d.browse("POST", "/json/"+path, form, a.cookies["csrftoken"].Value, a.cookies)
		}
	}
	user, _ := logIn()
	set := realm.SetPassword{User: user, Hash: hash, KeepKeys: true}
	if _, err := realm.Execute(d.orgs, 1, realm.System, set); err != nil {
		t.Fatal(err)
	}
	paths := []string{"fetch_api_key", "users/me/api_keys", "users/" + user.String() + "/api_keys",
		"users/me/api_key/regenerate"}
	for _, path := range paths {
		_, ask := logIn()
		for name, extra := range map[string]url.Values{"no password": {}, "an empty one": {"password": {""}},
			"a wrong one": {"password": {"a guess"}}} {
			form := url.Values{"label": {"script"}}
			maps.Copy(form, extra)
			a := ask(path, form)
			if a.status != 400 || a.body["msg"] != "Password is incorrect." || a.body["api_key"] != nil {
				t.Errorf("%s with %s: %d %v", path, name, a.status, a.body)
			}
		}
		a := ask(path, url.Values{"label": {"script"}, "password": {password}})
		if a.status != 200 || a.body["api_key"] == nil {
			t.Errorf("%s with the password: %d %v", path, a.status, a.body)
		}
		if a := ask("users/me/api_key/regenerate", nil); a.status != 200 || a.body["api_key"] == nil {
			t.Errorf("regenerate after %s with the password: %d %v", path, a.status, a.body)
		} else {
			d.keys["ann@example.org"] = a.body["api_key"].(string)
		}
	}
	d.call("ann@example.org", "POST", "users/me/api_keys", url.Values{"label": {"by key"}})
	_, ask := logIn()
	for _, path := range []string{"users/me/api_key/regenerate", "users/me/data_exports"} {
		if ask(path, nil).status != 400 {
			t.Errorf("%s in a new session needs no password", path)
		}
	}
	if a := ask("users/me/data_exports", url.Values{"password": {password}}); a.status != 200 {
		t.Errorf("the own data with the password: %d %v", a.status, a.body)
	}
	renewed := d.call("ann@example.org", "POST", "users/me/api_key/regenerate", nil)
	d.keys["ann@example.org"] = renewed["api_key"].(string)
	d.call("ann@example.org", "GET", "users/me", nil)
}
