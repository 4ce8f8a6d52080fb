package realm

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/actors/realm/ids"
)

// Upload is the row of one uploaded file. The bytes lie outside, under the hash of their content.
type Upload struct {
	ID            int64
	Path          string // what its address ends with: the realm, and something random, so that knowing a name is not knowing a file
	Name          string // as its owner has it
	Owner         UserID
	Size          int64
	Type          string // content type, as sniffed
	Hash          string // of the content, hexadecimal: names the file on disk
	Created       int64
	Width, Height int
	Animated      bool           // more than one picture
	Thumbnail     ThumbnailState // of an image
}

// ThumbnailState is what is known of an image's thumbnail.
type ThumbnailState uint8

const (
	ThumbnailWanted ThumbnailState = iota
	ThumbnailMade
	ThumbnailImpossible // broken, too large, of a kind nobody can read
)

// maxFileName is how long an uploaded file's name may be, in code points.
const maxFileName = 255

// SaveUpload asks to note a file that was written already.
type SaveUpload struct {
	Name, Type, Hash string
	Size             int64
	Width, Height    int
	Animated         bool
	Quota            int64 // bytes of the whole organization; 0: none
}

func (c SaveUpload) Decide(t *Turn) (Upload, error) {
	me := t.Me()
	if me == nil {
		return Upload{}, errNotMember()
	}
	return c.save(t, me.ID)
}

// save notes the file as somebody's.
func (c SaveUpload) save(t *Turn, owner UserID) (Upload, error) {
	if c.Size == 0 {
		return Upload{}, BadRequest("You must specify a file to upload")
	}
	if err := t.CheckUploadQuota(c.Size, c.Quota); err != nil {
		return Upload{}, err
	}
	name := cleanFileName(c.Name)
	u := Upload{ID: t.nextID("upload"), Path: strconv.Itoa(int(t.ID())) + "/" + t.Token(2) + "/" + t.Token(24) + "/" + urlFileName(name), Name: name, Owner: owner, Size: c.Size, Type: c.Type, Hash: c.Hash, Created: t.Now, Width: c.Width, Height: c.Height, Animated: c.Animated}
	t.Record(&UploadSaved{u})
	return u, nil
}

// CheckUploadQuota refuses bytes that would make the organization's files exceed a quota; 0: none.
func (v View) CheckUploadQuota(bytes, quota int64) error {
	if quota > 0 && v.index.uploadBytes+bytes > quota {
		return Refuse(Invalid, "REALM_UPLOAD_QUOTA", "Upload would exceed your organization's upload quota.")
	}
	return nil
}

// cleanFileName is what a file is called: its name without folders, and without what nobody can see.
func cleanFileName(name string) string {
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	name = strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) || c == utf8.RuneError {
			return -1
		}
		return c
	}, name)
	if strings.Trim(name, ". ") == "" {
		return defaultFileName
	}
	ending := path.Ext(name)
	if short := firstRunes(ending, maxFileName-1); short != ending {
		ending = ""
	}
	return firstRunes(strings.TrimSuffix(name, ending), maxFileName-utf8.RuneCountInString(ending)) + ending
}

// defaultFileName is what a file is called whose name says nothing.
const defaultFileName = "uploaded-file"

// urlFileName is a file's name as its address has it: letters, digits, underscores, points, and dashes for all else that
// stood between words. It means itself in addresses and in markdown.
func urlFileName(name string) string {
	var b strings.Builder
	gap := false
	for _, c := range strings.TrimSpace(name) {
		switch {
		case c == '-' || unicode.IsSpace(c):
			gap = true
		case unicode.IsLetter(c) || unicode.IsNumber(c) || c == '_' || c == '.':
			if gap {
				b.WriteByte('-')
				gap = false
			}
			b.WriteRune(c)
		}
	}
	if gap {
		b.WriteByte('-')
	}
	switch name := b.String(); name {
	case "", ".", "..", "-":
		return defaultFileName
	default:
		return name
	}
}

// UploadSaved says a file has been uploaded.
type UploadSaved struct{ Upload Upload }

func (f *UploadSaved) apply(r *Realm) {
	u := f.Upload
	r.reserveID("upload", u.ID)
	r.small.uploads.put(u.ID, &u)
	r.index.addUpload(&u)
}

func (x *indexes) addUpload(u *Upload) {
	x.uploadByPath[u.Path] = u.ID
	x.uploadsWithHash[u.Hash]++
	x.uploadBytes += u.Size
}

func (x *indexes) dropUpload(u *Upload) {
	delete(x.uploadByPath, u.Path)
	if x.uploadsWithHash[u.Hash]--; x.uploadsWithHash[u.Hash] == 0 {
		delete(x.uploadsWithHash, u.Hash)
	}
	x.uploadBytes -= u.Size
}

