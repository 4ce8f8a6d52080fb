package wire

import (
	"errors"

	"parley/actors/realm"
	"parley/wire/markdown"
)

// thumbnailFormat is the format of a thumbnail. The sizes are in pixels.
type thumbnailFormat struct {
	Name      string `json:"name"`
	MaxWidth  int    `json:"max_width"`
	MaxHeight int    `json:"max_height"`
	Format    string `json:"format"`
	Animated  bool   `json:"animated"`
}

// thumbnailFormats returns the formats that clients can request in place of the last part of a thumbnail's path.
func thumbnailFormats() []thumbnailFormat {
	return []thumbnailFormat{{markdown.AnimatedThumbnail, 840, 560, "gif", true},
		{markdown.StillThumbnail, 840, 560, "jpg", false}}
}

// ErrThumbnailsBusy is the error of Files when too many images are being decoded. An image that cannot be shown at all
// is ErrNotAnImage or ErrTooManyPixels.
var ErrThumbnailsBusy = errors.New("too many pictures are being decoded")

// ThumbnailQueue makes thumbnails of uploaded images in the background. Package thumbnails implements it.
type ThumbnailQueue interface {
	// Add queues an image; it never blocks. The queue then calls FinishThumbnail.
	Add(realm.ID, realm.Upload)
}

// maxThumbnailUses is how many messages, the newest first, are rendered again when the thumbnail of an image is made.
const maxThumbnailUses = 1000

// requestThumbnail queues an upload if it is an image without a thumbnail.
func (c *Call) requestThumbnail(u realm.Upload) {
	if c.Tools.Thumbnails != nil && u.Width != 0 && u.Thumbnail == realm.ThumbnailWanted {
		c.Tools.Thumbnails.Add(c.Realm, u)
	}
}

// ThumbnailsWanted returns the images of an organization whose thumbnails are not made yet.
func ThumbnailsWanted(c *Call) ([]realm.Upload, error) {
	return Read(c, func(v realm.View) ([]realm.Upload, error) { return v.ThumbnailsWanted(), nil })
}

// FinishThumbnail records whether the thumbnail of an image was made or is impossible. It then renders the messages
// again that wait for it. Errors of rendering are ignored, because the worker calls it a second time later.
func FinishThumbnail(c *Call, u realm.Upload, made bool) error {
	state := realm.ThumbnailMade
	if !made {
		state = realm.ThumbnailImpossible
	}
	if _, err := Execute(c, realm.SetThumbnailState{Upload: u.ID, State: state}); err != nil {
		return err
	}
	meta := markdown.UploadMeta{ContentType: u.Type, Width: u.Width, Height: u.Height, Thumbnailed: true,
		Animated: u.Animated}
	refs, err := Read(c, func(v realm.View) ([]realm.BodyRef, error) {
		return v.TextsUsing(u.Path, maxThumbnailUses), nil
	})
	if err != nil {
		return nil
	}
	for _, ref := range refs {
		rerender(c, ref, 0, func(b realm.Body) (realm.Body, error) {
			b.HTML = markdown.ShowThumbnail(b.HTML, u.Path, meta, made)
			return b, nil
		})
	}
	return nil
}

// rerender changes the HTML of a message and reports whether it did. An outbox job with the given id is finished in the
// same turn; 0 means none. If the message was changed meanwhile, rerender tries again with the new text.
func rerender(
	c *Call, ref realm.BodyRef, job int64, change func(realm.Body) (realm.Body, error),
) (bool, error) {
	for range maxEditAttempts {
		old, ok, err := c.Server.Text(c.Realm, ref)
		if !ok {
			return false, err
		}
		changed, err := change(old)
		if err != nil || changed.HTML == old.HTML {
			return false, err
		}
		done, err := Execute(c, realm.Rerender{Message: ref.Message, Version: ref.Version, Body: changed,
			OutboxJob: job})
		if done || err != nil { // the only refusal is a busy server
			return done, err
		}
		ref, err = Read(c, func(v realm.View) (realm.BodyRef, error) { return v.NewestText(ref.Message), nil })
		if err != nil {
			return false, err
		}
	}
	return false, nil
}
