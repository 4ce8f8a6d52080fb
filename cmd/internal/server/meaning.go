package server

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"

	"parley/actors"
	"parley/actors/realm"
	"parley/cmd/internal/cluster"
	"parley/cmd/internal/datadir"
	"parley/snapshot/meaning"
	"parley/snapshot/search"
	"parley/wire"
	"parley/wire/assist"
	"parley/wire/markdown"
)

// openMeaning opens the vectors for search by meaning. Without a service for them, those of an earlier start are
// deleted: nothing would erase the vectors of deleted messages.
func (s *Server) openMeaning() (err error) {
	dir := datadir.MeaningDir(s.Data)
	if s.EmbedURL == "" {
		return os.RemoveAll(dir)
	}
	var fetch func(context.Context, realm.ID, func(int64, io.Reader) error) error
	if s.coreNode != nil {
		fetch = s.fetchVectors
	}
	s.meaning, err = meaning.Open(meaning.Options{
		Dir: dir, Fetch: fetch, Name: s.assistSettings.EmbedName(), Messages: s.EmbedMessages,
		DayTokens: int64(s.EmbedOrganizationTokens),
		Plain:     func(b realm.Body) string { return markdown.PlainText(b.HTML) },
		NoWrites:  s.space.IsLow,
		Several:   func() bool { return s.orgs.HasSeveralRealms() },
		Now:       s.config.now, Log: s.log,
	})
	return err
}

// vectorFiles is the kind of the files of vectors, for other cores.
const vectorFiles = "vectors"

// fetchVectors gets the vectors of an organization from another core; see meaning.Options.
func (s *Server) fetchVectors(ctx context.Context, id realm.ID, save func(int64, io.Reader) error) error {
	core := s.vectorCores.Load()
	if core == nil {
		return errors.New("this core is starting")
	}
	err := core.FetchFile(ctx, vectorFiles, strconv.FormatUint(uint64(id), 10), save)
	if errors.Is(err, cluster.ErrNoCoreHas) {
		return fs.ErrNotExist
	}
	return err
}

// openForCores returns the function that opens files for other cores: those of vectors, and stored ones. stored is nil
// if these are in a bucket.
func (s *Server) openForCores(
	stored func(kind, name string) (cluster.StoredFile, error),
) func(kind, name string) (cluster.StoredFile, error) {
	return func(kind, name string) (cluster.StoredFile, error) {
		switch {
		case kind == vectorFiles && s.meaning != nil:
			f, err := s.meaning.OpenFile(name)
			if err != nil {
				return nil, err
			}
			return f, nil
		case kind == vectorFiles || stored == nil:
			return nil, fs.ErrNotExist
		}
		return stored(kind, name)
	}
}

// startMeaning starts to make vectors, and offers the search.
func (s *Server) startMeaning() {
	if s.meaning == nil {
		return
	}
	model := s.assistant.Embedder()
	s.meaning.Start(meaningSource{s.orgs}, model)
	s.tools.Meaning = meaningSearch{s.meaning, model}
}

// indexes are the indexes that follow the texts of organizations.
type indexes struct {
	*search.Service
	meaning *meaning.Service // nil: there is no service for vectors
}

func (x indexes) Attach(id realm.ID, last, rows realm.Seq, text realm.TextReader) {
	x.Service.Attach(id, last, rows, text)
	if x.meaning != nil {
		x.meaning.Attach(id, text)
	}
}

func (x indexes) Detach(id realm.ID) {
	x.Service.Detach(id)
	if x.meaning != nil {
		x.meaning.Detach(id)
	}
}

func (x indexes) Feed(id realm.ID, upto realm.Seq, texts []realm.TextWrite) {
	x.Service.Feed(id, upto, texts)
	if x.meaning != nil {
		x.meaning.Feed(id, slices.ContainsFunc(texts, func(t realm.TextWrite) bool { return t.Body != nil }))
	}
}

// meaningSource tells the vectors about the organizations.
type meaningSource struct{ orgs *actors.Server }

func (m meaningSource) Agreed(id realm.ID) (agreed, owned bool, err error) {
	x, err := m.orgs.View(id, realm.System, func(v realm.View) (any, error) {
		return v.OrgBool(realm.MeaningSetting), nil
	})
	if err != nil {
		return false, false, err
	}
	return x.(bool), m.orgs.Owns(id), nil
}

func (m meaningSource) TextsBefore(
	id realm.ID, before realm.MessageID, ids int,
) (refs []realm.BodyRef, next realm.MessageID, err error) {
	_, err = m.orgs.View(id, realm.System, func(v realm.View) (any, error) {
		refs, next = v.TextsBefore(before, ids)
		return nil, nil
	})
	return refs, next, err
}

// meaningSearch searches the vectors with those of the words.
type meaningSearch struct {
	vectors *meaning.Service
	model   *assist.Embedder
}

// Nearest asks for no vector in an organization that has none yet.
func (m meaningSearch) Nearest(by wire.Asker, words string) (list []wire.NearText, complete bool, err error) {
	dims, err := m.vectors.Dimensions(by.Realm)
	if err != nil || dims == 0 {
		return nil, false, err
	}
	query, err := m.model.Query(by, words, dims)
	if err != nil {
		return nil, false, err
	}
	near, complete, err := m.vectors.Nearest(by.Realm, query)
	if err != nil {
		return nil, false, err
	}
	list = make([]wire.NearText, len(near))
	for i, x := range near {
		list[i] = wire.NearText{Text: x.Text, Score: x.Score}
	}
	return list, complete, nil
}
