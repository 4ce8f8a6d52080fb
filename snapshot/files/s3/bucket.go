package s3

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"

	"parley/actors/admission"
	"parley/snapshot/files"
)

// Limits of requests.
const (
	dialTimeout = 5 * time.Second
	// stallTimeout is how long one read or write on the network may take. A server that stores a large file answers
	// after its last byte.
	stallTimeout = 20 * time.Second
	// idleTimeout is how long a connection without a request is kept; it must be shorter than stallTimeout.
	idleTimeout = 15 * time.Second
	// requestTimeout is for requests without a large body. An upload has slowestUpload bytes per second in addition.
	requestTimeout = 30 * time.Second
	slowestUpload  = 128 << 10
	// probeInterval is the time between two probes of a server that could not be reached, probeTimeout that of one.
	probeInterval = time.Second
	probeTimeout  = 5 * time.Second
	// attempts is how often a request is sent. Removals are sent once: a repeated one hides whether the first arrived.
	attempts = 2

	// MaxUploads and MaxDownloads are the requests with a file in progress. A download lasts as long as its client
	// takes. Each has buffers of about 40 kB.
	MaxUploads   = 16
	MaxDownloads = 256
	// slotTimeout is how long a request waits for one of them to end.
	slotTimeout = 5 * time.Second

	// maxSinglePut is the largest file that is sent in one request; all uploads of users are smaller. partSize is the
	// size of the parts of larger ones: data exports. S3 allows 10,000 parts, 625 GiB.
	maxSinglePut = 128 << 20
	partSize     = 64 << 20
	maxParts     = 10_000

	// leftoverAge is the age of an upload in parts without an end, which a process has left that was killed.
	leftoverAge = 24 * time.Hour
)

// Op is a kind of request.
type Op int

// The kinds of requests.
const (
	OpPut Op = iota
	OpGet
	OpHead
	OpList
	OpRemove
	opCount
)

// String returns the label of metrics.
func (o Op) String() string { return [...]string{"put", "get", "head", "list", "remove"}[o] }

// Ops returns all kinds of requests.
func Ops() []Op { return []Op{OpPut, OpGet, OpHead, OpList, OpRemove} }

// Bucket is a folder of a bucket. It implements files.Blobs. Its methods may be called from any goroutine.
type Bucket struct {
	place     Place
	client    *minio.Core
	remover   *minio.Core // sends each request once
	transport *http.Transport
	log       *slog.Logger
	uploads   chan struct{}
	downloads chan struct{}
	shares    *admission.Shares // of MaxUploads

	requests, failures [opCount]atomic.Int64
	refused            [2]atomic.Int64 // uploads and downloads that found no slot

	mu    sync.Mutex
	down  time.Time // since when the server cannot be reached; zero: it can, or no request has tried
	cause error
	stop  context.Context
	close context.CancelFunc
	ended sync.WaitGroup
}

// Open returns the files of a place. It sends nothing; see Probe. credentialsFile is a file in the format of
// ~/.aws/credentials; "" takes the keys from the environment.
func Open(p Place, credentialsFile string, log *slog.Logger) (*Bucket, error) {
	return open(p, credentialsFile, log, stallTimeout)
}

// open is Open with another stallTimeout.
func open(p Place, credentialsFile string, log *slog.Logger, stall time.Duration) (*Bucket, error) {
	creds, err := loadCredentials(credentialsFile)
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: dialTimeout}
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return stallConn{c, stall}, nil
		},
		TLSHandshakeTimeout:   dialTimeout,
		ResponseHeaderTimeout: requestTimeout,
		IdleConnTimeout:       idleTimeout,
		MaxIdleConnsPerHost:   MaxUploads,
		DisableCompression:    true,
		ForceAttemptHTTP2:     false,
	}
	lookup := minio.BucketLookupAuto
	if p.PathStyle {
		lookup = minio.BucketLookupPath
	}
	b := &Bucket{place: p, transport: t, log: log, uploads: make(chan struct{}, MaxUploads),
		downloads: make(chan struct{}, MaxDownloads), shares: admission.NewShares(MaxUploads, nil)}
	b.stop, b.close = context.WithCancel(context.Background())
	for n, to := range map[int]**minio.Core{attempts: &b.client, 1: &b.remover} {
		*to, err = minio.NewCore(p.Endpoint, &minio.Options{Creds: creds, Secure: p.Secure, Region: p.Region,
			BucketLookup: lookup, Transport: t, MaxRetries: n})
		if err != nil {
			return nil, fmt.Errorf("files: %w", err)
		}
	}
	return b, nil
}

