package operator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"parley/actors/realm"
	"parley/cmd/internal/datadir"
	"parley/cmd/internal/orgfiles"
	"parley/snapshot"
	"parley/snapshot/erase"
	"parley/snapshot/files/sweep"
	"parley/snapshot/meaning"
	"parley/snapshot/search"
)

// erasureCallTime is how long one call of user-erase works. The client of the control socket waits a minute, and
// repeats the call until everything is removed.
const erasureCallTime = 20 * time.Second

// RemainingData is data of a person that an erasure does not remove, with the reason.
type RemainingData struct {
	Kind   string `json:"kind"`
	Count  int    `json:"count,omitempty"`
	Reason string `json:"reason"`
}

// Certificate says which data of a person were removed. Signature is by the server's secret; Digest is the SHA-256 of
// the certificate without these two fields.
type Certificate struct {
	Organization     string          `json:"organization"`
	OrganizationUUID string          `json:"organization_uuid"`
	User             realm.UserID    `json:"user_id"`
	Began            string          `json:"began"`
	Finished         string          `json:"finished"`
	Removed          map[string]int  `json:"removed"`
	Kept             []RemainingData `json:"kept"`
	Digest           string          `json:"digest"`
	Signature        string          `json:"signature"`
}

// userErase deletes the data of a person permanently, and then the bytes that the disk still has. One call takes at
// most erasureCallTime; while the answer's done is false, the same command with the user's id continues. The answer of
// the last call has the certificate.
func userErase(o *Operator, args map[string]string) (any, error) {
	id, u, err := o.userByID(args)
	if err != nil {
		return nil, err
	}
	if _, err := realm.Execute(o.Orgs, id, realm.Operator, realm.EraseUser{User: u}); err != nil {
		return nil, err
	}
	until := time.Now().Add(erasureCallTime)
	e, left := realm.Erasure{}, 0
	for e.Done == 0 {
		if e, err = realm.Execute(o.Orgs, id, realm.Operator, realm.StepErasure{User: u}); err != nil {
			return nil, err
		}
		if e.Done == 0 && time.Now().After(until) {
			_, err := o.Orgs.View(id, realm.System, func(v realm.View) (any, error) {
				left = v.SentCount(u)
				return nil, nil
			})
			return map[string]any{"user_id": u, "done": false, "messages_left": left}, err
		}
	}
	if err := o.eraseBytes(id, e); err != nil {
		return nil, err
	}
	c, err := o.certificate(id, u, e)
	return map[string]any{"user_id": u, "done": true, "certificate": c}, err
}

// userByID returns the user whose id or address the arguments have. An account whose data are deleted has no address
// any more.
func (o *Operator) userByID(args map[string]string) (realm.ID, realm.UserID, error) {
	if args["id"] == "" {
		return o.user(args)
	}
	if args["email"] != "" {
		return 0, 0, errors.New("give either --email or --id, not both")
	}
	id, err := o.realm(args)
	if err != nil {
		return 0, 0, err
	}
	u, err := strconv.ParseInt(args["id"], 10, 64)
	if err != nil {
		return 0, 0, fmt.Errorf("--id must be the number of a user, not %q", args["id"])
	}
	return id, realm.UserID(u), nil
}

// eraseBytes removes the bytes of deleted texts, rows and files from the disk. It can be repeated.
func (o *Operator) eraseBytes(id realm.ID, e realm.Erasure) error {
	row, err := o.Orgs.View(id, realm.System, func(v realm.View) (any, error) {
		p := v.PurgedRange()
		p.Seq = v.Seq() // rows and facts have personal data, too
		return p, nil
	})
	if err != nil {
		return err
	}
	o.Orgs.CollectAcks(id) // rows with fetched events go, too
	disk := snapshot.Disk{Store: o.Store}
	if _, err := erase.Row(context.Background(), disk, o.Orgs, id, row.(realm.ErasedTexts), true, o.Log); err != nil {
		return err
	}
	if err := o.eraseWords(id); err != nil {
		return err
	}
	store := o.Files
	if store == nil { // of a stopped server
		var end func()
		if store, end, err = orgfiles.Open(o.Data, false); err != nil {
			return err
		}
		defer end()
	}
	_, err = sweep.Sweep(o.Orgs, store, time.Unix(e.At+1, 0), func() bool { return true })
	return err
}

// eraseWords removes the words of deleted texts from the files of the search index. If that takes longer than
// erasureCallTime, the server completes it in the background.
func (o *Operator) eraseWords(id realm.ID) error {
	if o.Search == nil { // of a stopped server: its next start makes the index
		return errors.Join(os.RemoveAll(search.IndexDir(datadir.SearchDir(o.Data), id)),
			os.RemoveAll(meaning.FileOf(datadir.MeaningDir(o.Data), id)))
	}
	ctx, cancel := context.WithTimeout(context.Background(), erasureCallTime)
	defer cancel()
	err := o.Search.Rewrite(ctx, id)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// certificate returns the certificate of a completed erasure.
func (o *Operator) certificate(id realm.ID, u realm.UserID, e realm.Erasure) (*Certificate, error) {
	c := &Certificate{User: u, Began: showTime(e.At), Finished: showTime(e.Done), Removed: map[string]int{},
		Kept: []RemainingData{
			{"account", 1, "an empty account without name and address, which messages of others refer to"},
			{"time of the last activity", 1, "nobody sees it"},
			{"quotes", 0, "words and the name of the person in messages of others, also in notices of the server, " +
				"belong to those messages"},
			{"emails that were sent", 0, "without smtp-host they are files in the folder outbox; the operator " +
				"deletes them"},
			{"events on their way", 0, "until clients of others have fetched them or their queues end; then the same " +
				"command with --id removes their bytes, too"},
			{"words in files of the search index", 0, "no search finds them; the server writes these files again, " +
				"in a large organization for some time after the erasure"},
			{"exports and backups", 0, "those made before have everything; the operator deletes them"},
		}}
	if o.Leader != nil {
		c.Kept = append(c.Kept, RemainingData{"replicated log", 0,
			"each core deletes old entries as new ones follow; no backup contains the log"})
	}
	if o.FilesElsewhere {
		c.Kept = append(c.Kept, RemainingData{"files on other cores", 0,
			"there is no bucket: a core that led before removes them when it leads again; no user can download them"})
	}
	for _, x := range realm.RemainingReasons() {
		c.Kept = append(c.Kept, RemainingData{x.Kinds, 0, x.Reason})
	}
	for _, x := range e.Count {
		c.Removed[x.Kind] = x.N
	}
	_, err := o.Orgs.View(id, realm.System, func(v realm.View) (any, error) {
		c.Organization, c.OrganizationUUID = v.Org().Name, v.Org().UUID
		k := v.RemainingDataOf(u)
		for _, x := range []RemainingData{
			{"deleted messages", k.HeldMessages, "under a legal hold of a channel or of another user"},
			{"deleted messages", k.RestoredMessages, "in an archive that is being restored: repeat the command"},
			{"deleted files", k.SharedFiles, "deleted messages of others use them; they go with these messages"},
		} {
			if x.Count > 0 {
				c.Kept = append(c.Kept, x)
			}
		}
		return nil, nil
	})
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	c.Digest, c.Signature = hex.EncodeToString(sum[:]), o.Sign(string(text))
	return c, nil
}
