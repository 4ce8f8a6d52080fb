package wire

import (
	"cmp"
	"encoding/base64"
	"errors"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/actors/realm"
	"parley/wire/form"
	"parley/wire/shape"
)

// Resumable uploads implement tus 1.0 with the extensions below. The web client uploads all files this way. The answer
// to the last piece is the same JSON as for a plain upload.
const (
	tusVersion    = "1.0.0"
	tusExtensions = "creation,creation-with-upload,termination,expiration"
	// PieceType is the content type of a request body that is a piece of a file.
	PieceType = "application/offset+octet-stream"
)

// laterUploadStep is why the endpoints besides POST /tus exist.
const laterUploadStep = "a later step of a resumable upload; the description has only the first"

var resumableEndpoints = []Endpoint{
	resumableEndpoint("OPTIONS", "/tus", tusOptions, tusSuccess{204, "The capabilities of the server.",
		[]string{"Tus-Version", "Tus-Extension", "Tus-Max-Size"}, nil}).withoutLogin().extension(laterUploadStep),
	resumableEndpoint("OPTIONS", "/tus/{upload}", tusOptionsOfOne,
		tusSuccess{204, "The capabilities of the server.", []string{"Tus-Version", "Tus-Extension", "Tus-Max-Size"},
			nil}).withoutLogin().extension(laterUploadStep),
	resumableEndpoint("POST", "/tus", beginUpload, tusSuccess{201,
		"The upload was created. If it is complete, the answer has the URL of the file.",
		[]string{"Location", "Upload-Offset", "Upload-Expires"}, begunUpload{}}).
		takesPiece("The file or its first piece."),
	resumableEndpoint("HEAD", "/tus/{upload}", getUploadOffset,
		tusSuccess{200, "The offset of the upload.", []string{"Upload-Offset", "Upload-Length", "Upload-Expires"},
			nil}).
		extension(laterUploadStep),
	resumableEndpoint("GET", "/tus/{upload}", getUploadResult,
		tusSuccess{200, "The repeated answer of a finished upload.", []string{"Upload-Offset", "Upload-Expires"},
			uploadAnswer{}}).atOwner().extension(laterUploadStep),
	resumableEndpoint("PATCH", "/tus/{upload}", appendToUpload,
		tusSuccess{204, "The piece is stored; the file is not complete.", []string{"Upload-Offset", "Upload-Expires"},
			nil},
		tusSuccess{200, "The file is complete.", []string{"Upload-Offset", "Upload-Expires"}, uploadAnswer{}}).
		takesPiece("A piece of the file.").extension(laterUploadStep),
	resumableEndpoint("DELETE", "/tus/{upload}", cancelUpload, tusSuccess{204, "The upload was deleted.", nil, nil}).
		extension(laterUploadStep),
}

// begunUpload has the URL of a file that one request uploads completely.
type begunUpload struct {
	URL  string `json:"url,omitzero"`
	URI  string `json:"uri,omitzero"`
	Name string `json:"filename,omitzero"`
}

// RawAnswer is a success of another protocol: a status, headers, and JSON that can be empty.
type RawAnswer struct {
	Status  int
	Headers [][2]string
	JSON    string
}

// tusSuccess is one possible success of an endpoint with raw answers. Its headers are always present. body is a
// value of the struct with the JSON fields besides the envelope; nil: there is no body.
type tusSuccess struct {
	status      int
	description string
	headers     []string
	body        any
}

// tusDescription is the part of an Endpoint that only resumable uploads have.
type tusDescription struct {
	successes []tusSuccess
	body      string // describes the request body; "" if there is none
}

// resumableEndpoint is an endpoint of resumable uploads. Its parameters are headers.
func resumableEndpoint[F any](
	method, path string, run func(*Call, F) (RawAnswer, error), successes ...tusSuccess,
) Endpoint {
	f := form.Of[F]()
	versioned := slices.ContainsFunc(f.Describe(), func(p form.Param) bool { return p.Name == tusHeader })
	return Endpoint{
		Method: method,
		Path:   path,
		Form:   f,
		name:   method + " " + path,
		tus:    &tusDescription{successes: successes},
		run: func(c *Call) (any, error) {
			if v, _ := c.Params.Header(tusHeader); versioned && v != tusVersion {
				return nil, errTusVersion
			}
			in, err := decodeForm[F](c, f)
			if err != nil {
				return nil, err
			}
			return run(c, in)
		},
	}
}

