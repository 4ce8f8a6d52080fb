package datadir

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"parley/actors"
	"parley/actors/realm"
)

// pageFile is the file of the data directory with the fingerprint of the page that the server had last.
const pageFile = "web-app"

// PageReload asks web clients to load their page again.
type PageReload struct {
	Data    string // data directory
	Orgs    *actors.Server
	Stopped <-chan struct{} // closed when the server stops
	Log     *slog.Logger
}

// Announce asks web clients to load their page again if the server has another page than the last process: that
// of another release, or another version of its own. successor says that the last process has handed its clients over,
// whose pages are open. A process that ends meanwhile leaves the task to the next one; to
// ask twice does no harm. It does not wait.
func (s PageReload) Announce(page string, successor bool) {
	path := filepath.Join(s.Data, pageFile)
	before, err := os.ReadFile(path)
	last := strings.TrimSpace(string(before))
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		s.Log.Warn("reading the name of the previous web app failed", "err", err)
	case last == page:
	case last == "" && !successor: // no page is open
		s.storePage(path, page)
	default:
		go func() {
			s.Log.Info("the web app has changed; asking open pages to reload", "before", last, "now", page)
			if s.askToReload() {
				s.storePage(path, page)
			}
		}()
	}
}

// askToReload sends the event to the web clients of every organization that is in memory: no page polls the others. It
// reports whether it has reached all of them.
func (s PageReload) askToReload() bool {
	caller := realm.Caller{System: true, Client: "Internal", Operation: "announce the web app"}
	for _, id := range s.Orgs.Realms() {
		if s.Orgs.IsAsleep(id) {
			continue
		}
		select {
		case <-s.Stopped:
			return false
		default:
		}
		if _, err := s.Orgs.Turn(id, caller, func(t *realm.Turn) (any, error) {
			return realm.ChangeWebApp{}.Decide(t)
		}); err != nil {
			s.Log.Warn("asking pages to reload failed", "realm", id, "err", err)
			return false
		}
	}
	return true
}

// storePage stores the fingerprint of the page.
func (s PageReload) storePage(path, page string) {
	if err := ReplaceFile(path, page+"\n"); err != nil {
		s.Log.Warn("storing the name of the web app failed", "err", err)
	}
}
