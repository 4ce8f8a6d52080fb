package files

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
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

// patch replaces bytes of a file.
type patch struct {
	at   int64
	data []byte
}

// errNotPicture ends the reading of a file that is no picture, or is damaged.
var errNotPicture = errors.New("not a picture")

// clearMetadata overwrites the metadata of a JPEG, PNG or WebP file and reports whether there was any. Damaged pictures
// lose the metadata before the defect. The file is set back to its beginning.
func clearMetadata(f interface {
	io.ReadSeeker
	io.WriterAt
}) (changed bool, err error) {
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
	for _, x := range p.patches {
		if _, err := f.WriteAt(x.data, x.at); err != nil {
			return false, err
		}
	}
	_, err = f.Seek(0, io.SeekStart)
	return len(p.patches) > 0, err
}

// pieces reads the pieces of a picture, and collects what replaces its metadata.
type pieces struct {
	f       io.ReadSeeker
	size    int64
	patches []patch
}

// read returns n bytes at an offset.
func (p *pieces) read(at int64, n int64) ([]byte, error) {
	if at < 0 || n < 0 || n > maxMetadata || at+n > p.size {
		return nil, errNotPicture
	}
	if _, err := p.f.Seek(at, io.SeekStart); err != nil {
		return nil, err
	}
	b := make([]byte, n)
	_, err := io.ReadFull(p.f, b)
	return b, err
}

// replace overwrites bytes unless they are the same already.
func (p *pieces) replace(at int64, old, data []byte) {
	if !bytes.Equal(old, data) {
		p.patches = append(p.patches, patch{at, data})
	}
}

// exifOnlyOrientation returns metadata of the same size that has nothing but the orientation; zeros if that is normal
// or does not fit. tiff is EXIF without a head.
func exifOnlyOrientation(tiff []byte) []byte {
	out := make([]byte, len(tiff))
	o := exifOrientation(append([]byte("Exif\x00\x00"), tiff...))
	const needed = 26
	if o < 2 || len(tiff) < needed {
		return out
	}
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

// jpeg finds metadata in the segments of a JPEG, and the bytes after its end: phones append further pictures there,
// which have metadata of their own.
func (p *pieces) jpeg() error {
	at := int64(2)
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
		case marker == jpegEnd:
			return p.clearRest(at + 2)
		case length < 2:
			return errNotPicture
		}
		body, err := p.read(at+4, length-2)
		if err != nil {
			return err
		}
		clean := body
		switch {
		case marker == jpegExif && bytes.HasPrefix(body, []byte("Exif\x00\x00")):
			clean = append([]byte("Exif\x00\x00"), exifOnlyOrientation(body[6:])...)
			if bytes.IndexByte(clean[6:], 'I') < 0 {
				clean = make([]byte, len(body))
			}
		case marker == jpegICC && bytes.HasPrefix(body, []byte("ICC_PROFILE\x00")), marker == jpegFirstApp,
			marker == jpegAdobe:
		case marker > jpegFirstApp && marker <= jpegLastApp, marker == jpegComment:
			clean = make([]byte, len(body))
		}
		p.replace(at+4, body, clean)
		at += 2 + length
		if marker == jpegScan {
			if at, err = p.afterScan(at); err != nil {
				return err
			}
		}
	}
	return nil
}

// afterScan returns where the data of a scan ends: at the next marker that is no restart and no escaped byte.
func (p *pieces) afterScan(at int64) (int64, error) {
	if _, err := p.f.Seek(at, io.SeekStart); err != nil {
		return 0, err
	}
	r := bufio.NewReaderSize(p.f, copyBuffer)
	last := byte(0)
	for ; ; at++ {
		b, err := r.ReadByte()
		if err == io.EOF {
			return 0, errNotPicture
		}
		if err != nil {
			return 0, err
		}
		if last == 0xff && b != 0 && b != 0xff && (b < 0xd0 || b > 0xd7) {
			return at - 1, nil
		}
		last = b
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
		p.replace(at, old, zeros[:n])
		at += n
	}
	return nil
}

// pngPadding is the type of a piece of PNG without a meaning, which replaces metadata.
const pngPadding = "paDd"

// png finds metadata in the chunks of a PNG.
func (p *pieces) png() error {
	at := int64(8)
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
				if exif := exifOnlyOrientation(old[4 : 4+length]); bytes.IndexByte(exif, 'I') == 0 {
					clean = append([]byte(name), exif...)
				}
			}
			p.replace(at+4, old, binary.BigEndian.AppendUint32(clean, crc32.ChecksumIEEE(clean)))
		case "IEND":
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

// webp finds metadata in the chunks of a WebP file.
func (p *pieces) webp() error {
	at, flags, flagsAt := int64(12), byte(0), int64(0)
	keep := byte(0xff)
	for range maxPieces {
		if at >= p.size {
			break
		}
		head, err := p.read(at, 8)
		if err != nil {
			break // the flags are still mended
		}
		length := int64(binary.LittleEndian.Uint32(head[4:]))
		switch string(head[:4]) {
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
			tiff := bytes.TrimPrefix(old[8:], []byte("Exif\x00\x00"))
			exif := exifOnlyOrientation(tiff)
			switch {
			case string(head[:4]) == "XMP ":
				keep &^= webpHasXMP
				clean = append(clean, make([]byte, length)...)
			case bytes.IndexByte(exif, 'I') == 0:
				clean = append(append([]byte("EXIF"), old[4:8]...), exif...)
				clean = append(clean, make([]byte, 8+int(length)-len(clean))...)
			default:
				keep &^= webpHasEXIF
				clean = append(clean, make([]byte, length)...)
			}
			p.replace(at, old, clean)
		}
		at += 8 + length + length%2
	}
	if flagsAt > 0 {
		p.replace(flagsAt, []byte{flags}, []byte{flags & keep})
	}
	return nil
}