func (e Endpoint) takesPiece(content string) Endpoint { e.tus.body = content; return e }

// Resumable reports whether this is an endpoint of resumable uploads, whose answers follow tus.
func (e *Endpoint) Resumable() bool { return e.tus != nil }

// RateLimited reports whether the request counts towards the caller's rate limit. Pieces do not count, because a
// client can split a file into many pieces.
func (e *Endpoint) RateLimited() bool { return e.tus == nil || e.Method == "POST" }

// TusSuccessShape returns the shape of a success with this status. body is nil if the answer has no body.
func (e *Endpoint) TusSuccessShape(status int) (body *shape.Shape, ok bool) {
	if e.tus == nil {
		return nil, false
	}
	i := slices.IndexFunc(e.tus.successes, func(s tusSuccess) bool { return s.status == status })
	if i < 0 {
		return nil, false
	}
	return e.tus.successes[i].shape(), true
}

// shape returns the shape of the body, nil if there is none.
func (s *tusSuccess) shape() *shape.Shape {
	if s.body == nil {
		return nil
	}
	return shape.Merge(formOf[envelope](), shape.Of(reflect.TypeOf(s.body)))
}

// Failure returns the status and body for an error of this endpoint.
func (e *Endpoint) Failure(err error) (int, []byte) {
	if e.tus == nil {
		return Failure(err)
	}
	return resumableFailure(err)
}

const tusHeader = "Tus-Resumable"

// TusHeaders are the headers of every answer of resumable uploads. They allow requests from pages of any site.
var TusHeaders = [][2]string{
	{"Access-Control-Allow-Headers",
		"Authorization, Content-Type, Tus-Resumable, Upload-Length, Upload-Metadata, Upload-Offset, " +
			"X-HTTP-Method-Override, X-Requested-With"},
	{"Access-Control-Expose-Headers",
		"Location, Tus-Extension, Tus-Max-Size, Tus-Resumable, Tus-Version, Upload-Expires, Upload-Length, " +
			"Upload-Metadata, Upload-Offset"},
	{tusHeader, tusVersion},
	{"Tus-Version", tusVersion}, // for clients that use another version
	{"X-Content-Type-Options", "nosniff"},
}

var tusCapabilities = [][2]string{{"Tus-Extension", tusExtensions}, {"Tus-Max-Size", strconv.Itoa(MaxUploadBytes)}}

// UnfinishedUpload is a resumable upload in progress. Only its owner can use it, until it expires.
type UnfinishedUpload struct {
	ID           string
	Owner        realm.UserID
	Name         string
	Metadata     string // the Upload-Metadata header, unchanged
	Size, Offset int64  // in bytes: the whole file, and the received part
	Expires      int64  // Unix seconds
	Answer       string // the JSON answer of the finished upload
}

// The errors of Files and of requests about unfinished uploads.
var (
	ErrNoUpload       = errors.New("no such upload")
	ErrUploadOffset   = errors.New("upload has another offset")
	ErrUploadBusy     = errors.New("upload is being written to")
	ErrTooManyUploads = errors.New("too many unfinished uploads")

	errTusVersion = errors.New("unsupported version of tus")
	errPieceType  = errors.New("content type is not that of a piece")
)

// resumableFailure returns the status and body for a failed request of a resumable upload. tus uses other statuses
// than the rest of the protocol, and its clients read the field message.
func resumableFailure(err error) (status int, body []byte) {
	var r *realm.Refusal
	var f *form.Error
	code, msg, fields := "BAD_REQUEST", "", map[string]any{}
	switch {
	case errors.Is(err, ErrNoUpload):
		status, msg = 404, "Upload not found"
	case errors.Is(err, ErrUploadOffset):
		status, msg = 409, "Mismatched offset"
	case errors.Is(err, ErrUploadBusy):
		status, msg = 423, "Upload is currently locked"
	case errors.Is(err, ErrTooManyUploads):
		status, msg = 429, "Too many unfinished uploads"
	case errors.Is(err, ErrFileTooLarge):
		status, msg = 413, "Maximum upload size exceeded"
	case errors.Is(err, errTusVersion):
		status, msg = 412, "Unsupported tus version"
	case errors.Is(err, errPieceType):
		status, msg = 415, "Content-Type must be "+PieceType
	case errors.As(err, &f):
		status, code, msg = 400, f.Code, f.Msg
		maps.Copy(fields, f.Fields)
	case errors.As(err, &r):
		status, code, msg = statusOfKind[r.Kind], r.Code, r.Msg
		maps.Copy(fields, r.Data)
		if r.Code == "REALM_UPLOAD_QUOTA" {
			status = 413
		}
	default:
		status, code, msg = 500, "", "Internal server error"
	}
	fields["message"] = msg
	return status, errorBody(code, msg, fields)
}

