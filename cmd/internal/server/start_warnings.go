package server

import (
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	"parley/cmd/internal/datadir"
)

// warnOfExposure logs settings that open the server to other machines although they are made for this one.
func (s *Server) warnOfExposure() {
	if (s.Demo || s.DemoCrowd != "") && !onLoopback(s.Settings.Listen) {
		s.log.Warn("demo: anyone who can reach the server can log in as any user without a password; "+
			"listen on 127.0.0.1, or start without demo", "listen", s.Settings.Listen)
	}
	if s.DebugListen != "" && !onLoopback(s.DebugListen) {
		s.log.Warn("debug-listen: metrics and profiles need no login and can show what is in memory; "+
			"use a loopback address, or a firewall", "listen", s.DebugListen)
	}
}

// onLoopback reports whether only programs on this machine can connect to a listen address.
func onLoopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// Permissions that files of the data directory must not have: everything for others, and writing for the group. A
// group may read, because programs that make backups do.
const (
	openToOthers    fs.FileMode = 0o027
	openSecretModes fs.FileMode = 0o077
)

// warnOfOpenModes logs the data directory and files with secrets if other users of the machine can read or write
// them. The server does not change the modes: a person has set them.
func (s *Server) warnOfOpenModes() {
	for _, x := range []struct {
		path string
		open fs.FileMode
	}{
		{s.Data, openToOthers},
		{filepath.Join(s.Data, datadir.SecretFile), openSecretModes},
		{s.TLS.TLSKey, openToOthers},
		{s.APNsKey, openToOthers},
		{s.FCMAccount, openToOthers},
	} {
		if info, err := os.Stat(x.path); err == nil && info.Mode().Perm()&x.open != 0 {
			s.log.Warn("other users of this machine can open the file; remove their permissions with chmod",
				"file", x.path, "mode", info.Mode().Perm().String(), "allowed", (info.Mode().Perm() &^ x.open).String())
		}
	}
}
