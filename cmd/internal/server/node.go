package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"parley/actors"
	"parley/actors/realm"
	"parley/cmd/internal/cluster"
	"parley/cmd/internal/datadir"
	"parley/cmd/internal/handover"
	"parley/cmd/internal/metrics"
	"parley/cmd/internal/operator"
	"parley/cmd/internal/orgfiles"
	"parley/wire"
	"parley/wire/assist"
	"parley/wire/calls"
	"parley/wire/gifs"
	"parley/wire/httpd"
	"parley/wire/peer"
	"parley/wire/signon"
)

// joinTimeout is how long an edge that starts tries to reach a core before it returns an error.
const joinTimeout = time.Minute

// sharedSettings are the settings that an edge gets from its core, unless an operator has set them at the edge. Clients
// must not notice which node they use. None is a secret: an edge that is stolen must not be able to make logins.
var sharedSettings = []string{
	"url", "allowed-hosts", "rate-limit", "anonymous-rate-limit", "login-limit", "max-body", "upload-quota",
	"user-upload-quota", "open-organizations", "archive-days", "mail-domain", "max-channels", "daily-channels",
	"request-channels", "request-subscriptions", "max-groups", "daily-groups", "max-bots", "registration-size",
	"max-users", "short-user-list", "daily-invites",
}

// jwtKeysMark is the name under which cores compare jwt-keys. Its value is a signature with the server's secret, so
// edges and logs do not have the keys.
const jwtKeysMark = "jwt-keys (signature)"

// authConfigMark is the name under which cores compare auth-config, like jwtKeysMark. loginsSetting has the names of
// the login providers, for edges.
const (
	authConfigMark = "auth-config (signature)"
	loginsSetting  = "login providers"
)

// assistOffers is the name under which edges learn whether the cores make summaries and translations.
const assistOffers = "assist (summaries, translations)"

// meaningOffer is the name under which edges learn whether the cores search by meaning.
const meaningOffer = "search by meaning"

// gifProvider is the name under which edges learn the provider of GIFs and its key.
const gifProvider = "gifs (provider, key)"

// callServer is the name under which edges learn the address of the server for calls.
const callServer = "calls (livekit-url)"

// filesSetting is the name of the setting for the place of files. Edges have no files and ignore it.
const filesSetting = "files"

// shared returns the values of sharedSettings.
func (s *Settings) shared() map[string]string {
	values := map[string]string{}
	for _, x := range s.Table() {
		if slices.Contains(sharedSettings, x.Name) {
			values[x.Name] = x.Text()
		}
	}
	return values
}

// applyShared sets the shared settings that no operator has set at this node.
func (c *Config) applyShared(values map[string]string) error {
	for _, x := range c.Settings.Table() {
		text, ok := values[x.Name]
		if !ok || !slices.Contains(sharedSettings, x.Name) || c.Given[x.Name] {
			continue
		}
		if err := x.Set(text); err != nil {
			return fmt.Errorf("setting %s of the core: %w", x.Name, err)
		}
	}
	return nil
}

// openNode reads which node of a cluster this server is, or joins a cluster. It returns nil for a single node. An edge
// connects to its core and gets its settings.
func openNode(c *Config) (*cluster.Directory, *edgeNode, error) {
	var d *cluster.Directory
	var err error
	switch {
	case cluster.Exists(c.Data):
		d, err = cluster.OpenDirectory(c.Data)
		if err == nil && c.Node != "" && c.Node != d.Node {
			err = fmt.Errorf("%s is the data directory of node %s, not %s", c.Data, d.Node, c.Node)
		}
	case c.Join != "":
		d, err = join(c)
	case c.Node != "" || c.PeerListen != "":
		err = errors.New("node and peer-listen are for the nodes of a cluster: " +
			"parley cluster init makes one, --join adds this node to one")
	}
	if err != nil || d == nil {
		return nil, nil, err
	}
	if c.PeerListen != "" {
		if err := d.SetPeerListen(c.PeerListen); err != nil {
			return nil, nil, err
		}
	}
	if d.Role == peer.Core {
		return d, nil, nil
	}
	if c.Handover != nil && c.Handover.Predecessor != "" {
		e, err := prepareEdge(c, d)
		return d, e, err
	}
	e, err := connectEdge(c, d)
	return d, e, err
}

