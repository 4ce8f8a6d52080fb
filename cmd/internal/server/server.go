package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/actors"
	"parley/actors/realm"
	"parley/cmd/internal/backup"
	"parley/cmd/internal/certificates"
	"parley/cmd/internal/cluster"
	"parley/cmd/internal/control"
	"parley/cmd/internal/datadir"
	"parley/cmd/internal/demo"
	"parley/cmd/internal/handover"
	"parley/cmd/internal/imports"
	"parley/cmd/internal/machine"
	"parley/cmd/internal/metrics"
	"parley/cmd/internal/offsite"
	"parley/cmd/internal/operator"
	"parley/cmd/internal/orgfiles"
	"parley/cmd/internal/sites"
	"parley/snapshot"
	"parley/snapshot/diskspace"
	"parley/snapshot/erase"
	"parley/snapshot/files"
	"parley/snapshot/files/s3"
	"parley/snapshot/files/sweep"
	"parley/snapshot/meaning"
	"parley/snapshot/search"
	"parley/wire"
	"parley/wire/assist"
	"parley/wire/calls"
	"parley/wire/directories"
	"parley/wire/dispatch"
	"parley/wire/exports"
	"parley/wire/gifs"
	"parley/wire/httpd"
	"parley/wire/httpd/park"
	"parley/wire/linkmarks"
	"parley/wire/mail"
	"parley/wire/markdown/preview"
	"parley/wire/pictures"
	"parley/wire/previews"
	"parley/wire/push"
	"parley/wire/signon"
	"parley/wire/thumbnails"
	"parley/wire/web"
	"parley/wire/webapp"
	"parley/wire/webhooks"
)

// Limits of a start.
const (
	// StartupDelay is how long a crowded server waits before it starts the outbox. Outbox jobs would take half of a
	// small machine from the clients that connect at the same moment.
	StartupDelay = 2 * time.Second
	// crowdedStart is the number of waiting connections from which on a start counts as crowded.
	crowdedStart = 256
	// compactionDelay is how long after its opening the store merges no tables and nothing is indexed. It is longer
	// than all clients need to connect again.
	compactionDelay = search.StartupPause
	shutdownTimeout = handover.PartTimeout
)

// Config has the parts and settings of a server.
type Config struct {
	Settings
	Log *slog.Logger // required
	// Given has the names of the settings that an operator has set.
	Given map[string]bool

	// Output is where the accounts of a new demo organization are printed; nil discards them.
	Output io.Writer
	// Fatal is called when the server cannot store data any more. It must end the process and not return: the server
	// acknowledges nothing afterwards. Nil panics.
	Fatal func(error)
	// Listeners are sockets that the process has inherited. Without any the server opens Settings.Listen.
	Listeners []net.Listener
	// Handover enables upgrades without downtime: a new process of the same program takes over from this one. nil: not
	// possible.
	Handover *handover.Process
	// Program is the version of the program. The nodes of a cluster compare it with theirs.
	Program string
	// Now is the wall clock of the organizations; nil: the system's. It is for tests.
	Now func() time.Time
	// BeforeServing is called when everything is open and before the first request is handled; nil is allowed.
	BeforeServing func()
}

// now returns the time by the wall clock.
func (c *Config) now() time.Time {
	if c.Now != nil {
		return c.Now()
	}
	return time.Now()
}

// Server is a running server.
type Server struct {
	Settings
	config Config
	log    *slog.Logger

	// Values that follow from the settings alone.
	crowd           demo.CrowdSpec
	limits          httpd.Limits
	jwtKeys         map[string]string
	tlsConfig       *tls.Config
	ticketKeys      *certificates.TicketKeys // nil without TLS
	previewNetworks []netip.Prefix           // private networks that the server is allowed to fetch pages from
	webhookNetworks []netip.Prefix           // private networks that bots' services may be in
	gifNetworks     []netip.Prefix           // private networks that the provider of GIFs may be in
	assistNetworks  []netip.Prefix           // private networks that services for summaries may be in
	webApp          *webapp.Release          // nil: the server has its own start page
	signOn          *signon.Providers

	// The parts, in the order in which they are made.
	listeners   []net.Listener
	handover    *handover.Handover
	space       *diskspace.Watcher
	store       *snapshot.Store
	secret      []byte
	sites       *sites.Table
	search      *search.Service
	meaning     *meaning.Service               // nil: there is no service for vectors
	vectorCores atomic.Pointer[cluster.Leader] // has the other cores for fetchVectors; nil before startCore
	orgs        *actors.Server
	encodings   *wire.EventEncodings
	renderer    wire.Renderer // shared by realms and endpoints, so that each Markdown configuration is prepared once
	files       *files.Store
	served      *orgfiles.Served
	pictures    *pictures.Proxy   // nil: clients load pictures of other sites there
	fetcher     *orgfiles.Fetcher // of files on other cores; nil: all files are here, or in a bucket
	bucket      *s3.Bucket        // where files are; nil: in the data directory
	ownerKnown  chan struct{}     // closed when the owner of the files in the bucket is known; nil without a bucket
	passwords   *httpd.Passwords
	tools       *wire.Tools
	dispatcher  *dispatch.Dispatcher
	push        *operator.PushService
	exports     *exports.Exporter
	sweeper     *sweep.Sweeper
	eraser      *erase.Eraser
	linkMarks   *linkmarks.Marker
	thumbnails  *thumbnails.Worker
	directories *directories.Syncer
	assistant   *assist.Assistant
	gifs        *gifs.Provider // nil: none is set
	calls       *calls.Service // nil: LiveKit is not configured
	http        *httpd.Server
	mail        *incomingMail
	metrics     *metrics.Server

	node *cluster.Directory // nil: a single node
	core *cluster.Leader    // nil unless this is a core of a cluster
	// coreNode has the store and the replicated log; nil unless this is a core
	coreNode *cluster.CoreNode
	link     *cluster.Follower // to the leader; nil unless this is a core
	edge     *edgeNode         // nil unless this is an edge of a cluster

	turnLatency metrics.TurnLatency

	closeBackground func() error // stops the work beside requests; it may take long
	closeControl    func() error
	crowded         bool
	acceptErrors    chan error
	stopped         chan struct{} // closed by Close
	closing         sync.Once
	closeError      error
}

