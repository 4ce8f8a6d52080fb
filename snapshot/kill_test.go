package snapshot

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
)

const childDir = "PARLEY_CHILD_DIR"

// TestMain also runs the process that TestKill kills.
func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := appendForEver(dir); err != nil {
			fmt.Println("child:", err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// appendForEver prints the number of each fact once it is durable.
func appendForEver(dir string) error {
	s, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	c, err := s.Claim(1, AnyEpoch)
	if err != nil {
		return err
	}
	for n := c.Last + 1; ; n++ {
		number := binary.BigEndian.AppendUint64(nil, uint64(n))
		e := Entry{
			Realm:  1,
			Epoch:  c.Epoch,
			After:  n - 1,
			Facts:  [][]byte{number},
			Bodies: []Put{{number, fmt.Appendf(nil, "body %d", n)}},
		}
		if err := s.Append([]Entry{e})[0]; err != nil {
			return err
		}
		if n%50 == 0 {
			if err := s.Snapshot(1, c.Epoch, n-10, yieldRows(Row{Table: 1, Key: []byte("last"),
				Value: number})); err != nil {
				return err
			}
		}
		fmt.Println(n)
	}
}

func TestKill(t *testing.T) {
	dir := t.TempDir()
	last := Seq(0)
	for round := range 4 {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), childDir+"="+dir)
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for range 70 + 37*round {
			if !lines.Scan() {
				t.Fatal("the child process ended by itself")
			}
			if _, err := fmt.Sscan(lines.Text(), &last); err != nil {
				t.Fatalf("%q: %v", lines.Text(), err)
			}
		}
		if _, err := Open(dir, Options{}); !errors.Is(err, ErrInUse) {
			t.Fatalf("open while another process has it open: %v", err)
		}
		child.Process.Kill()
		for lines.Scan() {
			fmt.Sscan(lines.Text(), &last)
		}
		child.Wait()

		if err := Check(dir, Options{}, func(f Finding) { t.Errorf("round %d: %v", round, f) }); err != nil {
			t.Fatal(err)
		}
		s, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		c := mustClaim(t, s, 1)
		if c.Last < last || c.Rows != c.Last/50*50-10 && c.Rows != (c.Last-1)/50*50-10 {
			t.Errorf("round %d: %d was durable, now %+v", round, last, c)
		}
		for n := Seq(1); n <= c.Last; n++ {
			body, found, err := s.Body(1, binary.BigEndian.AppendUint64(nil, uint64(n)))
			if !found || err != nil || string(body) != fmt.Sprintf("body %d", n) {
				t.Fatalf("round %d: body %d: %q %v %v", round, n, body, found, err)
			}
		}
		if got := len(tail(t, s, 1, c.Rows)); got != int(c.Last-c.Rows) {
			t.Errorf("round %d: %d facts after the rows, %+v", round, got, c)
		}
		mustClose(t, s)
	}
}
