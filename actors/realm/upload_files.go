package realm

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/actors/realm/ids"
)

// Upload is the row of one uploaded file. The content is stored outside the realm, under its hash.
type Upload struct {
	ID int64
	// Path is the end of the file's URL: the realm, a random part, and the name. The random part keeps the URL from
	// being guessed.
	Path          string
	Name          string // as the owner sees it
	Owner         UserID
	Size          int64
	Type          string // content type detected from the content
	Hash          string // of the content, hexadecimal: the name of the file on disk
	Created       int64
	Width, Height int
	Animated      bool           // has more than one frame
	Thumbnail     ThumbnailState // of an image
}

// ThumbnailState says whether an image has a thumbnail.
type ThumbnailState uint8

const (
	ThumbnailWanted ThumbnailState = iota
	ThumbnailMade
	ThumbnailImpossible // the image is broken, too large or of an unsupported kind
)

// maxFileName is the maximum length of an uploaded file's name in code points.
const maxFileName = 255

// SaveUpload asks to record a file whose content is already written.
type SaveUpload struct {
	Name, Type, Hash string
	Size             int64
	Width, Height    int
	Animated         bool
	Quota            int64 // maximum total size of the organization's files in bytes, 0: none
	UserQuota        int64 // the same of the owner's files
}

func (c SaveUpload) Decide(t *Turn) (Upload, error) {
	me := t.Me()
	if me == nil {
		return Upload{}, errNotMember()
	}
	return c.save(t, me.ID)
}

// save records the file for its owner.
func (c SaveUpload) save(t *Turn, owner UserID) (Upload, error) {
	if err := t.CheckUploadQuota(c.Size, c.Quota); err != nil {
		return Upload{}, err
	}
	if err := t.CheckUserQuota(owner, c.Size, c.UserQuota); err != nil {
		return Upload{}, err
	}
	name := cleanFileName(c.Name)
	path := strconv.Itoa(int(t.ID())) + "/" + t.Token(2) + "/" + t.Token(24) + "/" + urlFileName(name)
	u := Upload{
		ID: t.nextID("upload"), Path: path, Name: name, Owner: owner, Size: c.Size, Type: c.Type, Hash: c.Hash,
		Created: t.Now, Width: c.Width, Height: c.Height, Animated: c.Animated,
	}
	t.Record(&UploadSaved{u})
	t.warnOfQuotas(&u, c.Quota, c.UserQuota)
	return u, nil
}

// quotaWarning is from which part of a quota on, in percent, users get a message about it.
const quotaWarning = 80

// warnOfQuotas sends a message to the owner of a new file, and to owners of the organization, if their quota has become
// almost full by it.
func (t *Turn) warnOfQuotas(u *Upload, quota, userQuota int64) {
	begins := func(used, quota int64) bool {
		mark := quota / 100 * quotaWarning
		return quota > 0 && used >= mark && used-u.Size < mark
	}
	if used := t.index.uploadBytesOf[u.Owner]; begins(used, userQuota) {
		t.NotifyUsers(fmt.Sprintf("Your uploaded files take %d %% of your %d MiB. Delete files that you do not need "+
			"in the [list of your files](#settings/uploaded-files).", used*100/userQuota, userQuota>>20), u.Owner)
	}
	if used := t.index.uploadBytes + t.small.archiveIndex.fileBytes; begins(used, quota) {
		for _, id := range t.activeOwners(maxOwnersNotified) {
			t.NotifyUsers(fmt.Sprintf("The uploaded files of this organization take %d %% of its %d MiB. Uploads are "+
				"refused when they are full.", used*100/quota, quota>>20), id)
		}
	}
}

// CheckUploadQuota refuses bytes if the organization's files, with those in the archive, would exceed the quota. Quota
// 0 means no limit.
func (v View) CheckUploadQuota(bytes, quota int64) error {
	if quota > 0 && v.index.uploadBytes+v.small.archiveIndex.fileBytes+bytes > quota {
		return Refuse(Invalid, "REALM_UPLOAD_QUOTA", "Upload would exceed your organization's upload quota.")
	}
	return nil
}

// CheckUserQuota refuses bytes if the files of their owner would exceed the quota. Quota 0 means no limit.
func (v View) CheckUserQuota(owner UserID, bytes, quota int64) error {
	if quota > 0 && v.index.uploadBytesOf[owner]+bytes > quota {
		return Refuse(Invalid, "REALM_UPLOAD_QUOTA", "Upload would exceed your quota of uploaded files.")
	}
	return nil
}

// cleanFileName returns a file's name without folders and without unprintable characters, at most maxFileName long. It
// keeps a short extension.
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

