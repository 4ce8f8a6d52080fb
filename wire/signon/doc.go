// Package signon identifies people at login providers of their companies: OpenID Connect providers, GitHub, SAML
// servers and LDAP directories. It knows the protocols of the providers, but neither organizations nor accounts:
// Provider.Begin returns the address to which a browser is redirected, Provider.Finish turns the answer of the provider
// into an Identity.
//
//	login page ── Begin ──► provider's page ── redirect with a code ──► Finish ──► Identity
//	                 └─ Flow, which the caller stores in a sealed cookie ──┘
//
// A provider may be down, slow or hostile. All requests to it have a deadline, their answers have a maximum size, and
// no request reaches a network that the operator has not allowed. An error is an *Error, whose Reason a page can show.
package signon
