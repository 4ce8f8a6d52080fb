package realm

import (
	"slices"

	"parley/actors/realm/ids"
)

// Messages whose time in the archive is over are purged: their rows, texts and files are deleted permanently, except
// those under a legal hold. The disk still has the bytes until the store has compacted the range of the purged texts.
// The rows of PurgedTexts have that range, so the task survives a restart. The same is true of old texts that a full
// edit history has lost.

// Limits of purging.
const (
	// maxPurgeStepTexts is how many versions of texts one turn erases: each is a delete in the store.
	maxPurgeStepTexts = 1000
	// maxPurgeSteps is how many turns purge messages in one tick of the clock, which is every five seconds. That leaves
	// the disk and the search index to other work: a million messages take a quarter of an hour.
	maxPurgeSteps = 50
	// maxPurgeRowsScanned is how many rows of the archive one turn looks at, a hundred messages each: rows under a
	// legal hold are skipped. About a millisecond.
	maxPurgeRowsScanned = 100
	// purgeInterval is the time between two checks of the whole archive, in seconds: each includes the rows under a
	// legal hold.
	purgeInterval = 3600
)

// purgeProgress is how far the purge has checked the archive. It is not stored: after a restart it begins again.
type purgeProgress struct {
	last int64 // row checked last
	next int64 // time before which nothing is due
	pace pace
}

// pace limits the steps of a kind of work in one tick of the clock.
type pace struct {
	tick  int64 // Unix seconds
	steps int
}

// allows reports whether another step may be made at this time, and counts it.
func (p *pace) allows(now int64, steps int) bool {
	if p.tick != now {
		p.tick, p.steps = now, 0
	}
	if p.steps >= steps {
		return false
	}
	p.steps++
	return true
}

// archivePurgeDue returns a turn that purges the next messages, or nil.
func archivePurgeDue(r *Realm, now int64) func(*Turn) (any, error) {
	x := &r.purgeProgress
	if now < x.next || r.retentionPaused || r.small.archived.size() == 0 {
		return nil
	}
	held := r.heldPlaces()
	for range maxPurgeRowsScanned {
		number, ok := r.small.archived.keyAfter(x.last)
		if !ok {
			x.last, x.next = 0, now+purgeInterval
			return nil
		}
		row := r.small.archived.must(number)
		if due := row.At + r.archiveTime; due > now { // later rows are younger
			x.last, x.next = 0, min(due, now+purgeInterval)
			return nil
		}
		messages := r.purgeable(number, row, held, 0)
		if messages.Empty() {
			x.last = number
			continue
		}
		if !x.pace.allows(now, maxPurgeSteps) {
			return nil
		}
		return func(t *Turn) (any, error) {
			t.purgeArchived(number, messages)
			return nil, nil
		}
	}
	return nil
}

// purgeable returns the messages of a row that may be purged in one turn: those of one sender, or with sender 0 of all.
func (r *Realm) purgeable(number int64, row *ArchivedMessages, held heldPlaces, sender UserID) (out ids.Set) {
	if r.small.archives.must(row.Archive).RestoreBelow > number {
		return out
	}
	texts := 0
	row.Messages.Each(func(id int64) bool {
		m, extra := row.message(id), row.extra(id)
		if sender != 0 && UserID(m.sender) != sender || r.onHold(held, &m, extra) {
			return true
		}
		if texts++; extra != nil {
			texts += int(extra.Version)
		}
		out.Add(id)
		return texts < maxPurgeStepTexts
	})
	return out
}

// purgeArchived records that messages of a row are purged, with the files that no other message uses.
func (t *Turn) purgeArchived(number int64, messages ids.Set) {
	row := t.small.archived.must(number)
	f := &MessagesPurged{Row: number, IDs: ids.IDs[MessageID](messages)}
	var paths []string
	for _, id := range f.IDs {
		version := uint16(0)
		if extra := row.extra(int64(id)); extra != nil {
			version = extra.Version
			paths = append(paths, extra.Attachments...)
		}
		f.Versions = append(f.Versions, version)
	}
	x := &t.small.archiveIndex
	for _, p := range slices.Compact(slices.Sorted(slices.Values(paths))) {
		if id, ok := x.uploads[p]; ok && ids.Difference(findSet(x.withFile, p), messages).Empty() {
			f.Uploads = append(f.Uploads, id)
		}
	}
	t.Record(f)
}

