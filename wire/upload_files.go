package wire

import (
	"encoding/base64"
	"errors"
	"html"
	"io"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"parley/actors/realm"
)

var uploadEndpoints = []Endpoint{
	Custom("POST", "/user_uploads", upload).TakesFile(fileField{"*/*", MaxUploadBytes}),
	Custom("GET", "/user_uploads/{realm_id_str}/{filename:*}", temporaryURL).AllowVisitors().atOwner(),
	Get("/thumbnail/status/{realm_id_str}/{filename:*}", thumbnailStatus),
	Custom("GET", "/attachments", attachments),
	Custom("DELETE", "/attachments/{attachment_id}", deleteAttachment),
	Custom("POST", "/users/me/avatar", setAvatar).TakesFile(fileField{imageTypes, MaxAvatarBytes}),
	CommandFromCall("DELETE", "/users/me/avatar", func(c *Call, _ noParameters) (setAvatarCommand, error) {
		return setAvatarCommand{realm.SetAvatar{}, c.Site}, nil
	}, func(a *avatarAnswer) *avatarAnswer { return a }),
}

var uploadEvents = []EventKind{
	EventOneOf(func(e *realm.AttachmentChanged, _ *Recipient) any {
		fields := attachmentFields{newAttachment(e.Attachment), e.Used}
		if e.New {
			return &attachmentAddedEvent{attachmentFields: fields}
		}
		return &attachmentChangedEvent{attachmentFields: fields}
	}).sends(formOf[attachmentAddedEvent](), formOf[attachmentChangedEvent]()),
	Event(func(e *realm.AttachmentGone, _ *Recipient) *attachmentRemovedEvent {
		return &attachmentRemovedEvent{Attachment: removedAttachment{e.ID}, Used: e.Used}
	}),
	Event(func(e *realm.AvatarShown, to *Recipient) *personEvent[personAvatar] {
		return newPersonEvent(personAvatar{e.Person.ID, newAvatar(e.Person, to.Site)})
	}),
}

// uploadAnswer has the URL of a file; uri is the older name of url.
type uploadAnswer struct {
	URL  string `json:"url"`
	URI  string `json:"uri"`
	Name string `json:"filename"`
}

type temporaryURLAnswer struct {
	URL string `json:"url"`
}

type thumbnailAnswer struct {
	Made bool `json:"has_thumbnail"`
}

type attachmentsAnswer struct {
	Attachments listOf[attachmentJSON] `json:"attachments"`
	Used        int64                  `json:"upload_space_used"`
}

type avatarAnswer struct {
	URL string `json:"avatar_url"`
}

type attachmentJSON struct {
	ID       int64             `json:"id"`
	Name     string            `json:"name"`
	Path     string            `json:"path_id"`
	Size     int64             `json:"size"`
	Created  int64             `json:"create_time"`
	Messages []realm.MessageID `json:"message_ids"`
}

// attachmentFields is a file, and the bytes of all files of the organization.
type attachmentFields struct {
	Attachment attachmentJSON `json:"attachment"`
	Used       int64          `json:"upload_space_used"`
}

type attachmentAddedEvent struct {
	_ struct{} `const:"type=attachment op=add"`
	attachmentFields
}

type attachmentChangedEvent struct {
	_ struct{} `const:"type=attachment op=update"`
	attachmentFields
}

type attachmentRemovedEvent struct {
	_          struct{}          `const:"type=attachment op=remove"`
	Attachment removedAttachment `json:"attachment"`
	Used       int64             `json:"upload_space_used"`
}

type removedAttachment struct {
	ID int64 `json:"id"`
}

// avatarFields is the picture of a user as in events.
type avatarFields struct {
	Source  string `json:"avatar_source"`
	URL     string `json:"avatar_url"`
	Medium  string `json:"avatar_url_medium"`
	Version int    `json:"avatar_version"`
}

