package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"parley/actors/realm"
	"parley/cmd/internal/datadir"
	"parley/wire/web"
	"parley/wire/webapp"
)

// openWebApp reads the web app of the setting web-dir. It returns nil if the setting is empty.
func (s *Settings) openWebApp() (*webapp.Release, error) {
	if s.WebDir == "" {
		return nil, nil
	}
	app, err := webapp.Open(s.WebDir, s.WebDirAnyLevel)
	if err != nil {
		return nil, fmt.Errorf("web-dir %s: %w", s.WebDir, err)
	}
	return app, nil
}

// closeWebApp closes the directories of the web app.
func (s *Server) closeWebApp() error {
	if s.webApp == nil {
		return nil
	}
	return s.webApp.Close()
}

// pageFile is the file of the data directory with the fingerprint of the page that the server had last.
const pageFile = "web-app"

// announceWebApp asks web clients to load their page again if the server has another page than the last process: that
// of another release, or another version of its own. A process that ends meanwhile leaves the task to the next one; to
// ask twice does no harm. It does not wait.
func (s *Server) announceWebApp() {
	page := web.ClientVersion()
	if s.webApp != nil {
		page = s.webApp.Fingerprint
	}
	path := filepath.Join(s.Data, pageFile)
	before, err := os.ReadFile(path)
	last := strings.TrimSpace(string(before))
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		s.log.Warn("reading the name of the previous web app failed", "err", err)
	case last == page:
	case last == "" && !s.handover.IsSuccessor(): // no page is open
		s.storePage(path, page)
	default:
		go func() {
			s.log.Info("the web app has changed; asking open pages to reload", "before", last, "now", page)
			if s.askToReload() {
				s.storePage(path, page)
			}
		}()
	}
}

// askToReload sends the event to the web clients of every organization. It reports whether it
// has reached all of them.
func (s *Server) askToReload() bool {
	caller := realm.Caller{System: true, Client: "Internal", Operation: "announce the web app"}
	for _, id := range s.orgs.Realms() {
		select {
		case <-s.stopped:
			return false
		default:
		}
		if _, err := s.orgs.Turn(id, caller, func(t *realm.Turn) (any, error) {
			return realm.ChangeWebApp{}.Decide(t)
		}); err != nil {
			s.log.Warn("asking pages to reload failed", "realm", id, "err", err)
			return false
		}
	}
	return true
}

// storePage stores the fingerprint of the page.
func (s *Server) storePage(path, page string) {
	if err := datadir.ReplaceFile(path, page+"\n"); err != nil {
		s.log.Warn("storing the name of the web app failed", "err", err)
	}
}