type tusOptionsForm struct {
	Upload string `path:"upload"`
}

func tusOptions(*Call, noParameters) (RawAnswer, error) {
	return RawAnswer{Status: 204, Headers: tusCapabilities}, nil
}

func tusOptionsOfOne(*Call, tusOptionsForm) (RawAnswer, error) {
	return RawAnswer{Status: 204, Headers: tusCapabilities}, nil
}

// beginUploadForm bounds the metadata of a file, its name and type, in bytes.
type beginUploadForm struct {
	Tus      string `header:"Tus-Resumable,required,in=1.0.0"`
	Size     int64  `header:"Upload-Length,required,min=0"`
	Metadata string `header:"Upload-Metadata,maxlen=4096"`
	// Part is set for files that are joined from several uploads, which this server does not support.
	Part string `header:"Upload-Concat"`
}

// beginUpload creates a resumable upload after checking the size and the organization's quota. The request can
// contain the first piece.
func beginUpload(c *Call, f beginUploadForm) (RawAnswer, error) {
	name, ok := fileNameFromMetadata(f.Metadata)
	switch {
	case f.Part != "":
		return RawAnswer{}, realm.BadRequest("Uploads are not put together here: Upload-Concat is not supported")
	case !ok:
		return RawAnswer{}, realm.BadRequest("Invalid Upload-Metadata header")
	case c.Piece != nil && c.Piece.Size > f.Size:
		return RawAnswer{}, ErrFileTooLarge
	case f.Size > MaxUploadBytes:
		return RawAnswer{}, realm.Refuse(realm.TooLarge, "BAD_REQUEST",
			"File is larger than this server's configured maximum upload size (100 MiB).")
	}
	announced := c.Tools.Files.Announced(c.Realm)
	err := checkPermission(c, func(v realm.View) error {
		return cmp.Or(v.CheckUploadQuota(announced+f.Size, c.Tools.UploadQuota),
			v.CheckUserQuota(v.User, f.Size, c.Tools.UserQuota))
	})
	if err != nil {
		return RawAnswer{}, err
	}
	u, err := c.Tools.Files.Begin(c.Realm, UnfinishedUpload{ID: c.Tools.Token(32), Owner: c.Caller.User, Name: name,
		Metadata: f.Metadata, Size: f.Size})
	if err != nil {
		return RawAnswer{}, err
	}
	p := c.Piece
	if p == nil && f.Size == 0 {
		p = &Piece{Reader: strings.NewReader("")} // an empty file is complete without a piece
	}
	if p != nil && (p.Size != 0 || f.Size == 0) {
		id := u.ID
		// the client does not know the upload's address, so it cannot be continued
		if u, err = writePiece(c, u, 0, p); err != nil {
			if abandonErr := c.Tools.Files.Abandon(id); !errors.Is(abandonErr, ErrNoUpload) {
				err = errors.Join(err, abandonErr)
			}
			return RawAnswer{}, err
		}
	}
	answer := u.Answer
	if answer == "" {
		answer = string(Success(nil, nil))
	}
	return RawAnswer{201, append([][2]string{{"Location", "/tus/" + u.ID}}, u.headers()...), answer}, nil
}

// fileNameFromMetadata reads the file name from Upload-Metadata: comma-separated pairs of a key and a base64 value.
func fileNameFromMetadata(metadata string) (name string, ok bool) {
	byKey := map[string]string{}
	for _, pair := range strings.Split(metadata, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(pair), " ")
		if key == "" {
			continue
		}
		text, err := base64.StdEncoding.DecodeString(strings.TrimSpace(value))
		if err != nil {
			return "", false
		}
		byKey[key] = strings.ToValidUTF8(string(text), "")
	}
	if byKey["filename"] != "" {
		return byKey["filename"], true
	}
	return byKey["name"], true
}

