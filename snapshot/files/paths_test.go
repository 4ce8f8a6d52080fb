package files

import (
	"path/filepath"

	"parley/actors/realm"
)

// The paths of files in the directory of a local Store, for tests that look at them.

func (s *Store) Path(hash string) string { return s.pathOf(realm.ContentFile, hash) }

func (s *Store) Picture(name string) string { return s.pathOf(realm.PictureFile, name) }

func (s *Store) Export(name string) string { return s.pathOf(realm.ArchiveFile, name) }

func (s *Store) pathOf(kind, file string) string {
	return filepath.Join(s.dir, filepath.FromSlash(Key(kind, file)))
}
