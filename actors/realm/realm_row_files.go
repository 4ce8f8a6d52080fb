package realm

// Kinds of files that rows name.
const (
	ContentFile = "content" // an upload or an emoji's image, by the hash of its content and of whose it is
	PictureFile = "picture" // of a user or the organization; what is there under the name, in each of its sizes
	ArchiveFile = "archive" // a finished data export
)

// RowFile is a file outside the realm that a row names.
type RowFile struct {
	Kind string
	Name *string // in the row
}

// RowFiles is the files a row names: who takes rows elsewhere takes them along.
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
	}
	return out
}

// maxUploadsPerScan is how many rows a view looks at for files' names: a fraction of a millisecond.
const maxUploadsPerScan = 10_000

// ReferencedFiles reports which of some files of a kind the organization's rows name, or will name: an export that is being
// written has its row already. Of uploads it looks at a limited number, beginning with the number from (the first is 1), and
// returns the number to go on with, 0 when it has seen all.
func (v View) ReferencedFiles(kind string, names map[string]bool, from int64) (named []string, next int64) {
	note := func(name string) {
		if names[name] {
			named = append(named, name)
		}
	}
	switch kind {
	case ContentFile:
		if from <= 1 {
			for _, e := range v.small.emoji.all() {
				note(e.Hash)
			}
		}
		end := v.nextID("upload")
		for next = max(from, 1); next < end && next < from+maxUploadsPerScan; next++ {
			if u := v.small.uploads.find(next); u != nil {
				note(u.Hash)
			}
		}
		if next < end {
			return named, next
		}
	case PictureFile:
		for _, u := range v.users.all() {
			note(u.AvatarFile)
		}
		o := v.Org()
		note(o.IconFile)
		note(o.LogoFile)
		note(o.NightLogoFile)
	case ArchiveFile:
		for _, e := range v.small.exports.all() {
			if e.Failed == 0 && e.Deleted == 0 {
				note(e.Name)
			}
		}
	}
	return named, 0
}
