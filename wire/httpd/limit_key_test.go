package httpd

import (
	"testing"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/httpd/park"
)

// The requests and the memory of an account count under the account that is charged, in its organization: a bot's under
// its owner, those of a bot without an owner under the bot.
func TestLimitKey(t *testing.T) {
	for _, x := range []struct {
		name    string
		account realm.Account
		want    park.Caller
	}{
		{"a person", realm.Account{Realm: 1, User: 7, Charged: 7}, park.Caller{Organization: "1", Account: "1/7"}},
		{"their bot", realm.Account{Realm: 1, User: 8, Charged: 7}, park.Caller{Organization: "1", Account: "1/7"}},
		{"a bot without an owner", realm.Account{Realm: 1, User: 9, Charged: 9},
			park.Caller{Organization: "1", Account: "1/9"}},
		{"the same number in another organization", realm.Account{Realm: 12, User: 7, Charged: 7},
			park.Caller{Organization: "12", Account: "12/7"}},
	} {
		a := wire.Account(x.account)
		if got := callerOfAccount(&a); got != x.want || limitKey(&a) != x.want.Account {
			t.Errorf("%s counts as %+v and %q, want %+v", x.name, got, limitKey(&a), x.want)
		}
	}
}
