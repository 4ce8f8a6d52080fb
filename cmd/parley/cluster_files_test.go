package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"parley/snapshot/files/s3/s3test"
)

// A leader is frozen while its removal of a file is on the way to the bucket. The next leader gets the same content
// again. The removal arrives then, and does not remove the new file. The next leader removes files without a command of
// the operator.
func TestClusterRemovesFiles(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", s3test.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s3test.SecretKey)
	b := &bucketServer{t: t, s3: s3test.Start(t), folder: "files"}
	b.proxy = b.s3.Proxy(t)
	list := newCores(t, t.TempDir(), []string{"a", "b", "c"}, "--files", b.proxy.URL(b.folder))
	all := startCluster(t, list...)
	frozen := all.leader(list[0])
	b.ann = demoAccount(t, "http://"+frozen.listen, "ann@example.org")
	first := b.ann.uploadText(t, "notes.txt", "the same content")
	id := b.attachments()[first]
	held := b.proxy.HoldBefore("DELETE")
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		b.request("DELETE", fmt.Sprintf("/api/v1/attachments/%d", id))
	}()
	removal := <-held
	if err := frozen.program.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer frozen.program.cmd.Process.Signal(syscall.SIGCONT)
	other := *b
	other.ann = &account{email: b.ann.email, key: b.ann.key, url: "http://" + all.other(frozen).listen}
	// The file may be on the way to the leader that does not answer: then it is refused, and sent again.
	var second string
	all.retry("upload at the next leader", func() error {
		status, a, err := other.ann.upload(map[string]io.Reader{"notes.txt": strings.NewReader("the same content")})
		if err != nil || status != 200 {
			return fmt.Errorf("upload: %d %v %v", status, a, err)
		}
		second = a["url"].(string)
		return nil
	})
	if n := len(b.objects()); n != 2 {
		t.Errorf("the bucket has %d files before the late removal, want 2", n)
	}
	removal.Release()
	eventually(t, "the late removal has removed the first file", func() bool { return len(b.objects()) == 1 })
	if text := other.ann.download(t, second); text != "the same content" {
		t.Errorf("the new file is %q", text)
	}
	frozen.program.cmd.Process.Signal(syscall.SIGCONT)
	<-answered
	all.retry("delete the new file", func() error {
		list, err := other.ann.call("GET", "attachments", nil)
		if err != nil {
			return err
		}
		for _, x := range list["attachments"].([]any) {
			if x := x.(map[string]any); "/user_uploads/"+x["path_id"].(string) == second {
				_, err = other.ann.call("DELETE", fmt.Sprint("attachments/", int64(x["id"].(float64))), nil)
			}
		}
		return err
	})
	eventually(t, "the next leader has removed the file", func() bool { return len(b.objects()) == 0 })
}

// The cores of a cluster have files in their own data directories, each those of the time when it led. The operator
// moves them to a bucket while at least one core runs. Then every file can be downloaded, whichever core leads.
func TestFilesOfClusterMove(t *testing.T) {
	if os.Getenv("OUTAGE") == "" {
		t.Skip("takes 15 s: make conform-s3")
	}
	t.Setenv("AWS_ACCESS_KEY_ID", s3test.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s3test.SecretKey)
	bucket := s3test.Start(t).URL("files")
	all := startCores(t, "a", "b", "c")
	var links []string
	upload := func(text string) {
		t.Helper()
		leader := all.leader(all.list[0])
		ann := demoAccount(t, "http://"+leader.listen, "ann@example.org")
		links = append(links, ann.uploadText(t, text+".txt", text))
	}
	move := func(c *runningCore, says string) {
		t.Helper()
		if out, code := runParley("files", "move", "--to", bucket, "--data", c.data); code != 0 ||
			!strings.Contains(out, says) {
			t.Fatalf("files move at core %s: code %d: %s", c.name, code, out)
		}
	}
	upload("file 0")
	ann := demoAccount(t, "http://"+all.list[0].listen, "ann@example.org")
	all.moveLeader("b", ann)
	upload("file 1")
	for _, c := range all.list {
		move(c, "Stop it and run the same command again")
	}
	for _, c := range all.list {
		upload("while " + c.name + " is moved next")
		c.program.stop()
		move(c, " now. A setting")
		c.start(t)
		c.program.serving()
	}
	for _, name := range []string{"a", "b", "c"} {
		all.moveLeader(name, ann)
		for _, c := range all.list {
			for i, link := range links {
				from := *ann
				from.url = "http://" + c.listen
				if text := from.download(t, link); !strings.HasPrefix(link, "/user_uploads/") || text == "" {
					t.Errorf("file %d at core %s: %q", i, c.name, text)
				}
			}
		}
	}
	all.expectEqual()
}
