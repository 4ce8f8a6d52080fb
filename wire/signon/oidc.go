package signon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

const (
	// metadataAge is how long the metadata of a provider is used. Its keys are fetched again when a token has a key
	// that is not known.
	metadataAge = time.Hour
	// maxSkew is how much the clocks of the provider and of this server may differ.
	maxSkew = time.Minute
	// maxTokenAge is how old an ID token may be: it is fetched right after it was made.
	maxTokenAge = 10 * time.Minute
	// maxSubject is the maximum length of a subject in bytes (OpenID Connect Core, 2).
	maxSubject = 255
)

// signatures are the algorithms with which ID tokens may be signed. Those with a shared key, and none, are not in it: a
// token must never be checked with a public key as if it were a secret.
var signatures = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256,
	oidc.PS384, oidc.PS512, oidc.EdDSA}

// oidcProvider is a provider of OpenID Connect. Only the code flow with PKCE is used.
type oidcProvider struct {
	config *Config
	client *http.Client
	now    func() time.Time

	mu    sync.Mutex
	found *discovered // nil: not asked yet
}

// discovered is the metadata of a provider.
type discovered struct {
	*oidc.Provider
	at   time.Time
	more struct {
		IssuerInAnswers bool     `json:"authorization_response_iss_parameter_supported"`
		TokenAuth       []string `json:"token_endpoint_auth_methods_supported"`
		Algorithms      []string `json:"id_token_signing_alg_values_supported"`
		Keys            string   `json:"jwks_uri"`
		UserInfo        string   `json:"userinfo_endpoint"`
	}
}

func newOIDC(c *Config, now func() time.Time) *oidcProvider {
	return &oidcProvider{config: c, client: newClient(c), now: now}
}

// discover returns the metadata of the provider, which it fetches if it is too old.
func (p *oidcProvider) discover(ctx context.Context) (*discovered, error) {
	p.mu.Lock()
	found := p.found
	p.mu.Unlock()
	if found != nil && p.now().Sub(found.at) < metadataAge {
		return found, nil
	}
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, p.client), p.config.Issuer)
	if err != nil {
		return nil, requestError(fmt.Errorf("discovery: %w", err))
	}
	d := &discovered{Provider: provider, at: p.now()}
	if err := provider.Claims(&d.more); err != nil {
		return nil, requestError(fmt.Errorf("discovery: %w", err))
	}
	endpoint := provider.Endpoint()
	for name, address := range map[string]string{"authorization_endpoint": endpoint.AuthURL,
		"token_endpoint": endpoint.TokenURL, "jwks_uri": d.more.Keys} {
		if err := p.checkEndpoint(address); err != nil {
			return nil, fail("The login provider has a wrong configuration.", fmt.Errorf("%s: %w", name, err))
		}
	}
	p.mu.Lock()
	p.found = d
	p.mu.Unlock()
	return d, nil
}

// checkEndpoint refuses addresses of the metadata that are not encrypted. The networks are checked when the server
// connects.
func (p *oidcProvider) checkEndpoint(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.User != nil:
		return fmt.Errorf("%q is no address", quoted(address))
	case u.Scheme == "https", u.Scheme == "http" && p.config.AllowInsecure && isLoopback(u.Hostname()):
		return nil
	}
	return fmt.Errorf("%w: %s", errScheme, quoted(address))
}

