package wire

import (
	"encoding/base64"
	"fmt"
	"strings"

	"parley/actors/realm"
)

// ConfirmAddressPath is the path of the page that confirms a new email address; the token follows it (protocol).
const ConfirmAddressPath = "/accounts/confirm_new_email/"

// addressConfirmation returns the function that writes the email asking to confirm a new address. It returns nil if
// the server sends no email.
func (c *Call) addressConfirmation() func(realm.EmailChange, realm.Letterhead) realm.Email {
	if c.Tools.Emails == nil {
		return nil
	}
	return c.Tools.Emails.ConfirmAddress
}

// addressToken returns the last part of the link that confirms a change. The old address is only part of the signed
// text: if the link reaches the wrong person, it does not reveal that address.
func addressToken(t *Tools, id realm.ID, a realm.EmailChange) string {
	text := fmt.Sprintf("%d %d %s", a.User, a.Until, a.To)
	return base64.RawURLEncoding.EncodeToString([]byte(text)) + "." + t.Sign(addressSignatureText(id, a))
}

// addressSignatureText returns the text that the signature of the link covers.
func addressSignatureText(id realm.ID, a realm.EmailChange) string {
	return fmt.Sprintf("address of %d %d from %q to %q until %d", id, a.User, a.From, a.To, a.Until)
}

// FindAddressChange returns the address change that a confirmation link describes, and changes nothing. An invalid or
// expired link is a refusal with status 404.
func FindAddressChange(c *Call, token string) (a realm.EmailChange, err error) {
	invalid := realm.Missing("This link is not valid, or not any longer.")
	body, mark, _ := strings.Cut(token, ".")
	text, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		return a, invalid
	}
	if n, err := fmt.Sscanf(string(text), "%d %d %s", &a.User, &a.Until, &a.To); err != nil || n != 3 {
		return a, invalid
	}
	c.Caller = realm.Caller{System: true, Client: c.Caller.Client}
	a.From, err = Read(c, func(v realm.View) (string, error) {
		if u := v.Find(a.User); u != nil && v.Now <= a.Until {
			return u.Email, nil
		}
		return "", invalid
	})
	if err == nil && !c.Tools.VerifySignature(addressSignatureText(c.Realm, a), mark) {
		err = invalid
	}
	return a, err
}

// ConfirmAddress applies the address change that a confirmation link describes and returns the new address.
func ConfirmAddress(c *Call, token string) (string, error) {
	a, err := FindAddressChange(c, token)
	if err != nil {
		return "", err
	}
	cmd := realm.ConfirmEmailChange{EmailChange: a}
	if c.Tools.Emails != nil {
		cmd.Notice = c.Tools.Emails.AddressChanged
	}
	_, err = Execute(c, cmd)
	return a.To, err
}
