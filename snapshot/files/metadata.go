package files

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"slices"
)

// Cameras and programs write into a picture where, when and by whom it was made. Uploads lose that before they are
// stored: it is overwritten in place, so that the size of the file and everything else in it remain. The orientation
// remains, because clients apply it, and the colour profile.

// maxPieces limits the pieces of a picture that are read: a PNG has one for every 8 kB, and a small one can have many.
// The rest of the file is not examined.
const maxPieces = 1 << 20

// maxMetadata limits a piece of metadata in bytes, which is in memory at once. A larger one stays, with the rest of the
// file.
const maxMetadata = 8 << 20

// zeros overwrite the bytes after the end of a picture.
var zeros [copyBuffer]byte

// errNotPicture ends the reading of a file that is no picture, or is damaged.
var errNotPicture = errors.New("not a picture")

// metadataFile is a file whose metadata can be overwritten.
type metadataFile interface {
	io.ReadSeeker
	io.WriterAt
}

// clearMetadata overwrites the metadata of a JPEG, PNG or WebP file and reports whether there was any. Damaged pictures
// lose the metadata before the defect. Files that only begin like a picture, without its size, remain as they are. The
// file is set back to its beginning.
func clearMetadata(f metadataFile) (changed bool, err error) {
	size, err := f.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return false, err
	}
	head := make([]byte, 12)
	if n, err := io.ReadFull(f, head); err != nil && n < len(head) {
		_, err = f.Seek(0, io.SeekStart)
		return false, err
	}
	p := &pieces{f: f, size: size}
	switch {
	case bytes.HasPrefix(head, []byte{0xff, 0xd8, 0xff}):
		err = p.jpeg()
	case bytes.HasPrefix(head, []byte("\x89PNG\r\n\x1a\n")):
		err = p.png()
	case bytes.HasPrefix(head, []byte("RIFF")) && string(head[8:]) == "WEBP":
		err = p.webp()
	}
	if err != nil && !errors.Is(err, errNotPicture) {
		return false, err
	}
	_, err = f.Seek(0, io.SeekStart)
	return p.changed, err
}

// pieces reads the pieces of a picture, which go forward, and replaces its metadata.
type pieces struct {
	f       metadataFile
	size    int64
	changed bool
	buffer  []byte // small pieces are not read from the file one by one
	at      int64  // of buffer in the file
}

// buffered returns some of the bytes at an offset, at least so many.
func (p *pieces) buffered(at int64, least int) ([]byte, error) {
	if skip := at - p.at; skip >= 0 && skip+int64(least) <= int64(len(p.buffer)) {
		return p.buffer[skip:], nil
	}
	if at < 0 || at+int64(least) > p.size {
		return nil, errNotPicture
	}
	if p.buffer == nil {
		p.buffer = make([]byte, 0, copyBuffer)
	}
	p.buffer = p.buffer[:0]
	if _, err := p.f.Seek(at, io.SeekStart); err != nil {
		return nil, err
	}
	b := p.buffer[:min(copyBuffer, p.size-at)]
	if _, err := io.ReadFull(p.f, b); err != nil {
		return nil, err
	}
	p.buffer, p.at = b, at
	return b, nil
}

// read returns n bytes at an offset.
func (p *pieces) read(at int64, n int64) ([]byte, error) {
	if at < 0 || n < 0 || n > maxMetadata || at+n > p.size {
		return nil, errNotPicture
	}
	if n <= copyBuffer {
		b, err := p.buffered(at, int(n))
		if err != nil {
			return nil, err
		}
		return b[:n:n], nil // until the next call
	}
	if _, err := p.f.Seek(at, io.SeekStart); err != nil {
		return nil, err
	}
	b := make([]byte, n)
	_, err := io.ReadFull(p.f, b)
	return b, err
}

// replace overwrites bytes unless they are the same already.
func (p *pieces) replace(at int64, old, data []byte) error {
	if bytes.Equal(old, data) {
		return nil
	}
	p.changed = true
	_, err := p.f.WriteAt(data, at)
	return err
}