// Piece is a request body that is a piece of a file.
type Piece struct {
	io.Reader
	Size int64 // bytes; -1 if unknown before reading
}

type uploadForm struct {
	Upload string `path:"upload"`
	Tus    string `header:"Tus-Resumable,required,in=1.0.0"`
}

type pieceForm struct {
	Upload string `path:"upload"`
	Tus    string `header:"Tus-Resumable,required,in=1.0.0"`
	Offset int64  `header:"Upload-Offset,required,min=0"`
}

func appendToUpload(c *Call, f pieceForm) (RawAnswer, error) {
	if c.Piece == nil {
		return RawAnswer{}, errPieceType
	}
	u, err := unfinishedUpload(c, f.Upload)
	if err != nil {
		return RawAnswer{}, err
	}
	if f.Offset == u.Offset && c.Piece.Size > u.Size-f.Offset {
		return RawAnswer{}, ErrFileTooLarge
	}
	if u, err = writePiece(c, u, f.Offset, c.Piece); err != nil {
		return RawAnswer{}, err
	}
	if u.Answer == "" {
		return RawAnswer{204, u.headers(), ""}, nil
	}
	return RawAnswer{200, u.headers(), u.Answer}, nil
}

// writePiece writes bytes at an offset. The last piece turns the upload into a file and sets its answer.
func writePiece(c *Call, u UnfinishedUpload, offset int64, r io.Reader) (UnfinishedUpload, error) {
	if u.Answer != "" && offset == u.Size {
		return u, nil // a repeated request: the client did not receive the answer
	}
	u, err := c.Tools.Files.Append(u.ID, offset, r)
	if err != nil {
		return u, err
	}
	if u.Offset < u.Size {
		return u, checkStillAuthorized(c)
	}
	done, err := c.Tools.Files.Finish(u.ID, func(x SavedFile) (string, error) {
		row, err := recordUpload(c, u.Name, x)
		if err != nil {
			return "", err
		}
		return string(Success(newUploadAnswer(row), nil)), nil
	})
	var refused *realm.Refusal
	if errors.As(err, &refused) && refused.Kind != realm.Busy { // a later attempt would be refused too
		return done, errors.Join(err, c.Tools.Files.Abandon(u.ID))
	}
	return done, err
}

// checkStillAuthorized refuses the request if its key, account or organization became invalid while the body was being
// received. Every view checks them.
func checkStillAuthorized(c *Call) error {
	return checkPermission(c, func(realm.View) error { return nil })
}

// getUploadOffset answers how many bytes the server has received.
func getUploadOffset(c *Call, f uploadForm) (RawAnswer, error) {
	u, err := unfinishedUpload(c, f.Upload)
	if err != nil {
		return RawAnswer{}, err
	}
	headers := append(u.headers(), [2]string{"Upload-Length", strconv.FormatInt(u.Size, 10)})
	if u.Metadata != "" {
		headers = append(headers, [2]string{"Upload-Metadata", u.Metadata})
	}
	return RawAnswer{200, headers, ""}, nil
}

// getUploadResult repeats the answer of a finished upload.
func getUploadResult(c *Call, f tusOptionsForm) (RawAnswer, error) {
	u, err := unfinishedUpload(c, f.Upload)
	if err == nil && u.Answer == "" {
		err = ErrNoUpload
	}
	if err != nil {
		return RawAnswer{}, err
	}
	return RawAnswer{200, u.headers(), u.Answer}, nil
}

func cancelUpload(c *Call, f uploadForm) (RawAnswer, error) {
	if _, err := unfinishedUpload(c, f.Upload); err != nil {
		return RawAnswer{}, err
	}
	return RawAnswer{Status: 204}, c.Tools.Files.Abandon(f.Upload)
}

// unfinishedUpload returns one of the caller's own uploads.
func unfinishedUpload(c *Call, id string) (UnfinishedUpload, error) {
	u, ok := c.Tools.Files.Unfinished(c.Realm, c.Caller.User, id)
	if !ok {
		return u, ErrNoUpload
	}
	return u, nil
}

// headers returns the offset and expiry of an upload.
func (u UnfinishedUpload) headers() [][2]string {
	return [][2]string{{"Upload-Offset", strconv.FormatInt(u.Offset, 10)},
		{"Upload-Expires", time.Unix(u.Expires, 0).UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT")}}
}
