package thumbnails

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"parley/actors/realm"
	"parley/wire"
)

const (
	// MaxWaiting is how many images wait. Further images are made on request, or after the next start of the server.
	MaxWaiting = 1000
	// renderSlack is how long after its thumbnail was made a message can arrive that was rendered before. Messages are
	// looked up once more after that time.
	renderSlack = 10 * time.Second
)

// Worker makes thumbnails, one at a time, and shows them in the messages that wait for them. It implements
// wire.ThumbnailQueue. It is an owner task: the owner of an organization makes its thumbnails.
type Worker struct {
	server wire.Server
	files  wire.Files
	log    *slog.Logger
	jobs   chan job
	stop   chan struct{}
	ended  sync.WaitGroup
	begun  chan realm.ID // organizations whose missing thumbnails are to be made

	mu    sync.Mutex
	owned map[realm.ID]bool
}

type job struct {
	realm realm.ID
	realm.Upload
	again bool // the second pass, which looks for messages that arrived late
}

// Start starts a worker, which has no organizations before Begin.
func Start(server wire.Server, files wire.Files, log *slog.Logger) *Worker {
	w := &Worker{
		server: server,
		files:  files,
		log:    log,
		jobs:   make(chan job, MaxWaiting),
		stop:   make(chan struct{}),
		owned:  map[realm.ID]bool{},
		begun:  make(chan realm.ID, MaxWaiting),
	}
	w.ended.Go(w.run)
	w.ended.Go(w.catchUp)
	return w
}

// Begin makes the missing thumbnails of an organization, and new ones from now on. It does not block.
func (w *Worker) Begin(id realm.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.owned[id] = true
	select {
	case w.begun <- id:
	default: // the next start finds them
	}
}

// End leaves the thumbnails of an organization to its next owner.
func (w *Worker) End(id realm.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.owned, id)
}

func (w *Worker) owns(id realm.ID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.owned[id]
}

// Close stops the worker and waits for it. Images that are still queued are found at the next start.
func (w *Worker) Close() {
	close(w.stop)
	w.ended.Wait()
}

// Waiting returns the number of images that wait.
func (w *Worker) Waiting() int64 { return int64(len(w.jobs)) }

// Add queues an image. It never blocks; if the queue is full it does nothing.
func (w *Worker) Add(id realm.ID, u realm.Upload) { w.add(job{realm: id, Upload: u}) }

func (w *Worker) add(j job) {
	select {
	case w.jobs <- j:
	default:
	}
}

func (w *Worker) run() {
	for {
		select {
		case <-w.stop:
			return
		case j := <-w.jobs:
			w.make(j)
		}
	}
}

// catchUp makes missing thumbnails. It pauses after each for as long as it worked, because no user waits for these.
func (w *Worker) catchUp() {
	for {
		select {
		case <-w.stop:
			return
		case id := <-w.begun:
			w.catchUpRealm(id)
		}
	}
}

func (w *Worker) catchUpRealm(id realm.ID) {
	list, err := wire.ThumbnailsWanted(w.call(id))
	if err != nil {
		return // the next start tries again
	}
	for _, u := range list {
		began := time.Now()
		w.make(job{realm: id, Upload: u})
		select {
		case <-w.stop:
			return
		case <-time.After(time.Since(began)):
		}
	}
}

func (w *Worker) call(id realm.ID) *wire.Call {
	return &wire.Call{Server: w.server, Realm: id, Caller: realm.System}
}

// make makes a thumbnail, records the result and shows it in messages. The job is repeated once after renderSlack.
func (w *Worker) make(j job) {
	if !w.owns(j.realm) {
		return
	}
	_, err := w.files.Thumbnail(j.realm, j.Hash, j.Animated)
	made := err == nil
	if !made && !errors.Is(err, wire.ErrNotAnImage) && !errors.Is(err, wire.ErrTooManyPixels) {
		w.log.Warn("making a thumbnail failed", "realm", j.realm, "upload", j.ID, "err", err)
		return
	}
	if err := wire.FinishThumbnail(w.call(j.realm), j.Upload, made); err != nil {
		w.log.Warn("recording a thumbnail failed", "realm", j.realm, "upload", j.ID, "err", err)
		return
	}
	if j.again {
		return
	}
	j.again = true
	w.ended.Go(func() {
		select {
		case <-w.stop:
		case <-time.After(renderSlack):
			w.add(j)
		}
	})
}