// MessagesPurged says that archived messages are deleted permanently, with all versions of their texts.
type MessagesPurged struct {
	Row      int64
	IDs      []MessageID // ascending
	Versions []uint16    // newest version of each message's text
	Uploads  []int64     // archived files that are deleted, too
}

func (*MessagesPurged) notices(*Realm) []Notice { return nil }

// Erased returns every version of the texts.
func (f *MessagesPurged) Erased() []BodyRef { return allVersions(f.IDs, f.Versions) }

// allVersions returns every version of messages' texts.
func allVersions(messages []MessageID, newest []uint16) (out []BodyRef) {
	for i, id := range messages {
		for v := range int(newest[i]) + 1 {
			out = append(out, BodyRef{Message: id, Version: uint16(v)})
		}
	}
	return out
}

func (f *MessagesPurged) apply(r *Realm) {
	r.removeArchived(f.Row, ids.SetOf(f.IDs...))
	for _, id := range f.Uploads {
		r.small.indexArchivedUpload(r.small.archivedUploads.must(id), -1)
		r.small.archivedUploads.remove(id)
	}
	r.recordErasedTexts(purgedMessages, f.IDs...)
}

// PurgedTexts is a row of texts that were erased and whose bytes the disk may still have.
type PurgedTexts struct {
	From, To MessageID // the range that contains all of them
	Messages int
	Seq      Seq   // of the last fact that erased one
	Since    int64 // Unix seconds of the first erased text; 0 for purged messages
}

// The keys of the rows of PurgedTexts.
const (
	purgedMessages = 0
	// droppedVersions are the old texts that edit histories lost because they were full.
	droppedVersions = 1
)

// droppedVersionsDelay is how long the disk may have the bytes of droppedVersions, in seconds. Their removal rewrites a
// range of texts, and one edit is enough to need it. With the delay, members can cause it only once a day.
const droppedVersionsDelay = secondsPerDay

// recordErasedTexts adds messages to a row of PurgedTexts. Their ids ascend.
func (r *Realm) recordErasedTexts(row int, messages ...MessageID) *PurgedTexts {
	p := r.small.purgedTexts.ensure(row)
	first, last := messages[0], messages[len(messages)-1]
	if p.Messages == 0 || first < p.From {
		p.From = first
	}
	p.To = max(p.To, last)
	p.Messages += len(messages)
	p.Seq = r.seq
	return p
}

// ErasedTexts is a range of texts whose bytes are to be removed from the disk.
type ErasedTexts struct {
	Row int
	PurgedTexts
}

// ErasedTexts returns the texts whose bytes are to be removed now. It does not return purged messages while more
// messages are about to be purged.
func (v View) ErasedTexts() (out []ErasedTexts) {
	purged := v.purgeProgress.next > v.Now || v.small.archived.size() == 0
	if p := v.small.purgedTexts.find(purgedMessages); p != nil && purged {
		out = append(out, ErasedTexts{purgedMessages, *p})
	}
	if p := v.small.purgedTexts.find(droppedVersions); p != nil && v.Now >= p.Since+droppedVersionsDelay {
		out = append(out, ErasedTexts{droppedVersions, *p})
	}
	return out
}

// RecordTextsCompacted is a command of the server: the store of the owner has removed the bytes of all texts of a row
// that were erased up to a fact.
type RecordTextsCompacted struct {
	Row    int
	Upto   Seq
	Person bool // the data of a person were removed, too: recorded also if the person had no messages
}

func (c RecordTextsCompacted) Decide(t *Turn) (Done, error) {
	if !t.System {
		return Done{}, errPermission()
	}
	if p := t.small.purgedTexts.find(c.Row); p != nil && p.Seq <= c.Upto || p == nil && c.Person {
		t.Record(&TextsCompacted{c.Row})
	}
	return Done{}, nil
}

// TextsCompacted says that no bytes of a row of PurgedTexts are left on the disk of the owner. The other cores of a
// cluster then remove them from theirs.
type TextsCompacted struct{ Row int }

func (f *TextsCompacted) apply(r *Realm)        { r.small.purgedTexts.remove(f.Row) }
func (*TextsCompacted) notices(*Realm) []Notice { return nil }
