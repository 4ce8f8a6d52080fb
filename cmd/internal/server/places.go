package server

import (
	"net"
	"net/url"
	"strconv"
	"strings"

	"parley/actors/realm"
	"parley/cmd/internal/offsite"
	"parley/snapshot/files/s3"
	"parley/wire"
)

// anyHost is the host of places whose hosts users choose.
const anyHost = "*"

// places returns the places outside the server that the operator has configured for an organization. Hosts are without
// user names, passwords and keys.
func (s *Server) places(site wire.Site) map[realm.Place]wire.ConfiguredPlace {
	out := map[realm.Place]wire.ConfiguredPlace{}
	add := func(p realm.Place, addresses ...string) {
		hosts := []string{}
		for _, a := range addresses {
			hosts = append(hosts, hostOf(a))
		}
		out[p] = wire.ConfiguredPlace{Hosts: hosts}
	}
	addIf := func(p realm.Place, configured bool, addresses ...string) {
		if configured {
			add(p, addresses...)
		}
	}
	s.addPushPlaces(add)
	add(realm.PlaceLinkPreviews, anyHost)
	addIf(realm.PlaceExternalPictures, s.ImageProxy, anyHost)
	add(realm.PlaceProfilePictures, wire.GravatarHost)
	addIf(realm.PlaceGIFs, s.GIFProvider != "", s.gifs.Address())
	addIf(realm.PlaceModels, s.AssistURL != "", s.AssistURL)
	if s.TranslateURL != "" {
		add(realm.PlaceTranslations, s.TranslateURL)
	} else { // the model translates
		addIf(realm.PlaceTranslations, s.AssistURL != "", s.AssistURL)
	}
	addIf(realm.PlaceVectors, s.EmbedURL != "", s.EmbedURL)
	smtp := net.JoinHostPort(s.SMTPHost, strconv.Itoa(s.SMTPPort))
	for _, p := range []realm.Place{
		realm.PlaceMessageEmails, realm.PlaceMessageEmailContent, realm.PlaceAccountEmails,
	} {
		addIf(p, s.SMTPHost != "", smtp)
	}
	switch {
	case s.IMAPHost != "":
		add(realm.PlaceIncomingEmail, net.JoinHostPort(s.IMAPHost, strconv.Itoa(s.IMAPPort)))
	case s.MailListen != "":
		add(realm.PlaceIncomingEmail)
	}
	add(realm.PlaceOutgoingWebhooks, anyHost)
	addIf(realm.PlaceCallRooms, s.LiveKitURL != "", s.LiveKitURL)
	add(realm.PlaceJitsi, anyHost)
	var providers []string
	for _, e := range s.signOn.Of(site.Name) {
		providers = append(providers, e.Addresses()...)
	}
	addIf(realm.PlaceLoginProviders, len(s.signOn.Of(site.Name)) > 0, providers...)
	if s.bucket != nil {
		add(realm.PlaceFileBucket, s.bucket.Place().Endpoint)
	}
	if b := offsite.ReadStatus(s.Data); b.Place != "" {
		if p, err := s3.ParsePlace(b.Place); err == nil {
			out[realm.PlaceBackupBucket] = wire.ConfiguredPlace{Hosts: []string{p.Endpoint}, LastUsed: b.Newest}
		}
	}
	addIf(realm.PlaceVirusScanner, s.Antivirus != "", s.Antivirus)
	if s.node != nil {
		add(realm.PlaceOtherNodes, s.node.CoreAddresses()...)
	}
	addIf(realm.PlaceCertificates, s.TLS.ACME != "", s.TLS.ACMEDirectory)
	return out
}

// addPushPlaces adds the push services.
func (s *Server) addPushPlaces(add func(p realm.Place, addresses ...string)) {
	add(realm.PlaceBrowserPush, anyHost)
	var phones []string
	switch {
	case s.push.Bouncer != nil:
		phones = append(phones, s.push.Bouncer.Account().URL)
	default:
		if s.APNsKey != "" {
			phones = append(phones, "api.push.apple.com")
		}
		if s.FCMAccount != "" {
			phones = append(phones, "fcm.googleapis.com")
		}
	}
	if len(phones) > 0 {
		add(realm.PlaceMobilePush, phones...)
	}
}

// hostOf returns the host, with the port if it is given, of an address, or of a host without a scheme. The path of a
// socket is returned as it is.
func hostOf(address string) string {
	if !strings.Contains(address, "://") {
		return address
	}
	u, err := url.Parse(address)
	if err != nil {
		return "" // settings are checked at the start
	}
	return u.Host
}
