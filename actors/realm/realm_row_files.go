package realm

// Kinds of files that rows refer to.
const (
	ContentFile = "content" // an upload or a custom emoji; the name is a hash of the content and its owner
	PictureFile = "picture" // an avatar or picture of the organization; one name for all its sizes
	ArchiveFile = "archive" // a finished data export
)

// RowFile is a reference from a row to a file outside the realm.
type RowFile struct {
	Kind string
	Name *string // points into the row
}

// RowFiles returns the files that a row refers to. They must be copied wherever the row is copied.
func RowFiles(row any) (out []RowFile) {
	add := func(kind string, names ...*string) {
		for _, n := range names {
			if *n != "" {
				out = append(out, RowFile{kind, n})
			}
		}
	}
	switch x := row.(type) {
	case *Upload:
		add(ContentFile, &x.Hash)
	case *CustomEmoji:
		add(ContentFile, &x.Hash)
	case *User:
		add(PictureFile, &x.AvatarFile)
	case *Organization:
		add(PictureFile, &x.IconFile, &x.LogoFile, &x.NightLogoFile)
	case *Export:
		if x.Ended != 0 && x.Deleted == 0 {
			add(ArchiveFile, &x.Name)
		}
	case *OwnExports:
		for i := range x.List {
			if x.List[i].HasFile() {
				add(ArchiveFile, &x.List[i].Name)
			}
		}
	}
	return out
}

// maxUploadsPerScan is how many upload rows one view looks at: a fraction of a millisecond.
const maxUploadsPerScan = 10_000

// ReferencedFiles reports which of the named files of a kind are used by the organization's rows. It includes the file
// of an export that is still being written, because its row already exists. It looks at a limited number of uploads,
// beginning with the id from (the first is 1). It returns the id to continue with, or 0 when it has seen all.
func (v View) ReferencedFiles(kind string, names map[string]bool, from int64) (referenced []string, next int64) {
	addIfAsked := func(name string) {
		if names[name] {
			referenced = append(referenced, name)
		}
	}
	switch kind {
	case ContentFile:
		if from <= 1 {
			for _, e := range v.small.emoji.all() {
				addIfAsked(e.Hash)
			}
		}
		end := v.nextID("upload")
		for next = max(from, 1); next < end && next < from+maxUploadsPerScan; next++ {
			if u := v.small.uploads.find(next); u != nil {
				addIfAsked(u.Hash)
			} else if u := v.small.archivedUploads.find(next); u != nil {
				addIfAsked(u.Hash)
			}
		}
		if next < end {
			return referenced, next
		}
	case PictureFile:
		for _, u := range v.users.all() {
			addIfAsked(u.AvatarFile)
		}
		o := v.Org()
		addIfAsked(o.IconFile)
		addIfAsked(o.LogoFile)
		addIfAsked(o.NightLogoFile)
	case ArchiveFile:
		for _, e := range v.small.exports.all() {
			if e.Failed == 0 && e.Deleted == 0 {
				addIfAsked(e.Name)
			}
		}
		for _, x := range v.small.ownExports.all() {
			for _, e := range x.List {
				if e.Pending() || e.HasFile() {
					addIfAsked(e.Name)
				}
			}
		}
	}
	return referenced, 0
}
