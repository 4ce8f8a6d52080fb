package assist

import (
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"parley/actors/registry"
	"parley/wire"
)

// Settings are the settings of the services.
type Settings struct {
	AssistURL, AssistModel, AssistKeyFile      string
	TranslateURL, TranslateKeyFile             string
	EmbedURL, EmbedModel, EmbedKeyFile         string
	EmbedDimensions, EmbedMessages             int
	EmbedOrganizationTokens                    int
	AssistAllow                                string
	AssistUserTokens, AssistOrganizationTokens int
}

// Defaults of the tokens of a day: some hundred summaries of short topics, or 14 of the longest, for a user; ten users
// who use up all of theirs for an organization.
const (
	defaultUserTokens         = 200_000
	defaultOrganizationTokens = 2_000_000
)

// Defaults of search by meaning are those of package snapshot/meaning.
const (
	defaultEmbedMessages = 50_000
	maxEmbedMessages     = 200_000
	defaultEmbedTokens   = 5_000_000
)

// checkEmbed returns an error for numbers that are not possible.
func (s *Settings) checkEmbed() error {
	switch {
	case s.EmbedURL == "":
		return nil
	case s.EmbedDimensions < 0 || s.EmbedDimensions > MaxEmbedDimensions:
		return fmt.Errorf("embed-dimensions must be between 0 and %d, not %d", MaxEmbedDimensions, s.EmbedDimensions)
	case s.EmbedMessages < 1 || s.EmbedMessages > maxEmbedMessages:
		return fmt.Errorf("embed-messages must be between 1 and %d, not %d", maxEmbedMessages, s.EmbedMessages)
	case s.EmbedOrganizationTokens < 0:
		return fmt.Errorf("embed-organization-tokens must not be negative, but is %d", s.EmbedOrganizationTokens)
	}
	return nil
}

// Table describes the settings.
func (s *Settings) Table() []registry.Setting {
	return []registry.Setting{
		{
			Name: "assist-url", Group: registry.Access, Value: &s.AssistURL,
			Meaning: "address of a service with the interface of OpenAI's chat completions, such as " +
				"http://127.0.0.1:8080/v1, which summarizes topics and, without translate-url, translates messages; " +
				"owners of an organization must agree (assistant_enabled)",
		},
		{
			Name: "assist-model", Group: registry.Access, Value: &s.AssistModel,
			Meaning: "name of the model at assist-url",
		},
		{
			Name: "assist-key-file", Group: registry.Access, Value: &s.AssistKeyFile,
			Meaning: "file with the API key for assist-url",
		},
		{
			Name: "translate-url", Group: registry.Access, Value: &s.TranslateURL,
			Meaning: "address of a LibreTranslate server, such as http://127.0.0.1:5000, which translates messages",
		},
		{
			Name: "translate-key-file", Group: registry.Access, Value: &s.TranslateKeyFile,
			Meaning: "file with the API key for translate-url",
		},
		{
			Name: "embed-url", Group: registry.Access, Value: &s.EmbedURL,
			Meaning: "address of a service with the interface of OpenAI's embeddings, such as " +
				"http://127.0.0.1:8080/v1, which gets the texts of all messages, so that users can search by " +
				"meaning; owners of an organization must agree (meaning_search_enabled)",
		},
		{
			Name: "embed-model", Group: registry.Access, Value: &s.EmbedModel,
			Meaning: "name of the model at embed-url; if it changes, all vectors are made again",
		},
		{
			Name: "embed-key-file", Group: registry.Access, Value: &s.EmbedKeyFile,
			Meaning: "file with the API key for embed-url",
		},
		{
			Name: "embed-dimensions", Default: "0", Group: registry.Access, Value: &s.EmbedDimensions,
			Meaning: "numbers that each vector must have, which the service is asked for; 0: as many as the first one",
		},
		{
			Name: "embed-messages", Default: strconv.Itoa(defaultEmbedMessages), Group: registry.Access,
			Value:   &s.EmbedMessages,
			Meaning: "newest messages of each organization that search by meaning finds, at most 200,000",
		},
		{
			Name: "embed-organization-tokens", Default: strconv.Itoa(defaultEmbedTokens), Group: registry.Access,
			Value:   &s.EmbedOrganizationTokens,
			Meaning: "tokens that the vectors of the messages of one organization cost in a day; 0: no limit",
		},
		{
			Name: "assist-allow", Group: registry.Access, Value: &s.AssistAllow,
			Meaning: "private networks, comma-separated, in which the services may be, such as 127.0.0.0/8",
		},
		{
			Name: "assist-user-tokens", Default: strconv.Itoa(defaultUserTokens), Group: registry.Access,
			Value: &s.AssistUserTokens,
			Meaning: "tokens of the models that the summaries, translations and searches by meaning of one user cost " +
				"in a day; 0: no limit",
		},
		{
			Name: "assist-organization-tokens", Default: strconv.Itoa(defaultOrganizationTokens),
			Group: registry.Access, Value: &s.AssistOrganizationTokens,
			Meaning: "tokens that those of all users of one organization cost in a day; 0: no limit",
		},
	}
}

// Offers says whether the services make summaries and translations.
type Offers struct{ Summaries, Translations bool }

// Offers returns the offers of the services in the settings.
func (s *Settings) Offers() Offers {
	return Offers{Summaries: s.AssistURL != "", Translations: s.AssistURL != "" || s.TranslateURL != ""}
}

// String returns the offers as cores send them to edges; ParseOffers reads that.
func (o Offers) String() string { return fmt.Sprintf("%t %t", o.Summaries, o.Translations) }

// AtOwner returns the Assistant of an edge, which gets the offers of its core as a text. An older core sends none, and
// offers nothing. Requests are sent to the owner of the organization, so it makes nothing itself.
func AtOwner(offers string) wire.Assistant {
	summaries, translations, _ := strings.Cut(offers, " ")
	return atOwner{offers: Offers{summaries == "true", translations == "true"}}
}

type atOwner struct {
	wire.Assistant // nil
	offers         Offers
}

func (a atOwner) Offers() (summaries, translations bool) {
	return a.offers.Summaries, a.offers.Translations
}

// check returns an error for an address that is none, or that connections would be refused to.
func check(setting, address string, allowed func(netip.Addr) bool) error {
	if address == "" {
		return nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" {
		return fmt.Errorf("%s must be an address such as https://host/path, without a password and a query", setting)
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && !allowed(ip) {
		return fmt.Errorf("%s is in a private network: add it to assist-allow, such as 127.0.0.0/8", setting)
	}
	return nil
}
