package peer

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
)

const (
	// Version is the version of the messages on links. Nodes with different ones do not connect.
	Version = 1
	// MaxFrame is how many bytes of a message are sent at once. A longer message is sent in frames, so that it does not
	// delay the others on the same link by more than a frame.
	MaxFrame = 256 << 10
	// MaxMessage limits a message, in bytes: a commit of the journal with its texts, or the answer to a request.
	MaxMessage = 64 << 20
)

// A frame begins with the version and a byte that says whether the message has more frames.
const (
	frameHeader = 2
	lastFrame   = 0
	moreFrames  = 1
)

// frame is a message of gRPC.
type frame []byte

var (
	errFrame       = errors.New("the other node sent a frame that is no frame")
	errLongMessage = fmt.Errorf("a message of a link has more than %d bytes", MaxMessage)
)

// frameCodec passes frames to gRPC as they are.
type frameCodec struct{}

var _ encoding.CodecV2 = frameCodec{}

func (frameCodec) Name() string { return "parley" }

func (frameCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*frame))}, nil
}

func (frameCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*frame) = data.Materialize()
	return nil
}

// frameStream is a stream of gRPC on either side.
type frameStream interface {
	SendMsg(any) error
	RecvMsg(any) error
}

// send sends a message in frames. It waits until the other side has room.
func send(s frameStream, parts ...[]byte) error {
	total := 0
	for _, p := range parts {
		total += len(p)
	}
	if total > MaxMessage {
		return errLongMessage
	}
	for {
		f := make(frame, frameHeader, frameHeader+min(total, MaxFrame-frameHeader))
		f[0] = Version
		for len(f) < cap(f) {
			n := min(cap(f)-len(f), len(parts[0]))
			f = append(f, parts[0][:n]...)
			if parts[0] = parts[0][n:]; len(parts[0]) == 0 {
				parts = parts[1:]
			}
		}
		if total -= len(f) - frameHeader; total > 0 {
			f[1] = moreFrames
		}
		if err := s.SendMsg(&f); err != nil || total == 0 {
			return err
		}
	}
}

// receive returns the next message.
func receive(s frameStream) (message []byte, err error) {
	for {
		var f frame
		if err := s.RecvMsg(&f); err != nil {
			return nil, err
		}
		if len(f) < frameHeader || f[1] > moreFrames {
			return nil, errFrame
		}
		if f[0] != Version {
			return nil, CheckVersion(int(f[0]))
		}
		if len(message)+len(f) > MaxMessage+frameHeader {
			return nil, errLongMessage
		}
		if message == nil && f[1] == lastFrame {
			return f[frameHeader:], nil
		}
		if message = append(message, f[frameHeader:]...); f[1] == lastFrame {
			return message, nil
		}
	}
}