// client returns the OAuth client of a login.
func (p *oidcProvider) oauth(d *discovered, redirect string) *oauth2.Config {
	endpoint := d.Endpoint()
	switch methods := d.more.TokenAuth; {
	case len(methods) == 0: // in the header by the protocol; some providers expect the secret in the form
		endpoint.AuthStyle = oauth2.AuthStyleAutoDetect
	case slices.Contains(methods, "client_secret_basic"):
		endpoint.AuthStyle = oauth2.AuthStyleInHeader
	case slices.Contains(methods, "client_secret_post"), p.config.secret == "":
		endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	scopes := p.config.Scopes
	if len(scopes) == 0 {
		scopes = []string{"profile", "email"}
	}
	if !slices.Contains(scopes, oidc.ScopeOpenID) {
		scopes = append([]string{oidc.ScopeOpenID}, scopes...)
	}
	return &oauth2.Config{ClientID: p.config.ClientID, ClientSecret: p.config.secret, Endpoint: endpoint,
		RedirectURL: redirect, Scopes: scopes}
}

// Begin implements Provider.
func (p *oidcProvider) Begin(ctx context.Context, f Flow) (string, error) {
	d, err := p.discover(ctx)
	if err != nil {
		return "", err
	}
	return p.oauth(d, f.Redirect).AuthCodeURL(f.State, oidc.Nonce(f.Nonce),
		oauth2.S256ChallengeOption(f.Verifier)), nil
}

// Finish implements Provider.
func (p *oidcProvider) Finish(ctx context.Context, f Flow, answer url.Values) (Identity, error) {
	d, err := p.discover(ctx)
	if err != nil {
		return Identity{}, err
	}
	code, err := f.code(answer, p.config.Issuer, d.more.IssuerInAnswers)
	if err != nil {
		return Identity{}, err
	}
	withClient := oidc.ClientContext(ctx, p.client)
	tokens, err := p.oauth(d, f.Redirect).Exchange(withClient, code, oauth2.VerifierOption(f.Verifier))
	if err != nil {
		return Identity{}, exchangeError(err)
	}
	raw, _ := tokens.Extra("id_token").(string)
	token, claims, err := p.verify(withClient, d, raw, f.Nonce)
	if err != nil {
		return Identity{}, err
	}
	if token.AccessTokenHash != "" {
		if err := token.VerifyAccessToken(tokens.AccessToken); err != nil {
			return Identity{}, tokenError(err)
		}
	}
	if (claims.Email == "" || p.config.lacksClaims(claims.all)) && d.more.UserInfo != "" {
		if err := p.askUserInfo(withClient, d, tokens, token.Subject, claims); err != nil {
			return Identity{}, err
		}
	}
	verified := claims.EmailVerified.is || !claims.EmailVerified.given && p.config.TrustEmail
	return Identity{Issuer: p.config.Issuer, Subject: token.Subject, Email: claims.Email,
		Verified: verified && claims.Email != "", Name: claims.fullName(),
		Rules: p.config.matching(p.config.claimsOf(claims.all))}, nil
}

// exchangeError returns the Error of a code that the provider did not exchange for tokens.
func exchangeError(err error) error {
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) && refused.Response.StatusCode < http.StatusInternalServerError {
		return fail("The login provider has refused the login. Please try again.",
			fmt.Errorf("the provider exchanges no code: status %d, %s: %s", refused.Response.StatusCode,
				quoted(refused.ErrorCode), quoted(refused.ErrorDescription)))
	}
	return requestError(fmt.Errorf("exchange of the code: %w", err))
}

func tokenError(err error) error {
	return fail("The login provider sent an identity that is not valid. Please try again.",
		fmt.Errorf("ID token: %w", err))
}

// claims are the claims of an ID token, and of the user info, that the server reads.
type claims struct {
	Email         string       `json:"email"`
	EmailVerified lenientBool  `json:"email_verified"`
	Name          string       `json:"name"`
	GivenName     string       `json:"given_name"`
	FamilyName    string       `json:"family_name"`
	Username      string       `json:"preferred_username"`
	Party         string       `json:"azp"`
	Expires       *json.Number `json:"exp"`
	NotBefore     *json.Number `json:"nbf"`
	Issued        *json.Number `json:"iat"`

	all map[string]json.RawMessage // for the rules
}

// lenientBool is a truth value that some providers send as a text.
type lenientBool struct{ given, is bool }

// UnmarshalJSON implements json.Unmarshaler.
func (b *lenientBool) UnmarshalJSON(text []byte) error {
	switch strings.ToLower(strings.Trim(string(text), `"`)) {
	case "true":
		*b = lenientBool{true, true}
	case "null":
	default: // everything unclear is false
		*b = lenientBool{true, false}
	}
	return nil
}

func (c *claims) fullName() string {
	for _, name := range []string{c.Name, c.GivenName + " " + c.FamilyName, c.Username} {
		if name = strings.TrimSpace(name); name != "" {
			return name
		}
	}
	return ""
}

