package slack

import (
	"io"
	"io/fs"
	"net/url"
	"path"
	"strings"

	"parley/wire/imports"
)

// Folders with the files of messages, as programs that download an export with its files write them.
const (
	uploadFolder     = "__uploads"   // __uploads/F1/picture.png
	attachmentFolder = "attachments" // general/attachments/F1-picture.png
)

// localFiles are the files of messages that the archive has.
type localFiles struct {
	byPath map[string]bool
	byID   map[string]string // path of the first file with an id
}

// add adds a file of the archive. It returns false if the file is in no folder for the files of messages.
func (l *localFiles) add(name string) bool {
	parts := strings.Split(name, "/")
	id := ""
	switch {
	case len(parts) >= 2 && parts[0] == uploadFolder:
		id = parts[1]
	case len(parts) >= 3 && parts[1] == attachmentFolder:
		id, _, _ = strings.Cut(strings.TrimSuffix(parts[2], path.Ext(parts[2])), "-")
		id = parts[0] + "/" + id
	default:
		return false
	}
	l.byPath[name] = true
	if l.byID[id] == "" {
		l.byID[id] = name
	}
	return true
}

// find returns the path of a file of a message in the folder dir; "": the archive does not have it.
func (l *localFiles) find(f *fileRow, dir string) string {
	names := []string{path.Join(uploadFolder, f.ID, f.Name)}
	if f.ID != "" {
		names = append(names, path.Join(dir, attachmentFolder, f.ID+"-"+f.Name))
	}
	if u, err := url.Parse(f.URL); err == nil && u.Host == "" && u.Path != "" {
		names = append(names, path.Join(dir, u.Path), path.Clean(u.Path))
	}
	for _, name := range append(names, path.Join(dir, attachmentFolder, f.Name)) {
		if l.byPath[name] {
			return name
		}
	}
	if f.ID == "" {
		return ""
	}
	if name := l.byID[f.ID]; name != "" {
		return name
	}
	return l.byID[dir+"/"+f.ID]
}

// filePath is the path of a file of a message in its record: what Open needs to find it.
func filePath(f *fileRow, local string) string {
	return strings.Join([]string{oneLine(f.ID), oneLine(f.Name), oneLine(f.URL), local}, "\n")
}

// Open opens a file of a message: from the folder of downloaded files, from the archive, or from Slack.
func (s *source) Open(name string) (io.ReadCloser, error) {
	part := strings.SplitN(name, "\n", 4)
	if len(part) != 4 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	id, file, address, local := part[0], part[1], part[2], part[3]
	if s.o.FilesIn != nil && id != "" {
		for _, name := range []string{id, id + path.Ext(file), id + "-" + file, id + "/" + file,
			uploadFolder + "/" + id + "/" + file} {
			if !fs.ValidPath(name) {
				continue
			}
			if r, err := s.o.FilesIn(name); err == nil {
				return r, nil
			}
		}
	}
	if local != "" && s.files.byPath[local] {
		return s.archive.Open(local)
	}
	if s.o.Fetch != nil && s.o.Token != "" && address != "" {
		return s.o.Fetch(address, s.o.Token)
	}
	return nil, &fs.PathError{Op: "open", Path: id, Err: fs.ErrNotExist}
}

func oneLine(s string) string { return strings.ReplaceAll(s, "\n", " ") }

var _ imports.Source = (*source)(nil)
