package mail

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
)

// parsed returns topic, text and files of a mail to an address with options.
func parsed(t *testing.T, mail, options string) (topic, text string, files []string) {
	t.Helper()
	p, err := parseMail(strings.NewReader(mail))
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
	defer p.close()
	for _, f := range p.Files {
		content, err := io.ReadAll(f.Content)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f.Name+": "+string(content))
	}
	return p.Topic, p.textFor(optionsOf("plans." + token + options + "@example.com")), files
}

// Whatever mail programs of all years send is shown: a mail is neither refused nor accepted without its text.
func TestOddMails(t *testing.T) {
	const subject = "Subject: x\n"
	const text = subject + "Content-Type: text/plain; "
	mixed := subject + "Content-Type: multipart/mixed; boundary=b\n\n"
	for name, x := range map[string]struct {
		mail, text string
		files      []string
	}{
		"no closing boundary":       {mixed + "--b\n\nhello\n", "hello", nil},
		"no boundary in the header": {subject + "Content-Type: multipart/mixed\n\n--q\n\nhello\n--q--\n", "hello", nil},
		"no boundary at all":        {mixed + "hello\n", "hello", nil},
		"boundary with blanks":      {mixed + "--b \t\n\nhello\n--b--  \n", "hello", nil},
		"parts after the end":       {mixed + "--b\n\nhello\n--b--\n--b\n\nagain\n--b--\n", "hello\n\nagain", nil},
		"part without a header":     {mixed + "--b\nhello\n\nthere\n--b--\n", "hello\n\nthere", nil},
		"empty parts":               {mixed + "--b\n--b\n\n--b\n\n\n--b\n\nhello\n--b--\n", "hello", nil},
		"unclosed inner parts": {mixed + "--b\nContent-Type: multipart/alternative; boundary=c\n\n--c\n\nhello\n" +
			"--b\n\nthere\n--b--\n", "hello\n\nthere", nil},
		"7-bit":                     {subject + "Content-Transfer-Encoding: 7-bit\n\nhello\n", "hello", nil},
		"unknown encoding":          {subject + "Content-Transfer-Encoding: x-own\n\nhello\n", "hello", nil},
		"line without a colon":      {"Received from nowhere\nSubject: x\nbroken line\n\nhello\n", "hello", nil},
		"header without an end":     {"Subject: x\nhello\n", "hello", nil},
		"no header":                 {"hello there\n\nyou\n", "hello there\n\nyou", nil},
		"blank before the colon":    {"Subject : x\nContent-Type : text/plain\n\nhello\n", "hello", nil},
		"mailbox line":              {"From a@example.org Thu Jan 5 1995\nSubject: x\n\nhello\n", "hello", nil},
		"parameter without a value": {text + "charset=utf-8; format\n\nhello\n", "hello", nil},
		"bad parameters": {subject + "Content-Type: text/plain;; =x; charset==; a=\"b\n\nhello\n", "hello",
			nil},
		"parameter twice":          {text + "charset=utf-8; charset=x\n\nhello\n", "hello", nil},
		"type without a slash":     {subject + "Content-Type: text\n\nhello\n", "hello", nil},
		"empty type":               {subject + "Content-Type:\n\nhello\n", "hello", nil},
		"unknown text type":        {subject + "Content-Type: text/x-own\n\nhello\n", "hello", nil},
		"unknown character set":    {text + "charset=x-own\n\ngr\u00fcn\n", "gr\u00fcn", nil},
		"Latin-1 without a word":   {subject + "\ngr\xfcn\n", "gr\u00fcn", nil},
		"Latin-1 said to be UTF-8": {text + "charset=utf-8\n\ngr\xfcn\n", "gr\u00fcn", nil},
		"Windows-1251":             {text + "charset=cp1251\n\n\xe4\xe0\n", "\u0434\u0430", nil},
		"page with its character set": {subject + "Content-Type: text/html\n\n<meta charset=windows-1251>\xe4\xe0\n",
			"\u0434\u0430", nil},
		"broken quoted-printable": {subject + "Content-Transfer-Encoding: Quoted-Printable\n\n=E9=zz 1=2 so=\nft=\n",
			"\u00e9=zz 1=2 soft", nil},
		"base64 with junk": {subject + "Content-Transfer-Encoding: base64\n\naGVs*bG8=\n!IHRo\nZXJl\n", "hello there",
			nil},
		"base64 unpadded": {subject + "Content-Transfer-Encoding: base64\n\naGVsbG8\n", "hello", nil},
		"uuencode": {subject + "\nhello\nbegin 644 cat.txt\n#0V%T\n`\nend\nthere\n", "hello\nthere",
			[]string{"cat.txt: Cat"}},
		"no uuencode": {subject + "\nbegin 644 times\nand so on\n", "begin 644 times\nand so on", nil},
		"a mail in a mail": {subject +
			"Content-Type: message/rfc822\n\nFrom: Bo <b@example.org>\nSubject: y\n\nhello\n",
			"Forwarded mail:\nFrom: Bo (b@example.org)\nSubject: y\n\nhello", nil},
		"winmail": {subject + "Content-Type: application/ms-tnef\n\nabc", "(no text)",
			[]string{"winmail.dat: abc"}},
		"nameless picture":   {subject + "Content-Type: image/png\n\nabc", "(no text)", []string{"file.png: abc"}},
		"old line ends":      {"Subject: x\r\rhello\rthere\r", "hello\nthere", nil},
		"doubled ends":       {"Subject: x\r\r\n\r\r\nhello\r\r\nthere\r\r\n", "hello\nthere", nil},
		"control characters": {subject + "\nhe\x00l\x1b\x07lo\tyou\n", "hello\tyou", nil},
		"long line":          {subject + "\n" + strings.Repeat("y", 200<<10) + "\n", strings.Repeat("y", 200<<10), nil},
		"open head": {subject + "Content-Type: text/html\n\n<html><head><title>t</title><body>hello",
			"hello", nil},
		"names in pieces": {mixed +
			"--b\nContent-Disposition: attachment; filename*0*=utf-8''%C3%BCb;\n filename*1=er.txt\n" +
			"\nabc\n--b--\n", "(no text)", []string{"\u00fcber.txt: abc"}},
		"name as encoded word": {mixed +
			"--b\nContent-Type: image/gif; name=\"=?iso-8859-1?q?=FCber.gif?=\"\n\nabc\n--b--\n",
			"(no text)", []string{"\u00fcber.gif: abc"}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, text, files := parsed(t, x.mail, ""); text != x.text || !slices.Equal(files, x.files) {
				t.Errorf("shown: %.100q with %q, want %.100q with %q", text, files, x.text, x.files)
			}
		})
	}
}

