package figure

import (
	"cmp"
	"fmt"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"pitchpipe/controller/report"
	"pitchpipe/controller/report/picture"
	"pitchpipe/controller/searcher"
	"pitchpipe/controller/tuning"
)

// span is a piece of a trial's life.
type span struct {
	trial, from, to float64
}

type bars struct {
	spans []span
	color picture.Colour
	width vg.Length
}

// Plot implements plot.Plotter.
func (b bars) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for _, s := range b.spans {
		from, to := x(s.from), x(s.to)
		c.StrokeLine2(draw.LineStyle{Color: b.color, Width: b.width}, from, y(s.trial), max(to, from+0.5), y(s.trial))
	}
}

// Thumbnail implements plot.Thumbnailer.
func (b bars) Thumbnail(c *draw.Canvas) {
	middle := c.Center().Y
	c.StrokeLine2(draw.LineStyle{Color: b.color, Width: max(min(b.width, 7), 1)}, c.Min.X, middle, c.Max.X, middle)
}

// life cuts the time of a trial into what it ran and what it waited: in a queue, or paused.
func life(t *searcher.Trial, began, now float64) (ran, waited []span) {
	at, n, before := began, float64(t.Number), 0.0
	for _, r := range t.Reports {
		length := r.Seconds - before
		if start := r.At - length; start-at > 0.05*length+0.002*now {
			waited, at = append(waited, span{n, at, start}), start
		}
		if last := len(ran) - 1; last >= 0 && ran[last].to == at {
			ran[last].to = r.At
		} else {
			ran = append(ran, span{n, at, r.At})
		}
		at, before = r.At, r.Seconds
	}
	if t.State == searcher.Running && len(t.Reports) == 0 {
		waited = append(waited, span{n, began, now})
	}
	return ran, waited
}

// lastOf is when a trial failed or diverged.
func lastOf(t *searcher.Trial) float64 {
	at := t.Last().At
	for _, e := range t.Log {
		if at = max(at, e.Report.At); e.Kind == searcher.Broke { // its job ends later
			return e.Report.At
		}
	}
	return at
}

// rungs is the life of each trial as a bar over time.
func rungs(s *searcher.Searcher, _ string) (picture.Sheet, error) {
	if len(s.Trials) == 0 {
		return picture.Sheet{}, fmt.Errorf("%w: no trial has begun", ErrEmpty)
	}
	states := []searcher.State{searcher.Running, searcher.Done, searcher.Stopped, searcher.Paused, searcher.Failed, searcher.Diverged}
	colours := []picture.Colour{picture.Sky, picture.Green, picture.Grey, picture.Orange, picture.Red, picture.Purple}
	all, _ := moments(s, tuning.ByTime)
	now := 0.0
	for _, m := range all {
		now = max(now, m.At)
	}
	reported := len(all) > 0
	for i := range s.Trials {
		t := &s.Trials[i]
		if t.State == searcher.Failed || t.State == searcher.Diverged {
			now = max(now, lastOf(t))
		}
		for _, e := range t.Log {
			e.Report.Seq = e.Seq
			all = append(all, moment{Report: e.Report})
		}
	}
	slices.SortFunc(all, func(a, b moment) int { return cmp.Compare(a.Seq, b.Seq) })
	label, u := fitting(tuning.ByTime, "since the search began", now)
	p := picture.New(label, "trial")
	row := 0.8 * 270 / vg.Length(len(s.Trials)) // of the plot's height
	of := map[searcher.State]*bars{}
	waiting := bars{color: picture.Black, width: min(max(row/4, 0.4), 0.8)}
	var ends, marks plotter.XYs
	for i := range s.Trials {
		t := &s.Trials[i]
		began := 0.0
		if at, _ := slices.BinarySearchFunc(all, t.Began, func(m moment, seq int) int { return m.Seq - seq - 1 }); at > 0 {
			began = all[at-1].At // of the newest event by then
		}
		ran, waited := life(t, began, now)
		if of[t.State] == nil {
			of[t.State] = &bars{width: min(max(row, 0.4), 10)}
		}
		of[t.State].spans = append(of[t.State].spans, ran...)
		waiting.spans = append(waiting.spans, waited...)
		for _, rung := range s.Rungs() {
			if at := slices.IndexFunc(t.Reports, func(r searcher.Report) bool { return r.Epoch >= rung }); at >= 0 {
				marks = append(marks, plotter.XY{X: t.Reports[at].At / u.factor, Y: float64(t.Number)})
			}
		}
		if t.State == searcher.Failed || t.State == searcher.Diverged {
			ends = append(ends, plotter.XY{X: max(began, lastOf(t)) / u.factor, Y: float64(t.Number)})
		}
	}
	out := picture.Sheet{Plot: p, Title: report.Count(len(s.Trials), "trial") + ": " + s.Counts(states...)}
	p.Add(plotter.NewGrid())
	add := func(name string, b bars) {
		if len(b.spans) == 0 {
			return
		}
		for i := range b.spans {
			b.spans[i].from /= u.factor
			b.spans[i].to /= u.factor
		}
		out.Add(name, b)
	}
	add("waits or is paused", waiting)
	for i, state := range states {
		if b := of[state]; b != nil {
			b.color = colours[i]
			add(string(state), *b)
		}
	}
	if ticks := picture.Dots(marks, picture.Black, min(max(row/2, 1), 4), upright{}); row >= 3 {
		out.Add("rung", ticks)
	} else {
		out.Notes = append(out.Notes, "There are too many trials to mark their rungs.")
	}
	if len(ends) > 0 {
		out.Add("failed or diverged here", picture.Dots(ends, picture.Red, min(max(row/2, 1), 3), draw.CrossGlyph{}))
	}
	if !reported {
		out.Notes = append(out.Notes, "No trial has reported an epoch.")
	}
	p.X.Min, p.X.Max = 0, max(now/u.factor, 1e-3)
	p.Y.Min, p.Y.Max = 0.4, float64(len(s.Trials))+0.6
	p.Y.Scale = plot.InvertedScale{Normalizer: plot.LinearScale{}} // the first trial on top
	p.Y.Tick.Marker = plot.TickerFunc(func(least, most float64) []plot.Tick {
		return picture.Round(least, max(most, least+8)) // whole numbers
	})
	return out, nil
}

type upright struct{}

// DrawGlyph implements draw.GlyphDrawer.
func (upright) DrawGlyph(c *draw.Canvas, s draw.GlyphStyle, at vg.Point) {
	c.StrokeLine2(draw.LineStyle{Color: s.Color, Width: 1}, at.X, at.Y-s.Radius, at.X, at.Y+s.Radius)
}
