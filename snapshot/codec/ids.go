package codec

import (
	"encoding/binary"
	"math"
	"reflect"

	"github.com/vmihailenco/msgpack/v5"

	"parley/actors/realm"
)

// A fact or event can contain ten thousand users, and the realm actor encodes it while all requests wait. The library
// looks up the encoder of each id. These encoders write a whole list at once, as the same bytes.
func init() {
	registerIDs[realm.UserID]()
	registerIDs[realm.MessageID]()
	registerIDs[realm.ChannelID]()
}

func registerIDs[T ~int64]() {
	msgpack.Register([]T(nil), func(e *msgpack.Encoder, v reflect.Value) error {
		list := v.Interface().([]T)
		if list == nil {
			return e.EncodeNil()
		}
		if err := e.EncodeArrayLen(len(list)); err != nil {
			return err
		}
		out := make([]byte, 0, 3*len(list))
		for _, id := range list {
			switch n := int64(id); {
			case n < 0:
				if _, err := e.Writer().Write(out); err != nil {
					return err
				}
				out = out[:0]
				if err := e.EncodeInt(n); err != nil {
					return err
				}
			case n <= math.MaxInt8:
				out = append(out, byte(n))
			case n <= math.MaxUint8:
				out = append(out, 0xcc, byte(n))
			case n <= math.MaxUint16:
				out = binary.BigEndian.AppendUint16(append(out, 0xcd), uint16(n))
			case n <= math.MaxUint32:
				out = binary.BigEndian.AppendUint32(append(out, 0xce), uint32(n))
			default:
				out = binary.BigEndian.AppendUint64(append(out, 0xcf), uint64(n))
			}
		}
		_, err := e.Writer().Write(out)
		return err
	}, nil)
}
