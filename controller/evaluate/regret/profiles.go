package regret

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/profile"
	"pitchpipe/controller/tuning"
	"pitchpipe/exporter/api"
)

// runKey names a run: names are those of a workload on a machine in one recording.
type runKey struct{ recording, machine, workload, run string }

func keyOf(recording string, r records.Row) runKey {
	return runKey{recording, r.Machine, r.Workload, r.Run}
}

// recordings says which recording each table is of: those of one folder belong together,
// and where several of a kind stand in one, the first of each do, and so on.
func (in Input) recordings(tables []records.Table) []string {
	crowded := slices.ContainsFunc([][]records.Table{in.Trials, in.Samples, in.Curves}, func(all []records.Table) bool {
		folders := map[string]bool{}
		for _, t := range all {
			folders[filepath.Dir(t.File)] = true
		}
		return len(folders) < len(all)
	})
	out := make([]string, len(tables))
	for i, t := range tables {
		out[i] = filepath.Dir(t.File)
		if crowded {
			out[i] = fmt.Sprint(i)
		}
	}
	return out
}

// sampled are the rows of the runs that were sampled, and the ends of their epochs where
// they are told.
type sampled struct {
	rows    map[runKey][]records.Row
	columns map[runKey][]string // by run, of the table that it is in
	epochs  map[runKey][]float64
	named   map[runKey][]runKey // keys without a recording, and with it
}

// find is the run of a trial: that of the same recording, or the only one of its name.
func (s sampled) find(k runKey) runKey {
	if _, ok := s.rows[k]; ok {
		return k
	}
	bare := k
	bare.recording = ""
	if all := s.named[bare]; len(all) == 1 {
		return all[0]
	}
	return k
}

func (in Input) sampled() (sampled, error) {
	out := sampled{map[runKey][]records.Row{}, map[runKey][]string{}, map[runKey][]float64{}, map[runKey][]runKey{}}
	of := in.recordings(in.Samples)
	for i, t := range in.Samples {
		for _, rows := range records.Runs(t.Rows) {
			k := keyOf(of[i], rows[0])
			if _, twice := out.rows[k]; twice {
				return out, fmt.Errorf("%w: %s:%d: run %q of %s on %s stands twice", records.ErrInvalid, t.File, rows[0].Line, k.run, k.workload, k.machine)
			}
			out.rows[k], out.columns[k] = rows, t.Columns
			bare := k
			bare.recording = ""
			out.named[bare] = append(out.named[bare], k)
		}
	}
	of = in.recordings(in.Curves)
	for i, t := range in.Curves {
		for _, r := range t.Rows {
			if end, ok := r.Float("seconds"); ok {
				k := out.find(keyOf(of[i], r))
				out.epochs[k] = append(out.epochs[k], end)
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
	key := s.find(m.key)
	rows := s.rows[key]
	if len(rows) == 0 {
		return tuning.Profile{}, false
	}
	begin := time.Unix(0, 0).UTC()
	after := func(seconds float64) time.Time { return begin.Add(time.Duration(seconds * float64(time.Second))) }
	w := api.Window{Job: api.Job{ID: m.key.run, Attempt: 1, Started: begin, Ended: true}, Schema: api.SchemaAccounting}
	grown := map[string]float64{}
	ends := s.epochs[key]
	told := len(ends) > 0
	for i, r := range rows {
		t, _ := r.Float("t_seconds")
		w.Samples = append(w.Samples, api.Sample{Seq: uint64(i + 1), Time: after(t), Values: values(r, s.columns[key], grown)}) //nolint:gosec // an index
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
	return []string{
		api.ColRSS, api.ColCache, api.ColPeak, api.ColThreads, api.ColProcesses, api.ColAllocatedCores, api.ColGPUMemory, api.ColGPUs,
	}
}