// Start builds a server and starts it. When Start returns, the server handles requests. On an error everything that was
// opened is closed again.
func Start(c Config) (*Server, error) {
	began := time.Now()
	node, edge, err := openNode(&c)
	if err != nil {
		return nil, err
	}
	s, err := newServer(c)
	if err != nil {
		return nil, err
	}
	s.node, s.edge = node, edge
	if err := s.listen(); err != nil {
		return nil, err
	}
	backlog, preloaded, err := s.collectBacklog()
	if err != nil {
		return nil, errors.Join(err, s.closeListeners())
	}
	open := func() error { return s.open(preloaded) }
	steps := []func() error{open, s.buildTools, s.createDemo, s.openEndpoints}
	if s.edge != nil {
		steps = []func() error{s.greetAfterPredecessor, s.openEdge, s.buildEdgeTools, s.openEdgeEndpoints}
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, errors.Join(err, s.closeFailedStart())
		}
	}
	if c.BeforeServing != nil {
		c.BeforeServing()
	}
	if s.ticketKeys != nil {
		keys, _ := s.ticketKeys.Rotate(time.Now())
		s.http.SetSessionTicketKeys(keys)
		go s.rotateTicketKeys()
	}
	s.crowded = s.handover.IsSuccessor() || backlog.Len() > crowdedStart
	if err := s.http.ServeBacklog(backlog); err != nil {
		return nil, errors.Join(err, s.closeFailedStart())
	}
	for _, l := range s.listeners {
		go func() { s.acceptErrors <- s.http.Serve(l) }()
	}
	page := web.ClientVersion()
	if s.webApp != nil {
		page = s.webApp.Fingerprint
	}
	reload := datadir.PageReload{Data: s.Data, Orgs: s.orgs, Stopped: s.stopped, Log: s.log}
	reload.Announce(page, s.handover.IsSuccessor())
	if s.edge == nil {
		// Not before the start has succeeded: after a failed one, the previous program can start again.
		s.recordDataVersion()
		s.startOutbox()
	}
	s.log.Info("serving", "url", s.URL, "listen", s.Listen, "data", s.Data, "version", s.config.Program,
		"protocol", wire.Protocol, "organizations", len(s.orgs.Realms()),
		"took", time.Since(began).Round(time.Millisecond).String())
	return s, nil
}

// newServer computes the values that follow from the settings alone, and rejects settings that contradict each other.
func newServer(c Config) (s *Server, err error) {
	nothing := func() error { return nil }
	s = &Server{Settings: c.Settings, config: c, log: c.Log, stopped: make(chan struct{}),
		closeControl: nothing, closeBackground: nothing,
		limits: httpd.Limits{User: c.RateLimit, Visitor: c.AnonymousRateLimit, Login: c.LoginLimit}}
	if c.DemoCrowd != "" {
		if s.crowd, err = demo.ParseCrowd(c.DemoCrowd); err != nil {
			return nil, err
		}
	}
	for _, x := range []struct {
		setting, value string
		networks       *[]netip.Prefix
	}{
		{"trusted-proxies", c.TrustedProxies, &s.limits.Proxies},
		{"previews-allow", c.PreviewsAllow, &s.previewNetworks},
		{"webhooks-allow", c.WebhooksAllow, &s.webhookNetworks},
		{"assist-allow", c.AssistAllow, &s.assistNetworks},
		{"gif-allow", c.GIFAllow, &s.gifNetworks},
	} {
		if *x.networks, err = httpd.ParseProxies(x.value); err != nil {
			return nil, fmt.Errorf("%s: %w", x.setting, err)
		}
	}
	if s.jwtKeys, err = c.parseJWTKeys(); err != nil {
		return nil, err
	}
	if s.signOn, err = signon.Open(c.AuthConfig); err != nil {
		return nil, err
	}
	if s.tlsConfig, err = c.TLS.Load(c.Data); err != nil {
		return nil, err
	}
	if s.tlsConfig != nil {
		s.ticketKeys = certificates.NewTicketKeys(time.Now())
	}
	if s.webApp, err = c.openWebApp(); err != nil {
		return nil, err
	}
	s.warnOfExposure()
	if c.NoSync {
		s.log.Warn("unsafe-no-sync: messages are acknowledged before they are on disk; a crash loses them. " +
			"For measurements only")
	}
	return s, nil
}

