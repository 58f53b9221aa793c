package picture

import (
	"bytes"
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Format is that of a picture's file.
type Format string

// The formats.
const (
	SVG Format = "svg"
	PNG Format = "png"
)

// Formats lists the formats.
func Formats() []Format { return []Format{SVG, PNG} }

// ErrFormat is a format that no picture has.
var ErrFormat = errors.New("no such format")

// The size of a picture; a pixel of the screen is three quarters of a point.
const width, height = 600 * vg.Length(1), 375 * vg.Length(1)

// Sheet is a picture in parts.
type Sheet struct {
	Title  string
	Notes  []string // what a reader has to know
	Plot   *plot.Plot
	Legend []Entry
}

// Entry is one of a legend.
type Entry struct {
	Name string
	Mark plot.Thumbnailer
}

// Mark is what is drawn, with its entry in the legend.
type Mark interface {
	plot.Plotter
	plot.Thumbnailer
}

// Add draws something more, with its name in the legend.
func (s *Sheet) Add(name string, m Mark) {
	s.Plot.Add(m)
	s.Legend = append(s.Legend, Entry{name, m})
}

// Write draws the sheet.
func (s Sheet) Write(w io.Writer, format Format) error {
	var canvas vg.CanvasWriterTo
	switch format {
	case SVG:
		canvas = vgsvg.New(width, height)
	case PNG:
		canvas = vgimg.PngCanvas{Canvas: vgimg.New(width, height)}
	default:
		return fmt.Errorf("%w: %q, want one of %v", ErrFormat, format, Formats())
	}
	s.draw(draw.NewCanvas(canvas, width, height))
	var b bytes.Buffer
	_, err := canvas.WriteTo(&b)
	if err == nil {
		_, err = w.Write(bytes.ReplaceAll(b.Bytes(), []byte(own), []byte(own+alike)))
	}
	if err != nil {
		return fmt.Errorf("draw: %w", err)
	}
	return nil
}

// An SVG names its font, and here those that are as wide, for who lacks it.
const own, alike = "font-family:Liberation Sans", ",Arial,Helvetica,sans-serif"

// New is an empty plot without a title.
func New(x, y string) *plot.Plot {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = x, y
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle.Font, a.Tick.Label.Font = Sans(10), Sans(9)
		a.Label.Padding, a.Tick.Length, a.Tick.Marker = 3, 4, plot.TickerFunc(Round)
	}
	return p
}

// Sans is the font of a size in points.
func Sans(size vg.Length) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
}

// Words is the style of text.
func Words(size vg.Length, x text.XAlignment) text.Style {
	return text.Style{Color: color.Black, Font: Sans(size), XAlign: x, YAlign: draw.YCenter, Handler: plot.DefaultTextHandler}
}

// draw puts the title and the notes above the plot and the legend below it, where they hide nothing.
func (s Sheet) draw(c draw.Canvas) {
	c.SetColor(color.White)
	c.Fill(c.Path())
	c = draw.Crop(c, 8, -12, 6, -8)
	top := c.Max.Y - 6
	c.FillText(Words(12, draw.XLeft), vg.Point{X: c.Min.X, Y: top}, s.Title)
	for _, n := range s.Notes {
		top -= 13
		c.FillText(Words(9, draw.XLeft), vg.Point{X: c.Min.X, Y: top}, n)
	}
	style := Words(9, draw.XLeft)
	const swatch, gap, line = 18, 12, 13
	x, bottom := c.Min.X, c.Min.Y+line/2
	for _, e := range s.Legend {
		size := swatch + 4 + style.Width(e.Name)
		if x+size > c.Max.X {
			x, bottom = c.Min.X, bottom+line
		}
		mark := draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{Min: vg.Point{X: x, Y: bottom - 4}, Max: vg.Point{X: x + swatch, Y: bottom + 4}}}
		e.Mark.Thumbnail(&mark)
		c.FillText(style, vg.Point{X: x + swatch + 4, Y: bottom}, e.Name)
		x += size + gap
	}
	s.Plot.Draw(draw.Crop(c, 0, 0, bottom+line-c.Min.Y, top-12-c.Max.Y))
}

// Colour is 0xRRGGBB.
type Colour uint32

// The colours of Okabe and Ito, which stay apart for those who see few.
const (
	Black  Colour = 0x222222
	Grey   Colour = 0x999999
	Blue   Colour = 0x0072b2
	Orange Colour = 0xe69f00
	Green  Colour = 0x009e73
	Red    Colour = 0xd55e00
	Purple Colour = 0xcc79a7
	Sky    Colour = 0x56b4e9
)

// RGBA implements color.Color.
func (c Colour) RGBA() (r, g, b, a uint32) {
	return uint32(c>>16) * 0x101, uint32(c>>8&0xff) * 0x101, uint32(c&0xff) * 0x101, 0xffff
}

// Dots are points of a shape.
func Dots(at plotter.XYs, c color.Color, radius vg.Length, shape draw.GlyphDrawer) *plotter.Scatter {
	return &plotter.Scatter{XYs: at, GlyphStyle: draw.GlyphStyle{Color: c, Radius: radius, Shape: shape}}
}

// Line joins points; dashes are lengths of strokes and gaps.
func Line(at plotter.XYs, c color.Color, width vg.Length, dashes ...vg.Length) *plotter.Line {
	return &plotter.Line{XYs: at, LineStyle: draw.LineStyle{Color: c, Width: width, Dashes: dashes}}
}

// Round are up to nine ticks at round numbers.
func Round(least, most float64) []plot.Tick {
	const wished = 8
	step := math.Pow(10, math.Floor(math.Log10((most-least)/wished)))
	for _, factor := range []float64{2, 2.5, 2} { // 1, 2, 5, 10
		if (most-least)/step > wished {
			step *= factor
		}
	}
	form, digits := byte('f'), int(max(0, math.Ceil(-math.Log10(step)-1e-9)))
	if digits > 5 || max(math.Abs(least), math.Abs(most)) >= 1e7 {
		form, digits = 'g', 4
	}
	var out []plot.Tick
	for n := math.Ceil(least/step - 1e-9); n*step <= most+1e-9*step; n++ {
		v := n*step + 0 // no -0
		out = append(out, plot.Tick{Value: v, Label: strconv.FormatFloat(v, form, digits, 64)})
	}
	return out
}

// Pad widens a range, so that what lies at its ends is seen, and one of a single number.
func Pad(a *plot.Axis) {
	by, size := 0.05*(a.Max-a.Min), max(math.Abs(a.Max), math.Abs(a.Min))
	if by <= 1e-9*size || size < 1e-9 {
		by = max(0.05*size, 1e-3)
	}
	a.Min, a.Max = a.Min-by, a.Max+by
}
