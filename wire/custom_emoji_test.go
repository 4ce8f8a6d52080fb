package wire

import (
	"bytes"
	"image"
	"image/color/palette"
	"image/gif"
	"testing"
)

func TestMovingPicturesAreRecognized(t *testing.T) {
	for frames := 1; frames <= 3; frames++ {
		g := &gif.GIF{}
		for range frames {
			g.Image, g.Delay = append(g.Image, image.NewPaletted(image.Rect(0, 0, 40, 30), palette.WebSafe)), append(g.Delay, 5)
		}
		var b bytes.Buffer
		if err := gif.EncodeAll(&b, g); err != nil {
			t.Fatal(err)
		}
		if got := moves(b.Bytes()); got != (frames > 1) {
			t.Errorf("%d pictures: moves is %v", frames, got)
		}
		for n := range b.Len() { // cut off anywhere, it must not crash, and one picture never becomes two
			if moves(b.Bytes()[:n]) && frames == 1 {
				t.Errorf("the first %d bytes of one picture move", n)
			}
		}
	}
}
