package imports

import (
	"io/fs"
	"path"
)

const (
	// maxFolderDepth is how many folders deep an export is looked for: people pack exports again, inside of a folder.
	maxFolderDepth = 4
	// maxFolders limits the folders in which an export is looked for.
	maxFolders = 10_000
)

// FindFolder returns the folder of an archive that has one of the files: the top, or the first one below it that is
// least deep. It returns false if there is none.
func FindFolder(archive fs.FS, names ...string) (folder string, ok bool) {
	level := []string{"."}
	looked := 0
	for depth := 0; depth <= maxFolderDepth && len(level) > 0; depth++ {
		for _, dir := range level {
			for _, name := range names {
				if found, err := fs.Glob(archive, path.Join(escapePattern(dir), name)); err == nil && len(found) > 0 {
					return dir, true
				}
			}
		}
		var next []string
		for _, dir := range level {
			entries, err := fs.ReadDir(archive, dir)
			if looked++; err != nil || looked > maxFolders {
				continue
			}
			for _, e := range entries {
				if e.IsDir() {
					next = append(next, path.Join(dir, e.Name()))
				}
			}
		}
		level = next
	}
	return "", false
}

// escapePattern returns the pattern of fs.Glob that matches only the name itself.
func escapePattern(name string) string {
	out := make([]byte, 0, len(name))
	for _, c := range []byte(name) {
		if c == '*' || c == '?' || c == '[' || c == '\\' {
			out = append(out, '\\')
		}
		out = append(out, c)
	}
	return string(out)
}
