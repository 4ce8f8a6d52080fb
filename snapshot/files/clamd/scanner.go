package clamd

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"time"

	"parley/snapshot/files"
)

const (
	// chunkBytes is how much of a file is sent at once. The scanner's limit is that of the whole file.
	chunkBytes = 128 << 10
	// scanTimeout limits one file of the largest size, with the wait for other files.
	scanTimeout = 2 * time.Minute
	// connectTimeout limits the connection: a scanner that is down must not delay each upload.
	connectTimeout = 5 * time.Second
	// MaxScans is how many files are examined at the same time. The daemon has ten threads by default. An organization
	// has at most its share of the requests that wait.
	MaxScans = 8
	// maxAnswer limits the answer in bytes: the name of a signature.
	maxAnswer = 4 << 10
)

// Config has the address of the scanner, and the policy without it.
type Config struct {
	Address string // host:port, or the path of a socket
	Accept  bool   // store files that cannot be examined
	Log     *slog.Logger
	Timeout time.Duration // of one file; 0: scanTimeout
}

// Scanner is a files.Scanner.
type Scanner struct {
	c     Config
	slots chan struct{}
}

// New returns a scanner. It does not connect yet.
func New(c Config) *Scanner { return &Scanner{c: c, slots: make(chan struct{}, MaxScans)} }

// Scan examines a file. It returns nil, a *files.InfectedError, or files.ErrNotScanned.
func (s *Scanner) Scan(r io.Reader) error {
	found, err := s.ask(r)
	switch {
	case err == nil && found == "":
		return nil
	case err == nil:
		s.c.Log.Warn("upload refused: virus found", "name", found)
		return &files.InfectedError{Name: found}
	case s.c.Accept:
		s.c.Log.Warn("upload stored without an examination for viruses", "err", err)
		return nil
	}
	s.c.Log.Error("upload refused: it could not be examined for viruses", "err", err)
	if errors.Is(err, errTooLarge) {
		return files.ErrTooLargeToScan
	}
	return files.ErrNotScanned
}

var errTooLarge = errors.New("the file is larger than the scanner's StreamMaxLength")

// ask returns the name of the virus in a file, or "".
func (s *Scanner) ask(r io.Reader) (found string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(s.c.Timeout, scanTimeout))
	defer cancel()
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return "", errors.New("too many files wait for the virus scanner")
	}
	network := "tcp"
	if strings.HasPrefix(s.c.Address, "/") {
		network = "unix"
	}
	c, err := (&net.Dialer{Timeout: connectTimeout}).DialContext(ctx, network, s.c.Address)
	if err != nil {
		return "", err
	}
	defer c.Close()
	end, _ := ctx.Deadline()
	c.SetDeadline(end)
	sent := send(c, r)
	// The scanner answers and closes as soon as it knows, so the answer counts even if not everything was sent.
	answer, err := bufio.NewReader(io.LimitReader(c, maxAnswer)).ReadString(0)
	if answer == "" {
		return "", errors.Join(sent, fmt.Errorf("read the scanner's answer: %w", err))
	}
	answer = strings.TrimSpace(strings.TrimRight(answer, "\x00"))
	verdict := strings.TrimPrefix(answer, "stream: ")
	name, infected := strings.CutSuffix(verdict, " FOUND")
	switch {
	case infected:
		return name, nil
	case strings.Contains(answer, "size limit exceeded"):
		return "", errTooLarge
	case sent != nil:
		return "", sent
	case verdict == "OK":
		return "", nil
	}
	return "", fmt.Errorf("the scanner answers %q", answer)
}

// send sends a file in chunks: a length of four bytes and the bytes, at the end the length 0.
func send(c net.Conn, r io.Reader) error {
	if _, err := io.WriteString(c, "zINSTREAM\x00"); err != nil {
		return err
	}
	b := make([]byte, 4+chunkBytes)
	for {
		n, err := io.ReadFull(r, b[4:])
		if n > 0 {
			binary.BigEndian.PutUint32(b, uint32(n))
			if _, err := c.Write(b[:4+n]); err != nil {
				return err
			}
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			_, err = c.Write(make([]byte, 4))
			return err
		}
		if err != nil {
			return fmt.Errorf("read the file: %w", err)
		}
	}
}
