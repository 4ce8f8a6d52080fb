package swarm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strconv"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// ErrNoHTTP2 is the error of a request to a server that does not choose HTTP/2 in the TLS handshake.
var ErrNoHTTP2 = errors.New("the server does not speak HTTP/2")

const (
	// frameHead is the size of the head of a frame, in bytes (RFC 9113, section 4.1).
	frameHead = 9
	// maxFrame is the size of the largest frame that a peer may send, in bytes: the default of RFC 9113.
	maxFrame = 16 << 10
	// defaultWindow is the flow-control window of a connection and of a stream before a setting, in bytes (RFC 9113).
	defaultWindow = 64<<10 - 1
	// ownWindow is the window that this side grants, in bytes: larger than any answer that it accepts, so that flow
	// control does not slow the measured server.
	ownWindow = 2 * maxAnswer
	// maxWindow is the largest flow-control window (RFC 9113, section 6.9.1).
	maxWindow = 1<<31 - 1
)

// http2Conn is the HTTP/2 layer of a Conn, above TLS. A Conn has one request at a time, so one stream is open at most:
// the clients of a chat server that wait for events have a connection each.
type http2Conn struct {
	c       *Conn
	decoder *hpack.Decoder
	in      []byte // an incomplete frame
	out     []byte // frames that are not written yet

	stream   uint32 // of the request under way, or of the last one
	window   int    // bytes that this side may still send on the connection
	streamed int    // bytes that it may still send on the stream
	initial  int    // the first value of streamed
	body     []byte // part of the request that the windows do not allow yet
	block    []byte // incomplete header block
	head     []byte // head of the answer, as HTTP/1.1 writes it
	tooLong  bool   // the head is larger than maxHead
	ends     bool   // the header block ends the stream
	granted  int    // bytes that the peer may still send on the connection
	wire     int    // bytes of the answer's frames
}

func newHTTP2Conn(c *Conn) *http2Conn {
	h := &http2Conn{c: c, window: defaultWindow, initial: defaultWindow, granted: ownWindow}
	h.decoder = hpack.NewDecoder(4096, h.readField) // the table size before a setting (RFC 7541)
	h.decoder.SetMaxStringLength(maxHead)
	h.out = append(h.out, http2.ClientPreface...)
	h.frame(http2.FrameSettings, 0, 0, setting(nil, uint32(http2.SettingEnablePush), 0,
		uint32(http2.SettingHeaderTableSize), 0, uint32(http2.SettingInitialWindowSize), ownWindow,
		uint32(http2.SettingMaxHeaderListSize), maxHead))
	h.frame(http2.FrameWindowUpdate, 0, 0, binary.BigEndian.AppendUint32(nil, ownWindow-defaultWindow))
	return h
}

// setting appends settings, which are pairs of an identifier and a value.
func setting(b []byte, pairs ...uint32) []byte {
	for i := 0; i < len(pairs); i += 2 {
		b = binary.BigEndian.AppendUint16(b, uint16(pairs[i]))
		b = binary.BigEndian.AppendUint32(b, pairs[i+1])
	}
	return b
}

// frame appends a frame to the frames that are not written yet.
func (h *http2Conn) frame(kind http2.FrameType, flags http2.Flags, stream uint32, payload []byte) {
	n := len(payload)
	h.out = append(h.out, byte(n>>16), byte(n>>8), byte(n), byte(kind), byte(flags))
	h.out = binary.BigEndian.AppendUint32(h.out, stream)
	h.out = append(h.out, payload...)
}

// request returns the frames of a request of HTTP/1.1. They are valid until the next call.
func (h *http2Conn) request(b []byte) []byte {
	text, body, _ := bytes.Cut(b, headEnd)
	h.stream, h.streamed = h.nextStream(), h.initial
	h.block, h.wire, h.body = nil, 0, nil
	block := h.c.Loop.block(string(text))
	flags := http2.Flags(0)
	if len(body) == 0 {
		flags = http2.FlagHeadersEndStream
	}
	for kind, first := http2.FrameHeaders, true; first || len(block) > 0; kind, first = http2.FrameContinuation, false {
		part := block[:min(len(block), maxFrame)]
		if block = block[len(part):]; len(block) == 0 {
			flags |= http2.FlagHeadersEndHeaders
		}
		h.frame(kind, flags, h.stream, part)
		flags = 0
	}
	h.body = append(h.body, body...)
	h.sendBody()
	out := h.out
	h.out = h.out[:0]
	return out
}

// nextStream returns the number of the next stream: clients use odd ones.
func (h *http2Conn) nextStream() uint32 {
	if h.stream == 0 {
		return 1
	}
	return h.stream + 2
}