type personAvatar struct {
	ID realm.UserID `json:"user_id"`
	avatarFields
}

// Size limits of files in bytes; registrations tell clients in MiB. Uploads are written to disk while they arrive.
// Avatars and emoji images are held in memory twice: in the request body and in the parsed form. The server bounds
// all bodies together (total_body_bytes). Saving a picture makes no further copy.
const (
	MaxUploadBytes = 100 << 20
	MaxAvatarBytes = 5 << 20
)

// imageTypes are the image formats that the server decodes.
const imageTypes = "image/png, image/jpeg, image/gif, image/webp, image/bmp"

// File is one file of a multipart body.
type File struct {
	Name    string
	Claimed string // the content type that the client sent; only refusals depend on it
	Size    int64  // in bytes; -1 if unknown before reading
	Open    func() (io.ReadCloser, error)
}

// Files stores uploaded files and pictures.
type Files interface {
	// SaveUpload writes a file of an organization and returns when it is on disk. The content is kept at least until
	// Release.
	SaveUpload(id realm.ID, r io.Reader, limit int64) (SavedFile, error)
	// Release ends the protection that SaveUpload began. If used is not nil, it reports whether a row refers to the
	// content; unused content is deleted.
	Release(hash string, used func() (bool, error)) error
	// Begin creates a resumable upload and Unfinished returns one of a user's own. Append writes bytes at an offset.
	// Finish turns the upload into content and stores the answer of note, which must call Release. Abandon deletes it.
	Begin(id realm.ID, u UnfinishedUpload) (UnfinishedUpload, error)
	Unfinished(id realm.ID, owner realm.UserID, name string) (UnfinishedUpload, bool)
	Announced(id realm.ID) int64 // total size of unfinished uploads, in bytes
	Append(name string, offset int64, r io.Reader) (UnfinishedUpload, error)
	Finish(name string, record func(SavedFile) (answer string, err error)) (UnfinishedUpload, error)
	Abandon(name string) error
	// Thumbnail returns the path of an image's thumbnail and makes it if necessary. ErrNotAnImage and ErrTooManyPixels
	// are permanent.
	Thumbnail(id realm.ID, hash string, animated bool) (path string, err error)
	// Still returns the path of the first frame of a GIF in original size; otherwise it is like Thumbnail.
	Still(id realm.ID, hash string) (path string, err error)
	// SaveAvatar and SaveLogo write a picture in its display sizes. The picture stays at least until Release.
	SaveAvatar(id realm.ID, r io.Reader, limit int64) (name string, err error)
	SaveLogo(id realm.ID, r io.Reader, limit int64) (name string, err error)
	// Remove deletes content unless used reports true, or the same content is being saved.
	Remove(hash string, used func() (bool, error)) error
	RemoveExport(name string) error
}

// SavedFile describes a stored file.
type SavedFile struct {
	Hash          string // hash of the content and the organization; the name of the file
	Size          int64
	Type          string // detected from the content, never taken from the client
	Width, Height int    // of an image in pixels, else 0
	Animated      bool   // has several frames
}

// The errors of Files that are caused by the file.
var (
	ErrFileTooLarge  = errors.New("file too large")
	ErrNotAnImage    = errors.New("not an image")
	ErrTooManyPixels = errors.New("image has too many pixels")
)

// ErrNoSpace is the refusal of files while the disk is almost full. Messages can still be sent.
var ErrNoSpace = realm.Refuse(realm.NoSpace, "INSUFFICIENT_STORAGE",
	"The server's disk is almost full. Files cannot be stored until its operator makes space.")

// ErrFilesUnavailable is the refusal of files while they are on another machine that cannot be reached or is busy.
var ErrFilesUnavailable = realm.Refuse(realm.Busy, "FILES_UNAVAILABLE",
	"Files cannot be stored or read at the moment; try again later.")

// InfectedFile is the refusal of a file in which the virus scanner has found something.
func InfectedFile(virus string) error {
	return realm.BadRequest("This file cannot be uploaded: the virus scanner found %s.", virus)
}