// Subjects and senders are decoded in every form, and subjects become topics that can be used like others.
func TestMailHeaders(t *testing.T) {
	for field, want := range map[string]string{
		"Subject: =?utf-8?B?YmVsbAcgbnVsAA==?=":               "bell nul",
		"Subject: a\x1bb\u202a\ufffe\x00c":                    "ab\u202ac",
		"Subject: gr\xfcn":                                    "gr\u00fcn",
		"Subject: gr\u00fcn":                                  "gr\u00fcn",
		"Subject: =?x-own?q?a=20b?=":                          "a b",
		"Subject: =?utf-8?b?w?= =?utf-8?b?7w=?=":              "\u00ef",
		"Subject: =?utf-8?q?a=C3?=\n =?utf-8?q?=BCb?=":        "a\u00fcb",
		"Subject: folded\n\tsubject":                          "folded subject",
		"Subject:":                                            "Email with no subject",
		"From: =?UTF-8?B?SsO8cmdlbg==?= <j@example.net>":      `From: "J` + "\u00fc" + `rgen" (j@example.net)`,
		"From: J\u00fcrgen <j@example.net>":                   `From: "J` + "\u00fc" + `rgen" (j@example.net)`,
		"From: J\xfcrgen <j@example.net>":                     `From: "J` + "\u00fc" + `rgen" (j@example.net)`,
		"From: \"=?iso-8859-1?q?J=FCrgen?=\" <j@example.net>": `From: "J` + "\u00fc" + `rgen" (j@example.net)`,
		"From: j@example.net (=?UTF-8?Q?J=C3=BCrgen?=)":       `From: "J` + "\u00fc" + `rgen" (j@example.net)`,
		"From: j@example.net":                                 "From: j@example.net",
		"From: root":                                          "From: root",
		"From: Broken [list] <j@example.net":                  "From: Broken [list] (j@example.net",
	} {
		topic, text, _ := parsed(t, field+"\n\nhello\n", ".show-sender")
		if got, _, _ := strings.Cut(text, "\n"); topic != want && got != want {
			t.Errorf("%q gives topic %q and first line %q", field, topic, got)
		}
	}
	if _, text, _ := parsed(t, "From: Ann <a@example.org>\n\nhello\n", ""); text != "hello" {
		t.Errorf("without show-sender: %q", text)
	}
}

