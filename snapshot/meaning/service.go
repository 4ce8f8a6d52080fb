package meaning

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"parley/actors/admission"
	"parley/actors/realm"
)

// Limits of a Service.
const (
	// DefaultMessages is how many of the newest messages of an organization have a vector: with 1,536 numbers each,
	// they take 300 MB on disk, and a search reads all of them (BenchmarkNearest).
	DefaultMessages = 50_000
	// DefaultDayTokens is how many tokens the vectors of an organization cost in a day: those of about 100,000
	// messages.
	DefaultDayTokens = 5_000_000
	// batchTexts is how many texts one request has: the answer takes up to 1.5 MB, and a service on a processor without
	// a graphics card needs some seconds.
	batchTexts = 16
	// maxText is how many characters of a text count: about 500 tokens, which is what small models read at most.
	maxText = 2000
	// pause is the shortest time between two requests for all organizations: 32 texts a second fill an index in half
	// an hour, and leave the service time for searches.
	pause = 500 * time.Millisecond
	// compareInterval is how often an organization that changes is compared with its vectors: 50,000 messages take ten
	// views of a third of a millisecond.
	compareInterval = 10 * time.Second
	idsPerView      = 5000
	// After a failure the service is left alone for minWait, then twice as long, up to maxWait.
	minWait = 10 * time.Second
	maxWait = 10 * time.Minute
	// maxSearches is how many searches read vectors at a time. Each uses one processor for up to 100 ms and takes 12
	// bytes of memory for each vector.
	maxSearches = 4
	// bytesPerToken is a cautious estimate: English has about four bytes in a token, other languages less.
	bytesPerToken = 3
)

// Source knows the organizations.
type Source interface {
	// Agreed reports whether the owners of an organization agree to search by meaning, and whether this node owns it:
	// only the owner sends texts.
	Agreed(id realm.ID) (agreed, owned bool, err error)
	// TextsBefore is that of realm.View, for a caller that can read everything.
	TextsBefore(id realm.ID, before realm.MessageID, ids int) ([]realm.BodyRef, realm.MessageID, error)
}

// Model makes vectors.
type Model interface {
	// Embed returns a vector of each text, and what they have cost in tokens; 0: unknown. If dims is not 0, it is how
	// many numbers a vector must have. An error for which IsRefusal is true comes again for the same texts.
	Embed(ctx context.Context, id realm.ID, texts []string, dims int) (vectors [][]float32, tokens int64, err error)
	IsRefusal(err error) bool
}

// Options of a Service.
type Options struct {
	Dir       string
	Name      string                  // of the model: vectors of another one are of no use
	Messages  int                     // newest messages of an organization that have vectors
	DayTokens int64                   // of an organization in a day (UTC); 0: no limit
	Plain     func(realm.Body) string // returns the part of a text that counts
	NoWrites  func() bool             // the disk has too little space
	// Fetch gets the file of an organization from another node, and calls save with its size and its content. It returns
	// an error that is fs.ErrNotExist if no other node has it; nil: there are no other nodes.
	Fetch   func(ctx context.Context, id realm.ID, save func(size int64, r io.Reader) error) error
	Several func() bool // see admission.Shares
	Now     func() time.Time
	Log     *slog.Logger
}

// Service has the vectors of all organizations. Its methods are safe for concurrent use.
type Service struct {
	o        Options
	source   Source
	model    Model
	searches *admission.Places

	mu      sync.Mutex // guards the next two, and changed and written of organizations
	all     map[realm.ID]*organization
	due     map[*organization]bool // to be looked at by the worker
	ctx     context.Context
	cancel  context.CancelFunc
	started atomic.Bool
	stopped chan struct{}

	// worker only
	rest      rest          // the service has failed
	refusedBy *organization // all its texts were refused, and no request has succeeded since; nil: none

	tokens, vectors, failures, refused atomic.Int64 // since the start
	pending, most                      atomic.Int64 // texts that wait, and vectors, of the organization with the most
	dayHits                            atomic.Int64
}

