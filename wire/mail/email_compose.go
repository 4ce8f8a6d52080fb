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

// stamp returns the text of a time (Unix, seconds) in UTC. It is the same in all languages.
func stamp(at int64) string { return time.Unix(at, 0).UTC().Format("2006-01-02 15:04") }

// Invitation invites a person to an organization, by a link that the server adds when it sends the email.
func (Composer) Invitation(l realm.InviteEmail) realm.Email {
	t := textsIn(l.Language)
	inviter := l.Inviter
	if inviter == "" {
		inviter = t.text("Somebody")
	}
	p := []string{
		t.text("%s has invited you to join %s.", inviter, l.Org),
		t.text("To make your account, follow this link:"),
		realm.LinkPlaceholder,
	}
	if l.Invite.Expires != 0 {
		p = append(p, t.text("The invitation expires on %s (UTC).", stamp(l.Invite.Expires)))
	}
	p = append(p, t.text("If you did not expect this, you may ignore it: without the link nobody can join in your name."))
	subject := t.text("%s has invited you to join %s", inviter, l.Org)
	return realm.Email{To: l.Invite.Email, Subject: subject, Paragraphs: p, Link: l.Link}
}

// AccountDeactivated tells users that their account was deactivated.
func (Composer) AccountDeactivated(u *realm.User, h realm.Letterhead, comment string, s wire.Site) realm.Email {
	t := textsIn(h.Language)
	p := []string{
		t.text("Hello %s,", u.Name),
		t.text("Your account in %s (%s) has been deactivated, and you can no longer log in there.", h.Org, s.Host),
	}
	if comment = strings.TrimSpace(comment); comment != "" {
		p = append(p, t.text("An administrator adds:"), comment)
	}
	return realm.Email{To: u.Email, Subject: t.text("Your account in %s has been deactivated", h.Org), Paragraphs: p}
}

// ConfirmAddress asks the owner of a new address to confirm it, by a link that the server adds when it sends the email.
func (Composer) ConfirmAddress(a realm.EmailChange, h realm.Letterhead) realm.Email {
	t := textsIn(h.Language)
	p := []string{
		t.text("Somebody, we hope it was you, asked that the account of %s in %s get this address.", a.From, h.Org),
		t.text("To confirm that, follow this link:"),
		realm.LinkPlaceholder,
		t.text("It is good until %s (UTC). If you did not expect this, you may ignore it: nothing changes then.",
			stamp(a.Until)),
	}
	return realm.Email{To: a.To, Subject: t.text("Confirm your new address for %s", h.Org), Address: &a, Paragraphs: p}
}

// adviceToTell ends emails about changes that the reader may not have made.
const adviceToTell = "If this was not you, please tell an administrator of the organization at once."

// AddressChanged tells the owner of the old address that it was replaced.
func (Composer) AddressChanged(a realm.EmailChange, h realm.Letterhead) realm.Email {
	t := textsIn(h.Language)
	return realm.Email{To: a.From, Subject: t.text("Your address for %s was changed", h.Org), Paragraphs: []string{
		t.text("The address of your account in %s is %s now.", h.Org, a.To),
		t.text(adviceToTell),
	}}
}

// NewLogin tells a user about a login with a browser or an app.
func (Composer) NewLogin(l realm.LoginEmail, s wire.Site) realm.Email {
	t := textsIn(l.Language)
	device := t.device(wire.DeviceText(l.Session.Agent))
	advice := []string{
		t.text("If this was you, you can ignore this email. Otherwise change your password and end the session here:"),
		s.URL + wire.SessionsPath,
	}
	if l.App {
		device = t.device(wire.AppText(l.Session.Agent))
		advice = []string{
			t.text("If this was you, you can ignore this email. Otherwise set a new password here, which logs out all " +
				"browsers and apps:"),
			s.URL + wire.ResetPath,
		}
	}
	return realm.Email{
		To:      l.User.Email,
		Subject: t.text("New login to %s from %s", l.Org, device),
		Paragraphs: append([]string{
			t.text("Hello %s,", l.User.Name),
			t.text("Your account in %s (%s) was just used to log in.", l.Org, s.Host),
			t.text("Time: %s (UTC)", stamp(l.Session.Opened)),
			t.text("Device: %s", device),
			t.text("Address: %s", l.Session.Address),
		}, advice...),
		Unsubscribe: &realm.Unsubscription{User: l.User.ID, Topic: realm.LoginEmails},
	}
}