// A page keeps its links, lists and tables.
func TestMailPages(t *testing.T) {
	for page, want := range map[string]string{
		`<p>see <a href="https://example.org/a">the plan</a> now`:                             "see [the plan](https://example.org/a) now",
		`<a href="https://example.org/">https://example.org/</a>`:                             "https://example.org/",
		`<a href="mailto:a@example.org">a@example.org</a>`:                                    "a@example.org",
		`<a href="javascript:x()">no</a>`:                                                     "no",
		`<a href="https://example.org/"><img alt="Logo" src=x></a>`:                           "[Logo](https://example.org/)",
		`<table><tr><td>a</td><td>b</td></tr><tr><th>c<td></td><td>d</table>`:                 "a | b\nc | d",
		`<ul><li>one<li><p>two</p></ul>`:                                                      "* one\n* two",
		`<p>yes</p><div class="gmail_quote">On x, Bo wrote:<blockquote>no</blockquote></div>`: "yes",
		`<blockquote type="cite">only a quote</blockquote>`:                                   "only a quote",
	} {
		if _, text, _ := parsed(t, "Content-Type: text/html\n\n"+page+"\n", ""); text != want {
			t.Errorf("%s\nis shown as %q, want %q", page, text, want)
		}
	}
	both := "Content-Type: multipart/alternative; boundary=b\n\n--b\n\nplain\n--b\n" +
		"Content-Type: text/html\n\n<p>page\n--b--\n"
	for options, want := range map[string]string{"": "plain", ".prefer-text": "plain", ".prefer-html": "page"} {
		if _, text, _ := parsed(t, both, options); text != want {
			t.Errorf("an address with %q shows %q, want %q", options, text, want)
		}
	}
}

// A reply is shown without the quoted mail and the signature, unless the address asks for them.
func TestMailReplies(t *testing.T) {
	const quote = "On Mon, 1 Jan 2024 at 10:00, Bo <b@example.org> wrote:\n> one\n> two"
	for mail, want := range map[string]string{
		"yes\n\n" + quote: "yes",
		quote + "\n\nyes": "yes",
		"yes\n\nOn Mon, 1 Jan 2024 at 10:00,\nBo <b@example.org> wrote:\n> one": "yes",
		"ja\n\nAm 01.01.24 um 10:00 schrieb Bo:\n> eins":                        "ja",
		"yes\n\n-----Original Message-----\nFrom: Bo\nSent: now\n\none":         "yes",
		"yes\n\n________\nFrom: Bo\nSent: now\nTo: Ann\n\none":                  "yes",
		"yes\n-- \nAnn":                         "yes",
		"yes\n\n" + quote + "\n\n-- \nAnn":      "yes",
		"On x Bo wrote:\n> one\nno\n> two\nyes": "On x Bo wrote:\n> one\nno\n> two\nyes",
		"> a citation\nis nice":                 "> a citation\nis nice",
		quote:                                   quote,
		"-- \nAnn":                              "-- \nAnn",
		"a\n--\nb\n--\nc":                       "a\n--\nb\n--\nc",
	} {
		mail = "Subject: Re: x\n\n" + mail + "\n"
		if _, text, _ := parsed(t, mail, ""); text != want {
			t.Errorf("%q\nis shown as %q, want %q", mail, text, want)
		}
	}
	reply := "yes\n\n" + quote + "\n-- \nAnn"
	for options, want := range map[string]string{
		".include-quotes": "yes\n\n" + quote, ".include-footer": "yes\n\n-- \nAnn",
		".include-quotes.include-footer": reply, "+include-quotes+include-footer": reply,
	} {
		if _, text, _ := parsed(t, "Subject: Re: x\n\n"+reply+"\n", options); text != want {
			t.Errorf("an address with %q shows %q, want %q", options, text, want)
		}
	}
	if _, text, _ := parsed(t, "Subject: Fwd: x\n\nyes\n\n"+quote+"\n", ""); text != "yes\n\n"+quote {
		t.Errorf("a forwarded mail is shown as %q", text)
	}
}

// A channel whose name has as many letters as a token gets its mail.
func TestAddressOfLongName(t *testing.T) {
	b := fakeChannels{posts: make(chan [2]string, 1)}
	g, at, _ := b.open(t)
	defer g.Close(context.Background())
	if err := send(at, strings.Repeat("n", tokenLength)+"."+token+".show-sender@example.com", "\nhello\n"); err != nil {
		t.Fatal(err)
	}
	if got := <-b.posts; got[1] != "hello" {
		t.Errorf("posted %q", got)
	}
}
