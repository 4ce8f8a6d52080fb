package main

import (
	"bytes"
	"fmt"
	"net"
	"net/mail"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-msgauth/dkim"
)

// mailPrograms are the programs of others with which make mail tries the ways of mail, and their Debian packages.
var mailPrograms = map[string]string{"swaks": "swaks", "dovecot": "dovecot-imapd dovecot-lmtpd dovecot-sieve",
	"smtpd": "opensmtpd", "openssl": "openssl"}

// realMailServers are a mail server that relays and delivers (OpenSMTPD) and one with mailboxes (Dovecot).
type realMailServers struct {
	folder           string
	smtp, imap, lmtp string // addresses
}

// startMailServers starts both. chat is the address to which mail for chat.example is relayed; "": it is delivered to
// the catch-all mailbox. Mail for example.org is delivered to the mailbox of its recipient. Sieve scripts in the folder
// sieve, such as bo@example.org.sieve, decide about mails for their user; rule is that of the catch-all, "": none.
func startMailServers(t *testing.T, chat, rule string) *realMailServers {
	t.Helper()
	if os.Getenv("MAIL") == "" {
		t.Skip("make mail runs this test: it starts mail servers of others")
	}
	for program, packages := range mailPrograms {
		if _, err := exec.LookPath(program); err != nil || os.Getuid() != 0 {
			t.Skipf("mail servers of others are not tried: needs root and %s (apt-get install %s)", program, packages)
		}
	}
	folder, err := os.MkdirTemp("/tmp", "parley-mail-") // the servers' own users must reach it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	s := &realMailServers{folder: folder, smtp: freeAddress(t), imap: freeAddress(t), lmtp: freeAddress(t)}
	boxes := filepath.Join(folder, "mail")
	if err := os.MkdirAll(boxes, 0o777); err != nil {
		t.Fatal(err)
	}
	os.Chmod(folder, 0o755)
	os.Chmod(boxes, 0o777)
	s.addRule(t, "nobody", rule)
	port := func(address string) string { _, p, _ := net.SplitHostPort(address); return p }
	replace := strings.NewReplacer("FOLDER", folder, "IMAPPORT", port(s.imap), "LMTPPORT", port(s.lmtp), "SMTPPORT",
		port(s.smtp), "CHAT", chat)
	way := "box"
	if chat != "" {
		way = "chat"
	}
	for name, text := range map[string]string{"dovecot.conf": dovecotConfig, "smtpd.conf": smtpdConfig[way]} {
		writeFile(t, filepath.Join(folder, name), replace.Replace(text))
	}
	s.run(t, "dovecot", "-F", "-c", filepath.Join(folder, "dovecot.conf"))
	s.run(t, "smtpd", "-d", "-f", filepath.Join(folder, "smtpd.conf"))
	for _, address := range []string{s.smtp, s.imap, s.lmtp} {
		eventually(t, "a mail server listens at "+address, func() bool {
			c, err := net.Dial("tcp", address)
			if err == nil {
				c.Close()
			}
			return err == nil
		})
	}
	return s
}

// addRule sets the Sieve script of a user.
func (s *realMailServers) addRule(t *testing.T, user, rule string) {
	t.Helper()
	folder := filepath.Join(s.folder, "sieve")
	if err := os.MkdirAll(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	os.Chmod(folder, 0o777) // Dovecot stores the compiled script beside it
	if rule != "" {
		writeFile(t, filepath.Join(folder, user+".sieve"), rule)
		os.Chmod(filepath.Join(folder, user+".sieve"), 0o644)
	}
}

// run starts a program, and ends it with the test.
func (s *realMailServers) run(t *testing.T, name string, args ...string) {
	t.Helper()
	c := exec.Command(name, args...)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Signal(os.Interrupt)
		c.Wait()
		if t.Failed() {
			t.Logf("%s:\n%s", name, &out)
		}
	})
}