// ignoreHint ends emails that anyone can cause by entering an address.
const ignoreHint = "If you did not ask for this email, you can ignore it. Nothing has changed."

// SignUp sends the link to sign up, or says that the address has an account already.
func (Composer) SignUp(l realm.EmailedLink, known bool, h realm.Letterhead, s wire.Site) realm.Email {
	t := textsIn(h.Language)
	if known {
		return realm.Email{To: l.Email, Subject: t.text("You have an account in %s", h.Org), Paragraphs: []string{
			t.text("This address was entered to sign up in %s, but it has an account there already. You can log in or "+
				"set a new password here:", h.Org),
			s.URL + "/login/",
			t.text(ignoreHint),
		}}
	}
	return t.linked(l, t.text("Sign up in %s", h.Org),
		t.text("To confirm your address and make your account in %s, follow this link:", h.Org))
}

// linked returns an email with a link that can be used once.
func (t texts) linked(l realm.EmailedLink, subject, introduction string) realm.Email {
	return realm.Email{To: l.Email, Subject: subject, Confirm: &l, Paragraphs: []string{
		introduction,
		realm.LinkPlaceholder,
		t.text("The link can be used once, until %s (UTC).", stamp(l.Until)),
		t.text(ignoreHint),
	}}
}

// ResetPassword sends the link to set a new password.
func (Composer) ResetPassword(l realm.EmailedLink, h realm.Letterhead) realm.Email {
	t := textsIn(h.Language)
	return t.linked(l, t.text("Set a new password for %s", h.Org),
		t.text("To set a new password for your account in %s, follow this link:", h.Org))
}

// PasswordChanged tells a user about a new password.
func (Composer) PasswordChanged(email string, h realm.Letterhead) realm.Email {
	t := textsIn(h.Language)
	return realm.Email{To: email, Subject: t.text("Your password for %s was changed", h.Org), Paragraphs: []string{
		t.text("Your account in %s has a new password, set by a link that was sent to this address. All browsers and "+
			"apps were logged out.", h.Org),
		t.text(adviceToTell),
	}}
}

// Accounts lists the organizations in which an address has an account.
func (Composer) Accounts(email string, sites []wire.Site, language string) realm.Email {
	t := textsIn(language)
	p := []string{t.text("This address has an account here:")}
	for _, s := range sites {
		p = append(p, s.URL+"/login/")
	}
	return realm.Email{To: email, Subject: t.text("Your accounts"), Paragraphs: append(p, t.text(ignoreHint))}
}

// NewOrganization sends the link that creates an organization.
func (Composer) NewOrganization(l realm.EmailedLink, language string) realm.Email {
	t := textsIn(language)
	return t.linked(l, t.text("Create the organization %s", l.Org),
		t.text("To confirm your address and create the organization %s, follow this link:", l.Org))
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

// htmlText returns the same body as HTML. A paragraph that is a web address becomes a link. Mail programs find the
// direction of each paragraph by its letters.
func htmlText(email realm.Email) string {
	var b strings.Builder
	b.WriteString("<!doctype html><html><body>")
	for _, p := range email.Paragraphs {
		p, link := html.EscapeString(p), strings.HasPrefix(p, "https://") || strings.HasPrefix(p, "http://")
		if link {
			p = `<a href="` + p + `">` + p + `</a>`
		}
		b.WriteString(`<p dir="auto">` + p + "</p>")
	}
	b.WriteString("</body></html>\n")
	return b.String()
}
