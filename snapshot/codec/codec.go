package codec

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"reflect"
	"sync"

	"github.com/vmihailenco/msgpack/v5"

	"parley/actors/realm"
)

var encoders = sync.Pool{New: func() any {
	b := &bytes.Buffer{}
	e := msgpack.NewEncoder(b)
	e.UseArrayEncodedStructs(true)
	e.UseCompactInts(true)
	e.SetSortMapKeys(true)
	return &encoder{b, e}
}}

type encoder struct {
	b *bytes.Buffer
	e *msgpack.Encoder
}

// marshal returns a new slice with the prefix and the encoded v.
func marshal(prefix []byte, v any) []byte {
	e := encoders.Get().(*encoder)
	e.b.Reset()
	e.b.Write(prefix)
	if err := e.e.Encode(v); err != nil {
		panic(fmt.Sprintf("BUG: encode %T: %v", v, err))
	}
	out := bytes.Clone(e.b.Bytes())
	if e.b.Cap() <= 64<<10 { // a rare large buffer must not stay in the pool
		encoders.Put(e)
	}
	return out
}

func unmarshal(data []byte, into any) error {
	d := msgpack.GetDecoder()
	defer msgpack.PutDecoder(d)
	d.Reset(bytes.NewReader(data))
	d.UseLooseInterfaceDecoding(true)
	return d.Decode(into)
}

// EncodeFact encodes a fact or event after its number.
func EncodeFact(f any) []byte {
	n := realm.NumberOf(f)
	if n == 0 {
		panic(fmt.Sprintf("BUG: %T has no number in actors/realm/facts.go", f))
	}
	var p [2]byte
	binary.BigEndian.PutUint16(p[:], n)
	return marshal(p[:], f)
}

// DecodeEvent decodes a fact or event that EncodeFact encoded.
func DecodeEvent(data []byte) (any, error) {
	if len(data) < 2 {
		return nil, fmt.Errorf("decode fact: %d bytes are too few", len(data))
	}
	f, err := realm.NewByNumber(binary.BigEndian.Uint16(data))
	if err != nil {
		return nil, err
	}
	if err := unmarshal(data[2:], f); err != nil {
		return nil, fmt.Errorf("decode %T: %w", f, err)
	}
	return f, nil
}

// DecodeFact decodes a fact that EncodeFact encoded. It returns an error for an event that is not a fact.
func DecodeFact(data []byte) (realm.Fact, error) {
	x, err := DecodeEvent(data)
	if err != nil {
		return nil, err
	}
	f, ok := x.(realm.Fact)
	if !ok {
		return nil, fmt.Errorf("%T is an event, not a fact", x)
	}
	return f, nil
}

// EncodeKey encodes a row's key.
func EncodeKey(k any) []byte { return marshal(nil, k) }

// EncodeRow encodes a row's value.
func EncodeRow(v any) []byte { return marshal(nil, v) }

// Decoder returns a function that decodes data into its argument, as realm.Load takes it.
func Decoder(data []byte) func(any) error {
	return func(into any) error { return unmarshal(data, into) }
}

// DecodeOfAnother decodes a struct that a node of another release has encoded: it may lack the last fields, which keep
// their values, or have more, which are ignored.
func DecodeOfAnother(data []byte, into any) error {
	err := unmarshal(data, into)
	if err == nil {
		return nil
	}
	v := reflect.ValueOf(into).Elem()
	if v.Kind() != reflect.Struct {
		return err
	}
	d := msgpack.GetDecoder()
	defer msgpack.PutDecoder(d)
	d.Reset(bytes.NewReader(data))
	var fields []any // as they are encoded: without those that are not exported
	for i := range v.NumField() {
		if v.Type().Field(i).IsExported() {
			fields = append(fields, v.Field(i).Addr().Interface())
		}
	}
	n, err := d.DecodeArrayLen()
	for i := 0; i < n && err == nil; i++ {
		if i < len(fields) {
			err = d.Decode(fields[i])
		} else {
			err = d.Skip()
		}
	}
	return err
}

// EncodeText encodes one version of a message's text.
func EncodeText(b *realm.Body) []byte { return marshal(nil, b) }

// DecodeText decodes what EncodeText encoded.
func DecodeText(data []byte) (b realm.Body, err error) { return b, unmarshal(data, &b) }

// TextKey returns the key of a text: message id and version, both big-endian. The texts of neighboring messages are
// next to each other on disk.
func TextKey(ref realm.BodyRef) []byte {
	k := binary.BigEndian.AppendUint64(nil, uint64(ref.Message))
	return binary.BigEndian.AppendUint16(k, ref.Version)
}

// DecodeTextKey decodes what TextKey returned.
func DecodeTextKey(key []byte) (realm.BodyRef, error) {
	if len(key) != 10 {
		return realm.BodyRef{}, fmt.Errorf("key of a text has %d bytes instead of 10", len(key))
	}
	return realm.BodyRef{
		Message: realm.MessageID(binary.BigEndian.Uint64(key)),
		Version: binary.BigEndian.Uint16(key[8:]),
	}, nil
}

// UnackedEvents are the notices of one fact that a snapshot stores because a queue has not acknowledged them. Each
// event is stored once, with its audience.
type UnackedEvents struct {
	Seq     uint64
	Notices []unackedNotice
}

type unackedNotice struct {
	To         []realm.UserID
	PublicOnly bool
	Event      []byte
}

// EncodeUnacked encodes the notices of one fact. They are sent again after a restart.
func EncodeUnacked(t realm.Publication) []byte {
	k := UnackedEvents{Seq: uint64(t.Seq)}
	for _, n := range t.Notices {
		k.Notices = append(k.Notices, unackedNotice{n.To, n.PublicOnly, EncodeFact(n.Event)})
	}
	return marshal(nil, &k)
}

// DecodeUnacked decodes what EncodeUnacked encoded. It leaves out the notices for no user, which earlier programs
// stored.
func DecodeUnacked(data []byte) (realm.Publication, error) {
	var k UnackedEvents
	if err := unmarshal(data, &k); err != nil {
		return realm.Publication{}, fmt.Errorf("decode unacknowledged event: %w", err)
	}
	t := realm.Publication{Seq: realm.Seq(k.Seq)}
	for _, n := range k.Notices {
		if len(n.To) == 0 {
			continue
		}
		x, err := DecodeEvent(n.Event)
		if err != nil {
			return t, fmt.Errorf("decode unacknowledged event: %w", err)
		}
		e, ok := x.(realm.Event)
		if !ok {
			return t, fmt.Errorf("decode unacknowledged event: %T is not an event", x)
		}
		t.Notices = append(t.Notices, realm.Notice{To: n.To, PublicOnly: n.PublicOnly, Event: e})
	}
	return t, nil
}

// UnackedKey returns the key of unacknowledged events. It sorts by sequence number.
func UnackedKey(seq realm.Seq) []byte { return binary.BigEndian.AppendUint64(nil, uint64(seq)) }
