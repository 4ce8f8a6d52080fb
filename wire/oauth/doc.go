// Package oauth has the rules by which apps ask users for a limited API key, as the Model Context Protocol describes:
// OAuth 2.1 with PKCE (RFC 7636), metadata (RFC 8414, RFC 9728), dynamic registration (RFC 7591), resource indicators
// (RFC 8707) and revocation (RFC 7009).
//
//	POST /oauth/register ──► Client, sealed: its text is the client_id, and nothing is stored
//	GET  /oauth/authorize ──► Request, checked ──► the page on which the user chooses rights and a lifetime
//	POST /oauth/authorize ──► a key that nobody can use yet, and a Code for it, sealed
//	POST /oauth/token ──► Code, checked ──► the key gets its secret, once
//
// The package stores nothing, reads no clock and writes no answer: package httpd serves the addresses. Errors are of
// type *Error and have the codes of the standards.
package oauth
