// Package s3test runs a real S3 server for tests: versitygw, which stores the objects of a bucket as files of a folder.
package s3test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// version of versitygw, and where go install finds it.
const (
	version = "v1.8.0"
	module  = "github.com/versity/versitygw/cmd/versitygw"
)

// The keys of the server.
const (
	AccessKey = "test-key"
	SecretKey = "test-secret-0123456789"
)

// Bucket is the bucket that a new server has.
const Bucket = "parley-files"

// buildTimeout is for downloading and building the server, which takes a minute on two cores. Later runs use the
// result from the user's cache.
const buildTimeout = 5 * time.Minute

// Server is an S3 server.
type Server struct {
	t       testing.TB
	program string
	folder  string
	address string
	process *exec.Cmd
}

// Start starts a server with an empty bucket and ends it when the test ends. The test is skipped, with the reason, if
// the server cannot be downloaded or built.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{t: t, program: install(t), folder: t.TempDir()}
	if err := os.MkdirAll(filepath.Join(s.folder, "root", Bucket), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(s.folder, "meta"), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = l.Addr().String()
	l.Close()
	s.Resume()
	t.Cleanup(s.Kill)
	return s
}

func install(t testing.TB) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skipf("no S3 server: no folder for it: %v", err)
	}
	dir := filepath.Join(cache, "parley-test", "versitygw-"+version)
	program := filepath.Join(dir, "versitygw")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Skipf("no S3 server: %v", err)
	}
	// Test programs of several packages run at the same time.
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Skipf("no S3 server: %v", err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Skipf("no S3 server: %v", err)
	}
	if _, err := os.Stat(program); err == nil {
		return program
	}
	build := exec.Command("timeout", fmt.Sprint(int(buildTimeout.Seconds())), "go", "install", module+"@"+version)
	build.Dir = dir // outside this module: nothing of it gets into go.mod
	build.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Skipf("no S3 server: go install %s@%s: %v\n%s", module, version, err, out)
	}
	return program
}

// URL returns the place of a folder in the bucket, as the setting files has it.
func (s *Server) URL(folder string) string {
	return "s3://" + Bucket + "/" + folder + "?endpoint=http://" + s.address + "&path-style=true"
}

// Address returns the host and port.
func (s *Server) Address() string { return s.address }

// Env returns the environment variables with the keys.
func (s *Server) Env() []string {
	return []string{"AWS_ACCESS_KEY_ID=" + AccessKey, "AWS_SECRET_ACCESS_KEY=" + SecretKey}
}

// Objects returns the keys in a folder of the bucket.
func (s *Server) Objects(folder string) (keys []string) {
	root := filepath.Join(s.folder, "root", Bucket, folder)
	filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			key, _ := filepath.Rel(root, path)
			keys = append(keys, filepath.ToSlash(key))
		}
		return nil
	})
	return keys
}

// Path returns the file on this machine that has the content of an object.
func (s *Server) Path(key string) string {
	return filepath.Join(s.folder, "root", Bucket, filepath.FromSlash(key))
}

// UnfinishedUploads returns the folders on this machine that have the parts of uploads without an end. The name of each
// is the id of the upload, and its time of modification is the beginning of the upload.
func (s *Server) UnfinishedUploads() []string {
	list, _ := filepath.Glob(filepath.Join(s.folder, "root", Bucket, ".sgwtmp", "multipart", "*", "*"))
	return list
}

// Kill ends the server at once. Its objects stay.
func (s *Server) Kill() {
	if s.process != nil {
		s.process.Process.Kill()
		s.process.Wait()
		s.process = nil
	}
}

// Freeze stops the server without closing its connections, and returns when it has stopped. Thaw continues it.
func (s *Server) Freeze() {
	s.t.Helper()
	pid := s.process.Process.Pid
	var status syscall.WaitStatus
	err := syscall.Kill(pid, syscall.SIGSTOP)
	if err == nil {
		_, err = syscall.Wait4(pid, &status, syscall.WUNTRACED, nil)
	}
	if err != nil || !status.Stopped() {
		s.t.Fatalf("the S3 server is not stopped: status %v, %v", status, err)
	}
}

// Thaw continues a frozen server.
func (s *Server) Thaw() { s.process.Process.Signal(syscall.SIGCONT) }

// Resume starts the server again, at the same address and with the same objects, and waits until it answers.
func (s *Server) Resume() {
	s.t.Helper()
	s.process = exec.Command(s.program, "--port", s.address, "posix", "--sidecar", filepath.Join(s.folder, "meta"),
		filepath.Join(s.folder, "root"))
	s.process.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+AccessKey, "ROOT_SECRET_KEY="+SecretKey)
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.process.Start(); err != nil {
		s.t.Fatalf("start the S3 server: %v", err)
	}
	for until := time.Now().Add(20 * time.Second); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		if c, err := net.Dial("tcp", s.address); err == nil {
			c.Close()
			return
		}
	}
	s.t.Fatal("the S3 server does not answer")
}