// join exchanges the token of the settings for a certificate.
func join(c *Config) (*cluster.Directory, error) {
	if err := peer.CheckNodeID(c.Node); err != nil {
		return nil, err
	}
	if entries, err := os.ReadDir(c.Data); err == nil && len(entries) > 0 {
		return nil, fmt.Errorf("%s is not empty: a new node needs a directory of its own", c.Data)
	}
	token, err := peer.ParseToken(c.Join)
	if err != nil {
		return nil, err
	}
	key, request, err := peer.NewKey()
	if err != nil {
		return nil, err
	}
	answer, err := peer.Join(context.Background(), token, peer.JoinRequest{
		Secret: token.Secret, Node: c.Node, Address: c.PeerListen, Version: peer.Version,
		Clock: c.now().UnixMilli(), Request: request, Level: realm.Level,
	})
	if err != nil {
		return nil, fmt.Errorf("joining the cluster failed: %w", err)
	}
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return nil, err
	}
	d, err := cluster.Join(answer, c.Data, c.Node, c.PeerListen, key)
	if err == nil && answer.Role == peer.Core {
		err = os.WriteFile(filepath.Join(c.Data, datadir.SecretFile), answer.Secret, 0o600)
		if err == nil && answer.Files != "" {
			err = orgfiles.WritePlace(c.Data, orgfiles.Place{Files: answer.Files})
		}
	}
	if err == nil {
		c.Log.Info("joined the cluster", "node", c.Node, "role", string(answer.Role))
	}
	return d, err
}

// edgeNode is the part of a server that makes it an edge.
type edgeNode struct {
	*cluster.Follower
	greeted *cluster.Greeted // nil: a successor whose predecessor still has the link
}

func edgeWithoutLink(c *Config, d *cluster.Directory) (*cluster.Follower, error) {
	return cluster.NewFollower(cluster.FollowerOptions{Directory: d, Program: c.Program, Log: c.Log,
		MaxReplicas: c.MaxReplicas, MaxReplicaBytes: int64(c.memory().Replicas(c.ReplicaMemory)), Clock: c.Now})
}

// prepareEdge returns the edge of a successor without a link. It returns an error if no core would accept the link, so
// that the predecessor continues.
func prepareEdge(c *Config, d *cluster.Directory) (*edgeNode, error) {
	e, err := edgeWithoutLink(c, d)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), handover.SnapshotTimeout)
	defer cancel()
	g, err := e.Greet(ctx)
	switch {
	case err == nil: // the predecessor has no link
		g.Close()
	case !cluster.IsDuplicate(err):
		e.Close()
		return nil, fmt.Errorf("no core accepts a link of the new program: %w", err)
	}
	return &edgeNode{e, nil}, nil
}

// greetAfterPredecessor opens the link of a successor when its predecessor has ended its own, and applies the settings
// of the core. Requests wait in the backlog meanwhile.
func (s *Server) greetAfterPredecessor() error {
	if s.edge.greeted != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), handover.SuccessorTimeout)
	defer cancel()
	g, err := s.edge.Greet(ctx)
	for cluster.IsDuplicate(err) && ctx.Err() == nil {
		g, err = s.edge.Greet(ctx)
	}
	if err != nil {
		return fmt.Errorf("connecting to the core failed: %w", err)
	}
	s.edge.greeted = g
	c := s.config
	c.Settings = s.Settings
	if err := c.applyShared(g.Settings); err != nil {
		return err
	}
	s.Settings = c.Settings
	s.limits.User, s.limits.Visitor, s.limits.Login = c.RateLimit, c.AnonymousRateLimit, c.LoginLimit
	return nil
}

// connectEdge connects an edge to its core and applies its settings.
func connectEdge(c *Config, d *cluster.Directory) (*edgeNode, error) {
	e, err := edgeWithoutLink(c, d)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), joinTimeout)
	defer cancel()
	g, err := e.Greet(ctx)
	if err == nil {
		err = c.applyShared(g.Settings)
	}
	if err != nil {
		e.Close()
		return nil, fmt.Errorf("connecting to the core failed: %w", err)
	}
	return &edgeNode{e, g}, nil
}

// openEdge opens an edge: everything is in memory, and organizations are loaded at their first request.
func (s *Server) openEdge() (err error) {
	g := s.edge.greeted
	if s.JWTKeys != "" {
		s.log.Warn("an edge does not use jwt-keys: remove the setting here, because its keys can make logins")
	}
	if s.AuthConfig != "" {
		s.log.Warn("an edge does not use auth-config: remove the setting here, because its secrets can make logins")
	}
	s.sites = s.newSites()
	if s.sites.Logins, err = signon.ParsePublic(g.Settings[loginsSetting]); err != nil {
		return err
	}
	if err := s.openOrganizations(actors.NoDisk{}, actors.Options{Now: s.edge.Now}); err != nil {
		return err
	}
	s.orgs.SetOutbox(noOutbox{}, g.Pushes, g.Bouncer)
	return nil
}

// noOutbox is the outbox of an edge, which owns no organization.
type noOutbox struct{}

func (noOutbox) AddJobs(realm.ID, realm.Site, *realm.OutboxJobsAdded) {}

// edgePush says that the core sends push notifications. It is never called.
type edgePush struct{ wire.Pusher }

