package regret

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/profile"
	"pitchpipe/controller/tuning"
	"pitchpipe/exporter/api"
)

// sampled are the rows of the runs that were sampled, and the ends of their epochs where
// they are told.
type sampled struct {
	rows    map[string][]records.Row
	columns map[string][]string // by run, of the table that it is in
	epochs  map[string][]float64
}

func (in Input) sampled() (sampled, error) {
	out := sampled{map[string][]records.Row{}, map[string][]string{}, map[string][]float64{}}
	for _, t := range in.Samples {
		for _, rows := range records.Runs(t.Rows) {
			if _, twice := out.rows[rows[0].Run]; twice {
				return out, fmt.Errorf("%w: %s:%d: run %q is in another table too", records.ErrInvalid, t.File, rows[0].Line, rows[0].Run)
			}
			out.rows[rows[0].Run], out.columns[rows[0].Run] = rows, t.Columns
		}
	}
	for _, t := range in.Curves {
		for _, r := range t.Rows {
			if end, ok := r.Float("seconds"); ok {
				out.epochs[r.Run] = append(out.epochs[r.Run], end)
			}
		}
	}
	for _, ends := range out.epochs {
		slices.Sort(ends)
	}
	return out, nil
}

// profile is that of a run, made by package profile as the controller makes it: epochs
// from the curves, the first of them warm-up; without curves each sample is an epoch.
// False: the run was not sampled.
func (s sampled) profile(m measured, machine string, cores int) (tuning.Profile, bool) {
	rows := s.rows[m.run]
	if len(rows) == 0 {
		return tuning.Profile{}, false
	}
	begin := time.Unix(0, 0).UTC()
	after := func(seconds float64) time.Time { return begin.Add(time.Duration(seconds * float64(time.Second))) }
	w := api.Window{Job: api.Job{ID: m.run, Attempt: 1, Started: begin, Ended: true}, Schema: api.SchemaAccounting}
	grown := map[string]float64{}
	ends := s.epochs[m.run]
	told := len(ends) > 0
	for i, r := range rows {
		t, _ := r.Float("t_seconds")
		w.Samples = append(w.Samples, api.Sample{Seq: uint64(i + 1), Time: after(t), Values: values(r, s.columns[m.run], grown)}) //nolint:gosec // an index
		if !told {
			ends = append(ends, t)
		}
	}
	spec := profile.Spec{Epochs: len(ends), Settings: m.settings, Machine: machine, NodeCores: cores}
	var epochs []tuning.Epoch
	last := begin
	for i, end := range ends {
		e := tuning.Epoch{Number: i + 1, Attempt: 1, Start: last, End: after(end), Settings: m.settings, Warmup: i == 0 && len(ends) > 3}
		e.Polluted = profile.Disturbed(w, e, spec) != ""
		epochs = append(epochs, e)
		last = e.End
	}
	p, why := profile.Profile(w, epochs, spec)
	if why == tuning.ReasonPolluted { // others disturbed all of it: it is taken as it is, and flagged
		for i := range epochs {
			epochs[i].Polluted = false
		}
		p, _ = profile.Profile(w, epochs, spec)
		if !slices.Contains(p.Flags, tuning.FlagContended) {
			p.Flags = append(p.Flags, tuning.FlagContended)
		}
	}
	return p, len(p.Features) > 0
}

// values are those of a sample: gauges as they are, and what the records count per
// interval as it has grown.
func values(r records.Row, columns []string, grown map[string]float64) map[string]float64 {
	out := map[string]float64{}
	for _, c := range columns {
		v, ok := r.Float(c)
		switch {
		case !ok, c == "t_seconds", c == "input", strings.HasPrefix(c, "knob_"):
		case slices.Contains(gauges(), c):
			out[c] = v
		default:
			grown[c] += v
			out[c] = grown[c]
		}
	}
	return out
}

// gauges are the columns that do not count.
func gauges() []string {
	return []string{api.ColRSS, api.ColCache, api.ColPeak, api.ColThreads, api.ColProcesses, api.ColAllocatedCores}
}
