package wire

import (
	"fmt"
	"strings"
)

// reservedSubdomains are names that visitors cannot give to a new organization, because people and programs expect
// a service of the server's operator there. They are those of the reference and others of their kind, in the singular:
// the plural is reserved as well.
var reservedSubdomains = newReservedSubdomains(`
	zulip zulipchat parley kandra

	www web webserver wap site website homepage home index main portal landing static asset cdn cache proxy gateway
	host hosting hostmaster server node cluster cloud vpn ssh sftp ftp ns ns0 ns1 ns2 ns3 ns4 dns dns1 dns2 mx mx1
	mx2 mta whois ntp ldap radius wpad isatap autoconfig autodiscover localhost localdomain broadcasthost local
	internal intranet ssl tls http https tcp udp ip ipv4 ipv6 router firewall monitor monitoring metric status
	uptime health stat statistic log logging trace database db sql mysql postgres postgresql redis memcached mongo
	queue s3 storage backup bucket

	mail email e-mail webmail smtp imap pop pop3 list listserv mailer mailer-daemon mailman majordomo newsletter
	postmaster noreply no-reply nobody inbox outbox bounce spam abuse dmarc spf dkim usenet news uucp

	api oauth oauth2 openid sso saml auth login logout signin signout signup register registration account password
	session token connect accept invite invitation join new create edit delete remove update upgrade download upload
	search explore find directory export import go redirect

	admin admindashboard administration administrator dashboard cpanel panel console control manage manager
	management root sysadmin sysop system superuser owner operator moderator webmaster hosted security secure cert
	certificate anonymous guest member user username people me my myself team staff employee

	app application android ios iphone ipad mobile m desktop client plugin extension widget embed embedded bot
	webhook hook push notification notify alert event realtime live stream streaming chat irc xmpp jabber im message
	messaging messenger thread topic channel group community forum board discussion comment feedback poll survey

	about contact support help helpdesk helpcenter faq guide manual doc documentation wiki kb knowledgebase
	gettingstarted tutorial learn education school training academy blog press media video audio image img photo
	picture icon avatar badge emoji gif file attachment document css js javascript script stylesheet font jar map
	feed rss atom

	company corp corporate career job hiring investor partner affiliate reseller client customer vendor sponsor
	contributor volunteer nonprofit legal term tos privacy policy dmca copyright trademark coppa gdpr compliance
	license conduct diversity

	ad adserver adword adsense advert advertise advertising advertisement admanager marketing sale store shop
	mystore buy order cart checkout payment pay paypal billing bill invoice pricing price plan subscribe
	subscription subscriber donate donation gift merchandise merch finance biz business enterprise money bank

	alpha beta gamma canary stable release demo dev devel develop developer development staging stage sandbox
	playground preview test testing tester example sample trial qa lab labs experiment experimental production prod
	build ci deploy deployment jenkins travis git github gitlab svn cvs repo repository source code bug bugtracker
	ticket issue tracker project task launchpad package pypi mirror archive data old legacy temp tmp

	official global world international general default public private everyone all any none null undefined void
	unknown favorite favourite bookmark tag profile setting preference option customize customise theme feature
	integration service tool utility resource reference calendar memory friend follow like share social twitter
	facebook google apple microsoft livejournal lj network networking online offline
`)

func newReservedSubdomains(text string) map[string]bool {
	names := map[string]bool{}
	for _, name := range strings.Fields(text) {
		names[name] = true
	}
	return names
}

// ReservedSubdomain reports whether a subdomain is reserved for the operator of the server.
func ReservedSubdomain(name string) bool {
	if stem, ok := strings.CutSuffix(name, "ies"); ok && reservedSubdomains[stem+"y"] {
		return true
	}
	return reservedSubdomains[name] || reservedSubdomains[strings.TrimSuffix(name, "s")]
}

// maxSubdomainBytes limits the length of an organization's subdomain.
const maxSubdomainBytes = 40

// punycodePrefix begins the names that programs show as other letters, which can look like another organization's.
const punycodePrefix = "xn--"

// CheckSubdomain returns an error if text cannot be the subdomain of an organization. The root organization has "".
func CheckSubdomain(text string) error {
	outside := strings.HasPrefix(text, "-") || strings.HasSuffix(text, "-")
	letters := strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
	if len(text) > maxSubdomainBytes || outside || !letters || text == "www" {
		return fmt.Errorf("%q is not a subdomain: use lower-case letters, digits and dashes, at most %d characters",
			text, maxSubdomainBytes)
	}
	if strings.HasPrefix(text, punycodePrefix) {
		return fmt.Errorf("%q is not a subdomain: it must not begin with %s", text, punycodePrefix)
	}
	return nil
}