// ErrFileNotScanned and ErrFileNeverScanned are the refusals of files that the virus scanner could not examine.
var (
	ErrFileNotScanned = realm.Refuse(realm.Busy, "FILES_UNAVAILABLE",
		"Files cannot be examined for viruses at the moment; try again later.")
	ErrFileNeverScanned = realm.BadRequest("This file is too large to be examined for viruses.")
)

// ErrFileElsewhere is the refusal of a file that is only on the disk of another server of the cluster.
var ErrFileElsewhere = realm.Refuse(realm.Busy, "FILES_UNAVAILABLE",
	"This file is on another server of the cluster and cannot be read at the moment; try again later.")

// IsTemporaryFileError reports whether a file may be readable later: the client gets the refusal and tries again.
func IsTemporaryFileError(err error) bool {
	return errors.Is(err, ErrNoSpace) || errors.Is(err, ErrFilesUnavailable) || errors.Is(err, ErrFileElsewhere)
}

// refusalOfPicture is refusalOfFile for the only file of a request, which must be a picture. A file that the client
// calls an image could not be decoded; any other has the wrong format (protocol).
func refusalOfPicture(c *Call, err error, megabytes int) error {
	if files, _ := c.Files(); errors.Is(err, ErrNotAnImage) && len(files) > 0 &&
		strings.HasPrefix(files[0].Claimed, "image/") {
		return realm.Refuse(realm.Invalid, "BAD_IMAGE", "Could not decode image; did you upload an image file?")
	}
	return refusalOfFile(err, megabytes)
}

// refusalOfFile converts an error of Files to the refusal of the protocol.
func refusalOfFile(err error, megabytes int) error {
	switch {
	case errors.Is(err, ErrFileTooLarge):
		return realm.BadRequest("Uploaded file is larger than the allowed limit of %d MiB", megabytes)
	case errors.Is(err, ErrNotAnImage):
		return realm.Refuse(realm.Invalid, "BAD_IMAGE", "Invalid image format")
	case errors.Is(err, ErrThumbnailsBusy):
		return realm.Refuse(realm.Busy, "BAD_REQUEST", "Server is busy")
	case errors.Is(err, ErrTooManyPixels):
		return realm.Refuse(realm.Invalid, "BAD_IMAGE", "Image size exceeds limit")
	}
	return err
}

// openPicture is openSingleFile for pictures. An empty file counts as none.
func openPicture(c *Call, missing, several string) (name string, r io.ReadCloser, err error) {
	if files, err := c.Files(); err == nil && len(files) > 0 && files[0].Size == 0 {
		return "", nil, realm.BadRequest("%s", missing)
	}
	return openSingleFile(c, missing, several)
}

// openSingleFile opens the only file of a request, under any field name. The caller closes it.
func openSingleFile(c *Call, missing, several string) (name string, r io.ReadCloser, err error) {
	files, err := c.Files()
	if err != nil {
		return "", nil, err
	}
	if len(files) == 0 {
		return "", nil, realm.BadRequest("%s", missing)
	}
	if len(files) > 1 {
		return "", nil, realm.BadRequest("%s", several)
	}
	r, err = files[0].Open()
	return decodedFileName(files[0].Name), r, err
}

// decodedFileName decodes a file name. Some clients escape special characters in multipart headers as HTML or as URLs
// do.
func decodedFileName(name string) string {
	name = html.UnescapeString(name)
	if plain, err := url.PathUnescape(name); err == nil {
		return plain
	}
	return name
}

const (
	missingFile  = "You must specify a file to upload"
	tooManyFiles = "You may only upload one file at a time"
)