// Close ends the probe. Requests in progress continue.
func (b *Bucket) Close() {
	b.mu.Lock()
	b.close()
	b.mu.Unlock()
	b.ended.Wait()
	b.transport.CloseIdleConnections()
}

// Place returns where the files are.
func (b *Bucket) Place() Place { return b.place }

// stallConn is a connection on which each read and each write ends.
type stallConn struct {
	net.Conn
	limit time.Duration
}

func (c stallConn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.limit)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c stallConn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.limit)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

func (b *Bucket) key(key string) string { return b.place.Prefix + key }

// acquire takes a slot for a request with a file.
func (b *Bucket) acquire(slots chan struct{}, refused *atomic.Int64) error {
	select {
	case slots <- struct{}{}:
		return nil
	default:
	}
	t := time.NewTimer(slotTimeout)
	defer t.Stop()
	select {
	case slots <- struct{}{}:
		return nil
	case <-t.C:
		refused.Add(1)
		return fmt.Errorf("%w: too many files are being sent", files.ErrUnavailable)
	}
}

// ShareBetween sets the function that reports whether several spaces share the bucket: then each has half of
// MaxUploads. Call it before the first file is stored.
func (b *Bucket) ShareBetween(several func() bool) {
	b.shares = admission.NewShares(MaxUploads, several)
}

// PutFor is Put for a file of a space. It returns files.ErrUnavailable if the space has its part of MaxUploads.
func (b *Bucket) PutFor(space, key string, f *os.File) error {
	if !b.shares.Take(space, 1) {
		b.refused[0].Add(1)
		return fmt.Errorf("%w: too many files of the organization are being sent", files.ErrUnavailable)
	}
	defer b.shares.Give(space, 1)
	return b.Put(key, f)
}

// Put sends the file and returns when the server has stored it.
func (b *Bucket) Put(key string, f *os.File) error {
	if err := b.Ready(); err != nil {
		return err
	}
	if err := b.acquire(b.uploads, &b.refused[0]); err != nil {
		return err
	}
	defer func() { <-b.uploads }()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("store %s: %w", key, err)
	}
	size := info.Size()
	limit := requestTimeout + time.Duration(size/slowestUpload)*time.Second
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if size > maxSinglePut {
		return b.finish(OpPut, key, b.putParts(ctx, b.key(key), f, size))
	}
	sum, err := hashSection(f, 0, size)
	if err != nil {
		return fmt.Errorf("store %s: %w", key, err)
	}
	_, err = b.client.PutObject(ctx, b.place.Bucket, b.key(key), io.NewSectionReader(f, 0, size), size, "", sum,
		minio.PutObjectOptions{})
	return b.finish(OpPut, key, err)
}

// putParts sends a large file in parts, one after the other.
func (b *Bucket) putParts(ctx context.Context, name string, f *os.File, size int64) error {
	if size > maxParts*partSize {
		return fmt.Errorf("%s has %d bytes, more than S3 allows in %d parts", name, size, maxParts)
	}
	id, err := b.client.NewMultipartUpload(ctx, b.place.Bucket, name, minio.PutObjectOptions{})
	if err != nil {
		return err
	}
	var parts []minio.CompletePart
	for from := int64(0); from < size && err == nil; from += partSize {
		var sum string
		n := min(partSize, size-from)
		if sum, err = hashSection(f, from, n); err != nil {
			break
		}
		var p minio.ObjectPart
		p, err = b.client.PutObjectPart(ctx, b.place.Bucket, name, id, len(parts)+1, io.NewSectionReader(f, from, n), n,
			minio.PutObjectPartOptions{Sha256Hex: sum})
		parts = append(parts, minio.CompletePart{PartNumber: p.PartNumber, ETag: p.ETag})
	}
	if err == nil {
		_, err = b.client.CompleteMultipartUpload(ctx, b.place.Bucket, name, id, parts, minio.PutObjectOptions{})
	}
	if err != nil { // if this fails too, RemoveLeftovers aborts it
		ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
		defer cancel()
		b.client.AbortMultipartUpload(ctx, b.place.Bucket, name, id)
	}
	return err
}

