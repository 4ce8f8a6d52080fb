package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"parley/wire/peer"
)

// The files below the folder cluster of a data directory. Keys are readable for the owner only.
const (
	folder          = "cluster"
	stateFile       = "cluster.json"
	certificateFile = "node.crt"
	keyFile         = "node.key"
	authorityFile   = "authority.crt"
	authorityKey    = "authority.key" // at cores only
)

// Member is a node of the cluster.
type Member struct {
	Node    string    `json:"node"`
	Role    peer.Role `json:"role"`
	Address string    `json:"address,omitempty"` // where it listens for other nodes
	Joined  int64     `json:"joined"`            // Unix seconds
	Removed int64     `json:"removed,omitempty"` // Unix seconds; 0: it is a member
}

// state is the content of stateFile.
type state struct {
	Node       string    `json:"node"`
	Role       peer.Role `json:"role"`
	PeerListen string    `json:"peer_listen,omitempty"`
	Cores      []string  `json:"cores,omitempty"` // their addresses; only at an edge
	// RemovedCores are the cores that were removed, as the leader has told this edge. It connects to none of them.
	RemovedCores []string `json:"removed_cores,omitempty"`
	// DevelopmentLogin says that the development login was enabled when this core joined.
	DevelopmentLogin bool `json:"development_login,omitempty"`

	// Only at cores; the same at every core.
	Version int64         `json:"version,omitempty"` // counts the changes
	Members []Member      `json:"members,omitempty"`
	Tokens  []storedToken `json:"tokens,omitempty"`
}

// IsFounder reports whether this core began the cluster and no other node has joined it.
func (d *Directory) IsFounder() bool {
	members := d.ListMembers()
	return len(members) == 1 && members[0].Node == d.Node
}

// Directory is the membership of a node, stored in its data directory. Its methods may be called by any goroutine.
type Directory struct {
	path string
	mu   sync.Mutex
	state
	// replicate stores the members and tokens on all cores; nil: there is no replicated log.
	replicate func([]byte) error
	// current are the members by node as of the last change that was stored. It may be read without the lock.
	current atomic.Pointer[map[string]Member]
}

// Exists reports whether a data directory belongs to a node of a cluster.
func Exists(data string) bool {
	_, err := os.Stat(filepath.Join(data, folder, stateFile))
	return err == nil
}

// OpenDirectory reads the membership from a data directory.
func OpenDirectory(data string) (*Directory, error) {
	d := &Directory{path: filepath.Join(data, folder)}
	text, err := os.ReadFile(filepath.Join(d.path, stateFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s is not the data directory of a node of a cluster: parley cluster init makes it one",
			data)
	}
	if err == nil {
		err = json.Unmarshal(text, &d.state)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(d.path, stateFile), err)
	}
	d.publish()
	return d, nil
}

// checkAddress returns an error unless other nodes can reach a core at the address, also after a restart.
func checkAddress(peerListen string) error {
	host, port, err := net.SplitHostPort(peerListen)
	if n, e := strconv.ParseUint(port, 10, 16); err != nil || e != nil || n == 0 || host == "" ||
		net.ParseIP(host).IsUnspecified() {
		return fmt.Errorf("a core needs --peer-listen HOST:PORT, an address at which other nodes can reach it, not %q",
			peerListen)
	}
	return nil
}

// Init turns a data directory into that of the first core of a new cluster.
func Init(data, node, peerListen string) error {
	if err := peer.CheckNodeID(node); err != nil {
		return err
	}
	if err := checkAddress(peerListen); err != nil {
		return err
	}
	if Exists(data) {
		return fmt.Errorf("%s belongs to a cluster already: parley serve --data %s starts the node", data, data)
	}
	authority, err := peer.NewAuthority()
	if err != nil {
		return err
	}
	key, request, err := peer.NewKey()
	if err != nil {
		return err
	}
	certificate, err := authority.Issue(request, node, peer.Core)
	if err != nil {
		return err
	}
	rootKey, err := authority.Key()
	if err != nil {
		return err
	}
	d := &Directory{path: filepath.Join(data, folder), state: state{
		Node: node, Role: peer.Core, PeerListen: peerListen,
		Members: []Member{{Node: node, Role: peer.Core, Address: peerListen, Joined: time.Now().Unix()}},
	}}
	if err := d.writeKeys(certificate, key, authority.Certificate()); err != nil {
		return err
	}
	if err := writeFile(filepath.Join(d.path, authorityKey), rootKey); err != nil {
		return err
	}
	return d.save() // last: Exists returns true from now on
}

// Join turns a data directory into that of a new node. answer is the answer of a core to the join request.
func Join(answer peer.JoinAnswer, data, node, peerListen string, key []byte) (*Directory, error) {
	d := &Directory{path: filepath.Join(data, folder), state: state{
		Node: node, Role: answer.Role, PeerListen: peerListen, Cores: answer.Addresses,
	}}
	if err := d.writeKeys(answer.Certificate, key, answer.Authority); err != nil {
		return nil, err
	}
	if answer.Role == peer.Core {
		d.DevelopmentLogin = answer.Development
		if err := json.Unmarshal(answer.Members, &d.Members); err != nil {
			return nil, err
		}
		if err := writeFile(filepath.Join(d.path, authorityKey), answer.AuthorityKey); err != nil {
			return nil, err
		}
	}
	return d, d.save()
}