func upload(c *Call, _ noParameters) (*uploadAnswer, error) {
	name, r, err := openSingleFile(c, missingFile, tooManyFiles)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	saved, err := c.Tools.Files.SaveUpload(c.Realm, r, MaxUploadBytes)
	if err != nil {
		return nil, refusalOfFile(err, MaxUploadBytes>>20)
	}
	u, err := recordUpload(c, name, saved)
	if err != nil {
		return nil, err
	}
	return newUploadAnswer(u), nil
}

func newUploadAnswer(u realm.Upload) *uploadAnswer {
	address := "/user_uploads/" + u.Path
	return &uploadAnswer{address, address, u.Name}
}

// recordUpload creates the row of a stored file. If that is refused, the file is deleted.
func recordUpload(c *Call, name string, x SavedFile) (realm.Upload, error) {
	u, err := Execute(c, saveUploadCommand(c, name, x))
	if err == nil {
		c.requestThumbnail(u)
	}
	return u, errors.Join(err, c.releaseUpload(x.Hash, err))
}

// saveUploadCommand returns the command that creates the row of a stored file.
func saveUploadCommand(c *Call, name string, x SavedFile) realm.SaveUpload {
	return realm.SaveUpload{Name: name, Type: x.Type, Hash: x.Hash, Size: x.Size, Width: x.Width, Height: x.Height,
		Animated: x.Animated, Quota: c.Tools.UploadQuota, UserQuota: c.Tools.UserQuota}
}

// releaseUpload ends the protection that SaveUpload began. If no row refers to the content, it is deleted.
func (c *Call) releaseUpload(hash string, err error) error {
	if err == nil {
		return c.Tools.Files.Release(hash, nil)
	}
	return c.Tools.Files.Release(hash, c.usesContent(hash))
}

// usesContent returns a function that asks the realm whether a row refers to the content.
func (c *Call) usesContent(hash string) func() (bool, error) {
	return func() (bool, error) {
		system := *c // whether content is in use does not depend on the caller, who may have lost access
		system.Caller = realm.Caller{System: true, Client: c.Caller.Client}
		return Read(&system, func(v realm.View) (bool, error) { return v.ContentInUse(hash), nil })
	}
}

type uploadPathForm struct {
	Realm string `path:"realm_id_str"`
	Path  string `path:"filename"`
}

// temporaryURLValidity is how long a URL without login works.
const temporaryURLValidity = time.Minute

func temporaryURL(c *Call, f uploadPathForm) (*temporaryURLAnswer, error) {
	u, err := Read(c, func(v realm.View) (realm.Upload, error) { return visibleUpload(v, f) })
	if err != nil {
		return nil, err
	}
	token := SignUploadToken(c.Tools, c.Realm, u.Path, time.Now().Add(temporaryURLValidity))
	return &temporaryURLAnswer{"/user_uploads/temporary/" + token + "/" + path.Base(u.Path)}, nil
}

func visibleUpload(v realm.View, f uploadPathForm) (realm.Upload, error) {
	u, ok := v.VisibleUpload(f.Realm + "/" + f.Path)
	if !ok && v.Me() == nil { // without a login, the answer must not tell whether the file exists
		return u, realm.Refuse(realm.Unauthenticated, "UNAUTHORIZED",
			"Not logged in: API authentication or user session required")
	}
	if !ok {
		return u, realm.Refuse(realm.NotFound, "BAD_REQUEST", "File not found")
	}
	return u, nil
}

// SignUploadToken returns a token that grants access to one file until a time.
func SignUploadToken(t *Tools, id realm.ID, path string, until time.Time) string {
	text := strconv.FormatInt(until.Unix(), 36) + " " + strconv.Itoa(int(id)) + " " + path
	return base64.RawURLEncoding.EncodeToString([]byte(text)) + "." + t.Sign(text)
}