func hashSection(f io.ReaderAt, from, bytes int64) (string, error) {
	h := sha256.New()
	_, err := io.Copy(h, io.NewSectionReader(f, from, bytes))
	return hex.EncodeToString(h.Sum(nil)), err
}

// Open asks the server for the size of a file.
func (b *Bucket) Open(key string) (files.Blob, error) {
	if err := b.Ready(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	info, err := b.client.StatObject(ctx, b.place.Bucket, b.key(key), minio.StatObjectOptions{})
	if err := b.finish(OpHead, key, err); err != nil {
		return nil, err
	}
	return &object{b, key, info.Size}, nil
}

// object is an opened file.
type object struct {
	b    *Bucket
	key  string
	size int64
}

func (o *object) Size() int64  { return o.size }
func (o *object) Close() error { return nil }

// Section sends the request for a part of the file. The reader passes on what arrives.
func (o *object) Section(from, bytes int64) (io.ReadCloser, error) {
	if bytes <= 0 {
		return io.NopCloser(strings.NewReader("")), nil
	}
	b := o.b
	if err := b.acquire(b.downloads, &b.refused[1]); err != nil {
		return nil, err
	}
	var opts minio.GetObjectOptions
	if err := opts.SetRange(from, from+bytes-1); err != nil {
		<-b.downloads
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	r, info, _, err := b.client.GetObject(ctx, b.place.Bucket, b.key(o.key), opts)
	if err == nil && info.Size != bytes {
		r.Close()
		err = fmt.Errorf("the server sends %d bytes instead of %d", info.Size, bytes)
	}
	if err := b.finish(OpGet, o.key, err); err != nil {
		cancel()
		<-b.downloads
		return nil, err
	}
	return &body{ReadCloser: r, b: b, cancel: cancel}, nil
}

// body is the part of a file that is arriving.
type body struct {
	io.ReadCloser
	b      *Bucket
	cancel context.CancelFunc
	once   sync.Once
}

func (r *body) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		r.b.failures[OpGet].Add(1)
		err = fmt.Errorf("%w: %w", files.ErrUnavailable, err)
	}
	return n, err
}

func (r *body) Close() (err error) {
	r.once.Do(func() {
		r.cancel() // a part that is not read is not received
		err = r.ReadCloser.Close()
		<-r.b.downloads
	})
	return err
}

// listPage is how many names a request for a list returns; S3 has no more.
const listPage = 1000

// Each lists the files page by page.
func (b *Bucket) Each(prefix string, fn func(files.BlobInfo) error) error {
	for token := ""; ; {
		if err := b.Ready(); err != nil {
			return err
		}
		page, err := b.client.ListObjectsV2(b.place.Bucket, b.key(prefix), "", token, "", listPage)
		if err := b.finish(OpList, prefix, err); err != nil {
			return err
		}
		for _, o := range page.Contents {
			key, ok := strings.CutPrefix(o.Key, b.place.Prefix)
			if !ok {
				continue
			}
			if err := fn(files.BlobInfo{Key: key, Size: o.Size, Modified: o.LastModified}); err != nil {
				return err
			}
		}
		if token = page.NextContinuationToken; !page.IsTruncated || token == "" {
			return nil
		}
	}
}

// Remove removes a file. It sends the request once.
func (b *Bucket) Remove(key string) error {
	if err := b.Ready(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	err := b.remover.RemoveObject(ctx, b.place.Bucket, b.key(key), minio.RemoveObjectOptions{})
	answered := errorResponse(err) != nil
	if err = b.finish(OpRemove, key, err); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil && !answered {
		return fmt.Errorf("%w: %w", files.ErrUncertain, err)
	}
	return err
}

// RemoveLeftovers aborts uploads in parts that a process has left which was killed: their parts take space, but no list
// of files shows them.
func (b *Bucket) RemoveLeftovers() error {
	for _, prefix := range files.Prefixes() {
		if err := b.Ready(); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
		page, err := b.client.ListMultipartUploads(ctx, b.place.Bucket, b.key(prefix), "", "", "", listPage)
		if err == nil {
			for _, u := range page.Uploads {
				if time.Since(u.Initiated) > leftoverAge {
					err = errors.Join(err, b.client.AbortMultipartUpload(ctx, b.place.Bucket, u.Key, u.UploadID))
				}
			}
		}
		cancel()
		if err := b.finish(OpList, prefix, err); err != nil {
			return err
		}
	}
	return nil
}