// listen takes the inherited sockets, or opens the one of the settings.
func (s *Server) listen() error {
	s.listeners = s.config.Listeners
	if len(s.listeners) == 0 {
		l, err := net.Listen("tcp", s.Settings.Listen)
		if err != nil {
			return machine.TakenPortError(s.Settings.Listen, err)
		}
		s.listeners = []net.Listener{l}
	}
	s.setListenAddress(s.listeners[0].Addr().String())
	s.acceptErrors = make(chan error, len(s.listeners))
	s.handover = handover.New(s.config.Handover, s.log, s.listeners, s.UpgradeTimeout)
	return nil
}

// collectBacklog accepts connections before requests can be handled: until the data is loaded they would overflow the
// listen queue of the kernel. A successor leaves that to its predecessor as long as that one serves; meanwhile it
// preloads the organizations.
func (s *Server) collectBacklog() (backlog *park.Backlog, preloaded *actors.Preloaded, err error) {
	if s.handover.IsSuccessor() {
		if s.node == nil { // a standby loads its organizations when it opens
			preloaded = handover.Preload(s.Data, s.log)
		}
		backlog, err = s.handover.TakeOver(s.Data, s.MaxConnections, s.ticketKeys)
	} else {
		backlog, err = park.CollectBacklog(s.MaxConnections, s.listeners...)
	}
	return backlog, preloaded, err
}

// open opens the store and loads the organizations.
func (s *Server) open(preloaded *actors.Preloaded) (err error) {
	if err := datadir.CheckVersion(s.Data); err != nil {
		return err
	}
	s.warnOfOpenModes()
	s.space = diskspace.New(s.Data, s.Space, wire.ErrNoSpace, s.log)
	if s.store, err = s.openStore(); err != nil {
		return datadir.StartError(s.Data, err)
	}
	if s.coreNode == nil {
		go s.watchStore()
	} else {
		go s.watchCoreNode()
	}
	s.sites = s.newSites()
	s.sites.Logins = s.signOn.Public()
	if s.secret, err = datadir.LoadSecret(s.Data); err != nil {
		return err
	}
	disk := s.disk()
	s.search = search.OpenService(datadir.SearchDir(s.Data), disk, wire.SearchText, s.log)
	s.search.LimitSpace(s.space.IsLow, s.space.IsReadOnly)
	if err = s.openMeaning(); err != nil {
		return datadir.StartError(s.Data, err)
	}
	var journal actors.Disk = disk
	o := actors.Options{Secret: s.secret, Search: indexes{s.search, s.meaning}, Now: s.config.Now, Preloaded: preloaded}
	if s.coreNode != nil {
		journal, o.Cluster = s.coreNode.Journal(), s.coreNode.Journal()
	}
	if err = s.openOrganizations(journal, o); err != nil {
		return datadir.StartError(s.Data, err)
	}
	s.followLeadership()
	s.space.Start(s.store, s.orgs)
	return s.openFiles()
}

// openOrganizations opens the organizations of a disk. It completes the options with those that all nodes share.
func (s *Server) openOrganizations(disk actors.Disk, o actors.Options) (err error) {
	s.turnLatency = metrics.NewTurnLatency()
	s.encodings = wire.NewEventEncodings()
	var fetch pictures.Fetch
	if s.ImageProxy && len(s.secret) > 0 { // edges have no secret, and render nothing
		fetch = preview.New(s.previewNetworks...).FetchPicture
		sign := datadir.NewSigner(s.secret)
		s.renderer.ProxyPicture = func(address string) string { return pictures.Address(sign, address) }
	}
	s.pictures = pictures.New(fetch, func() bool { return s.orgs.HasSeveralRealms() })
	o.Protocol, o.Renderer = wire.SessionProtocol{Encodings: s.encodings}, &s.renderer
	o.Log, o.Fatal, o.Site, o.TurnLatency = s.log, s.fatal, s.sites.Site, s.turnLatency.Observer
	o.ArchiveDays, o.Limits, o.DeliveryLag = &s.ArchiveDays, s.realmLimits(), s.DeliveryLag
	o.UnackedBytes = int64(s.memory().Unacked(s.UnackedMemory))
	o.SleepAfter, o.MaxAwake = s.SleepAfter, s.memory().Awake(s.AwakeOrganizations)
	s.orgs, err = actors.Open(disk, o)
	s.sites.Orgs = s.orgs
	return err
}

