package meaning

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"sync"

	"parley/actors/realm"
)

// Layout of a file: a header, then the slots, then the vectors. The slot with number i says whose vector i is. The
// place of the vectors is the same in all files; a file system stores nothing for slots that were never written.
const (
	// MaxMessages is how many vectors a file has at most. Their places take about 40 bytes each in memory.
	MaxMessages = 200_000
	// MaxDimensions is how many numbers a vector has at most: the largest models of today have 4,096.
	MaxDimensions = 4096

	magic      = "parley vectors 1"
	headerSize = 96
	slotSize   = 16 // message, version, two unused bytes, checksum of the message, the version and the vector
	vectorsAt  = 4096 * ((headerSize + MaxMessages*slotSize + 4095) / 4096)
	// pieceBytes is how much of the vectors a search reads at a time: enough to be fast, little enough for the cache of
	// a processor.
	pieceBytes = 256 << 10
)

var checksums = crc32.MakeTable(crc32.Castagnoli)

// Near is a message and the similarity of its text: from -1 to 1, the nearest is 1.
type Near struct {
	Text  realm.BodyRef
	Score float32
}

// entry is where the vector of a message is.
type entry struct {
	slot    uint32
	version uint16
}

// index is the file of one organization. Searches may run at the same time; changes exclude them.
type index struct {
	mu      sync.RWMutex
	file    *os.File
	dims    int
	entries map[realm.MessageID]entry
	slots   []realm.MessageID // by slot; 0: free
	free    []uint32
	usage   usage
}

// usage is the tokens of the service that the vectors of a day have cost.
type usage struct{ Day, Tokens int64 }

// errOtherModel says that a file is not one of the wanted model.
var errOtherModel = errors.New("the file has vectors of another model")

// openIndex opens or makes a file. name identifies the model. dims is 0 until the size of its vectors is known: then
// a file is not made, and the index is nil.
func openIndex(path, name string, dims int) (x *index, err error) {
	how := os.O_RDWR
	if dims != 0 {
		how |= os.O_CREATE
	}
	f, err := os.OpenFile(path, how, 0o600)
	if dims == 0 && errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	x = &index{file: f, dims: dims, entries: map[realm.MessageID]entry{}}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() == 0 && dims != 0 {
		return x, x.writeHeader(name)
	}
	if err := x.readHeader(name); err != nil {
		return nil, err
	}
	return x, x.readSlots(info.Size())
}

func (x *index) writeHeader(name string) error {
	h := make([]byte, headerSize)
	copy(h, magic)
	binary.LittleEndian.PutUint32(h[16:], uint32(x.dims))
	model := sha256.Sum256([]byte(name))
	copy(h[24:], model[:])
	binary.LittleEndian.PutUint64(h[56:], uint64(x.usage.Day))
	binary.LittleEndian.PutUint64(h[64:], uint64(x.usage.Tokens))
	binary.LittleEndian.PutUint32(h[92:], crc32.Checksum(h[:92], checksums))
	_, err := x.file.WriteAt(h, 0)
	return err
}

func (x *index) readHeader(name string) error {
	h := make([]byte, headerSize)
	if _, err := x.file.ReadAt(h, 0); err != nil {
		return fmt.Errorf("%w: %w", errOtherModel, err)
	}
	model := sha256.Sum256([]byte(name))
	dims := int(binary.LittleEndian.Uint32(h[16:]))
	switch {
	case string(h[:16]) != magic, [32]byte(h[24:56]) != model, x.dims != 0 && dims != x.dims, dims < 1,
		dims > MaxDimensions, binary.LittleEndian.Uint32(h[92:]) != crc32.Checksum(h[:92], checksums):
		return errOtherModel
	}
	x.dims = dims
	x.usage.Day = int64(binary.LittleEndian.Uint64(h[56:]))
	x.usage.Tokens = int64(binary.LittleEndian.Uint64(h[64:]))
	return nil
}

// readSlots reads whose vectors the file has. A vector whose end is missing is free.
func (x *index) readSlots(size int64) error {
	n := min(MaxMessages, max(0, size-vectorsAt)/x.vectorSize())
	slots := make([]byte, n*slotSize)
	if _, err := x.file.ReadAt(slots, headerSize); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for i := range uint32(n) {
		s := slots[i*slotSize:]
		id := realm.MessageID(binary.LittleEndian.Uint64(s))
		if _, twice := x.entries[id]; id <= 0 || twice {
			x.slots, x.free = append(x.slots, 0), append(x.free, i)
			continue
		}
		x.slots = append(x.slots, id)
		x.entries[id] = entry{i, binary.LittleEndian.Uint16(s[8:])}
	}
	return nil
}

func (x *index) vectorSize() int64 { return 4 * int64(x.dims) }

// len returns how many vectors there are.
func (x *index) len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.entries)
}

// version returns the version of the text that a message has a vector of.
func (x *index) version(id realm.MessageID) (version uint16, ok bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	e, ok := x.entries[id]
	return e.version, ok
}

// add writes vectors, which are normalized, and the tokens that they have cost. When it returns, they are on disk.
func (x *index) add(name string, texts []realm.BodyRef, vectors [][]float32, now usage) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.put(texts, vectors); err != nil {
		return err
	}
	x.usage = now
	return errors.Join(x.writeHeader(name), x.file.Sync())
}