func (d *Directory) writeKeys(certificate, key, authority []byte) error {
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return err
	}
	return errors.Join(writeFile(filepath.Join(d.path, certificateFile), certificate),
		writeFile(filepath.Join(d.path, keyFile), key), writeFile(filepath.Join(d.path, authorityFile), authority))
}

// save stores the state: shared parts on all cores, the rest on this node. d.mu is locked, or no other goroutine uses
// d.
func (d *Directory) save() error {
	if d.replicate != nil {
		before := d.Version
		d.Version++
		value, err := json.Marshal(sharedState{d.Version, d.Members, d.Tokens})
		if err == nil {
			err = d.replicate(value)
		}
		if err != nil {
			d.Version = before
			if text, rerr := os.ReadFile(filepath.Join(d.path, stateFile)); rerr == nil {
				var old state
				if json.Unmarshal(text, &old) == nil {
					d.Members, d.Tokens = old.Members, old.Tokens
				}
			}
			return err
		}
	}
	return d.write()
}

// write writes the state to this node's disk. The cores have stored its shared parts already. d.mu is locked.
func (d *Directory) write() error {
	d.publish()
	text, err := json.MarshalIndent(&d.state, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(d.path, stateFile), append(text, '\n'))
}

// writeFile replaces a file and waits until it is on disk.
func writeFile(path string, content []byte) error {
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err = os.Rename(path+".new", path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Identity returns the certificate of the node.
func (d *Directory) Identity() (*peer.Identity, error) {
	var parts [3][]byte
	for i, name := range []string{certificateFile, keyFile, authorityFile} {
		var err error
		if parts[i], err = os.ReadFile(filepath.Join(d.path, name)); err != nil {
			return nil, err
		}
	}
	id, err := peer.ReadIdentity(parts[0], parts[1], parts[2])
	if err == nil && (id.Node != d.Node || id.Role != d.Role) {
		err = fmt.Errorf("%s is the certificate of the %s %s, but the data directory is that of the %s %s: restore "+
			"the file, or join with a new token and an empty data directory",
			filepath.Join(d.path, certificateFile), id.Role, id.Node, d.Role, d.Node)
	}
	return id, err
}

// ClusterName returns a name of the cluster that no other cluster has, and that is the same at all nodes.
func (d *Directory) ClusterName() (string, error) {
	certificate, err := os.ReadFile(filepath.Join(d.path, authorityFile))
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(certificate)
	return "cluster-" + hex.EncodeToString(sum[:16]), nil
}

// authority returns the certificate authority of the cluster, whose key only cores have.
func (d *Directory) authority() (*peer.Authority, error) {
	certificate, err := os.ReadFile(filepath.Join(d.path, authorityFile))
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(filepath.Join(d.path, authorityKey))
	if err != nil {
		return nil, err
	}
	return peer.ReadAuthority(certificate, key)
}

// SetPeerListen records a new address of the node. It returns an error if other nodes cannot reach a core at it.
func (d *Directory) SetPeerListen(address string) error {
	if d.Role == peer.Core {
		if err := checkAddress(address); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.PeerListen == address {
		return nil
	}
	d.PeerListen = address
	for i := range d.Members {
		if d.Members[i].Node == d.Node {
			d.Members[i].Address = address
		}
	}
	return d.save()
}

// CoreAddresses returns the addresses of the cores.
func (d *Directory) CoreAddresses() (list []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Role == peer.Edge {
		return append(list, d.Cores...)
	}
	for _, m := range d.Members {
		if m.Role == peer.Core && m.Removed == 0 {
			list = append(list, m.Address)
		}
	}
	return list
}

// ListMembers returns the nodes that are members.
func (d *Directory) ListMembers() (list []Member) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range d.Members {
		if m.Removed == 0 {
			list = append(list, m)
		}
	}
	return list
}

// checkMember returns an error if a node is not a member.
func (d *Directory) checkMember(node string) error {
	m, ok := d.member(node)
	switch {
	case !ok:
		return fmt.Errorf("node %s is not a member of the cluster: parley cluster status lists the nodes", node)
	case m.Removed != 0:
		return fmt.Errorf("node %s was removed from the cluster: stop it, or join with a new token, another --node "+
			"and an empty data directory", node)
	}
	return nil
}

// setCores records the addresses of the cores, at an edge.
func (d *Directory) setCores(list []string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Role != peer.Edge || len(list) == 0 || slices.Equal(list, d.Cores) {
		return nil
	}
	d.Cores = list
	return d.write()
}

// setRemovedCores records the cores that were removed, at an edge. No core is forgotten: an older leader that the
// others have replaced may not know the newest ones.
func (d *Directory) setRemovedCores(list []string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Role != peer.Edge {
		return nil
	}
	before := len(d.RemovedCores)
	for _, node := range list {
		if !slices.Contains(d.RemovedCores, node) {
			d.RemovedCores = append(d.RemovedCores, node)
		}
	}
	if len(d.RemovedCores) == before {
		return nil
	}
	return d.write()
}

// Remove removes a node for ever: its certificate is no longer accepted.
func (d *Directory) Remove(node string) error {
	if err := d.checkMember(node); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.Members {
		if d.Members[i].Node == node {
			d.Members[i].Removed = time.Now().Unix()
		}
	}
	return d.save()
}
