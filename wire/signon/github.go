package signon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"golang.org/x/oauth2"
)

// githubProvider is GitHub, or a GitHub Enterprise server. It has no ID tokens: the server asks the API for the
// account. An account has a number that never changes; its name and addresses do.
type githubProvider struct {
	config *Config
	client *http.Client
	api    string
}

func newGitHub(c *Config) *githubProvider {
	p := &githubProvider{config: c, client: newClient(c), api: c.Issuer + "/api/v3"}
	if c.Issuer == presets["github"].issuer {
		p.api = "https://api.github.com"
	}
	return p
}

func (p *githubProvider) oauth(redirect string) *oauth2.Config {
	scopes := p.config.Scopes
	if len(scopes) == 0 {
		scopes = []string{"read:user", "user:email"}
		if p.config.hasRuleFor(organizationsClaim) {
			scopes = append(scopes, "read:org")
		}
	}
	return &oauth2.Config{ClientID: p.config.ClientID, ClientSecret: p.config.secret, RedirectURL: redirect,
		Scopes: scopes, Endpoint: oauth2.Endpoint{AuthURL: p.config.Issuer + "/login/oauth/authorize",
			TokenURL: p.config.Issuer + "/login/oauth/access_token", AuthStyle: oauth2.AuthStyleInParams}}
}

// Begin implements Provider.
func (p *githubProvider) Begin(_ context.Context, f Flow) (string, error) {
	return p.oauth(f.Redirect).AuthCodeURL(f.State, oauth2.S256ChallengeOption(f.Verifier)), nil
}

// Finish implements Provider.
func (p *githubProvider) Finish(ctx context.Context, f Flow, answer url.Values) (Identity, error) {
	code, err := f.code(answer, p.config.Issuer, false)
	if err != nil {
		return Identity{}, err
	}
	withClient := context.WithValue(ctx, oauth2.HTTPClient, p.client)
	tokens, err := p.oauth(f.Redirect).Exchange(withClient, code, oauth2.VerifierOption(f.Verifier))
	if err != nil {
		return Identity{}, exchangeError(err)
	}
	var account struct {
		ID    int64  `json:"id"`
		Login string `json:"login"`
		Name  string `json:"name"`
	}
	if err := p.get(ctx, tokens, "/user", &account); err != nil {
		return Identity{}, err
	}
	if account.ID <= 0 {
		return Identity{}, fail("The login provider sent an identity that is not valid. Please try again.",
			fmt.Errorf("the account has the number %d", account.ID))
	}
	var addresses []struct {
		Email    string `json:"email"`
		Primary  bool   `json:"primary"`
		Verified bool   `json:"verified"`
	}
	if err := p.get(ctx, tokens, "/user/emails", &addresses); err != nil {
		return Identity{}, err
	}
	id := Identity{Issuer: p.config.Issuer, Subject: strconv.FormatInt(account.ID, 10),
		Name: orElse(account.Name, account.Login)}
	for _, a := range addresses {
		if a.Primary {
			id.Email, id.Verified = a.Email, a.Verified && a.Email != ""
		}
	}
	claims := Claims{"login": {account.Login}}
	if p.config.hasRuleFor(organizationsClaim) {
		var organizations []struct {
			Login string `json:"login"`
		}
		if err := p.get(ctx, tokens, "/user/orgs?per_page=100", &organizations); err != nil {
			return Identity{}, err
		}
		for _, o := range organizations {
			claims[organizationsClaim] = append(claims[organizationsClaim], o.Login)
		}
	}
	id.Rules = p.config.matching(claims)
	return id, nil
}

// organizationsClaim is the claim with the names of the organizations at GitHub that a person is in, up to 100. The
// other claim is the login name.
const organizationsClaim = "organizations"

// get asks the API as the account of a token.
func (p *githubProvider) get(ctx context.Context, tokens *oauth2.Token, path string, into any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.api+path, nil)
	if err != nil {
		return requestError(err)
	}
	tokens.SetAuthHeader(r)
	r.Header.Set("Accept", "application/vnd.github+json")
	answer, err := p.client.Do(r)
	if err != nil {
		return requestError(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return requestError(fmt.Errorf("GET %s: status %d", path, answer.StatusCode))
	}
	if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
		return requestError(fmt.Errorf("GET %s: %w", path, err))
	}
	return nil
}

// Check implements Provider.
func (p *githubProvider) Check(ctx context.Context, report func(string)) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.api+"/meta", nil)
	if err != nil {
		return requestError(err)
	}
	answer, err := p.client.Do(r)
	if err != nil {
		return requestError(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return requestError(errors.New("GET /meta: " + answer.Status))
	}
	report("the API at " + p.api + " answers")
	return nil
}
