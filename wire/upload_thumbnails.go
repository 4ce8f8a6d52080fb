package wire

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"parley/actors/realm"
	"parley/wire/markdown"
)

// thumbnailFormats is what clients may ask for in place of a thumbnail's last name.
func thumbnailFormats() []any {
	format := func(name, kind string, animated bool) obj {
		return obj{"name": name, "max_width": 840, "max_height": 560, "format": kind, "animated": animated}
	}
	return []any{format(markdown.MovingThumbnail, "gif", true), format(markdown.StillThumbnail, "jpg", false)}
}

// The errors of Files about thumbnails; an image that cannot be shown is ErrNotAnImage or ErrTooManyPixels.
var ErrThumbnailsBusy = errors.New("too many pictures are being decoded")

// Limits of making thumbnails in advance.
const (
	maxThumbnailJobs = 1000 // images that wait; beyond it they are made when the process starts again, or when they are asked for
	maxThumbnailUses = 1000 // messages, the newest, that show an image when it is there
	// renderSlack is how long after its thumbnail was made a message may arrive that was rendered before.
	renderSlack = 10 * time.Second
)

// Thumbnails makes thumbnails of images that were uploaded, one at a time, and has the messages that wait for one show it.
// A nil one makes none.
type Thumbnails struct {
	house Server
	files Files
	log   *slog.Logger
	jobs  chan thumbnailJob
	stop  chan struct{}
	ended sync.WaitGroup
}

type thumbnailJob struct {
	realm realm.ID
	realm.Upload
	again bool // it has been made: only the messages are to be looked at
}

// NewThumbnails begins to work, first on what earlier processes of these organizations left.
func NewThumbnails(house Server, files Files, log *slog.Logger, left []realm.ID) *Thumbnails {
	t := &Thumbnails{house: house, files: files, log: log, jobs: make(chan thumbnailJob, maxThumbnailJobs), stop: make(chan struct{})}
	t.ended.Go(t.work)
	t.ended.Go(func() { t.catchUp(left) })
	return t
}

// Close ends the work; what is left is found at the next start.
func (t *Thumbnails) Close() {
	close(t.stop)
	t.ended.Wait()
}

func (t *Thumbnails) enqueue(id realm.ID, u realm.Upload) {
	if t == nil || u.Width == 0 || u.Thumbnail != realm.ThumbnailWanted {
		return
	}
	select {
	case t.jobs <- thumbnailJob{realm: id, Upload: u}:
	default:
	}
}

// catchUp makes what is missing, and takes no more than half of the time for it: nobody waits.
func (t *Thumbnails) catchUp(left []realm.ID) {
	for _, id := range left {
		list, err := Read(t.call(id), func(v realm.View) ([]realm.Upload, error) { return v.ThumbnailsWanted(), nil })
		if err != nil {
			continue // it is found at the next start
		}
		for _, u := range list {
			began := time.Now()
			t.make(thumbnailJob{realm: id, Upload: u})
			select {
			case <-t.stop:
				return
			case <-time.After(time.Since(began)):
			}
		}
	}
}

func (t *Thumbnails) work() {
	for {
		select {
		case <-t.stop:
			return
		case j := <-t.jobs:
			t.make(j)
		}
	}
}

func (t *Thumbnails) call(id realm.ID) *Call {
	return &Call{Server: t.house, Realm: id, Caller: realm.Caller{System: true, Client: "Internal"}}
}

// make makes a thumbnail, notes what came of it, and shows it.
func (t *Thumbnails) make(j thumbnailJob) {
	state := realm.ThumbnailMade
	_, err := t.files.Thumbnail(j.Hash, j.Animated)
	switch {
	case errors.Is(err, ErrNotAnImage), errors.Is(err, ErrTooManyPixels):
		state = realm.ThumbnailImpossible
	case err != nil:
		t.log.Warn("no thumbnail", "organization", j.realm, "upload", j.ID, "error", err)
		return
	}
	c := t.call(j.realm)
	if _, err := Execute(c, realm.SetThumbnailState{Upload: j.ID, State: state}); err != nil {
		t.log.Warn("thumbnail made, not noted", "organization", j.realm, "upload", j.ID, "error", err)
		return
	}
	t.show(c, j, state == realm.ThumbnailMade)
	if j.again {
		return
	}
	j.again = true
	t.ended.Go(func() {
		select {
		case <-t.stop:
		case <-time.After(renderSlack):
			select {
			case t.jobs <- j:
			default:
			}
		}
	})
}

// show has messages that wait for a thumbnail rendered with it.
func (t *Thumbnails) show(c *Call, j thumbnailJob, made bool) {
	meta := markdown.UploadMeta{ContentType: j.Type, Width: j.Width, Height: j.Height, Thumbnailed: true, Animated: j.Animated}
	refs, err := Read(c, func(v realm.View) ([]realm.BodyRef, error) { return v.TextsUsing(j.Path, maxThumbnailUses), nil })
	if err != nil {
		return
	}
	for _, ref := range refs {
		rerender(c, ref, 0, func(b realm.Body) (realm.Body, error) {
			b.HTML = markdown.ShowThumbnail(b.HTML, j.Path, meta, made)
			return b, nil
		})
	}
}

// rerender changes how a message's text is shown, and reports whether it did; an errand is done by that. If somebody else
// changed it meanwhile it is tried again with what stands there then.
func rerender(c *Call, ref realm.BodyRef, errand int64, change func(realm.Body) (realm.Body, error)) (bool, error) {
	for range maxEditAttempts {
		old, ok := c.Server.Text(c.Realm, ref)
		if !ok {
			return false, nil
		}
		shown, err := change(old)
		if err != nil || shown.HTML == old.HTML {
			return false, err
		}
		done, err := Execute(c, realm.Rerender{Message: ref.Message, Version: ref.Version, Body: shown, Errand: errand})
		if done || err != nil { // refused only when the server is too busy
			return done, err
		}
		if ref, err = Read(c, func(v realm.View) (realm.BodyRef, error) { return v.NewestText(ref.Message), nil }); err != nil {
			return false, err
		}
	}
	return false, nil
}
