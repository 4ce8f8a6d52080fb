package server

import (
	"os"

	"parley/actors"
	"parley/actors/realm"
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
	s.meaning, err = meaning.Open(meaning.Options{
		Dir: dir, Name: s.assistSettings.EmbedName(), Messages: s.EmbedMessages,
		DayTokens: int64(s.EmbedOrganizationTokens),
		Plain:     func(b realm.Body) string { return markdown.PlainText(b.HTML) },
		NoWrites:  s.space.IsLow,
		Several:   func() bool { return s.orgs.HasSeveralRealms() },
		Now:       s.config.now, Log: s.log,
	})
	return err
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
		x.meaning.Feed(id)
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