// sendBody appends the part of the request's body that the windows allow.
func (h *http2Conn) sendBody() {
	for len(h.body) > 0 {
		n := min(len(h.body), maxFrame, h.window, h.streamed)
		if n <= 0 {
			return
		}
		part := h.body[:n]
		h.body, h.window, h.streamed = h.body[n:], h.window-n, h.streamed-n
		flags := http2.Flags(0)
		if len(h.body) == 0 {
			flags = http2.FlagDataEndStream
		}
		h.frame(http2.FrameData, flags, h.stream, part)
	}
}

// block returns the header block of a request's head in the form of HTTP/1.1. It uses no dynamic table, so all
// connections share the encoder. The block is valid until the next call.
func (l *Loop) block(head string) []byte {
	if l.encoder == nil {
		l.encoder = hpack.NewEncoder(&l.encoded)
	}
	l.encoded.Reset()
	add := func(name, value string) {
		l.encoder.WriteField(hpack.HeaderField{Name: name, Value: value,
			Sensitive: true}) // sensitive: not in the table
	}
	lines := strings.Split(head, "\r\n")
	method, rest, _ := strings.Cut(lines[0], " ")
	path, _, _ := strings.Cut(rest, " ")
	add(":method", method)
	add(":scheme", "https")
	add(":path", path)
	for _, line := range lines[1:] {
		if name, value, _ := strings.Cut(line, ": "); strings.EqualFold(name, "Host") {
			add(":authority", value)
		}
	}
	for _, line := range lines[1:] {
		if name, value, _ := strings.Cut(line, ": "); !strings.EqualFold(name, "Host") {
			add(strings.ToLower(name), value)
		}
	}
	return l.encoded.Bytes()
}

// flush writes the frames that are not written yet, unless the connection has been closed.
func (h *http2Conn) flush() {
	if len(h.out) > 0 && h.c.h2 == h {
		h.c.writeBytes(h.c.secure.seal(h.out))
		h.out = h.out[:0]
	}
}

// receive processes the bytes of one read.
func (h *http2Conn) receive(b []byte) {
	if h.c.handler != nil && h.c.first == 0 {
		h.c.first = h.c.Loop.Now()
	}
	if len(h.in) > 0 {
		h.in = append(h.in, b...)
		b = h.in
	}
	for len(b) >= frameHead {
		n := int(b[0])<<16 | int(b[1])<<8 | int(b[2])
		if n > maxFrame {
			h.c.fail(ErrAnswer)
			return
		}
		if len(b) < frameHead+n {
			break
		}
		kind, flags := http2.FrameType(b[3]), http2.Flags(b[4])
		stream := binary.BigEndian.Uint32(b[5:]) & maxWindow
		if !h.handle(kind, flags, stream, b[frameHead:frameHead+n]) || h.c.h2 != h {
			return
		}
		b = b[frameHead+n:]
	}
	h.in = append(h.in[:0], b...)
	if len(h.in) == 0 {
		h.in = nil // or each of 19,000 connections would keep one
	}
	h.flush()
}

// handle processes a frame. It returns false if the connection has ended.
func (h *http2Conn) handle(kind http2.FrameType, flags http2.Flags, stream uint32, p []byte) bool {
	if h.block != nil && kind != http2.FrameContinuation {
		return h.fail(ErrAnswer)
	}
	ours := stream == h.stream && h.c.handler != nil
	if ours {
		h.wire += frameHead + len(p)
	}
	switch kind {
	case http2.FrameSettings:
		return h.handleSettings(flags, p)
	case http2.FramePing:
		if flags&http2.FlagPingAck == 0 {
			h.frame(http2.FramePing, http2.FlagPingAck, 0, p)
		}
	case http2.FrameWindowUpdate:
		return h.handleWindow(stream, p)
	case http2.FrameGoAway:
		return h.handleGoAway(p)
	case http2.FrameRSTStream:
		if ours {
			return h.fail(ErrClosed)
		}
	case http2.FrameHeaders:
		p, ok := unpad(p, flags&http2.FlagHeadersPadded != 0)
		if ok && flags&http2.FlagHeadersPriority != 0 {
			if ok = len(p) >= 5; ok {
				p = p[5:]
			}
		}
		if !ok || !ours {
			return h.fail(ErrAnswer)
		}
		h.block, h.ends = append(make([]byte, 0, len(p)+1), p...), flags&http2.FlagHeadersEndStream != 0
		return flags&http2.FlagHeadersEndHeaders == 0 || h.handleBlock()
	case http2.FrameContinuation:
		if h.block == nil || !ours || len(h.block)+len(p) > maxHead {
			return h.fail(ErrAnswer)
		}
		h.block = append(h.block, p...)
		return flags&http2.FlagContinuationEndHeaders == 0 || h.handleBlock()
	case http2.FrameData:
		return h.handleData(flags, ours, p)
	case http2.FramePushPromise:
		return h.fail(ErrAnswer) // a setting forbids it
	}
	return true
}

// fail ends the connection with an error of the request under way. It returns false.
func (h *http2Conn) fail(err error) bool {
	h.c.fail(err)
	return false
}

