package certificates

import (
	"golang.org/x/crypto/acme"

	"parley/actors/registry"
)

// Table describes the settings.
func (s *Settings) Table() []registry.Setting {
	return []registry.Setting{
		{
			Name: "tls-cert", Group: registry.TLS, Value: &s.TLSCert,
			Meaning: "certificate file; with tls-key the server itself accepts TLS connections",
		},
		{
			Name: "tls-key", Group: registry.TLS, Value: &s.TLSKey,
			Meaning: "key file of the certificate",
		},
		{
			Name: "tls-acme", Group: registry.TLS, Value: &s.ACME,
			Meaning: "host names, comma-separated, to get certificates for by ACME (TLS-ALPN: the public port 443 " +
				"must " +
				"lead to listen); the server itself then accepts TLS connections",
		},
		{
			Name: "tls-acme-email", Group: registry.TLS, Value: &s.ACMEEmail,
			Meaning: "contact address for the certificate authority",
		},
		{
			Name: "tls-acme-directory", Default: acme.LetsEncryptURL, Group: registry.TLS, Value: &s.ACMEDirectory,
			Meaning: "directory URL of the certificate authority",
		},
	}
}
