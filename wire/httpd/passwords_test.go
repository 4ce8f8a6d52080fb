package httpd

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/wire"
)

// New passwords have 8 to 100 characters and need at least 10,000 guesses, whoever sets them: Hash refuses the
// others.
func TestWeakPasswordsAreNotHashed(t *testing.T) {
	p := NewPasswords(nil)
	for password, weak := range map[string]bool{
		"":                                 true,
		"k8#Vq2!":                          true, // seven characters
		"k8#Vq2!z":                         false,
		"äöüßéñçø":                         false, // eight characters, more bytes
		"password":                         true,
		"P@ssw0rd":                         true,
		"12345678":                         true,
		"qwertyuiop":                       true,
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa":   true,
		"abcabcabcabc":                     true,
		"correct horse battery staple":     false,
		strings.Repeat("k8#Vq2!zP4", 10):   false,
		strings.Repeat("é", 101):           true,
		"\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8": true, // not UTF-8: no client can send it again
	} {
		hash, err := p.Hash(1, password)
		if errors.Is(err, wire.ErrWeakPassword) != weak || (hash == "") != weak || !weak && err != nil {
			t.Errorf("password %q: hash %q, %v; weak: %v", password, hash, err, weak)
		}
	}
	if n := p.Waiting(); n != 0 {
		t.Errorf("%d places are still taken", n)
	}
}

// The estimate agrees with zxcvbn 4.5 for Python, which the reference server uses. Dates are left out: their estimate
// depends on the current year.
func TestGuessesAgreeWithReference(t *testing.T) {
	for password, want := range map[string]float64{
		"password":                         3.0,
		"12345678":                         4.0,
		"qwertyuiop":                       23.0,
		"correcthorsebatterystaple":        273500327700640.0,
		"Tr0ub4dour&3":                     19058000.0,
		"D0g..................":            442000.0,
		"abcdefghijk987654321":             15000.0,
		"1qaz2wsx3edc":                     1001.0,
		"temppass22":                       387500.0,
		"briansmith":                       15000.0,
		"briansmith4mayor":                 15100000000.0,
		"password1":                        190.0,
		"viking":                           244.0,
		"thx1138":                          209.0,
		"ScoRpi0ns":                        289664.0,
		"do you know":                      1000010000.0,
		"ryanhunter2000":                   100750000.0,
		"rianhunter2000":                   250000000.0,
		"asdfghju7654rewq":                 923189026.4430684,
		"AOEUIDHG&*()LS_":                  1280140890.9735801,
		"defghi6789":                       25600.0,
		"rosebud":                          272.0,
		"Rosebud":                          543.0,
		"ROSEBUD":                          543.0,
		"rosebuD":                          543.0,
		"ros3bud99":                        64200.0,
		"r0s3bud99":                        118400.0,
		"R0$38uD99":                        1310800.0,
		"verlineVANDERMARK":                24500856400.0,
		"eheuczkqyq":                       10000000001.0,
		"rWibMFACxAUGZmxhVncy":             1e+20,
		"Ba9ZyWABu99[BK#6MBgbH88Tofv)vs$w": 1e+32,
		"zxcvbn":                           58.0,
		"aaaaaaaa":                         97.0,
		"abcabcabc":                        40.0,
		"Letmein1":                         1371.0,
		"geheimnis":                        2434000.0,
		"пароль123":                        100010000.0,
		"über-Straße":                      100000000001.0,
		"parola secreta":                   3247978834.0,
		"monkey12":                         3452.0,
		"iloveyou":                         48.0,
		"p4ssw0rd":                         9.0,
		"P@ssw0rd":                         17.0,
		"hunter22":                         15000.0,
		"qwerty123":                        220.0,
		"trustno1":                         37.0,
		"11111111":                         64.0,
		"87654321":                         7.0,
		"drowssap":                         5.0,
		"Passwort1":                        94788.0,
		"sunshine1":                        5623.0,
		"gobbledygook":                     18674.0,
		"xkcd-936-style":                   802000010000.0,
		"a1b2c3d4":                         715.0,
		"s3cret pw":                        334000.0,
		"!qw 4b0p":                         100000001.0,
		" dkhx1py5":                        1000000001.0,
		"g7panArlykei":                     1000000000001.0,
		"!!Ciiaannkksum5$nlmy":             3.00000000001e+19,
	} {
		if got := guessesOf(password); got < 0.999*want || got > 1.001*want {
			t.Errorf("%q needs %g guesses, the reference says %g", password, got, want)
		}
	}
}

// The dictionaries of the estimate are empty while no password is set, and filled again when they are needed, also by
// several at once.
func TestDictionariesOnlyWhileNeeded(t *testing.T) {
	for range 3 {
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if got := guessesOf("briansmith"); got != 15000 {
					t.Errorf("briansmith needs %g guesses", got)
				}
			})
		}
		all.Wait()
		if len(dictionaries.ranked) == 0 {
			t.Fatal("the library has its dictionaries elsewhere: guessesOf must be adapted to its new version")
		}
		emptyDictionaries()
		if dictionaries.ranked != nil {
			t.Error("the dictionaries are kept")
		}
	}
}