// organization is one organization in memory. Its fields but changed, written, index and complete belong to the worker.
type organization struct {
	id       realm.ID
	text     realm.TextReader
	changed  bool
	written  bool // it has got texts since the last comparison
	compared time.Time
	todo     []realm.BodyRef            // without vector, newest first
	skipped  map[realm.MessageID]uint16 // versions that get no vector
	fullDay  int64                      // the day whose tokens are used up
	rest     rest                       // the service has refused all texts of a batch
	complete atomic.Bool                // nothing has waited since it was compared
	loan     loan

	mu       sync.Mutex // guards the next two
	index    *index     // nil: not open, or none
	detached bool
}

// rest is how long the service is left alone.
type rest struct {
	until time.Time
	wait  time.Duration // the last one; 0: it works
}

func (r *rest) begin(now time.Time) {
	r.wait = min(max(minWait, 2*r.wait), maxWait)
	r.until = now.Add(r.wait)
}

var errStopped = errors.New("stopped")

// Open returns a Service. It does nothing before Start.
func Open(o Options) (*Service, error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	o.Messages = min(cmp.Or(o.Messages, DefaultMessages), MaxMessages)
	if err := removeParts(o.Dir); err != nil {
		return nil, err
	}
	s := &Service{o: o, all: map[realm.ID]*organization{}, due: map[*organization]bool{},
		searches: admission.NewPlaces(maxSearches, o.Several), stopped: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// Start starts the worker.
func (s *Service) Start(source Source, model Model) {
	s.source, s.model = source, model
	s.started.Store(true)
	go s.run()
}

// Close ends requests and the worker, and closes the files.
func (s *Service) Close() {
	s.cancel()
	if s.started.Load() {
		<-s.stopped
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.all {
		o.detach()
	}
}

// FileOf returns the file of an organization, given the directory of all.
func FileOf(dir string, id realm.ID) string {
	return filepath.Join(dir, strconv.FormatUint(uint64(id), 10))
}

// Attach adds an organization that enters memory; text reads its texts.
func (s *Service) Attach(id realm.ID, text realm.TextReader) {
	o := &organization{id: id, text: text, changed: true, written: true, skipped: map[realm.MessageID]uint16{}}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.all[id]; old != nil {
		old.detach()
		delete(s.due, old)
	}
	s.all[id], s.due[o] = o, true
}

// Detach removes an organization that leaves memory.
func (s *Service) Detach(id realm.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.all[id]; o != nil {
		delete(s.all, id)
		delete(s.due, o)
		o.detach()
	}
}

// Feed says that an organization has changed, and whether texts were written or erased. It never blocks for long.
func (s *Service) Feed(id realm.ID, texts bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.all[id]; o != nil {
		o.changed, s.due[o] = true, true
		o.written = o.written || texts
	}
}

func (o *organization) detach() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.detached = true
	o.close()
}

// close closes the file. o.mu is held.
func (o *organization) close() {
	if x := o.index; x != nil {
		o.index = nil
		x.mu.Lock() // no search reads it
		x.file.Close()
		x.mu.Unlock()
	}
}

// open returns the open file of an organization; nil: there is none. A file is made if dims is not 0. A file of another
// model, or a damaged one, is deleted.
func (s *Service) open(o *organization, dims int) (*index, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.index != nil || o.detached {
		return o.index, nil
	}
	path := FileOf(s.o.Dir, o.id)
	x, err := openIndex(path, s.o.Name, dims)
	if errors.Is(err, errOtherModel) {
		s.o.Log.Info("vectors of another model are made again", "realm", o.id)
		if err = os.Remove(path); err == nil {
			x, err = openIndex(path, s.o.Name, dims)
		}
	}
	if err == nil {
		o.index = x
	}
	return o.index, err
}

// forget deletes the file of an organization.
func (s *Service) forget(o *organization) error {
	o.todo = nil
	clear(o.skipped)
	o.complete.Store(false)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.detached {
		return nil
	}
	o.close()
	if err := os.Remove(FileOf(s.o.Dir, o.id)); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func (s *Service) run() {
	defer close(s.stopped)
	t := time.NewTicker(pause)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			s.round()
		case <-s.ctx.Done():
			return
		}
	}
}

// round compares the organizations that are due, and sends one batch of each.
func (s *Service) round() {
	s.mu.Lock()
	list := make([]*organization, 0, len(s.due))
	for o := range s.due {
		list = append(list, o)
	}
	s.mu.Unlock()
	pending, most := 0, 0
	for _, o := range list {
		if s.ctx.Err() != nil {
			return
		}
		if err := s.step(o); err != nil && s.ctx.Err() == nil {
			s.o.Log.Warn("vectors of an organization were not updated", "realm", o.id, "err", err)
		}
		pending = max(pending, len(o.todo))
		if x := o.opened(); x != nil {
			most = max(most, x.len())
		}
		s.mu.Lock()
		if !o.changed && len(o.todo) == 0 {
			delete(s.due, o)
		}
		s.mu.Unlock()
	}
	s.pending.Store(int64(pending))
	if most > 0 {
		s.most.Store(int64(most))
	}
}

func (o *organization) opened() *index {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.index
}

// step compares an organization that has changed, and sends a batch if texts wait.
func (s *Service) step(o *organization) error {
	now := s.o.Now()
	s.mu.Lock()
	compare, written := o.changed && now.Sub(o.compared) >= compareInterval, o.written
	if compare {
		o.changed, o.written, o.compared = false, false, now
		o.complete.Store(o.complete.Load() && !written)
	}
	s.mu.Unlock()
	if compare {
		if err := s.compare(o); err != nil {
			s.mu.Lock()
			o.changed, s.due[o] = true, s.all[o.id] == o
			s.mu.Unlock()
			return err
		}
	}
	if !o.loan.done && len(o.todo) > 0 {
		if err := s.borrow(o, now); err != nil || !o.loan.done {
			return err
		}
	}
	if len(o.todo) == 0 || now.Before(s.rest.until) || now.Before(o.rest.until) || s.o.NoWrites() {
		return nil
	}
	return s.batch(o, now)
}

// compare erases the vectors that the organization must not have, and finds the texts that need one.
func (s *Service) compare(o *organization) error {
	agreed, owned, err := s.source.Agreed(o.id)
	switch {
	case err != nil:
		return err
	case !agreed:
		return s.forget(o)
	}
	x, err := s.open(o, 0)
	if err != nil {
		return err
	}
	wanted := map[realm.MessageID]uint16{}
	o.todo = nil
	for before := realm.MessageID(realm.MaxMessageID); before > 1 && len(wanted) < s.o.Messages; {
		var refs []realm.BodyRef
		if refs, before, err = s.source.TextsBefore(o.id, before, idsPerView); err != nil {
			return err
		}
		for _, ref := range refs[:min(len(refs), s.o.Messages-len(wanted))] {
			wanted[ref.Message] = ref.Version
			skipped, skip := o.skipped[ref.Message]
			if skip && skipped == ref.Version || !owned {
				continue
			}
			if x != nil {
				if v, ok := x.version(ref.Message); ok && v == ref.Version {
					continue
				}
			}
			o.todo = append(o.todo, ref)
		}
	}
	o.complete.Store(len(o.todo) == 0)
	if !owned || len(o.todo) < loanFrom || s.o.Fetch == nil {
		o.loan = loan{done: owned}
	}
	is := func(ref realm.BodyRef) bool {
		v, ok := wanted[ref.Message]
		return ok && v == ref.Version
	}
	for id, version := range o.skipped {
		if !is(realm.BodyRef{Message: id, Version: version}) {
			delete(o.skipped, id)
		}
	}
	if x == nil {
		return nil
	}
	_, err = x.remove(is)
	return err
}

// batch sends the next texts and stores their vectors.
func (s *Service) batch(o *organization, now time.Time) error {
	// The owners may have changed their mind, and the node may have lost the organization, since the comparison.
	if agreed, owned, err := s.source.Agreed(o.id); err != nil || !agreed || !owned {
		o.todo = nil
		s.Feed(o.id, true)
		return err
	}
	refs, texts := []realm.BodyRef{}, []string{}
	read := 0
	for _, ref := range o.todo {
		if len(texts) == batchTexts || read == 10*batchTexts {
			break
		}
		read++
		body, ok, err := o.text(ref)
		if err != nil {
			return err
		}
		text := ""
		if ok { // else it was erased meanwhile
			text = shorten(s.o.Plain(body))
		}
		if text == "" {
			o.skipped[ref.Message] = ref.Version
			continue
		}
		refs, texts = append(refs, ref), append(texts, text)
	}
	if len(texts) > 0 {
		done, err := s.send(o, refs, texts, now)
		if err != nil || !done {
			return err
		}
	}
	if o.todo = o.todo[read:]; len(o.todo) == 0 {
		o.todo = nil
		o.complete.Store(true)
	}
	return nil
}

// shorten returns the first maxText characters of a text, and "" for a text without a letter or digit.
func shorten(text string) string {
	text = strings.TrimSpace(strings.ToValidUTF8(text, ""))
	if !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
		return ""
	}
	n := 0
	for i := range text {
		if n++; n > maxText {
			return text[:i]
		}
	}
	return text
}