// verify checks an ID token: its signature, issuer, audience, times and nonce.
func (p *oidcProvider) verify(ctx context.Context, d *discovered, raw, nonce string) (*oidc.IDToken, *claims, error) {
	if raw == "" {
		return nil, nil, tokenError(errors.New("the answer has none"))
	}
	// The times are checked below, because the clocks may differ.
	token, err := d.VerifierContext(ctx, &oidc.Config{ClientID: p.config.ClientID, SkipExpiryCheck: true,
		SupportedSigningAlgs: signatures}).Verify(ctx, raw)
	if err != nil {
		if strings.Contains(err.Error(), "fetching keys") { // by the library
			return nil, nil, requestError(err)
		}
		return nil, nil, tokenError(err)
	}
	c := &claims{}
	if err := errors.Join(token.Claims(c), token.Claims(&c.all)); err != nil {
		return nil, nil, tokenError(err)
	}
	switch {
	case token.Subject == "" || len(token.Subject) > maxSubject:
		err = fmt.Errorf("the subject has %d bytes", len(token.Subject))
	case nonce == "" || token.Nonce != nonce:
		err = errors.New("the nonce is wrong: it was made for another login")
	case len(token.Audience) > 1 && c.Party == "", c.Party != "" && c.Party != p.config.ClientID:
		err = fmt.Errorf("it was made for the client %s", quoted(c.Party))
	default:
		err = c.checkTimes(p.now())
	}
	if err != nil {
		return nil, nil, tokenError(err)
	}
	return token, c, nil
}

// checkTimes refuses tokens that are expired, that are not valid yet, or that were made long ago.
func (c *claims) checkTimes(now time.Time) error {
	at := func(n *json.Number) time.Time {
		seconds, _ := n.Float64()
		return time.Unix(int64(max(-maxSeconds, min(seconds, maxSeconds))), 0)
	}
	switch {
	case c.Expires == nil || c.Issued == nil:
		return errors.New("it has no exp or no iat")
	case now.After(at(c.Expires).Add(maxSkew)):
		return fmt.Errorf("it has expired at %s", at(c.Expires).UTC())
	case at(c.Issued).After(now.Add(maxSkew)):
		return fmt.Errorf("it was made in the future, at %s", at(c.Issued).UTC())
	case now.After(at(c.Issued).Add(maxTokenAge + maxSkew)):
		return fmt.Errorf("it was made long ago, at %s", at(c.Issued).UTC())
	case c.NotBefore != nil && at(c.NotBefore).After(now.Add(maxSkew)):
		return fmt.Errorf("it is not valid before %s", at(c.NotBefore).UTC())
	}
	return nil
}

// maxSeconds bounds times of tokens, so that converting them does not overflow: about the year 3100.
const maxSeconds = 1 << 35

// askUserInfo fills in the claims that the ID token does not have.
func (p *oidcProvider) askUserInfo(
	ctx context.Context, d *discovered, tokens *oauth2.Token, subject string, c *claims,
) error {
	info, err := d.UserInfo(ctx, oauth2.StaticTokenSource(tokens))
	if err != nil {
		return requestError(fmt.Errorf("user info: %w", err))
	}
	if info.Subject != subject { // OpenID Connect Core, 5.3.2
		return fail("The login provider sent an identity that is not valid. Please try again.",
			fmt.Errorf("user info: the subject is %s", quoted(info.Subject)))
	}
	var more map[string]json.RawMessage
	err = info.Claims(&more)
	if err == nil && c.Email == "" {
		err = info.Claims(c)
	}
	if err != nil {
		return requestError(fmt.Errorf("user info: %w", err))
	}
	for name, value := range more { // the token, which is signed, counts first
		if _, known := c.all[name]; !known {
			c.all[name] = value
		}
	}
	return nil
}

// Check implements Provider.
func (p *oidcProvider) Check(ctx context.Context, report func(string)) error {
	d, err := p.discover(ctx)
	if err != nil {
		return err
	}
	report("the metadata of " + p.config.Issuer + " is complete")
	if !slices.ContainsFunc(d.more.Algorithms, func(a string) bool { return slices.Contains(signatures, a) }) {
		return fail("The login provider has a wrong configuration.",
			fmt.Errorf("none of its algorithms %v is safe", d.more.Algorithms))
	}
	report("it signs with an algorithm that is safe")
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, d.more.Keys, nil)
	if err != nil {
		return requestError(err)
	}
	answer, err := p.client.Do(r)
	if err != nil {
		return requestError(err)
	}
	defer answer.Body.Close()
	var keys struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&keys); err != nil {
		return requestError(fmt.Errorf("keys: %w", err))
	}
	if len(keys.Keys) == 0 {
		return fail("The login provider has a wrong configuration.", errors.New("it publishes no keys"))
	}
	report(fmt.Sprintf("it publishes %d keys", len(keys.Keys)))
	return nil
}
