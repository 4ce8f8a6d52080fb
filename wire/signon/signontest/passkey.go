package signontest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
)

// Flags of a device's answers.
const (
	UserPresent  byte = 1
	UserVerified byte = 4 // with a PIN or a fingerprint
	hasKey       byte = 64
)

// Device is a device with passkeys and the browser that asks it. Tests change its fields to lie.
type Device struct {
	Origin string // that the browser tells
	RPID   string // "": that of the question
	Flags  byte
	Count  uint32 // of the last signature; every answer has a larger one, unless NoCount is set
	// NoCount devices do not count, as devices with a copy of their keys elsewhere.
	NoCount bool
	Handle  []byte // of the user; nil: that of the registration
	keys    []deviceKey
}

type deviceKey struct {
	id, handle []byte
	key        *ecdsa.PrivateKey
}

// NewDevice returns a device without passkeys, whose user proves a PIN.
func NewDevice(origin string) *Device {
	return &Device{Origin: origin, Flags: UserPresent | UserVerified}
}

// options are the parts of a question that a device needs.
type options struct {
	PublicKey struct {
		Challenge string `json:"challenge"`
		RP        struct {
			ID string `json:"id"`
		} `json:"rp"`
		RPID string `json:"rpId"`
		User struct {
			ID string `json:"id"`
		} `json:"user"`
		Allow            []struct{ ID string } `json:"allowCredentials"`
		UserVerification string                `json:"userVerification"`
	} `json:"publicKey"`
}

func text64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// Create returns the answer to a question for a new passkey.
func (d *Device) Create(question string) (string, error) {
	var o options
	if err := json.Unmarshal([]byte(question), &o); err != nil {
		return "", err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	id := make([]byte, 16)
	rand.Read(id)
	handle, err := base64.RawURLEncoding.DecodeString(o.PublicKey.User.ID)
	if err != nil {
		return "", err
	}
	d.keys = append(d.keys, deviceKey{id, handle, key})
	point, err := key.PublicKey.Bytes() // 4, x, y
	if err != nil {
		return "", err
	}
	data := d.authenticatorData(o.PublicKey.RP.ID, hasKey)
	data = append(data, make([]byte, 16)...) // the model of the device is unknown
	data = binary.BigEndian.AppendUint16(data, uint16(len(id)))
	data = append(data, id...)
	// The public key in CBOR: EC2, ES256, P-256, x, y.
	data = append(data, 0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x58, 0x20)
	data = append(data, point[1:33]...)
	data = append(data, 0x22, 0x58, 0x20)
	data = append(data, point[33:]...)
	object := append([]byte{0xa3, 0x63}, "fmt\x64none\x67attStmt\xa0\x68authData\x59"...)
	object = binary.BigEndian.AppendUint16(object, uint16(len(data)))
	object = append(object, data...)
	return d.answer(id, map[string]string{"attestationObject": text64(object),
		"clientDataJSON": text64(d.clientData("webauthn.create", o.PublicKey.Challenge))})
}

// Get returns the answer to a question for the last passkey that the question allows.
func (d *Device) Get(question string) (string, error) {
	var o options
	if err := json.Unmarshal([]byte(question), &o); err != nil {
		return "", err
	}
	var found *deviceKey
	for i, k := range d.keys {
		allowed := len(o.PublicKey.Allow) == 0
		for _, a := range o.PublicKey.Allow {
			allowed = allowed || a.ID == text64(k.id)
		}
		if allowed {
			found = &d.keys[i]
		}
	}
	if found == nil {
		return "", fmt.Errorf("the device has none of the passkeys")
	}
	return d.sign(*found, o)
}

// GetAny is Get with a passkey that the question need not allow.
func (d *Device) GetAny(question string) (string, error) {
	var o options
	if err := json.Unmarshal([]byte(question), &o); err != nil {
		return "", err
	}
	return d.sign(d.keys[len(d.keys)-1], o)
}

func (d *Device) sign(k deviceKey, o options) (string, error) {
	if !d.NoCount {
		d.Count++
	}
	data := d.authenticatorData(o.PublicKey.RPID, 0)
	client := d.clientData("webauthn.get", o.PublicKey.Challenge)
	hash := sha256.Sum256(client)
	sum := sha256.Sum256(append(bytes.Clone(data), hash[:]...))
	signature, err := ecdsa.SignASN1(rand.Reader, k.key, sum[:])
	if err != nil {
		return "", err
	}
	handle := k.handle
	if d.Handle != nil {
		handle = d.Handle
	}
	return d.answer(k.id, map[string]string{"authenticatorData": text64(data), "clientDataJSON": text64(client),
		"signature": text64(signature), "userHandle": text64(handle)})
}

// authenticatorData returns the beginning of the data that a device signs.
func (d *Device) authenticatorData(rp string, more byte) []byte {
	if d.RPID != "" {
		rp = d.RPID
	}
	hash := sha256.Sum256([]byte(rp))
	return binary.BigEndian.AppendUint32(append(hash[:], d.Flags|more), d.Count)
}

func (d *Device) clientData(kind, challenge string) []byte {
	b, _ := json.Marshal(map[string]any{"type": kind, "challenge": challenge, "origin": d.Origin, "crossOrigin": false})
	return b
}

func (d *Device) answer(id []byte, response map[string]string) (string, error) {
	b, err := json.Marshal(map[string]any{"id": text64(id), "rawId": text64(id), "type": "public-key",
		"response": response, "clientExtensionResults": map[string]any{}})
	return string(b), err
}
