package mail

import (
	"html"
	"strings"
	"time"

	"parley/actors/realm"
	"parley/wire"
)

// Composer is a wire.EmailComposer.
type Composer struct{}

// linkTime is how emails show until when a link can be used, in UTC.
const linkTime = "15:04 on January 2, 2006"

// Invitation invites a person to an organization, by a link that the server adds when it sends the email.
func (Composer) Invitation(l realm.InviteEmail) realm.Email {
	inviter := l.Inviter
	if inviter == "" {
		inviter = "Somebody"
	}
	p := []string{
		inviter + " has invited you to join " + l.Org + ".",
		"To make your account, follow this link:",
		realm.LinkPlaceholder,
	}
	if l.Invite.Expires != 0 {
		p = append(p, "The invitation expires at "+time.Unix(l.Invite.Expires, 0).UTC().Format(linkTime)+" (UTC).")
	}
	p = append(p, "If you did not expect this, you may ignore it: without the link nobody can join in your name.")
	subject := inviter + " has invited you to join " + l.Org
	return realm.Email{To: l.Invite.Email, Subject: subject, Paragraphs: p, Link: l.Link}
}

// AccountDeactivated tells users that their account was deactivated.
func (Composer) AccountDeactivated(u *realm.User, organization, comment string, s wire.Site) realm.Email {
	p := []string{
		"Hello " + u.Name + ",",
		"Your account in " + organization + " (" + s.Host + ") has been deactivated, " +
			"and you can no longer log in there.",
	}
	if comment = strings.TrimSpace(comment); comment != "" {
		p = append(p, "An administrator adds:", comment)
	}
	subject := "Your account in " + organization + " has been deactivated"
	return realm.Email{To: u.Email, Subject: subject, Paragraphs: p}
}

// ConfirmAddress asks the owner of a new address to confirm it, by a link that the server adds when it sends the email.
func (Composer) ConfirmAddress(a realm.EmailChange, organization string) realm.Email {
	until := time.Unix(a.Until, 0).UTC().Format(linkTime)
	p := []string{
		"Somebody, we hope it was you, asked that the account of " + a.From + " in " + organization +
			" get this address.",
		"To confirm that, follow this link:",
		realm.LinkPlaceholder,
		"It is good until " + until + " (UTC). If you did not expect this, you may ignore it: nothing changes then.",
	}
	return realm.Email{To: a.To, Subject: "Confirm your new address for " + organization, Address: &a, Paragraphs: p}
}

// AddressChanged tells the owner of the old address that it was replaced.
func (Composer) AddressChanged(a realm.EmailChange, organization string) realm.Email {
	subject := "Your address for " + organization + " was changed"
	return realm.Email{To: a.From, Subject: subject, Paragraphs: []string{
		"The address of your account in " + organization + " is " + a.To + " now.",
		"If it was not you who changed it, please tell an administrator of the organization at once.",
	}}
}

// NewLogin tells a user about a login with a browser or an app.
func (Composer) NewLogin(l realm.LoginEmail, s wire.Site) realm.Email {
	device := wire.DeviceText(l.Session.Agent)
	advice := []string{"If this was you, you can ignore this email. Otherwise change your password and end the " +
		"session here:", s.URL + wire.SessionsPath}
	if l.App {
		device = wire.AppText(l.Session.Agent)
		advice = []string{"If this was you, you can ignore this email. Otherwise set a new password here, which logs " +
			"out all browsers and apps:", s.URL + wire.ResetPath}
	}
	return realm.Email{
		To:      l.User.Email,
		Subject: "New login to " + l.Org + " from " + device,
		Paragraphs: append([]string{
			"Hello " + l.User.Name + ",",
			"Your account in " + l.Org + " (" + s.Host + ") was just used to log in.",
			"Time: " + time.Unix(l.Session.Opened, 0).UTC().Format(linkTime) + " (UTC)",
			"Device: " + device,
			"Address: " + l.Session.Address,
		}, advice...),
		Unsubscribe: &realm.Unsubscription{User: l.User.ID, Topic: realm.LoginEmails},
	}
}