const dovecotConfig = `protocols = imap lmtp
base_dir = FOLDER/run
log_path = /dev/stderr
ssl = no
disable_plaintext_auth = no
mail_location = maildir:FOLDER/mail/%u
first_valid_uid = 1
submission_host = 127.0.0.1:SMTPPORT
protocol lmtp {
  mail_plugins = sieve
}
plugin {
  sieve = file:FOLDER/sieve/%u.sieve
}
passdb {
  driver = static
  args = password=secret
}
userdb {
  driver = static
  args = uid=nobody gid=nogroup home=FOLDER/mail
}
service imap-login {
  chroot =
  inet_listener imap {
    address = 127.0.0.1
    port = IMAPPORT
  }
  inet_listener imaps {
    port = 0
  }
}
service lmtp {
  inet_listener lmtp {
    address = 127.0.0.1
    port = LMTPPORT
  }
}
service anvil {
  chroot =
}
`

// smtpdConfig is the configuration for both ways of mail to chat.example.
var smtpdConfig = map[string]string{
	"chat": `listen on 127.0.0.1 port SMTPPORT
action "chat" relay host smtp://CHAT
action "box" lmtp "127.0.0.1:LMTPPORT" rcpt-to virtual { "@" = "nobody" }
match from any for domain "chat.example" action "chat"
match from any for domain "example.org" action "box"
`,
	"box": `listen on 127.0.0.1 port SMTPPORT
action "one" lmtp "127.0.0.1:LMTPPORT" virtual { "@" = "nobody" }
action "box" lmtp "127.0.0.1:LMTPPORT" rcpt-to virtual { "@" = "nobody" }
match from any for domain "chat.example" action "one"
match from any for domain "example.org" action "box"
`,
}

// mails returns the mails in the mailbox of a user.
func (s *realMailServers) mails(user string) (out []string) {
	list, _ := filepath.Glob(filepath.Join(s.folder, "mail", user, "new", "*"))
	for _, name := range list {
		if text, err := os.ReadFile(name); err == nil {
			out = append(out, string(text))
		}
	}
	return out
}

// swaks sends a mail through the mail server.
func (s *realMailServers) swaks(t *testing.T, from, to, text string) {
	t.Helper()
	path := filepath.Join(s.folder, "mail.eml")
	writeFile(t, path, text)
	c := exec.Command("swaks", "--server", s.smtp, "--from", from, "--to", to, "--data", "@"+path)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("swaks: %v\n%s", err, out)
	}
}

// An email about missed messages goes out through a real mail server, signed, into a real mailbox. Its reply comes back
// through the mail server by SMTP, through a mailbox by IMAP, or through a folder into which a Sieve rule puts it. A
// refused reply returns to its sender.
func TestMailThroughRealServers(t *testing.T) {
	for _, way := range []string{"SMTP", "IMAP", "Sieve"} {
		t.Run(way, func(t *testing.T) { tryRealMail(t, way) })
	}
}

// chatRule is a Sieve rule that files the mails for the server.
const chatRule = `require ["fileinto", "mailbox"];
if header :contains ["to", "cc", "received"] "@chat.example" { fileinto :create "Parley"; }
`