// put writes vectors. x.mu is held.
func (x *index) put(texts []realm.BodyRef, vectors [][]float32) error {
	for i, ref := range texts {
		e, known := x.entries[ref.Message]
		switch {
		case known:
		case len(x.free) > 0:
			e.slot = x.free[len(x.free)-1]
			x.free = x.free[:len(x.free)-1]
		case len(x.slots) == MaxMessages:
			return fmt.Errorf("there are %d vectors already", MaxMessages)
		default:
			e.slot = uint32(len(x.slots))
			x.slots = append(x.slots, 0)
		}
		e.version = ref.Version
		x.slots[e.slot] = ref.Message
		x.entries[ref.Message] = e
		b := make([]byte, 0, x.vectorSize())
		for _, v := range vectors[i] {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		if err := x.write(e.slot, slotOf(ref, b), b); err != nil {
			return err
		}
	}
	return nil
}

// slotOf returns the bytes of a slot.
func slotOf(ref realm.BodyRef, vector []byte) []byte {
	s := make([]byte, slotSize)
	binary.LittleEndian.PutUint64(s, uint64(ref.Message))
	binary.LittleEndian.PutUint16(s[8:], ref.Version)
	binary.LittleEndian.PutUint32(s[12:], crc32.Update(crc32.Checksum(s[:12], checksums), checksums, vector))
	return s
}

func (x *index) write(slot uint32, s, vector []byte) error {
	if _, err := x.file.WriteAt(vector, vectorsAt+int64(slot)*x.vectorSize()); err != nil {
		return err
	}
	_, err := x.file.WriteAt(s, headerSize+int64(slot)*slotSize)
	return err
}

// remove writes zeros over the vectors of messages that wanted does not want with their version. It returns how many
// there were.
func (x *index) remove(wanted func(realm.BodyRef) bool) (n int, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s, vector := make([]byte, slotSize), make([]byte, x.vectorSize())
	for id, e := range x.entries {
		if wanted(realm.BodyRef{Message: id, Version: e.version}) {
			continue
		}
		if err := x.write(e.slot, s, vector); err != nil {
			return n, err
		}
		delete(x.entries, id)
		x.slots[e.slot] = 0
		x.free = append(x.free, e.slot)
		n++
	}
	if n > 0 {
		err = x.file.Sync()
	}
	return n, err
}

// nearest returns the scores of all messages, in no order, and the messages whose vectors are damaged. It ends early
// when stopped returns true.
func (x *index) nearest(query []float32, stopped func() bool) (out []Near, damaged []realm.MessageID, err error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if len(query) != x.dims {
		return nil, nil, errOtherModel
	}
	n := len(x.slots)
	perPiece := max(1, pieceBytes/int(x.vectorSize()))
	piece, slots := make([]byte, perPiece*int(x.vectorSize())), make([]byte, perPiece*slotSize)
	out = make([]Near, 0, len(x.entries))
	for at := 0; at < n; at += perPiece {
		if stopped() {
			return nil, nil, errStopped
		}
		count := min(perPiece, n-at)
		vectors, s := piece[:count*int(x.vectorSize())], slots[:count*slotSize]
		if _, err := x.file.ReadAt(vectors, vectorsAt+int64(at)*x.vectorSize()); err != nil {
			return nil, nil, err
		}
		if _, err := x.file.ReadAt(s, headerSize+int64(at)*slotSize); err != nil {
			return nil, nil, err
		}
		for i := range count {
			id := x.slots[at+i]
			if id == 0 {
				continue
			}
			ref := realm.BodyRef{Message: id, Version: x.entries[id].version}
			v := vectors[i*int(x.vectorSize()) : (i+1)*int(x.vectorSize())]
			if string(slotOf(ref, v)) != string(s[i*slotSize:(i+1)*slotSize]) {
				damaged = append(damaged, id)
				continue
			}
			out = append(out, Near{ref, dot(query, v)})
		}
	}
	return out, damaged, nil
}

// dot returns the dot product of a vector and an encoded one of the same size. Four sums let the processor add while it
// multiplies.
func dot(a []float32, b []byte) float32 {
	var s0, s1, s2, s3 float32
	for len(a) >= 4 && len(b) >= 16 {
		s0 += a[0] * math.Float32frombits(binary.LittleEndian.Uint32(b))
		s1 += a[1] * math.Float32frombits(binary.LittleEndian.Uint32(b[4:]))
		s2 += a[2] * math.Float32frombits(binary.LittleEndian.Uint32(b[8:]))
		s3 += a[3] * math.Float32frombits(binary.LittleEndian.Uint32(b[12:]))
		a, b = a[4:], b[16:]
	}
	for i, x := range a {
		s0 += x * math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return s0 + s1 + s2 + s3
}

// decodeVector returns the numbers of an encoded vector.
func decodeVector(b []byte) []float32 {
	v := make([]float32, len(b)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return v
}

// normalize divides a vector by its length. It returns false for vectors without a direction: zeros, and numbers that
// are not finite.
func normalize(v []float32) bool {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if !(sum > 0) || math.IsInf(sum, 1) {
		return false
	}
	for i := range v {
		v[i] = float32(float64(v[i]) / math.Sqrt(sum))
	}
	return true
}
