package classifier

import (
	"slices"
	"time"

	"pitchpipe/controller/profile"
	"pitchpipe/controller/tuning"
	"pitchpipe/exporter/api"
)

// account makes the profile of a run that was recorded with the exporter's columns,
// by package profile: each row is an epoch, the first is warm-up.
func (e execution) account(intervals []interval) tuning.Profile {
	begin := time.Unix(0, 0).UTC()
	w := api.Window{Job: api.Job{ID: e.run, Attempt: 1, Started: begin, Ended: true}, Schema: api.SchemaAccounting}
	spec := profile.Spec{Epochs: len(intervals), Settings: e.knobs, Machine: e.machine}
	grown := map[string]float64{}
	last := begin
	var epochs []tuning.Epoch
	for i, row := range intervals {
		at := begin.Add(time.Duration(row["t_seconds"] * float64(time.Second)))
		values := map[string]float64{}
		for column, v := range row {
			switch {
			case column == "t_seconds", column == "input":
			case slices.Contains(gauges(), column):
				values[column] = v
			default:
				grown[column] += v
				values[column] = grown[column]
			}
		}
		w.Samples = append(w.Samples, api.Sample{Seq: uint64(i + 1), Time: at, Values: values}) //nolint:gosec // an index
		epochs = append(epochs, tuning.Epoch{
			Number: i + 1, Attempt: 1, Start: last, End: at, Settings: e.knobs, Warmup: i == 0 && len(intervals) > 3,
		})
		last = at
	}
	p, _ := profile.Profile(w, epochs, spec) // what there is: a run that was too short is flagged
	return p
}

// gauges are the columns that are no counters.
func gauges() []string {
	return []string{
		api.ColRSS, api.ColCache, api.ColPeak, api.ColThreads, api.ColProcesses, api.ColAllocatedCores, api.ColGPUMemory, api.ColGPUs,
	}
}