// exifHead begins the EXIF of a JPEG.
const exifHead = "Exif\x00\x00"

// exifOnlyOrientation returns metadata of the same size that has nothing but the orientation; nil if that is normal or
// does not fit. tiff is EXIF without a head.
func exifOnlyOrientation(tiff []byte) []byte {
	o := exifOrientation(append([]byte(exifHead), tiff...))
	const needed = 26
	if o < 2 || len(tiff) < needed {
		return nil
	}
	out := make([]byte, len(tiff))
	copy(out, "II*\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00")
	out[18] = byte(o)
	return out
}

// Markers of JPEG.
const (
	jpegStart    = 0xd8
	jpegEnd      = 0xd9
	jpegScan     = 0xda
	jpegFirstApp = 0xe0
	jpegExif     = 0xe1 // EXIF and XMP
	jpegICC      = 0xe2 // the colour profile, and lists of further pictures
	jpegAdobe    = 0xee // says how colours are encoded
	jpegLastApp  = 0xef
	jpegComment  = 0xfe
)

// isJPEGFrame reports whether a marker says how large a JPEG is.
func isJPEGFrame(marker byte) bool {
	const tables, reserved, arithmetic = 0xc4, 0xc8, 0xcc
	return marker >= 0xc0 && marker <= 0xcf && marker != tables && marker != reserved && marker != arithmetic
}

// jpeg finds metadata in the segments of a JPEG, and the bytes after its end: phones append further pictures there,
// which have metadata of their own. What follows the metadata shows whether the file is a JPEG at all.
func (p *pieces) jpeg() error {
	if err := p.jpegSegments(true); err != nil {
		return err
	}
	return p.jpegSegments(false)
}

// jpegSegments replaces the metadata of a JPEG, or looks only whether the size of the picture follows.
func (p *pieces) jpegSegments(look bool) error {
	at, scanned := int64(2), false
	for range maxPieces {
		head, err := p.read(at, 4)
		if err != nil {
			return err
		}
		marker, length := head[1], int64(binary.BigEndian.Uint16(head[2:]))
		switch {
		case head[0] != 0xff || marker == jpegStart:
			return errNotPicture
		case marker == 0xff: // filling
			at++
			continue
		case marker == jpegEnd && scanned:
			return p.clearRest(at + 2)
		case marker == jpegEnd, length < 2, look && marker == jpegScan:
			return errNotPicture
		case look && !isJPEGFrame(marker):
			at += 2 + length
			continue
		}
		body, err := p.read(at+4, length-2)
		if err != nil {
			return err
		}
		if look {
			const head, component = 6, 3
			if len(body) < head+component || len(body) != head+component*int(body[head-1]) {
				return errNotPicture
			}
			return nil
		}
		clean := body
		switch {
		case marker == jpegExif && bytes.HasPrefix(body, []byte(exifHead)):
			clean = make([]byte, len(body))
			if exif := exifOnlyOrientation(body[len(exifHead):]); exif != nil {
				clean = append([]byte(exifHead), exif...)
			}
		case marker == jpegICC && bytes.HasPrefix(body, []byte("ICC_PROFILE\x00")), marker == jpegFirstApp,
			marker == jpegAdobe:
		case marker > jpegFirstApp && marker <= jpegLastApp, marker == jpegComment:
			clean = make([]byte, len(body))
		}
		if err := p.replace(at+4, body, clean); err != nil {
			return err
		}
		at += 2 + length
		if marker == jpegScan {
			scanned = true
			if at, err = p.afterScan(at); err != nil {
				return err
			}
		}
	}
	return nil
}

// afterScan returns where the data of a scan ends: at the next marker that is no restart and no escaped byte.
func (p *pieces) afterScan(at int64) (int64, error) {
	last := byte(0)
	for {
		part, err := p.buffered(at, 1)
		if err != nil {
			return 0, err
		}
		for i, b := range part {
			if last == 0xff && b != 0 && b != 0xff && (b < 0xd0 || b > 0xd7) {
				return at + int64(i) - 1, nil
			}
			last = b
		}
		at += int64(len(part))
	}
}