// errTokens says that an organization has used up the tokens of the day.
var errTokens = errors.New("the tokens of the day are used up")

// send asks the service for vectors and stores them. It returns false if the texts must wait. If the service refuses
// them, it gets each alone, and those that it refuses again get no vector. If it refuses all of them, the organization
// waits, and if it refuses those of another one too, it rather has a fault.
func (s *Service) send(o *organization, refs []realm.BodyRef, texts []string, now time.Time) (done bool, err error) {
	err = s.sendTogether(o, refs, texts, now)
	switch {
	case err == nil:
		s.works(o)
		return true, nil
	case !s.model.IsRefusal(err):
		return s.giveUp(err, now)
	case len(refs) == 1:
		s.skip(o, refs[0], err)
		return true, nil
	}
	var refused []realm.BodyRef
	for i := range refs {
		alone := s.sendTogether(o, refs[i:i+1], texts[i:i+1], now)
		switch {
		case alone == nil:
		case s.model.IsRefusal(alone):
			refused = append(refused, refs[i])
		default:
			return s.giveUp(alone, now)
		}
	}
	if len(refused) == len(refs) {
		if s.refusedBy != nil && s.refusedBy != o {
			return s.giveUp(err, now)
		}
		s.refusedBy = o
		o.rest.begin(now)
		return false, fmt.Errorf("all texts are refused, the organization waits for %s: %w", o.rest.wait, err)
	}
	s.works(o)
	for _, ref := range refused {
		s.skip(o, ref, err)
	}
	return true, nil
}

