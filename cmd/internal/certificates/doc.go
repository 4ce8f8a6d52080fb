// Package certificates has the keys of TLS: certificates from files or by ACME, and the keys of session tickets.
package certificates
