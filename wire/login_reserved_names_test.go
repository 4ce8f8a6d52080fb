package wire

import (
	"strings"
	"testing"
)

func TestReservedSubdomain(t *testing.T) {
	for _, name := range strings.Fields(`
		admin admins administrator api abuse autoconfig billing blog contact dashboard dev docs email ftp help
		hostmaster imap login m mail ns1 oauth pop3 postmaster press register root security smtp ssl status
		support test webmaster wpad www zulip zulips jobs news sales terms files communities memories policies`) {
		if !ReservedSubdomain(name) {
			t.Errorf("%s is not reserved", name)
		}
	}
	for _, name := range []string{"", "s", "acme", "glass", "lean", "gophers", "mailing-friends", "zulip-fans",
		"other"} {
		if ReservedSubdomain(name) {
			t.Errorf("%s is reserved", name)
		}
	}
}