// works remembers that the service works, also for an organization.
func (s *Service) works(o *organization) {
	s.rest, o.rest, s.refusedBy = rest{}, rest{}, nil
}

// skip remembers that a text gets no vector.
func (s *Service) skip(o *organization, ref realm.BodyRef, err error) {
	s.refused.Add(1)
	o.skipped[ref.Message] = ref.Version
	s.o.Log.Warn("a text gets no vector for search by meaning", "realm", o.id, "message", int64(ref.Message),
		"err", err)
}

// giveUp leaves the service alone for some time after an error.
func (s *Service) giveUp(err error, now time.Time) (done bool, _ error) {
	switch {
	case s.ctx.Err() != nil:
		return false, err
	case errors.Is(err, errTokens):
		return false, nil
	}
	s.failures.Add(1)
	s.rest.begin(now)
	return false, fmt.Errorf("requests to the service for vectors wait for %s: %w", s.rest.wait, err)
}

// sendTogether asks the service for the vectors of all texts and stores them.
func (s *Service) sendTogether(o *organization, refs []realm.BodyRef, texts []string, now time.Time) error {
	x, err := s.open(o, 0)
	if err != nil {
		return err
	}
	day := now.Unix() / secondsPerDay
	used, dims := usage{Day: day}, 0
	if x != nil {
		if dims = x.dims; x.usage.Day == day {
			used = x.usage
		}
	}
	cost := estimate(texts)
	if s.o.DayTokens > 0 && used.Tokens+cost > s.o.DayTokens {
		if o.fullDay != day {
			o.fullDay = day
			s.dayHits.Add(1)
			s.o.Log.Warn("an organization has used up the tokens for vectors of today", "realm", o.id,
				"tokens", used.Tokens)
		}
		return errTokens
	}
	vectors, told, err := s.model.Embed(s.ctx, o.id, texts, dims)
	if err != nil {
		return err
	}
	// A service that tells nonsense costs at most four times the estimate, as for summaries.
	cost = min(cmp.Or(max(told, 0), cost), 4*cost)
	s.tokens.Add(cost)
	used.Tokens += cost
	if x, err = s.open(o, len(vectors[0])); err != nil || x == nil {
		return err
	}
	kept := refs[:0:0]
	list := vectors[:0:0]
	for i, v := range vectors {
		if !normalize(v) {
			s.skip(o, refs[i], errNoDirection)
			continue
		}
		kept, list = append(kept, refs[i]), append(list, v)
	}
	s.vectors.Add(int64(len(list)))
	return x.add(s.o.Name, kept, list, used)
}

