package demo

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math"
)

// Size of the picture of the route card in pixels.
const (
	cardWidth  = 720
	cardHeight = 405
)

// drawRouteCard draws a sky, three ranges of hills and the profile of a route, as PNG. Colours come from a small
// palette, so that drawing and compressing take a few milliseconds.
func drawRouteCard() []byte {
	const skies = 32
	palette := make(color.Palette, 0, skies+4)
	for i := range skies {
		s := uint8(i * 255 / skies)
		palette = append(palette, color.RGBA{90 + s/2, 140 + s/4, 200 - s/8, 255})
	}
	palette = append(palette, color.RGBA{126, 150, 170, 255}, color.RGBA{84, 118, 128, 255},
		color.RGBA{44, 82, 84, 255}, color.RGBA{250, 204, 92, 255})
	card := image.NewPaletted(image.Rect(0, 0, cardWidth, cardHeight), palette)
	for x := range cardWidth {
		at := float64(x) / cardWidth
		far := cardHeight * (0.52 - 0.13*math.Sin(5*at+1) - 0.05*math.Sin(17*at))
		middle := cardHeight * (0.66 - 0.10*math.Sin(7*at+3) - 0.03*math.Sin(23*at))
		near := cardHeight * (0.84 - 0.08*math.Sin(4*at+5) - 0.02*math.Sin(31*at))
		route := cardHeight * (0.62 - 0.16*math.Sin(3*at+0.4) - 0.04*math.Sin(13*at))
		for y := range cardHeight {
			c := uint8(y * skies / cardHeight)
			switch h := float64(y); {
			case math.Abs(h-route) < 3:
				c = skies + 3
			case h > near:
				c = skies + 2
			case h > middle:
				c = skies + 1
			case h > far:
				c = skies
			}
			card.SetColorIndex(x, y, c)
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, card); err != nil {
		panic("BUG: encode a picture: " + err.Error())
	}
	return b.Bytes()
}