// disk returns the store with the types of package realm.
func (s *Server) disk() snapshot.Disk { return snapshot.Disk{Store: s.store} }

// watchStore calls Fatal when a write to the data directory has failed, also one in the background.
func (s *Server) watchStore() {
	select {
	case <-s.store.Failed():
		s.fatal(s.store.Err())
	case <-s.stopped:
	}
}

func (s *Server) fatal(err error) {
	if s.config.Fatal == nil {
		panic(err)
	}
	s.config.Fatal(err)
}

// buildTools makes the tools of the endpoints, and starts the background work.
func (s *Server) buildTools() error {
	rootHost := s.sites.Site("").Host
	s.served = orgfiles.Serve(s.files, s.fetcher, s.orgs.HasSeveralRealms)
	s.files.ShareBetween(s.orgs.HasSeveralRealms)
	if s.bucket != nil {
		s.bucket.ShareBetween(s.orgs.HasSeveralRealms)
	}
	dev := s.Demo || s.DemoCrowd != "" || s.node != nil && s.node.DevelopmentLogin
	if err := s.shareTools(time.Now().Unix(), dev); err != nil {
		return err
	}
	s.tools.Places = wire.NewPlaces(s.orgs, s.config.Now)
	s.tools.Places.Configured = s.places
	s.tools.Files, s.tools.Organizations, s.tools.LinkToken = s.served, s.sites, s.orgs.LinkToken
	s.tools.Sign, s.tools.VerifySignature = datadir.NewSigner(s.secret), datadir.NewSignatureChecker(s.secret)
	s.tools.JWTKeys = s.jwtKeys
	sender, err := s.newMailer(rootHost, s.tools, s.orgs, s.log)
	if err != nil {
		return err
	}
	account, err := s.bouncerAccount()
	if err != nil {
		return err
	}
	s.push = &operator.PushService{Data: s.Data, Fixed: s.BouncerOrg != ""}
	pusher, err := push.New(push.Config{
		APNsKey:    s.APNsKey,
		APNsKeyID:  s.APNsKeyID,
		APNsTeam:   s.APNsTeam,
		FCMAccount: s.FCMAccount,
		Bouncer:    account,
		Web: push.WebConfig{
			Key:     push.NewWebKey(s.secret),
			Contact: s.webPushContact(rootHost),
			Client:  webhooks.NewHTTPClient(s.webhookNetworks),
		},
		Ask: s.tools.Places.Ask,
	}, s.log)
	if err != nil {
		return err
	}
	s.tools.WebPushKey = push.PublicWebKey(push.NewWebKey(s.secret))
	if pusher.ReachesPhones() {
		s.tools.Push = pusher
		s.tools.PushBouncer = account.URL != ""
	}
	s.push.Bouncer, s.push.Pusher = pusher.Bouncer(), pusher
	s.push.Proofs = &push.HostnameProofs{}
	s.tools.HostnameProof = func(token string) (string, bool) { return s.push.Proofs.Get(token, time.Now()) }
	if s.push.Bouncer != nil {
		s.push.Uploader = operator.NewUploader(s.push.Bouncer, s.orgs, s.sites.Site, s.tools.Places, s.log)
	}
	s.dispatcher = s.newDispatcher(sender, pusher)
	s.orgs.SetOutbox(s.dispatcher, true, account.URL != "")
	s.orgs.AddOwnerTask(s.dispatcher)
	newExport := func(name string) (exports.File, error) { return s.files.NewExport(name) }
	open := func(id realm.ID, kind, name string) (exports.Stored, error) { return s.served.Open(id, kind, name) }
	s.exports = exports.Start(s.orgs, s.sites.ByID, newExport, open, s.log)
	s.orgs.AddOwnerTask(s.exports)
	var leftovers func() error
	var checkOwner func() bool
	if s.bucket != nil {
		leftovers, checkOwner = s.bucket.RemoveLeftovers, s.checkFileOwner
	}
	s.sweeper = sweep.Start(s.orgs, s.files, leftovers, checkOwner, s.ownerKnown, s.log)
	s.eraser = erase.Start(s.Data, snapshot.Disk{Store: s.store}, s.orgs, s.sweeper.SweepSoon, s.search,
		s.log)
	s.linkMarks = linkmarks.Start(s.orgs, snapshot.Disk{Store: s.store}, s.log, linkmarks.Delay)
	s.tools.StartExport, s.tools.StartOwnExport = s.exports.Add, s.exports.AddOwn
	s.tools.CheckSpace = s.space.CheckSpace
	s.tools.SubdomainTaken = func(name string) bool {
		_, _, taken := s.orgs.RealmByName(name)
		return taken
	}
	s.assistant, err = assist.New(assist.Options{
		Settings: s.assistSettings,
		Client:   webhooks.NewHTTPClient(s.assistNetworks),
		Allowed:  func(ip netip.Addr) bool { return preview.Reachable(ip, s.assistNetworks) },
		Several:  s.orgs.HasSeveralRealms,
		Turn:     s.orgs.Turn,
		Ask:      s.tools.Places.Ask,
		Log:      s.log,
	})
	if err != nil {
		return err
	}
	s.tools.Assistant = s.assistant
	s.startMeaning()
	s.gifs, err = gifs.New(gifs.Options{Settings: s.gifSettings, Client: webhooks.NewHTTPClient(s.gifNetworks),
		Allowed: func(ip netip.Addr) bool { return preview.Reachable(ip, s.gifNetworks) },
		Ask:     s.tools.Places.Ask, Several: s.orgs.HasSeveralRealms, Now: time.Now, Log: s.log})
	if err != nil {
		return err
	}
	if s.gifs != nil {
		s.tools.GIFs, s.tools.ProxyPicture = s.gifs, s.renderer.ProxyPicture
	}
	if s.calls, err = calls.Start(s.callSettings, s.orgs, s.tools.Places.Ask, actors.Token, s.log,
		time.Now); err != nil {
		return err
	}
	if s.calls != nil {
		s.tools.Calls = s.calls
		s.orgs.AddOwnerTask(s.calls)
	}
	s.directories = directories.Start(s.orgs, s.tools.Files, s.signOn, s.log)
	s.orgs.AddOwnerTask(s.directories)
	s.thumbnails = thumbnails.Start(s.orgs, s.tools.Files, s.log)
	s.orgs.AddOwnerTask(s.thumbnails)
	s.tools.Thumbnails = s.thumbnails
	s.closeBackground = sync.OnceValue(func() error {
		s.exports.Close()
		s.directories.Close()
		s.calls.Close()
		s.eraser.Close()
		s.sweeper.Close()
		s.linkMarks.Close()
		if s.push.Uploader != nil {
			s.push.Uploader.Close()
		}
		s.thumbnails.Close()
		return withShutdownTimeout(s.dispatcher.Close)
	})
	return nil
}