func (f *UploadSaved) tell(r *Realm) []Notice {
	return r.uploadNotices(f.Upload.Owner, &AttachmentChanged{Attachment: r.attachmentInfo(r.small.uploads.must(f.Upload.ID)), New: true, Used: r.index.uploadBytes})
}

func (r *Realm) uploadNotices(owner UserID, e Event) []Notice {
	if to := r.usersAudience(owner); len(to) > 0 {
		return []Notice{{To: to, Event: e}}
	}
	return nil
}

// attachmentInfo is an upload and the messages that use it.
func (r *Realm) attachmentInfo(u *Upload) DetachedUpload {
	d := DetachedUpload{ID: u.ID, Name: u.Name, Path: u.Path, Size: u.Size, Created: u.Created, Messages: []MessageID{}}
	if s := r.index.messagesWithFile[u.Path]; s != nil {
		d.Messages = ids.IDs[MessageID](*s)
	}
	return d
}

// AttachmentChanged is the events attachment/add and update, to the uploader.
type AttachmentChanged struct {
	Attachment DetachedUpload
	New        bool
	Used       int64 // bytes of all the organization's files
}

func (*AttachmentChanged) EventType() string { return "attachment" }

// attachmentUseNotices tells uploaders that messages began or ceased to use their files.
func (r *Realm) attachmentUseNotices(paths []string) (out []Notice) {
	for _, p := range slices.Compact(slices.Sorted(slices.Values(paths))) {
		if u := r.findUpload(p); u != nil {
			out = append(out, r.uploadNotices(u.Owner, &AttachmentChanged{Attachment: r.attachmentInfo(u), Used: r.index.uploadBytes})...)
		}
	}
	return out
}

func (r *Realm) findUpload(path string) *Upload {
	if id, ok := r.index.uploadByPath[path]; ok {
		return r.small.uploads.find(id)
	}
	return nil
}

// VisibleUpload is an uploaded file the caller may see.
func (v View) VisibleUpload(path string) (Upload, bool) {
	u := v.findUpload(path)
	if u == nil {
		return Upload{}, false
	}
	return *u, v.System || v.maySeeUpload(v.Me(), u)
}

// maySeeUpload reports whether a file is the user's own, or used by a message he may read; nobody is a spectator.
func (v View) maySeeUpload(me *User, u *Upload) bool {
	if me != nil && u.Owner == me.ID {
		return true
	}
	seen := false
	if s := v.index.messagesWithFile[u.Path]; s != nil {
		s.Each(func(id int64) bool {
			if m := v.message(MessageID(id)); m != nil && v.mayRead(me, MessageID(id), m) {
				seen = true
			}
			return !seen
		})
	}
	return seen
}

// visibleAttachments is the files among paths that a message of this author opens to its readers: those he may see himself. Else
// whoever knows an address, from a channel he left, could open the file by writing the address in a message of his own.
func (t *Turn) visibleAttachments(me *User, paths []string) (out []string) {
	for _, p := range paths {
		if u := t.findUpload(p); u == nil || t.maySeeUpload(me, u) {
			out = append(out, p)
		}
	}
	return out
}

// RenderableUpload is what rendering needs to know of a file, if the caller may see it.
func (v View) RenderableUpload(path string) (UploadInfo, bool) {
	u, ok := v.VisibleUpload(path)
	ok = ok && u.Thumbnail != ThumbnailImpossible
	return UploadInfo{Type: u.Type, Width: u.Width, Height: u.Height, Thumbnailed: u.Thumbnail == ThumbnailMade, Animated: u.Animated}, ok
}

// ThumbnailsWanted is the images whose thumbnails were never made, newest first.
func (v View) ThumbnailsWanted() (out []Upload) {
	keys := v.small.uploads.keys()
	for _, id := range slices.Backward(keys) {
		if u := v.small.uploads.find(id); u.Thumbnail == ThumbnailWanted && u.Width > 0 {
			out = append(out, *u)
		}
	}
	return out
}

// TextsUsing is the newest texts that use a file, at most so many.
func (v View) TextsUsing(path string, most int) (out []BodyRef) {
	s := v.index.messagesWithFile[path]
	if s == nil {
		return nil
	}
	ids := ids.IDs[MessageID](*s)
	for _, id := range ids[max(0, len(ids)-most):] {
		if v.message(id) != nil {
			out = append(out, v.NewestText(id))
		}
	}
	return out
}

// NewestText is where a message's text is as it stands.
func (v View) NewestText(id MessageID) BodyRef {
	return BodyRef{Message: id, Version: v.extraOrEmpty(id).Version}
}

