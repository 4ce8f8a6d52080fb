package cluster

import (
	"fmt"

	"parley/actors/delivery"
	"parley/actors/presence"
	"parley/actors/realm"
	"parley/snapshot/codec"
	"parley/wire/httpd"
)

// The greeting of an edge and the answer of the core.
type (
	greeting struct {
		Version int
		Boot    string     // random id of the process: two processes may have copies of one data directory
		Program string     // version of the program
		Clock   int64      // Unix milliseconds
		Realms  []realm.ID // organizations that the edge has replicas of
		Level   uint16     // newest rule level that the program knows; 0: realm.FirstLevel
		// NoSecret says that the node does not expect the server's secret in the answer. Edges of older releases do.
		NoSecret bool
	}
	welcome struct {
		Cores []string // addresses

		Node    string
		Program string // version
		Clock   int64  // Unix milliseconds
		// Settings are the settings of the core that must be the same at all nodes of a cluster, by name.
		Settings         map[string]string
		Secret           []byte // of the server, from cores of older releases; not read
		Generation       int64
		Pushes, Bouncer  bool
		DevelopmentLogin bool
		Seqs             map[realm.ID]realm.Seq // the last fact of each realm of the greeting
	}
)

// Kinds of messages: the first byte of a message or call.
const (
	// Messages of an edge.
	msgOpen       = 1  // realm.ID: the edge has a replica
	msgClose      = 2  // realm.ID
	msgCloseQueue = 3  // queueMessage
	msgTick       = 4  // realm.ID
	msgReport     = 5  // edgeReport
	msgDigest     = 6  // digestMessage, the answer to msgAskDigest
	msgAdopt      = 7  // adoptMessage
	msgHosted     = 8  // hostedMessage
	msgAcks       = 9  // acksMessage
	msgOnline     = 10 // onlineMessage

	// Messages of a core.
	msgPresence  = 20 // presenceMessage
	msgEphemeral = 21 // ephemeralMessage
	msgAskDigest = 22 // digestMessage
	msgAdopted   = 23 // adoptedMessage
	msgDrop      = 24 // dropMessage
	msgEvict     = 25 // evictMessage
	msgSeqs      = 26 // seqsMessage, the answer to msgReport
	msgMembers   = 27 // membersMessage

	// Calls of an edge.
	callRows    = 40 // realm.ID -> rowsPart...
	callFollow  = 41 // followCall -> batches
	callText    = 42 // textCall -> textAnswer
	callForward = 43 // httpd.ForwardedRequest -> httpd.ForwardedAnswer
	callRealm   = 44 // string: subdomain -> realm.ID, 0: there is none
	callSeq     = 45 // realm.ID -> realm.Seq
	callCommand = 46 // commandCall -> JSON
	callTexts   = 47 // textsCall -> textsPart...
	callImport  = 48 // importCall -> importAnswer
	// callQueues asks the leader whether this core may host event queues -> bool. Older releases do not know the call:
	// a core hosts no queues while one of them is the leader.
	callQueues = 49
)

