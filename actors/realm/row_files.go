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