// shareTools makes the tools that the endpoints of all nodes have.
func (s *Server) shareTools(generation int64, developmentLogin bool) error {
	services, err := ReadIntegrations(s.Integrations)
	if err != nil {
		return err
	}
	s.passwords = httpd.NewPasswords(s.orgs.HasSeveralRealms)
	s.tools = &wire.Tools{
		Integrations:       wire.NewIntegrations(services),
		UploadQuota:        int64(s.UploadQuota) << 20,
		UserQuota:          int64(s.UserUploadQuota) << 20,
		HashPassword:       s.passwords.Hash,
		CheckPassword:      s.passwords.Check,
		HashKey:            actors.HashKey,
		Token:              actors.Token,
		Version:            wire.Version,
		Generation:         generation,
		Renderer:           &s.renderer,
		FetchPreview:       preview.New(s.previewNetworks...).Fetch,
		Dev:                developmentLogin,
		ChannelMailPattern: "%s@" + s.mailHost(s.sites.Site("").Host),
		Emails:             mail.Composer{},
		DailyInvites:       s.DailyInvites,
		OpenOrganizations:  s.OpenOrganizations,
	}
	if s.webApp != nil && s.webApp.EmojiTable() != "" {
		s.tools.EmojiTable = webapp.StaticPath + s.webApp.EmojiTable()
	}
	return nil
}

// webPushContact returns the address by which push services of browsers can reach the operator.
func (s *Server) webPushContact(rootHost string) string {
	switch {
	case s.WebPushContact != "":
		return s.WebPushContact
	case strings.HasPrefix(s.sites.Site("").URL, "https:"):
		return s.sites.Site("").URL
	}
	return "postmaster@" + rootHost
}