type (
	queueMessage struct {
		Realm realm.ID
		Queue realm.QueueID
	}
	// edgeReport is the state of an edge.
	edgeReport struct {
		Applied map[realm.ID]realm.Seq
		Queues  int64
		Polls   int64
		Full    bool // the disk of a core is full: it must not become the leader; see encodeReport
		Sleep   sleepReport
	}
	// sleepReport are the organizations of a core that are not in memory. Due is when the first one is due, in Unix
	// seconds; 0: none is.
	sleepReport struct{ Asleep, Waking, Due int64 }
	// seqsMessage has the last fact of each realm in a report, so that the edge knows how far its replicas are behind.
	seqsMessage map[realm.ID]realm.Seq
	// membersMessage has the addresses of the cores, and the cores that were removed, for an edge.
	membersMessage struct {
		Cores   []string
		Removed []string
	}
	presenceMessage struct {
		Realm realm.ID
		Rows  []presence.Row
	}
	ephemeralMessage struct {
		Realm realm.ID
		Told  []byte // codec.EncodeUnacked
	}
	// digestMessage asks for the digest of a realm's state after a fact. The answer is also a digestMessage.
	digestMessage struct {
		ID     int64
		Realm  realm.ID
		Seq    realm.Seq
		Digest string
		Err    string
	}
	// adoptMessage asks for an event queue; adoptedMessage is the answer with the same ID.
	adoptMessage struct {
		ID       int64
		Realm    realm.ID
		Adoption delivery.Adoption
	}
	adoptedMessage struct {
		ID      int64
		Adopted delivery.Adopted // without its events
		Events  [][]byte         // codec.EncodeUnacked
		Err     string
	}
	hostedMessage struct {
		Realm realm.ID
		Kept  delivery.HostedQueues
	}
	acksMessage struct {
		Realm realm.ID
		Acks  delivery.QueueAcks
	}
	// onlineMessage has the presence reports of the clients of an edge.
	onlineMessage struct {
		Realm   realm.ID
		Reports []presence.Report
	}
	dropMessage struct {
		Realm  realm.ID
		Queues []delivery.DroppedQueue
	}
	evictMessage struct {
		Realm  realm.ID
		Before realm.Seq
	}
	// rowsPart is a part of the rows of a realm. The last one has the number of the last fact that they contain.
	rowsPart struct {
		Rows []realm.EncodedRow
		Last bool
		At   realm.Seq
	}
	followCall struct {
		Realm realm.ID
		After realm.Seq
		// One asks for one batch only. It is set for a realm without rows, which the edge follows from its first fact.
		One bool
	}
	textCall struct {
		Realm realm.ID
		Ref   realm.BodyRef
	}
	textAnswer struct {
		Found bool
		Body  realm.Body
	}
	textsCall struct {
		Realm realm.ID
		Refs  []realm.BodyRef // at most maxTexts
	}
	// textsPart has the texts that could be read.
	textsPart struct {
		Refs   []realm.BodyRef
		Bodies []realm.Body
	}
	commandCall struct {
		Name string
		Args map[string]string
	}
	forwardCall   httpd.ForwardedRequest
	forwardAnswer httpd.ForwardedAnswer
)

const (
	// rowsPartBytes is how many bytes of rows, or of texts, are sent together.
	rowsPartBytes = 128 << 10
	// maxTexts is how many texts one call asks for: more than one view of a page has.
	maxTexts = 1000
)

// encode returns a message with its kind.
func encode(kind byte, v any) []byte { return append([]byte{kind}, codec.EncodeRow(v)...) }

// encodeReport encodes a report. It omits the field Full unless the disk is full, because older releases cannot decode
// a report with this field. Cores have organizations asleep only if no older release is in the cluster.
func encodeReport(r *edgeReport) []byte {
	switch {
	case r.Sleep != sleepReport{}:
		return encode(msgReport, r)
	case r.Full:
		return encode(msgReport, &struct {
			Applied       map[realm.ID]realm.Seq
			Queues, Polls int64
			Full          bool
		}{r.Applied, r.Queues, r.Polls, true})
	}
	return encode(msgReport, &struct {
		Applied       map[realm.ID]realm.Seq
		Queues, Polls int64
	}{r.Applied, r.Queues, r.Polls})
}

// decode decodes a message or a part without its kind. The sender may run another release.
func decode(data []byte, into any) error {
	if err := codec.DecodeOfAnother(data, into); err != nil {
		return fmt.Errorf("message of another node: %w", err)
	}
	return nil
}

// behindError tells an edge that the facts it needs are no longer in the journal.
type behindError struct{ error }

// codeBehind is the code of a behindError on a link.
const codeBehind = 11

func (behindError) LinkCode() uint32 { return codeBehind }