// secondsPerDay is the length of a day whose tokens are counted.
const secondsPerDay = 86400

var errNoDirection = errors.New("the vector has no direction")

// estimate returns the tokens of texts, at most.
func estimate(texts []string) (n int64) {
	for _, t := range texts {
		n += int64(len(t))/bytesPerToken + 1
	}
	return n
}

// ErrBusy refuses a search while too many others run.
var ErrBusy error = realm.Refuse(realm.Busy, "SERVER_OVERLOADED",
	"Too many searches by meaning are running. Try again in a moment.")

// Dimensions returns how many numbers the vectors of an organization have; 0: it has none.
func (s *Service) Dimensions(id realm.ID) (int, error) {
	x, _, err := s.find(id)
	if x == nil {
		return 0, err
	}
	return x.dims, nil
}

// find returns the file of an organization; nil: there is none.
func (s *Service) find(id realm.ID) (*index, *organization, error) {
	s.mu.Lock()
	o := s.all[id]
	s.mu.Unlock()
	if o == nil {
		return nil, nil, nil
	}
	x, err := s.open(o, 0)
	return x, o, err
}

// Nearest returns all messages of an organization that have a vector, nearest first. The caller decides which of them
// a reader may see, and whether their versions are the current ones. complete is false while texts wait for vectors:
// from the Feed of a text on.
func (s *Service) Nearest(id realm.ID, query []float32) (list []Near, complete bool, err error) {
	x, o, err := s.find(id)
	if x == nil {
		return nil, false, err
	}
	if !normalize(query) {
		return nil, false, errNoDirection
	}
	leave := s.searches.Enter(strconv.FormatInt(int64(id), 10))
	if leave == nil {
		return nil, false, ErrBusy
	}
	defer leave()
	s.mu.Lock()
	complete = o.complete.Load() && !o.written
	s.mu.Unlock()
	list, damaged, err := x.nearest(query, func() bool { return s.ctx.Err() != nil })
	if err != nil {
		return nil, false, err
	}
	if len(damaged) > 0 {
		s.o.Log.Error("vectors are damaged, and are made again", "realm", id, "vectors", len(damaged))
		isWhole := func(ref realm.BodyRef) bool { return !slices.Contains(damaged, ref.Message) }
		if _, err := x.remove(isWhole); err != nil {
			return nil, false, err
		}
		s.Feed(id, true)
	}
	slices.SortFunc(list, func(a, b Near) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.Text.Message, a.Text.Message))
	})
	return list, complete && len(damaged) == 0, nil
}