// newDispatcher returns the dispatcher of outbox jobs. Each kind of job has a handler and a limit of attempts at a
// time.
func (s *Server) newDispatcher(sender *mail.Sender, pusher *push.Pusher) *dispatch.Dispatcher {
	notices := &mail.Notices{Server: s.orgs, Now: time.Now}
	o := dispatch.Options{
		Server: s.orgs,
		Site:   s.sites.ByID,
		Log:    s.log,
		Handlers: map[realm.OutboxJobKind]dispatch.Handler{
			realm.OutboxEmail: sender,
			realm.OutboxWebhook: webhooks.New(webhooks.Options{
				Server: s.orgs, Tools: s.tools, Places: s.tools.Places, Log: s.log, Allow: s.webhookNetworks,
			}),
			realm.OutboxMissedMessage: &mail.MissedMessages{
				Server: s.orgs, Now: time.Now, HasOtherAccount: s.orgs.HasAccountElsewhere,
				CanReply: s.receivesMail(),
			},
			realm.OutboxPreview: &previews.Fetcher{Server: s.orgs, Tools: s.tools, Places: s.tools.Places},
			realm.OutboxDigest:  notices, realm.OutboxWelcome: notices, realm.OutboxReminder: notices,
		},
		Concurrency: map[realm.OutboxJobKind]int{
			realm.OutboxEmail:         mail.MaxSending,
			realm.OutboxWebhook:       webhooks.MaxCalling,
			realm.OutboxPush:          push.MaxNotifying,
			realm.OutboxPushRemoval:   push.MaxNotifying,
			realm.OutboxRegistration:  push.MaxRegistering,
			realm.OutboxMissedMessage: mail.MaxChecking,
			realm.OutboxPreview:       previews.MaxFetching,
			realm.OutboxDigest:        mail.MaxComposing,
			realm.OutboxWelcome:       mail.MaxComposing,
			realm.OutboxReminder:      mail.MaxComposing,
		},
	}
	options := push.Options{Pusher: pusher, Server: s.orgs, Log: s.log, Now: time.Now}
	if s.push.Uploader != nil {
		options.Upload = s.push.Uploader.Ask
	}
	notifier := &push.Notifier{Options: options}
	o.Handlers[realm.OutboxPush], o.Handlers[realm.OutboxPushRemoval] = notifier, notifier
	o.Handlers[realm.OutboxRegistration] = &push.Registrar{Options: options}
	return dispatch.New(o)
}

// demo.Create creates a demo organization or a crowd if the settings ask for one and the data directory is empty. At a
// later start it only prints the accounts of the demo organization again.
func (s *Server) createDemo() error {
	if !s.Demo && s.DemoCrowd == "" || s.handover.IsSuccessor() || !s.mayCreateDemo() {
		return nil
	}
	out := s.config.Output
	if out == nil {
		out = io.Discard
	}
	if realms := s.orgs.Realms(); len(realms) > 0 {
		id, ok := realms[""]
		if !ok || s.DemoCrowd != "" {
			return nil
		}
		return demo.Print(s.orgs, id, s.URL, out)
	}
	if s.DemoCrowd != "" {
		if err := demo.CreateCrowd(s.orgs, s.crowd, out); err != nil {
			return fmt.Errorf("create the crowd: %w", err)
		}
	} else if s.Demo {
		if err := demo.Create(s.orgs, s.URL, s.demoContent(), out); err != nil {
			return fmt.Errorf("create the demo organization: %w", err)
		}
	}
	return nil
}

// demoContent returns the tools of the conversations of the demo organization; nothing if it gets none.
func (s *Server) demoContent() demo.Content {
	if !s.DemoContent {
		return demo.Content{}
	}
	return demo.Content{
		Now: time.Now(),
		Render: func(text string, author realm.UserID, v realm.View) (realm.Body, realm.ContentInfo, error) {
			return s.renderer.RenderImported(wire.ImportedText{Text: text, Author: author}, v, s.sites.Site(""))
		},
		SavePicture: func(id realm.ID, png []byte) (wire.SavedFile, error) {
			return s.served.SaveUpload(id, bytes.NewReader(png), wire.MaxUploadBytes)
		},
		PictureSaved: func(id realm.ID, u realm.Upload) error {
			s.thumbnails.Add(id, u)
			return s.served.Release(u.Hash, nil)
		},
	}
}

// openEndpoints makes the HTTP server, which handles no request yet, and opens the control socket, the SMTP server and
// the metrics endpoint.
func (s *Server) openEndpoints() (err error) {
	status := metrics.NewStatusReader(s.parts)
	p := s.httpOptions()
	if s.node != nil {
		p.Cluster, p.ForwardAll = coreCluster{s.orgs, s}, true
	}
	p.Files, p.DiskState, p.FilesState, p.ClusterState = s.served, s.diskState, s.filesState, s.clusterState()
	p.ServerStatus = status.Read
	p.Sleeping = s.orgs
	s.http = httpd.New(p)
	s.connectHandover()
	o := s.operator()
	o.Store, o.Files, o.FilesElsewhere, o.Search, o.Push = s.store, s.files, s.fetcher != nil, s.search, s.push
	o.Sign, o.Node = datadir.NewSigner(s.secret), s.node
	if err = s.startCore(o); err != nil {
		return err
	}
	if err = s.serveControl(o); err != nil {
		return err
	}
	if s.mail, err = s.openIncomingMail(); err != nil {
		return err
	}
	s.metrics, err = metrics.Open(s.DebugListen, s.parts, status)
	return err
}