// buildEdgeTools makes the tools of the endpoints that an edge runs: reads, polls and registrations. An edge has no
// secret of the server, and no key of a setting: all that needs one is answered by the owner.
func (s *Server) buildEdgeTools() error {
	g := s.edge.greeted
	if err := s.shareTools(g.Generation, g.DevelopmentLogin); err != nil {
		return err
	}
	s.tools.VerifySignature = func(string, string) bool { return false }
	s.tools.Assistant = assist.AtOwner(g.Settings[assistOffers])
	s.tools.Meaning = assist.MeaningAtOwner(g.Settings[meaningOffer])
	s.tools.GIFs = gifs.AtOwner(g.Settings[gifProvider])
	s.tools.Calls = calls.AtOwner(g.Settings[callServer])
	if g.Pushes {
		s.tools.Push, s.tools.PushBouncer = edgePush{}, g.Bouncer
	}
	return nil
}

// openEdgeEndpoints makes the HTTP server of an edge, its control socket and its metrics.
func (s *Server) openEdgeEndpoints() (err error) {
	o := s.httpOptions()
	o.Now, o.Cluster, o.ClusterState = s.edge.Now, edgeCluster{s.orgs, s.edge.Follower}, s.edge.State
	s.http = httpd.New(o)
	s.connectHandover()
	commands := s.operator()
	commands.Follower = s.edge.Follower
	s.edge.Digest = commands.StateDigest
	s.edge.Start(s.edge.greeted, s.orgs, s.sites.Subdomain)
	if err = s.serveControl(commands); err != nil {
		return err
	}
	s.metrics, err = metrics.Open(s.DebugListen, s.parts, metrics.NewStatusReader(s.parts))
	return err
}

// edgeCluster gives an edge's HTTP server access to the cluster.
type edgeCluster struct {
	*actors.Server
	*cluster.Follower
}

// Tick and CloseQueue are methods of both; these send the requests to the owner.
func (c edgeCluster) Tick(id realm.ID)                        { c.Follower.Tick(id) }
func (c edgeCluster) CloseQueue(id realm.ID, q realm.QueueID) { c.Follower.CloseQueue(id, q) }
func (c edgeCluster) Close()                                  {}

// startCore lets other nodes connect.
func (s *Server) startCore(o *operator.Operator) (err error) {
	if s.node == nil {
		return nil
	}
	settings, place, open := s.shared(), "", orgfiles.ForCores(s.files)
	if s.bucket != nil {
		place, open = s.bucket.Place().String(), nil
	}
	settings[filesSetting], settings[jwtKeysMark] = place, datadir.NewSigner(s.secret)("jwt-keys "+s.JWTKeys)
	settings[assistOffers] = s.assistSettings.Offers().String()
	settings[meaningOffer] = strconv.FormatBool(s.EmbedURL != "")
	settings[gifProvider] = s.gifs.Text()
	settings[callServer] = s.LiveKitURL
	settings[authConfigMark], settings[loginsSetting] = datadir.NewSigner(s.secret)("auth-config "+s.signOn.Secrets()),
		s.signOn.Public().Text()
	s.core, err = cluster.StartLeader(cluster.LeaderOptions{
		Directory: s.node, Node: s.coreNode, Orgs: s.orgs, Disk: s.coreNode.Disk, HTTP: s.http, Log: s.log,
		Now: s.config.now, Program: s.config.Program, Files: place, Settings: settings, Secret: s.secret,
		Generation: s.tools.Generation,
		Pushes:     s.tools.Push != nil,
		Bouncer:    s.tools.PushBouncer, DevelopmentLogin: s.tools.Dev, Command: o.RunSent,
		OpenFile: s.openForCores(open),
	})
	if err != nil {
		return err
	}
	o.Leader = s.core
	s.vectorCores.Store(s.core)
	if s.fetcher != nil {
		s.fetcher.SetCore(s.core)
	}
	s.link, err = cluster.StartCoreLink(cluster.FollowerOptions{Directory: s.node, Program: s.config.Program,
		Log: s.log, Settings: settings, Clock: s.config.Now,
		Digest: o.StateDigest}, s.orgs, s.sites.Subdomain)
	o.Follower = s.link
	if err == nil {
		s.link.FollowLeader(s.coreNode)
		s.core.FollowLeadership(s.link, s.space.IsReadOnly)
	}
	return err
}

// stopEdge stops an edge. Its clients poll another node, or its successor, whose link the core accepts when this one
// has ended.
func (s *Server) stopEdge() error {
	if s.handover.HasYielded() && s.http.PrepareShutdown(s.handover.Connections()) {
		time.Sleep(handover.ClosingDelay)
	}
	err := errors.Join(s.closeControl(), s.metrics.Close(), withShutdownTimeout(s.http.Shutdown))
	s.edge.Close()
	err = errors.Join(err, withShutdownTimeout(s.orgs.Close))
	close(s.stopped)
	return err
}

// closeFailedEdge closes all that a failed start of an edge has opened.
func (s *Server) closeFailedEdge() (err error) {
	err = errors.Join(s.closeWebApp(), s.metrics.Close(), s.closeControl())
	s.edge.Close()
	close(s.stopped)
	return errors.Join(err, s.closeListeners())
}