// SetThumbnailState tells what came of making an image's thumbnail. If the file is gone nothing happens.
type SetThumbnailState struct {
	Upload int64
	State  ThumbnailState
}

func (c SetThumbnailState) Decide(t *Turn) (Done, error) {
	u := t.small.uploads.find(c.Upload)
	if u == nil || u.Thumbnail == c.State || !t.System {
		return Done{}, nil
	}
	t.Record(&ThumbnailNoted{c.Upload, c.State})
	return Done{}, nil
}

// ThumbnailNoted says what is known of an image's thumbnail.
type ThumbnailNoted struct {
	Upload int64
	State  ThumbnailState
}

func (f *ThumbnailNoted) apply(r *Realm)         { r.small.uploads.change(f.Upload).Thumbnail = f.State }
func (f *ThumbnailNoted) tell(r *Realm) []Notice { return nil }
func (*ThumbnailNoted) keepsMarkdownConfig()     {}

// UploadsOf is a user's files, oldest first, and how many bytes all the organization's files take.
func (r *Realm) UploadsOf(u UserID) (list []DetachedUpload, bytes int64) {
	list = []DetachedUpload{}
	for _, id := range r.small.uploads.keys() {
		if x := r.small.uploads.find(id); x.Owner == u {
			list = append(list, r.attachmentInfo(x))
		}
	}
	return list, r.index.uploadBytes
}

// detachedUploads is the caller's uploads that only this message used, and will use no longer when it has these attachments.
func (t *Turn) detachedUploads(u UserID, id MessageID, attachments []string) (out []DetachedUpload) {
	m := t.message(id)
	e := t.extra(id, m)
	if e == nil {
		return nil
	}
	for _, p := range e.Attachments {
		x := t.findUpload(p)
		if x == nil || x.Owner != u || slices.Contains(attachments, p) {
			continue
		}
		if s := t.index.messagesWithFile[p]; s != nil && s.Len() == 1 && s.Has(int64(id)) {
			d := t.attachmentInfo(x)
			d.Messages = []MessageID{}
			out = append(out, d)
		}
	}
	return out
}

// DeleteUpload asks to delete one of the caller's files; it answers the hash of content nobody uses any more.
type DeleteUpload struct{ ID int64 }

func (c DeleteUpload) Decide(t *Turn) (string, error) {
	u := t.small.uploads.find(c.ID)
	if u == nil || t.Me() == nil || u.Owner != t.User {
		return "", BadRequest("Invalid attachment")
	}
	hash := u.Hash
	t.Record(&UploadDeleted{ID: u.ID, Owner: u.Owner})
	if t.ContentInUse(hash) {
		hash = ""
	}
	return hash, nil
}

// deleteUnusedUploads records that those of the files are gone that no message uses, nor one that waits to be sent. It is for the
// files of deleted messages: those that edits leave without one, and those that never had one, stay with their owners.
func (t *Turn) deleteUnusedUploads(paths []string) {
	var unused []string
	for _, p := range slices.Compact(slices.Sorted(slices.Values(paths))) {
		if s := t.index.messagesWithFile[p]; t.findUpload(p) != nil && (s == nil || s.Empty()) {
			unused = append(unused, p)
		}
	}
	if len(unused) == 0 {
		return
	}
	waiting := map[string]bool{}
	for _, s := range t.small.scheduled.all() {
		for _, p := range s.Content.Attachments {
			waiting[p] = true
		}
	}
	for _, p := range unused {
		if u := t.findUpload(p); !waiting[p] {
			t.Record(&UploadDeleted{ID: u.ID, Owner: u.Owner})
		}
	}
}

// ContentInUse reports whether a file or an emoji has these bytes.
func (v View) ContentInUse(hash string) bool {
	return v.index.uploadsWithHash[hash] > 0 || v.emojiUsesFile(hash)
}

// UploadDeleted says a file is gone; messages that use it keep a link to nothing.
type UploadDeleted struct {
	ID    int64
	Owner UserID
}

func (f *UploadDeleted) apply(r *Realm) {
	r.index.dropUpload(r.small.uploads.must(f.ID))
	r.small.uploads.remove(f.ID)
}

func (f *UploadDeleted) tell(r *Realm) []Notice {
	return r.uploadNotices(f.Owner, &AttachmentGone{f.ID, r.index.uploadBytes})
}

// AttachmentGone is the event attachment/remove, to the uploader.
type AttachmentGone struct {
	ID   int64
	Used int64
}

func (*AttachmentGone) EventType() string { return "attachment" }

func (*UploadSaved) keepsMarkdownConfig()   {}
func (*UploadDeleted) keepsMarkdownConfig() {}
