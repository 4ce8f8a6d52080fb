package server

import (
	"errors"
	"fmt"
	"time"

	"parley/cmd/internal/datadir"
	"parley/cmd/internal/orgfiles"
	"parley/snapshot/files"
	"parley/snapshot/files/sweep"
)

// openFiles opens the files at the place of the settings.
func (s *Server) openFiles() error {
	p, err := orgfiles.ChoosePlace(s.Data, s.Settings.Files, s.FilesCredentials)
	if err != nil {
		return err
	}
	if s.bucket, err = orgfiles.OpenBlobs(p, s.log); err != nil {
		return err
	}
	var blobs files.Blobs
	if s.bucket != nil {
		blobs = s.bucket
		if s.bucket.Place().Plaintext() {
			s.log.Warn("files: the endpoint is not https, so files cross the network unencrypted", "files", p.Files)
		}
	}
	if s.files, err = files.Open(datadir.UploadsDir(s.Data), blobs); err != nil {
		return err
	}
	if err := orgfiles.WritePlace(s.Data, p); err != nil {
		return err
	}
	s.files.LimitSpace(s.space.CheckSpace)
	if err := s.UseScanner(s.files, s.log); err != nil {
		return err
	}
	if s.bucket == nil && s.node != nil {
		s.log.Warn("files: an uploaded file is stored only on the core that is the leader at that time, until " +
			"another leader needs it; store the files in a bucket (parley files move)")
		s.fetcher = orgfiles.NewFetcher(s.files, s.log, func(kind, name string) (bool, error) {
			found, err := sweep.Referenced(s.orgs, kind, []string{name})
			return len(found) > 0, err
		})
	}
	if s.bucket != nil && s.node != nil {
		s.files.UseTerms(func() uint64 { return s.coreNode.Term() })
	}
	if s.bucket != nil {
		s.files.SetForeign(orgfiles.ErrOwnerUnknown)
		s.ownerKnown = make(chan struct{})
		s.bucket.Watch(func() bool {
			known := s.checkFileOwner()
			if known {
				close(s.ownerKnown)
			}
			return known
		})
	}
	return nil
}

// orgfiles.CheckOwner lets files be removed if they belong to this data directory. It reports false while the bucket
// cannot be reached.
func (s *Server) checkFileOwner() bool {
	err := orgfiles.CheckOwner(s.Data, s.bucket)
	if errors.Is(err, files.ErrUnavailable) {
		return false
	}
	s.files.SetForeign(err)
	if err != nil {
		s.log.Error("unreferenced files will not be removed from the bucket", "err", err)
	}
	return true
}

// filesState returns the state for the health check; "" is normal.
func (s *Server) filesState() string {
	if s.bucket == nil {
		if n := s.fetcher.Refused(); n > 0 {
			return fmt.Sprintf("some files are only on other cores, because the cluster has no bucket: %d downloads "+
				"were refused since the start; parley backup names the files", n)
		}
		return ""
	}
	since := s.bucket.Down()
	if since.IsZero() {
		return ""
	}
	return "unreachable since " + since.UTC().Format(time.RFC3339) + ": uploads and downloads are refused"
}