func tryRealMail(t *testing.T, way string) {
	listen, rule := "", ""
	switch way {
	case "SMTP":
		listen = freeAddress(t)
	case "Sieve":
		rule = chatRule
	}
	s := startMailServers(t, listen, rule)
	key, record := realMailKey(t, s)
	host, port, _ := net.SplitHostPort(s.smtp)
	_, imap, _ := net.SplitHostPort(s.imap)
	flags := []string{"--smtp-host", host, "--smtp-port", port, "--smtp-tls", "none", "--mail-domain", "chat.example",
		"--smtp-from", "Chat <noreply@chat.example>", "--mail-dmarc=false", "--dkim-key", key}
	if way == "SMTP" {
		flags = append(flags, "--mail-listen", listen)
	} else {
		flags = append(flags, "--imap-host", host, "--imap-port", imap, "--imap-tls", "none", "--imap-user", "nobody",
			"--imap-password", "secret")
	}
	if way == "Sieve" {
		flags = append(flags, "--imap-folder", "Parley")
	}
	at := demo(t, filepath.Join(t.TempDir(), "data"), flags...).serving()
	ann, bo := demoAccount(t, at, "ann@example.org"), demoAccount(t, at, "bo@example.org")
	bo.must(t, "PATCH", "settings", url.Values{"email_notifications_batching_period_seconds": {"1"}})
	id := fmt.Sprint(bo.must(t, "GET", "users/me", nil)["user_id"])
	ann.must(t, "POST", "messages", url.Values{"type": {"direct"}, "to": {"[" + id + "]"}, "content": {"who rows?"}})
	text := ""
	eventually(t, "the email is in Bo's mailbox", func() bool {
		for _, m := range s.mails("bo@example.org") { // OpenSMTPD may deliver mails of an earlier run, too
			if strings.Contains(m, "Subject: Direct messages with Ann Lee") {
				text = m
			}
		}
		return text != ""
	})
	email, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	checkRealSignature(t, text, record)
	to, err := email.Header.AddressList("Reply-To")
	if err != nil || email.Header.Get("List-Unsubscribe-Post") != "List-Unsubscribe=One-Click" {
		t.Fatalf("%v\n%s", err, text)
	}
	reply := "From: Bo <bo@example.org>\nTo: " + to[0].Address + "\nSubject: Re: x\n"
	s.swaks(t, "eve@example.org", to[0].Address, strings.ReplaceAll(reply, "bo@", "eve@")+"\nforged\n")
	s.swaks(t, "bo@example.org", to[0].Address, reply+"Auto-Submitted: auto-replied\n\nI am away\n")
	s.swaks(t, "bo@example.org", to[0].Address, reply+"\nI do\n\nOn Monday, Parley wrote:\n> Ann: who rows?\n> x\n")
	waitForMessage(t, ann, "I do")
	if way == "Sieve" { // a mailing list of others whose mails become messages of a channel
		channel := fmt.Sprint(ann.must(t, "GET", "streams/1/email_address", nil)["email"])
		forward := "redirect :copy \"" + channel + "\";\n"
		s.addRule(t, "list@example.org", "require \"copy\";\n"+forward)
		s.addRule(t, "bo@example.org", "require \"copy\";\n"+forward) // a user who forwards emails of the server, too
		ann.must(t, "POST", "messages", url.Values{"type": {"direct"}, "to": {"[" + id + "]"}, "content": {"a loop?"}})
		eventually(t, "the next email is in Bo's mailbox", func() bool {
			return strings.Contains(strings.Join(s.mails("bo@example.org"), "\n"), "a loop?")
		})
		s.swaks(t, "eve@example.org", "list@example.org",
			"From: eve@example.org\nTo: list@example.org\nSubject: news\n\nfrom the list\n")
		waitForMessage(t, ann, "From: eve@example.org\n\nfrom the list")
	}
	if way == "SMTP" {
		eventually(t, "Eve gets her mail back", func() bool {
			return strings.Contains(strings.Join(s.mails("eve@example.org"), "\n"), "Only the person who got the email")
		})
	}
	a := ann.must(t, "GET", "messages", url.Values{"anchor": {"newest"}, "num_before": {"20"}, "num_after": {"0"}})
	for _, m := range a["messages"].([]any) {
		c := fmt.Sprint(m.(map[string]any)["content"])
		if strings.Contains(c, "forged") || strings.Contains(c, "away") ||
			strings.Contains(c, "a loop?") && m.(map[string]any)["type"] != "private" {
			t.Errorf("a mail that is no reply became %q", c)
		}
	}
}

// waitForMessage waits for a text as the newest message. A mailbox is read every half minute.
func waitForMessage(t *testing.T, who *account, text string) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); who.newest(t)["content"] != text; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the newest message is %v, not %q", who.newest(t), text)
		}
	}
}

// checkRealSignature checks the signature of an email as it arrived, with the record of the key that openssl has made.
func checkRealSignature(t *testing.T, text, record string) {
	t.Helper()
	// The lines that the mail servers have added are not signed.
	signed := strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n")
	lookup := func(string) ([]string, error) { return []string{record}, nil }
	v, err := dkim.VerifyWithOptions(strings.NewReader(signed), &dkim.VerifyOptions{LookupTXT: lookup})
	if err != nil || len(v) != 1 || v[0].Err != nil || v[0].Domain != "chat.example" {
		t.Errorf("%d signatures, err %v in\n%s", len(v), err, text)
		for _, x := range v {
			t.Errorf("signature of %s: %v", x.Domain, x.Err)
		}
	}
}