// httpOptions returns the options that the HTTP servers of all nodes have.
func (s *Server) httpOptions() httpd.Options {
	p := s.parkConfig()
	p.OnDrain, p.AnswersLatePolls, p.TLS, p.Unlimited = s.orgs.Drain, true, s.tlsConfig, s.limits.Unlimited
	return httpd.Options{Server: s.orgs, Tools: s.tools, Realms: s.sites, Log: s.log, Park: p, Limits: s.limits,
		Several: s.orgs.HasSeveralRealms, WebApp: s.webApp, DamagedTexts: s.orgs.DamagedTexts, Now: s.config.Now,
		SignOn: s.signOn, OAuthRegistration: s.config.OAuthRegistration, Pictures: s.pictures}
}

// operator returns the commands of the operator that all nodes have.
func (s *Server) operator() *operator.Operator {
	return &operator.Operator{Orgs: s.orgs, Site: s.sites.Site, SiteByID: s.sites.ByID, Passwords: s.passwords,
		Handover: s.handover, Data: s.Data, Log: s.log, Version: s.config.Program}
}

// serveControl opens the control socket.
func (s *Server) serveControl(o *operator.Operator) error {
	mux := http.NewServeMux()
	mux.Handle("POST /{command}", o)
	source := &backup.Source{Store: s.store, Files: s.fetcher, RealmByName: s.orgs.RealmByName, Log: s.log}
	if s.edge != nil {
		source.Leader = s.edge.Leader
	} else {
		source.PauseRemoval, source.CheckSpace = s.files.PauseRemoval, s.space.CheckSpace
	}
	mux.Handle("POST /backup", source)
	mux.HandleFunc("POST /hold-backup", source.ServeHeld)
	mux.Handle("POST /import", &imports.Server{Data: s.Data, Orgs: s.orgs, Site: s.sites.Site, Store: s.store,
		Files: s.files, Leader: s.core, Follower: o.Follower, Log: s.log})
	mux.HandleFunc("POST /lend", s.handover.HandleCopyStore)
	mux.HandleFunc("POST /yield", s.handover.HandleYield)
	stop, err := control.Serve(s.Data, mux, s.log)
	if err == nil {
		s.closeControl = stop
	}
	return err
}

// startOutbox starts the outbox jobs that the last process left, after a delay if many clients wait.
func (s *Server) startOutbox() {
	delay := time.Duration(0)
	if s.crowded {
		delay = StartupDelay
	}
	s.dispatcher.Start(delay)
	if s.push.Uploader != nil {
		s.push.Uploader.Start()
	}
}

// openStore opens the store of the data directory. A successor waits until its predecessor has closed it.
func (s *Server) openStore() (*snapshot.Store, error) {
	o := snapshot.Options{
		Log: s.log, Unsynced: s.NoSync, CompactionDelay: compactionDelay, AcceptLoss: s.AcceptDataLoss,
		Ballast: int64(s.Space.DiskBallast) << 20, Full: s.space.Full,
		Kept: snapshot.KeptForBackups(offsite.ReadStatus(s.Data).Every()),
	}
	if s.node != nil {
		o.Kept = o.Kept.Or(snapshot.FollowedKept)
		return s.openCoreNode(o)
	}
	if !s.handover.IsSuccessor() {
		return snapshot.Open(s.Data, o)
	}
	return handover.OpenAfterPredecessor(func() (*snapshot.Store, error) { return snapshot.Open(s.Data, o) })
}

// connectHandover gives the handover the parts that it uses.
func (s *Server) connectHandover() {
	s.handover.Connect(handover.Parts{
		Orgs: s.orgs, Store: s.store, TicketKeys: s.ticketKeys, YieldLeadership: s.yieldLeadership,
		LongRequests: func() int { return s.http.Stats().LongRequests },
		StopBackground: func() error {
			if s.edge != nil {
				return nil
			}
			s.search.HandOff()
			return s.closeBackground()
		},
	})
}

// StartSuccessor starts the process that replaces this one and returns its id. Successor receives a value when that
// process is ready.
func (s *Server) StartSuccessor() (int, error) { return s.handover.StartSuccessor() }

// Successor returns the channel that receives a value when a successor is ready to take over; the caller then calls
// Yield and stops the server.
func (s *Server) Successor() <-chan struct{} { return s.handover.Ready() }

// Yield records that this process hands over to its successor: when the server stops, it passes on its connections.
func (s *Server) Yield() { s.handover.Yield() }

// Addr returns the address that the server listens on, as host:port.
func (s *Server) Addr() string { return s.listeners[0].Addr().String() }