// unpad returns the payload of a frame without its padding.
func unpad(p []byte, padded bool) (rest []byte, ok bool) {
	if !padded {
		return p, true
	}
	if len(p) == 0 || int(p[0]) >= len(p) {
		return nil, false
	}
	return p[1 : len(p)-int(p[0])], true
}

func (h *http2Conn) handleSettings(flags http2.Flags, p []byte) bool {
	if flags&http2.FlagSettingsAck != 0 {
		return true
	}
	for ; len(p) >= 6; p = p[6:] {
		value := binary.BigEndian.Uint32(p[2:])
		if http2.SettingID(binary.BigEndian.Uint16(p)) == http2.SettingInitialWindowSize {
			if value > maxWindow {
				return h.fail(ErrAnswer)
			}
			h.streamed += int(value) - h.initial
			h.initial = int(value)
		}
	}
	h.frame(http2.FrameSettings, http2.FlagSettingsAck, 0, nil)
	h.sendBody()
	return true
}

func (h *http2Conn) handleWindow(stream uint32, p []byte) bool {
	if len(p) != 4 {
		return h.fail(ErrAnswer)
	}
	n := int(binary.BigEndian.Uint32(p) & maxWindow)
	switch stream {
	case 0:
		h.window += n
	case h.stream:
		h.streamed += n
	}
	if h.window > maxWindow || h.streamed > maxWindow {
		return h.fail(ErrAnswer)
	}
	h.sendBody()
	return true
}

// handleGoAway closes the connection, at once or after the answer that is under way.
func (h *http2Conn) handleGoAway(p []byte) bool {
	if len(p) < 8 {
		return h.fail(ErrAnswer)
	}
	if h.c.handler == nil || binary.BigEndian.Uint32(p)&maxWindow < h.stream {
		return h.fail(ErrClosed)
	}
	h.c.closing = true
	return true
}

// handleBlock reads a complete header block: the head of the answer, one before it, or the fields after its body.
func (h *http2Conn) handleBlock() bool {
	block := h.block
	h.block, h.tooLong = nil, false
	after := h.c.status >= 200
	if !after {
		h.head = append(h.head[:0], "HTTP/2 000\r\n"...)
		h.c.status, h.c.gzip = 0, false
	}
	if _, err := h.decoder.Write(block); err != nil || h.decoder.Close() != nil || h.tooLong {
		return h.fail(ErrAnswer)
	}
	if after {
		return !h.ends || h.finish()
	}
	switch h.head = append(h.head, "\r\n"...); {
	case h.c.status < 100:
		return h.fail(ErrAnswer)
	case h.c.status < 200: // the head of the answer follows
		return !h.ends || h.fail(ErrAnswer)
	case h.ends:
		return h.finish()
	}
	return true
}

// readField receives a header field of the answer.
func (h *http2Conn) readField(f hpack.HeaderField) {
	switch {
	case h.tooLong || len(h.head)+len(f.Name)+len(f.Value)+4 > maxHead:
		h.tooLong = true
	case f.Name == ":status":
		if n, err := strconv.Atoi(f.Value); err == nil && len(f.Value) == 3 && h.c.status < 200 {
			h.c.status = n
			copy(h.head[len("HTTP/2 "):], f.Value)
		}
	default:
		h.c.gzip = h.c.gzip || f.Name == "content-encoding" && strings.EqualFold(f.Value, "gzip")
		h.head = append(h.head, f.Name...)
		h.head = append(h.head, ": "...)
		h.head = append(h.head, f.Value...)
		h.head = append(h.head, "\r\n"...)
	}
}

func (h *http2Conn) handleData(flags http2.Flags, ours bool, p []byte) bool {
	if h.granted -= len(p); h.granted < ownWindow/2 {
		h.frame(http2.FrameWindowUpdate, 0, 0, binary.BigEndian.AppendUint32(nil, uint32(ownWindow-h.granted)))
		h.granted = ownWindow
	}
	p, ok := unpad(p, flags&http2.FlagDataPadded != 0)
	c := h.c
	if !ok || !ours || c.status < 200 {
		return h.fail(ErrAnswer)
	}
	if c.got += len(p); c.got > maxAnswer {
		return h.fail(ErrTooLong)
	}
	if !c.discard {
		c.in = append(c.in, p...)
		if c.count(); c.Loop.buffered > maxBuffered {
			return h.fail(ErrTooLong)
		}
	}
	return flags&http2.FlagDataEndStream == 0 || h.finish()
}

// finish passes the answer on. It returns false if the connection has ended.
func (h *http2Conn) finish() bool {
	if len(h.body) > 0 { // the server answers before it has the whole request: the stream cannot be used again
		h.c.closing = true
	}
	h.flush()
	head := h.head
	h.head = nil
	h.c.finish(head, h.c.in, h.wire)
	return h.c.h2 == h
}