// Hashes carry the parameters that the server promises, with a new salt each.
func TestArgonParameters(t *testing.T) {
	p := NewPasswords(nil)
	const password = "correct horse battery staple"
	one, err1 := p.Hash(1, password)
	two, err2 := p.Hash(1, password)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	const prefix = "$argon2id$v=19$m=19456,t=2,p=1$"
	for _, hash := range []string{one, two} {
		parts := strings.Split(hash, "$")
		if !strings.HasPrefix(hash, prefix) || len(parts) != 6 {
			t.Fatalf("hash %q does not begin with %s", hash, prefix)
		}
		salt, err1 := b64.DecodeString(parts[4])
		sum, err2 := b64.DecodeString(parts[5])
		if err := errors.Join(err1, err2); err != nil || len(salt) != 16 || len(sum) != 32 {
			t.Errorf("salt of %d bytes and key of %d bytes, want 16 and 32: %v", len(salt), len(sum), err)
		}
	}
	if one == two {
		t.Error("two hashes of one password are equal: the salt is not random")
	}
	for _, x := range []struct {
		password, hash string
		right          bool
	}{
		{password, one, true},
		{password + " ", one, false},
		{"", one, false},
		// a hash with other parameters: those of the hash count, so they can be raised later
		{"password", "$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ$RcOv7hEu7mPRhC5ZhCnT+6jmPq0FB4gp", false},
	} {
		if right, err := p.Check(1, x.password, x.hash); right != x.right || err != nil {
			t.Errorf("password %q against %q: %v, %v", x.password, x.hash, right, err)
		}
	}
	for _, malformed := range []string{"x", "$argon2i$v=19$m=64,t=1,p=1$c29tZXNhbHQ$c29tZXNhbHQ",
		"$argon2id$v=19$m=a$x$y",
		"$argon2id$v=19$m=64,t=1,p=1$!$c29tZXNhbHQ"} {
		if right, err := p.Check(1, password, malformed); right || !errors.Is(err, errMalformedHash) {
			t.Errorf("malformed hash %q: %v, %v", malformed, right, err)
		}
	}
}

// A login to an account that does not exist hashes as long as any other, and no password fits.
func TestUnknownAccountIsHashed(t *testing.T) {
	p := NewPasswords(nil)
	hash, err := p.Hash(1, "correct horse battery staple")
	if err != nil {
		t.Fatal(err)
	}
	allocated := func(hash string) uint64 { // Argon2 allocates its memory for each password, so this shows that it ran
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if right, err := p.Check(1, "wrong", hash); right || err != nil {
			t.Fatalf("a wrong password against %q: %v, %v", hash, right, err)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	known, unknown := allocated(hash), allocated("")
	if known < 1<<20 || unknown < known*9/10 || unknown > known*11/10 {
		t.Errorf("a wrong password takes %d bytes for a known account and %d for an unknown one", known, unknown)
	}
	for _, password := range []string{"", "\x00", "A", "AAAAAAAAAAAAAAAA"} {
		if right, err := p.Check(1, password, ""); right || err != nil {
			t.Errorf("password %q fits an unknown account: %v", password, err)
		}
	}
}

// Guesses of a stranger do not lock out the user at another address; guesses from many addresses end too. A login
// of the user does not give strangers more guesses.
func TestLoginsAreLimitedByAccountAndNetwork(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s := &Server{logins: newLimiter(5, loginWindow), accountLogins: newLimiter(5*accountLoginFactor, loginWindow)}
	s.logins.now, s.accountLogins.now = func() time.Time { return now }, func() time.Time { return now }
	for i := range 100 {
		if err := s.countLogin("1/ann", "192.0.2.1"); (err == nil) != (i < 5) {
			t.Fatalf("guess %d of a stranger: %v", i+1, err)
		}
	}
	if err := s.countLogin("1/ann", "198.51.100.7"); err != nil {
		t.Errorf("the user is locked out by a stranger: %v", err)
	}
	s.forgetLogins("1/ann", "198.51.100.7")
	allowed := 5
	for n := range 40 {
		for range 5 {
			if s.countLogin("1/ann", fmt.Sprintf("203.0.113.%d", n)) == nil {
				allowed++
			}
		}
	}
	if allowed != 5*accountLoginFactor {
		t.Errorf("%d guesses from all networks, want %d", allowed, 5*accountLoginFactor)
	}
	if err := s.countLogin("1/bo", "203.0.113.1"); err != nil {
		t.Errorf("another account: %v", err)
	}
	now = now.Add(loginWindow)
	if err := s.countLogin("1/ann", "192.0.2.1"); err != nil {
		t.Errorf("after the window: %v", err)
	}
}