// BaseURL returns the URL of the root organization.
func (s *Server) BaseURL() string { return s.URL }

// MetricsAddr returns the address of the metrics endpoint, or "" if there is none.
func (s *Server) MetricsAddr() string { return s.metrics.Addr() }

// MailAddr returns the address at which the server receives email, or "" if it receives none.
func (s *Server) MailAddr() string { return s.mail.addr() }

// Crowded reports whether many connections waited when the server started to handle requests. Work that can wait should
// then wait for StartupDelay.
func (s *Server) Crowded() bool { return s.crowded }

// Organizations returns the number of organizations that this node serves.
func (s *Server) Organizations() int { return len(s.orgs.Realms()) }

// AnswerBytes returns how many bytes of memory answers take that are being built or that clients have not received.
func (s *Server) AnswerBytes() int { return s.http.AnswerBytes() }

// AcceptErrors returns the channel that receives an error when the server cannot accept connections any more.
func (s *Server) AcceptErrors() <-chan error { return s.acceptErrors }

// Close stops the server and waits for requests in progress. Every further call returns the same error.
func (s *Server) Close() error {
	s.closing.Do(func() {
		s.closeError = errors.Join(s.Stop(), s.Finish())
	})
	return s.closeError
}

// Stop stops everything but responses that are still being sent; Finish waits for these. Sockets that a successor opens
// too are closed first, the data directory last. Use Close unless something must happen between the two.
func (s *Server) Stop() error {
	if s.edge != nil {
		return s.stopEdge()
	}
	s.yieldLeadership()
	// Clients of a core connect to another one, so they need not notice that this one stops.
	if (s.handover.HasYielded() || s.core != nil) && s.http.PrepareShutdown(s.handover.Connections()) {
		time.Sleep(handover.ClosingDelay)
	}
	s.assistant.Close() // otherwise requests wait for its services
	err := errors.Join(withShutdownTimeout(s.mail.Close), s.closeControl(), s.metrics.Close(),
		withShutdownTimeout(s.http.Shutdown))
	if s.core != nil {
		err = errors.Join(err, s.core.Close())
	}
	// While the actors can still answer. Jobs that are not finished by then are left to the next process.
	err = errors.Join(err, s.closeBackground(), withShutdownTimeout(s.orgs.Close))
	s.fetcher.Close()
	s.space.Close()
	if s.bucket != nil {
		s.bucket.Close()
	}
	s.search.Stop()
	if s.meaning != nil {
		s.meaning.Close()
	}
	close(s.stopped)
	// A successor waits for the store alone: it opens the search index while it serves.
	return errors.Join(err, s.closeStore(), s.search.Close())
}

// Finish waits until clients have received the responses that are being sent.
func (s *Server) Finish() error {
	timeout := shutdownTimeout
	if s.handover.HasYielded() {
		timeout = handover.DownloadTimeout
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	err := errors.Join(s.http.FinishAnswers(ctx), s.closeWebApp())
	s.log.Info("stopped", "data", s.Data, "handed_over", s.http.Stats().HandedOff)
	return err
}

// closeFailedStart closes everything that a failed start has opened.
func (s *Server) closeFailedStart() (err error) {
	if s.edge != nil {
		return s.closeFailedEdge()
	}
	err = s.closeWebApp()
	if s.core != nil {
		err = errors.Join(err, s.core.Close())
	}
	err = errors.Join(err, s.metrics.Close(), withShutdownTimeout(s.mail.Close), s.closeControl(), s.closeBackground())
	s.fetcher.Close()
	if s.space != nil {
		s.space.Close()
	}
	if s.bucket != nil {
		s.bucket.Close()
	}
	if s.search != nil {
		err = errors.Join(err, s.search.Close())
	}
	if s.meaning != nil {
		s.meaning.Close()
	}
	close(s.stopped)
	if s.store != nil {
		err = errors.Join(err, s.closeStore())
	}
	return errors.Join(err, s.closeListeners())
}

// closeWebApp closes the directories of the web app.
func (s *Server) closeWebApp() error {
	if s.webApp == nil {
		return nil
	}
	return s.webApp.Close()
}

// rotateTicketKeys gives the HTTP server a new key each day, until the server is closed.
func (s *Server) rotateTicketKeys() {
	for {
		keys, next := s.ticketKeys.Rotate(time.Now())
		s.http.SetSessionTicketKeys(keys)
		select {
		case <-time.After(next):
		case <-s.stopped:
			return
		}
	}
}

func (s *Server) closeListeners() (err error) {
	for _, l := range s.listeners {
		if e := l.Close(); !errors.Is(e, net.ErrClosed) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// withShutdownTimeout calls stop with a context that ends after shutdownTimeout.
func withShutdownTimeout(stop func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	return stop(ctx)
}