// defaultFileName is the name of a file that came without a usable name.
const defaultFileName = "uploaded-file"

// urlFileName returns a file's name as it appears in its URL: letters, digits, underscores and dots. A run of spaces
// and dashes becomes one dash; other characters are dropped. Such a name needs no escaping in URLs and Markdown.
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

// UploadSaved says that a file was uploaded.
type UploadSaved struct{ Upload Upload }

func (f *UploadSaved) apply(r *Realm) {
	u := f.Upload
	r.reserveID("upload", u.ID)
	r.small.uploads.put(u.ID, &u)
	r.index.addUpload(&u)
}

// addUpload adds a file to the indexes.
func (x *indexes) addUpload(u *Upload) {
	x.uploadByPath[u.Path] = u.ID
	x.uploadsWithHash[u.Hash]++
	x.uploadBytes += u.Size
	x.uploadBytesOf[u.Owner] += u.Size
}

// dropUpload removes a file from the indexes.
func (x *indexes) dropUpload(u *Upload) {
	delete(x.uploadByPath, u.Path)
	if x.uploadsWithHash[u.Hash]--; x.uploadsWithHash[u.Hash] == 0 {
		delete(x.uploadsWithHash, u.Hash)
	}
	x.uploadBytes -= u.Size
	if x.uploadBytesOf[u.Owner] -= u.Size; x.uploadBytesOf[u.Owner] == 0 {
		delete(x.uploadBytesOf, u.Owner)
	}
}

func (f *UploadSaved) notices(r *Realm) []Notice {
	return r.uploadNotices(f.Upload.Owner, &AttachmentChanged{
		Attachment: r.attachmentInfo(r.small.uploads.must(f.Upload.ID)), New: true, Used: r.index.uploadBytes,
	})
}

// uploadNotices returns a notice of the event for the owner, if connected.
func (r *Realm) uploadNotices(owner UserID, e Event) []Notice {
	if to := r.usersAudience(owner); len(to) > 0 {
		return []Notice{{To: to, Event: e}}
	}
	return nil
}

// attachmentInfo returns an upload with the messages that use it.
func (r *Realm) attachmentInfo(u *Upload) DetachedUpload {
	d := DetachedUpload{ID: u.ID, Name: u.Name, Path: u.Path, Size: u.Size, Created: u.Created, Messages: []MessageID{}}
	if s := r.index.messagesWithFile[u.Path]; s != nil {
		d.Messages = ids.IDs[MessageID](*s)
	}
	return d
}

// AttachmentChanged is the events attachment/add and attachment/update, for the uploader.
type AttachmentChanged struct {
	Attachment DetachedUpload
	New        bool
	Used       int64 // total size of the organization's files in bytes
}

func (*AttachmentChanged) EventType() string { return "attachment" }

// attachmentUseNotices returns events for the uploaders of files that messages started or stopped using.
func (r *Realm) attachmentUseNotices(paths []string) (out []Notice) {
	for _, p := range slices.Compact(slices.Sorted(slices.Values(paths))) {
		if u := r.findUpload(p); u != nil {
			out = append(out, r.uploadNotices(u.Owner, &AttachmentChanged{
				Attachment: r.attachmentInfo(u), Used: r.index.uploadBytes,
			})...)
		}
	}
	return out
}

// findUpload returns the file with that path, or nil.
func (r *Realm) findUpload(path string) *Upload {
	if id, ok := r.index.uploadByPath[path]; ok {
		return r.small.uploads.find(id)
	}
	return nil
}

// VisibleUpload returns an uploaded file, and whether the caller may see it.
func (v View) VisibleUpload(path string) (Upload, bool) {
	u := v.findUpload(path)
	if u == nil {
		return Upload{}, false
	}
	return *u, v.System || v.maySeeUpload(v.Me(), u)
}

// maySeeUpload reports whether a file belongs to the user or is used by a message the user may read. me is nil for
// logged-out visitors.
func (v View) maySeeUpload(me *User, u *Upload) bool {
	used := v.index.messagesWithFile[u.Path]
	// A key that is limited to channels sees the account's own files only until they are used elsewhere.
	if me != nil && u.Owner == me.ID && (!v.scope.Limited() || used == nil || used.Empty()) {
		return true
	}
	seen := false
	if used != nil {
		used.Each(func(id int64) bool {
			if m := v.message(MessageID(id)); m != nil && v.mayRead(me, MessageID(id), m) && v.messageInScope(m) {
				seen = true
			}
			return !seen
		})
	}
	return seen
}

