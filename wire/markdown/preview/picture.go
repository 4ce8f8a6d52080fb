package preview

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// MaxPicture limits a picture in bytes. Photos of cameras are smaller.
const MaxPicture = 5 << 20

// pictureTypes are the types of pictures that are shown. SVG is not one of them: it can have scripts.
var pictureTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp"}

// ErrNoPicture means that an address has no picture that can be shown.
var ErrNoPicture = errors.New("no picture")

// FetchPicture fetches a picture of at most MaxPicture bytes and returns its content type. The bytes decide about the
// type, not the word of the site.
func (f *Fetcher) FetchPicture(ctx context.Context, address string) (contentType string, data []byte, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", nil, fmt.Errorf("%w: %s", ErrRefused, address)
	}
	if err := checkURL(u); err != nil {
		return "", nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return "", nil, fmt.Errorf("fetch picture: %w", err)
	}
	r.Header.Set("User-Agent", userAgent)
	r.Header.Set("Accept", strings.Join(pictureTypes, ", "))
	answer, err := f.client.Do(r)
	if err != nil {
		return "", nil, fmt.Errorf("fetch picture: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK || answer.ContentLength > MaxPicture {
		return "", nil, fmt.Errorf("%w: %s, %d bytes", ErrNoPicture, answer.Status, answer.ContentLength)
	}
	data, err = io.ReadAll(io.LimitReader(answer.Body, MaxPicture+1))
	if err != nil {
		return "", nil, fmt.Errorf("fetch picture: %w", err)
	}
	kind := http.DetectContentType(data)
	if len(data) > MaxPicture || !slices.Contains(pictureTypes, kind) {
		return "", nil, fmt.Errorf("%w: type %q", ErrNoPicture, kind)
	}
	return kind, data, nil
}