// ignoreHint ends emails that anyone can cause by entering an address.
const ignoreHint = "If you did not ask for this email, you can ignore it. Nothing has changed."

// SignUp sends the link to sign up, or says that the address has an account already.
func (Composer) SignUp(l realm.EmailedLink, known bool, organization string, s wire.Site) realm.Email {
	if known {
		return realm.Email{To: l.Email, Subject: "You have an account in " + organization, Paragraphs: []string{
			"This address was entered to sign up in " + organization + ", but it has an account there already. " +
				"You can log in or set a new password here:",
			s.URL + "/login/",
			ignoreHint,
		}}
	}
	return realm.Email{To: l.Email, Subject: "Sign up in " + organization, Confirm: &l, Paragraphs: []string{
		"To confirm your address and make your account in " + organization + ", follow this link:",
		realm.LinkPlaceholder,
		validity(l),
		ignoreHint,
	}}
}

func validity(l realm.EmailedLink) string {
	return "The link can be used once, until " + time.Unix(l.Until, 0).UTC().Format(linkTime) + " (UTC)."
}

// ResetPassword sends the link to set a new password.
func (Composer) ResetPassword(l realm.EmailedLink, organization string) realm.Email {
	subject := "Set a new password for " + organization
	return realm.Email{To: l.Email, Subject: subject, Confirm: &l, Paragraphs: []string{
		"To set a new password for your account in " + organization + ", follow this link:",
		realm.LinkPlaceholder,
		validity(l),
		ignoreHint,
	}}
}

// PasswordChanged tells a user about a new password.
func (Composer) PasswordChanged(email, organization string) realm.Email {
	subject := "Your password for " + organization + " was changed"
	return realm.Email{To: email, Subject: subject, Paragraphs: []string{
		"Your account in " + organization + " has a new password, set by a link that was sent to this address. " +
			"All browsers and apps were logged out.",
		"If this was not you, please tell an administrator of the organization at once.",
	}}
}

// Accounts lists the organizations in which an address has an account.
func (Composer) Accounts(email string, sites []wire.Site) realm.Email {
	p := []string{"This address has an account here:"}
	for _, s := range sites {
		p = append(p, s.URL+"/login/")
	}
	return realm.Email{To: email, Subject: "Your accounts", Paragraphs: append(p, ignoreHint)}
}

// NewOrganization sends the link that creates an organization.
func (Composer) NewOrganization(l realm.EmailedLink) realm.Email {
	return realm.Email{To: l.Email, Subject: "Create the organization " + l.Org, Confirm: &l, Paragraphs: []string{
		"To confirm your address and create the organization " + l.Org + ", follow this link:",
		realm.LinkPlaceholder,
		validity(l),
		ignoreHint,
	}}
}

// withLink returns the email with its placeholder replaced by its link.
func withLink(email realm.Email, id realm.ID, s wire.Site, t *wire.Tools) realm.Email {
	link := wire.EmailLink(email, id, s, t)
	if link == "" {
		return email
	}
	out := email
	out.Paragraphs = nil
	for _, p := range email.Paragraphs {
		if p == realm.LinkPlaceholder {
			p = link
		}
		out.Paragraphs = append(out.Paragraphs, p)
	}
	return out
}

// plainText returns the body for readers without HTML.
func plainText(email realm.Email) string { return strings.Join(email.Paragraphs, "\n\n") + "\n" }

// htmlText returns the same body as HTML. A paragraph that is a web address becomes a link.
func htmlText(email realm.Email) string {
	var b strings.Builder
	b.WriteString("<!doctype html><html><body>")
	for _, p := range email.Paragraphs {
		p, link := html.EscapeString(p), strings.HasPrefix(p, "https://") || strings.HasPrefix(p, "http://")
		if link {
			p = `<a href="` + p + `">` + p + `</a>`
		}
		b.WriteString("<p>" + p + "</p>")
	}
	b.WriteString("</body></html>\n")
	return b.String()
}
