package wire

import (
	"testing"
	"time"

	"parley/actors/presence"
	"parley/actors/realm"
	"parley/wire/form"
)

// closedServer refuses every turn and view. It tests the part of a request before the realm.
type closedServer struct{ Server }

var errServerClosed = realm.BadRequest("the server is closed")

func (closedServer) Turn(realm.ID, realm.Caller, func(*realm.Turn) (any, error)) (any, error) {
	return nil, errServerClosed
}
func (closedServer) View(realm.ID, realm.Caller, func(realm.View) (any, error)) (any, error) {
	return nil, errServerClosed
}
func (closedServer) ActiveSince(realm.ID, int64) func(realm.UserID) bool {
	return func(realm.UserID) bool { return false }
}
func (closedServer) Text(realm.ID, realm.BodyRef) (realm.Body, bool, error) {
	return realm.Body{}, false, nil
}
func (closedServer) FetchTexts(realm.ID, []realm.BodyRef) {}
func (closedServer) MarkdownConfigSeq(realm.ID) realm.Seq { return 0 }
func (closedServer) Search(realm.ID, string) (realm.SearchHits, realm.Highlighter, error) {
	return nil, nil, errServerClosed
}
func (closedServer) Poll(p PollRequest)                                              { p.Reply.Answer(200) }
func (closedServer) CancelPoll(PollRequest)                                          {}
func (closedServer) AccountByKeyHash([32]byte) (*Account, bool)                      { return nil, false }
func (closedServer) AccountBySessionHash([32]byte) (*Account, *realm.BrowserSession) { return nil, nil }
func (closedServer) AccountByEmail(realm.ID, string) (*Account, bool)                { return nil, false }
func (closedServer) ReportPresence(realm.ID, realm.UserID, bool) (presence.Row, bool) {
	return presence.Row{}, false
}
func (closedServer) ReportPresenceAsync(realm.ID, realm.UserID, bool, func(presence.Row, bool)) {}
func (closedServer) HidePresence(realm.ID, realm.UserID) presence.Row {
	return presence.Row{}
}
func (closedServer) Now() time.Time                                      { return time.Now() }
func (closedServer) PresenceSince(realm.ID, int64, int64) []presence.Row { return nil }
func (closedServer) PresenceOf(realm.ID, realm.UserID) *presence.Row     { return nil }

// noFiles is a file store without files.
type noFiles struct{ Files }

func (noFiles) Announced(realm.ID) int64 { return 0 }
func (noFiles) Unfinished(realm.ID, realm.UserID, string) (UnfinishedUpload, bool) {
	return UnfinishedUpload{}, false
}

type discardReply struct{}

func (discardReply) Answer(int, ...[]byte) bool { return true }

// FuzzParameters puts any text into two parameters of any endpoint and runs the request up to the realm. The seeds
// contain each JSON parameter. An error must be a refusal that a client can read.
func FuzzParameters(f *testing.F) {
	all := Endpoints()
	seeds := []string{"1", `"x"`, `[1]`, `["x"]`, `[["channel","x"]]`, `[{"operator":"is","operand":"dm"}]`,
		`{"new":{"direct_members":[1],"direct_subgroups":[]},"old":1}`,
		`[{"name":"x"}]`, `[{"type":"stream","to":[1],"topic":"t","content":"c"}]`, `{"a":"b"}`,
		`[{"stream_id":1,"property":"color","value":"#c2c2c2"}]`}
	for i, e := range all {
		for j, p := range e.Params() {
			f.Add(uint16(i), uint8(j), seeds[0], uint8(j+1), seeds[1])
			f.Add(uint16(i), uint8(j), "who@example.org", uint8(j+1), "x")
			f.Add(uint16(i), uint8(j), "x", uint8(j+1), "who@example.org")
			if p.JSON {
				for k, s := range seeds {
					f.Add(uint16(i), uint8(j), s, uint8(j+1), seeds[(k+1)%len(seeds)])
				}
			}
		}
	}
	tools := &Tools{
		HashPassword:    func(realm.ID, string) (string, error) { return "", nil },
		CheckPassword:   func(realm.ID, string, string) (bool, error) { return false, nil },
		HashKey:         func(string) [32]byte { return [32]byte{} },
		Token:           func(int) string { return "token" },
		Sign:            func(string) string { return "" },
		VerifySignature: func(string, string) bool { return false },
		SubdomainTaken:  func(string) bool { return false },
		Dev:             true,
		LinkToken:       func(realm.ID, int64) string { return "" },
		Emails:          emptyEmails{},
		Renderer:        &Renderer{},
		Files:           noFiles{},
	}
	f.Fuzz(func(t *testing.T, endpoint uint16, p1 uint8, v1 string, p2 uint8, v2 string) {
		e := all[int(endpoint)%len(all)]
		params := e.Params()
		if len(params) == 0 {
			return
		}
		values := &form.Values{}
		for i, p := range params {
			sent, value := false, "1" // path parameters are always present
			switch i {
			case int(p1) % len(params):
				sent, value = true, v1
			case int(p2) % len(params):
				sent, value = true, v2
			}
			if p.Where == "path" {
				values.Add(form.Path, p.Name, value)
			} else if p.Where == "header" && (sent || p.Required) {
				if p.Name == tusHeader && !sent {
					value = tusVersion
				}
				values.Add(form.Header, p.Name, value)
			} else if sent {
				values.Add(form.Body, p.Name, value)
			}
		}
		c := &Call{
			Server:                 closedServer{},
			Tools:                  tools,
			Realm:                  1,
			Caller:                 realm.Caller{User: 1},
			Account:                &Account{Realm: 1, User: 1, Active: true},
			Params:                 values,
			Body:                   func() []byte { return nil },
			Files:                  func() ([]File, error) { return nil, nil },
			Park:                   func(func()) Reply { return discardReply{} },
			CountPasswordAttempt:   func(string) error { return nil },
			ForgetPasswordAttempts: func(string) {},
			CountAddressChange:     func(string) error { return nil },
		}
		if _, err := e.Run(c); err != nil {
			if status, body := e.Failure(err); status == 500 {
				t.Fatalf("%s %s: %v: %s", e.Method, e.Path, err, body)
			}
		}
	})
}

// emptyEmails is an EmailComposer whose emails have no text.
type emptyEmails struct{}

func (emptyEmails) Invitation(realm.InviteEmail) realm.Email { return realm.Email{} }
func (emptyEmails) AccountDeactivated(*realm.User, realm.Letterhead, string, Site) realm.Email {
	return realm.Email{}
}
func (emptyEmails) ConfirmAddress(realm.EmailChange, realm.Letterhead) realm.Email {
	return realm.Email{}
}
func (emptyEmails) AddressChanged(realm.EmailChange, realm.Letterhead) realm.Email {
	return realm.Email{}
}
func (emptyEmails) NewLogin(realm.LoginEmail, Site) realm.Email { return realm.Email{} }
func (emptyEmails) SignUp(realm.EmailedLink, bool, realm.Letterhead, Site) realm.Email {
	return realm.Email{}
}
func (emptyEmails) ResetPassword(realm.EmailedLink, realm.Letterhead) realm.Email {
	return realm.Email{}
}
func (emptyEmails) PasswordChanged(string, realm.Letterhead) realm.Email  { return realm.Email{} }
func (emptyEmails) Accounts(string, []Site, string) realm.Email           { return realm.Email{} }
func (emptyEmails) NewOrganization(realm.EmailedLink, string) realm.Email { return realm.Email{} }