// clearRest overwrites all that follows the end of a picture.
func (p *pieces) clearRest(at int64) error {
	for at < p.size {
		n := min(int64(len(zeros)), p.size-at)
		old, err := p.read(at, n)
		if err != nil {
			return err
		}
		if err := p.replace(at, old, zeros[:n]); err != nil {
			return err
		}
		at += n
	}
	return nil
}

// pngPadding is the type of a piece of PNG without a meaning, which replaces metadata.
const pngPadding = "paDd"

// png finds metadata in the chunks of a PNG.
func (p *pieces) png() error {
	at, pixels := int64(8), false
	if first, err := p.read(at, 8); err != nil || string(first) != "\x00\x00\x00\x0dIHDR" {
		return cmp.Or(err, errNotPicture)
	}
	for range maxPieces {
		head, err := p.read(at, 8)
		if err != nil {
			return err
		}
		length := int64(binary.BigEndian.Uint32(head))
		switch name := string(head[4:]); name {
		case "tEXt", "zTXt", "iTXt", "tIME", "eXIf":
			old, err := p.read(at+4, 4+length+4)
			if err != nil {
				return err
			}
			clean := append([]byte(pngPadding), make([]byte, length)...)
			if name == "eXIf" {
				if exif := exifOnlyOrientation(old[4 : 4+length]); exif != nil {
					clean = append([]byte(name), exif...)
				}
			}
			clean = binary.BigEndian.AppendUint32(clean, crc32.ChecksumIEEE(clean))
			if err := p.replace(at+4, old, clean); err != nil {
				return err
			}
		case "IDAT":
			pixels = true
		case "IEND":
			if !pixels || length > 0 {
				return errNotPicture
			}
			return p.clearRest(at + 12)
		}
		at += 12 + length
	}
	return nil
}

// Bits of the first byte of a chunk VP8X of WebP, which say what the file has.
const (
	webpHasXMP  = 1 << 2
	webpHasEXIF = 1 << 3
)

// webpFirst are the chunks with which a WebP begins.
var webpFirst = []string{"VP8 ", "VP8L", "VP8X"}

// webp finds metadata in the chunks of a WebP file.
func (p *pieces) webp() error {
	at, flags, flagsAt := int64(12), byte(0), int64(0)
	keep := byte(0xff)
	if first, err := p.read(at, 4); err != nil || !slices.Contains(webpFirst, string(first)) {
		return cmp.Or(err, errNotPicture)
	}
	for range maxPieces {
		if at >= p.size {
			break
		}
		head, err := p.read(at, 8)
		if err != nil {
			break // the flags are still mended
		}
		name, length := string(head[:4]), int64(binary.LittleEndian.Uint32(head[4:]))
		switch name {
		case "VP8X":
			b, err := p.read(at+8, 1)
			if err != nil {
				return err
			}
			flags, flagsAt = b[0], at+8
		case "EXIF", "XMP ":
			old, err := p.read(at, 8+length)
			if err != nil {
				return err
			}
			clean := append([]byte("JUNK"), old[4:8]...)
			tiff := bytes.TrimPrefix(old[8:], []byte(exifHead))
			exif := exifOnlyOrientation(tiff)
			switch {
			case name == "XMP ":
				keep &^= webpHasXMP
				clean = append(clean, make([]byte, length)...)
			case exif != nil:
				clean = append(append([]byte("EXIF"), old[4:8]...), exif...)
				clean = append(clean, make([]byte, 8+int(length)-len(clean))...)
			default:
				keep &^= webpHasEXIF
				clean = append(clean, make([]byte, length)...)
			}
			if err := p.replace(at, old, clean); err != nil {
				return err
			}
		}
		at += 8 + length + length%2
	}
	if flagsAt > 0 {
		return p.replace(flagsAt, []byte{flags}, []byte{flags & keep})
	}
	return nil
}