// visibleAttachments returns those of the files that a message by this author shares with its readers: the files the
// author may see. Otherwise a user who knows a file's URL, for example from a channel they left, could open the file by
// sending a message with the URL.
func (t *Turn) visibleAttachments(me *User, paths []string) (out []string) {
	for _, p := range paths {
		if _, archived := t.small.archiveIndex.uploads[p]; archived {
			continue // it would be shared with the readers of this message once it is restored
		}
		if u := t.findUpload(p); u == nil || t.maySeeUpload(me, u) {
			out = append(out, p)
		}
	}
	return out
}

// RenderableUpload returns what rendering needs to know of a file, and whether the caller may see a preview of it.
func (v View) RenderableUpload(path string) (UploadInfo, bool) {
	u, ok := v.VisibleUpload(path)
	ok = ok && u.Thumbnail != ThumbnailImpossible
	return UploadInfo{
		Type: u.Type, Width: u.Width, Height: u.Height, Thumbnailed: u.Thumbnail == ThumbnailMade,
		Animated: u.Animated,
	}, ok
}

// ThumbnailsWanted returns the images without a thumbnail, newest first.
func (v View) ThumbnailsWanted() (out []Upload) {
	keys := v.small.uploads.keys()
	for _, id := range slices.Backward(keys) {
		if u := v.small.uploads.find(id); u.Thumbnail == ThumbnailWanted && u.Width > 0 {
			out = append(out, *u)
		}
	}
	return out
}

// TextsUsing returns references to the newest texts that use a file, at most limit of them.
func (v View) TextsUsing(path string, limit int) (out []BodyRef) {
	s := v.index.messagesWithFile[path]
	if s == nil {
		return nil
	}
	ids := ids.IDs[MessageID](*s)
	for _, id := range ids[max(0, len(ids)-limit):] {
		if v.message(id) != nil {
			out = append(out, v.NewestText(id))
		}
	}
	return out
}

// NewestText returns a reference to the current text of a message.
func (v View) NewestText(id MessageID) BodyRef {
	return BodyRef{Message: id, Version: v.extraOrEmpty(id).Version}
}

// SetThumbnailState asks to record the result of making a thumbnail. It does nothing if the file no longer exists.
type SetThumbnailState struct {
	Upload int64
	State  ThumbnailState
}

func (c SetThumbnailState) Decide(t *Turn) (Done, error) {
	u := t.small.uploads.find(c.Upload)
	if u == nil || u.Thumbnail == c.State || !t.System {
		return Done{}, nil
	}
	t.Record(&ThumbnailStateChanged{c.Upload, c.State})
	return Done{}, nil
}

// ThumbnailStateChanged says whether an image has a thumbnail now.
type ThumbnailStateChanged struct {
	Upload int64
	State  ThumbnailState
}

func (f *ThumbnailStateChanged) apply(r *Realm)            { r.small.uploads.change(f.Upload).Thumbnail = f.State }
func (f *ThumbnailStateChanged) notices(r *Realm) []Notice { return nil }

// UploadsOf returns at most max of a user's files, the newest ones, oldest first, and the total size of the
// organization's files in bytes.
func (r *Realm) UploadsOf(u UserID, max int) (list []DetachedUpload, bytes int64) {
	list = []DetachedUpload{}
	for _, id := range slices.Backward(r.small.uploads.keys()) {
		if x := r.small.uploads.find(id); x.Owner == u {
			if list = append(list, r.attachmentInfo(x)); len(list) == max {
				break
			}
		}
	}
	slices.Reverse(list)
	return list, r.index.uploadBytes
}

// detachedUploads returns the user's uploads that only this message uses, and that it will no longer use once it has
// these attachments.
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

// DeleteUpload asks to delete one of the caller's files. The answer is the hash of the content if nothing uses it any
// more, else "".
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

// ContentInUse reports whether an upload, archived or not, or a custom emoji has this content.
func (v View) ContentInUse(hash string) bool {
	return v.index.uploadsWithHash[hash] > 0 || v.small.archiveIndex.withHash[hash] > 0 || v.emojiUsesFile(hash)
}

// UploadDeleted says that a file was deleted. Messages that use it keep a broken link.
type UploadDeleted struct {
	ID    int64
	Owner UserID
}

func (f *UploadDeleted) apply(r *Realm) {
	r.index.dropUpload(r.small.uploads.must(f.ID))
	r.small.uploads.remove(f.ID)
}

func (f *UploadDeleted) notices(r *Realm) []Notice {
	return r.uploadNotices(f.Owner, &AttachmentGone{f.ID, r.index.uploadBytes})
}

// AttachmentGone is the event attachment/remove, for the uploader.
type AttachmentGone struct {
	ID   int64
	Used int64
}

func (*AttachmentGone) EventType() string { return "attachment" }