// VerifyUploadToken checks a token of SignUploadToken and returns the organization and path of the file.
func VerifyUploadToken(t *Tools, token string, now time.Time) (realm.ID, string, bool) {
	body, mac, _ := strings.Cut(token, ".")
	text, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil || !t.VerifySignature(string(text), mac) {
		return 0, "", false
	}
	parts := strings.SplitN(string(text), " ", 3)
	until, err1 := strconv.ParseInt(parts[0], 36, 64)
	if len(parts) != 3 || err1 != nil || now.Unix() > until {
		return 0, "", false
	}
	id, err := strconv.Atoi(parts[1])
	return realm.ID(id), parts[2], err == nil
}

func thumbnailStatus(c *Call, v realm.View, f uploadPathForm) (*thumbnailAnswer, error) {
	u, err := visibleUpload(v, f)
	if err != nil {
		return nil, err
	}
	return &thumbnailAnswer{u.Thumbnail == realm.ThumbnailMade}, nil
}

func newAttachment(d realm.DetachedUpload) attachmentJSON {
	return attachmentJSON{d.ID, d.Name, d.Path, d.Size, d.Created, d.Messages}
}

// MaxListedUploads is how many of a user's uploads one answer has, the newest ones: about 5 MB. Nothing else limits the
// number of small files.
const MaxListedUploads = 20_000

func attachments(c *Call, _ noParameters) (*attachmentsAnswer, error) {
	var used int64
	list, err := Read(c, func(v realm.View) (list []realm.DetachedUpload, _ error) {
		list, used = v.UploadsOf(v.User, MaxListedUploads)
		return list, nil
	})
	if err != nil {
		return nil, err
	}
	out := newEncodedList(c)
	for _, d := range list {
		if err := out.add(newAttachment(d)); err != nil {
			return nil, err
		}
	}
	return &attachmentsAnswer{listOf[attachmentJSON]{out.elements()}, used}, nil
}

type attachmentForm struct {
	ID int64 `path:"attachment_id"`
}

func deleteAttachment(c *Call, f attachmentForm) (noFields, error) {
	hash, err := Execute(c, realm.DeleteUpload{ID: f.ID})
	if err == nil && hash != "" {
		err = c.Tools.Files.Remove(hash, c.usesContent(hash))
	}
	return noFields{}, err
}

// setAvatarCommand is realm.SetAvatar with an answer that contains the new URL.
type setAvatarCommand struct {
	realm.SetAvatar
	site Site
}

func (a setAvatarCommand) Decide(t *realm.Turn) (*avatarAnswer, error) {
	p, err := a.SetAvatar.Decide(t)
	if err != nil {
		return nil, err
	}
	return &avatarAnswer{ownAvatarURL(p, a.site)}, nil
}

func newAvatar(p realm.UserInfo, s Site) avatarFields {
	url := ownAvatarURL(p, s)
	return avatarFields{p.Avatar, url, strings.Replace(url, ".png", "-medium.png", 1), p.AvatarVersion}
}

func setAvatar(c *Call, _ noParameters) (*avatarAnswer, error) {
	// The permission is checked first, because decoding a picture is expensive.
	err := checkPermission(c, func(v realm.View) error {
		_, err := v.MayChangeAvatar()
		return err
	})
	if err != nil {
		return nil, err
	}
	const one = "You must upload exactly one avatar."
	return withSavedAvatar(c, one, one, func(file string) (*avatarAnswer, error) {
		return Execute(c, setAvatarCommand{realm.SetAvatar{File: file}, c.Site})
	})
}

// withSavedAvatar stores the only picture of a request, calls use with its name and releases it.
func withSavedAvatar[A any](c *Call, missing, several string, use func(file string) (A, error)) (a A, err error) {
	_, r, err := openPicture(c, missing, several)
	if err != nil {
		return a, err
	}
	defer r.Close()
	name, err := c.Tools.Files.SaveAvatar(c.Realm, r, MaxAvatarBytes)
	if err != nil {
		return a, refusalOfPicture(c, err, MaxAvatarBytes>>20)
	}
	a, err = use(name)
	return a, errors.Join(err, c.Tools.Files.Release(name, nil))
}
