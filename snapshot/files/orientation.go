package files

import (
	"bufio"
	"encoding/binary"
	"image"
	"io"
)

// orientation says how a stored picture is turned or mirrored before it is shown: the numbers 1 to 8 of EXIF. Cameras
// store pictures as the sensor has them and write this number into the metadata.
type orientation int

// upright is the orientation of pictures without one.
const upright orientation = 1

// swaps reports whether the shown picture is as wide as the stored one is high.
func (o orientation) swaps() bool { return o >= 5 }

// maxSegments limits the pieces of metadata that are read of a JPEG, at most 64 KiB each.
const maxSegments = 32

// readOrientation returns the orientation in the metadata of a JPEG; upright if there is none, or for other files.
func readOrientation(r io.Reader) orientation {
	b := bufio.NewReader(r)
	head := make([]byte, 4)
	if _, err := io.ReadFull(b, head[:2]); err != nil || head[0] != 0xff || head[1] != 0xd8 {
		return upright
	}
	for range maxSegments {
		if _, err := io.ReadFull(b, head); err != nil || head[0] != 0xff || head[1] < 0xe0 && head[1] != 0xdb {
			return upright // the picture begins
		}
		size := max(2, int(binary.BigEndian.Uint16(head[2:]))) - 2
		if head[1] != 0xe1 {
			if _, err := b.Discard(size); err != nil {
				return upright
			}
			continue
		}
		body := make([]byte, size)
		if _, err := io.ReadFull(b, body); err != nil {
			return upright
		}
		if o := exifOrientation(body); o != 0 {
			return o
		}
	}
	return upright
}

// exifOrientation returns the orientation in a segment, or 0 if it has none.
func exifOrientation(b []byte) orientation {
	const (
		head      = "Exif\x00\x00"
		entrySize = 12
		tag       = 0x0112
		short     = 3 // the type of the value
	)
	if len(b) < len(head)+8 || string(b[:len(head)]) != head {
		return 0
	}
	b = b[len(head):]
	var order binary.ByteOrder = binary.LittleEndian
	if string(b[:2]) == "MM" {
		order = binary.BigEndian
	}
	at := int64(order.Uint32(b[4:]))
	if at+2 > int64(len(b)) {
		return 0
	}
	count := int64(order.Uint16(b[at:]))
	for i := range count {
		entry := at + 2 + i*entrySize
		if entry+entrySize > int64(len(b)) {
			return 0
		}
		if e := b[entry:]; order.Uint16(e) == tag && order.Uint16(e[2:]) == short {
			if o := orientation(order.Uint16(e[8:])); o >= 1 && o <= 8 {
				return o
			}
			return 0
		}
	}
	return 0
}

// turn returns a picture as it is shown.
func turn(img *image.RGBA, o orientation) *image.RGBA {
	if o == upright {
		return img
	}
	w, h := img.Bounds().Dx(), img.Bounds().Dy()
	wide, high := w, h
	if o.swaps() {
		wide, high = h, w
	}
	out := image.NewRGBA(image.Rect(0, 0, wide, high))
	for y := range high {
		for x := range wide {
			fromX, fromY := x, y
			if o.swaps() {
				fromX, fromY = y, x
			}
			if o == 2 || o == 3 || o == 7 || o == 8 {
				fromX = w - 1 - fromX
			}
			if o == 3 || o == 4 || o == 6 || o == 7 {
				fromY = h - 1 - fromY
			}
			copy(out.Pix[out.PixOffset(x, y):][:4], img.Pix[img.PixOffset(fromX, fromY):][:4])
		}
	}
	return out
}
