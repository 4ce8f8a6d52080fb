package mail

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/emersion/go-msgauth/dkim"

	"parley/actors/realm"
)

func writeKey(t *testing.T, key any) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "key.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Signatures of both kinds of keys are valid for a receiver that finds the record in the DNS, and cover what mail
// programs act on.
func TestEmailsAreSigned(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, edKey, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]any{"rsa": rsaKey, "ed25519": edKey} {
		k, err := LoadDKIMKey(writeKey(t, key), "parley", "example.com")
		if err != nil {
			t.Fatal(err)
		}
		folder := t.TempDir()
		s, log := newTestSender(t, Config{Folder: folder, Security: StartTLS, DKIM: k})
		s.c.Tools.Sign = signForTest
		s.c.Tools.ChannelMailPattern = "%s@chat.example"
		email := hello
		email.Subject = "Gr\u00fc\u00dfe " + strings.Repeat("long ", 30)
		email.Paragraphs = append(email.Paragraphs, ".", strings.Repeat("\u00e4 b ", 500), "From here")
		email.Reply = &realm.EmailReply{User: 7, Message: 8}
		email.Unsubscribe = &realm.Unsubscription{User: 7, Topic: realm.MissedMessageEmails}
		sendEmail(s, email, 7)
		list, _ := filepath.Glob(filepath.Join(folder, "*.eml"))
		if len(list) != 1 {
			t.Fatalf("%s: %d emails; log:\n%s", name, len(list), log)
		}
		text, err := os.ReadFile(list[0])
		if err != nil {
			t.Fatal(err)
		}
		at, record := k.Record()
		verify := func(text string) error {
			v, err := dkim.VerifyWithOptions(strings.NewReader(text), &dkim.VerifyOptions{
				LookupTXT: func(name string) ([]string, error) {
					if name != at {
						t.Errorf("%s: asked for %s", name, name)
					}
					return []string{record}, nil
				}})
			if err != nil || len(v) != 1 || v[0].Domain != "example.com" {
				t.Fatalf("%s: %v %v in\n%s", name, v, err, text)
			}
			return v[0].Err
		}
		if err := verify(string(text)); err != nil {
			t.Errorf("%s: %v in\n%s", name, err, text)
		}
		for _, field := range []string{"From:", "To:", "Subject:", "Reply-To:", "List-Unsubscribe:",
			"List-Unsubscribe-Post:"} {
			if verify(strings.Replace(string(text), "\n"+field, "\n"+field+" x", 1)) == nil {
				t.Errorf("%s: the signature does not cover %s", name, field)
			}
		}
		if verify(strings.Replace(string(text), "Olive", "Eve", 1)) == nil {
			t.Errorf("%s: the signature does not cover the text", name)
		}
	}
}

// A key that cannot be used is refused at the start, with the name of the file.
func TestUnusableDKIMKeys(t *testing.T) {
	_, edKey, _ := ed25519.GenerateKey(nil)
	good := writeKey(t, edKey)
	page := filepath.Join(t.TempDir(), "page")
	if err := os.WriteFile(page, []byte("<html>"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, x := range [][3]string{{page, "s", "example.com"}, {page + "-missing", "s", "example.com"},
		{good, "", "example.com"}, {good, "s", ""}, {good, "s;t=y", "example.com"}} {
		if _, err := LoadDKIMKey(x[0], x[1], x[2]); err == nil || !strings.Contains(err.Error(), "dkim-") {
			t.Errorf("%q: %v", x, err)
		}
	}
}
