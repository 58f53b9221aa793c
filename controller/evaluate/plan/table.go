package plan

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/evaluate/tuner"
	"pitchpipe/controller/tuning"
)

// table is what was recorded of one workload on one machine.
type table struct {
	workload, machine, part string

	own     tuning.Settings // of the knobs
	knobs   []tuning.Knob   // that may move
	cells   map[string][]tuning.Spent
	lengths []int     // epochs that runs under the owner's settings took; none: the table does not tell
	noise   []float64 // of the epochs of recorded curves, over the mean of their run
	busy    float64   // cores at work under the owner's settings: cpu_seconds over seconds; 0: the table does not tell
	stories [][]said  // what runs under the owner's settings reported, by epoch
}

// said is what a job reported at the end of an epoch.
type said struct{ loss, quality *float64 }

// movable are the knobs that change what an epoch costs and not what it does. Recorded
// names carry their unit.
func movable(name string) bool {
	for _, unit := range []string{"_watts", "_mhz"} {
		name = strings.TrimSuffix(name, unit)
	}
	return slices.Contains([]string{tuning.Cores, tuning.Threads, tuning.PowerLimit, "frequency", "nodes", "replicas", "placement"}, name)
}

// parted are knobs that neither move nor are chosen: each of their values is a job of its
// own.
func parted(name string) bool {
	return slices.Contains([]string{tuning.GPUs, "core_type", "schedule"}, name)
}

// tables splits a file into tables, in the order of their first rows. Those in which
// nothing may move have fewer than two cells.
func (in Input) tables(t records.Table, curves []records.Table) ([]table, error) {
	targets, err := readTargets(t.File)
	if err != nil {
		return nil, err
	}
	fair := tuner.FairShare(t)
	var out []table
	for _, g := range t.Groups() {
		wanted := fair
		if own, ok := targets[[2]string{g.Workload, g.Machine}]; ok {
			wanted = own
		}
		wanted = wanted.Merge(in.Default)
		for _, part := range split(g.Rows) {
			made := table{workload: g.Workload, machine: g.Machine, part: part.name}
			own, rows := in.ownRows(t, part.rows, wanted)
			made.fill(in.movableIn(t), own, rows)
			made.learn(own, curves)
			out = append(out, made)
		}
	}
	return out, nil
}

// movableIn are the knobs of a file that may move.
func (in Input) movableIn(t records.Table) []string {
	return slices.DeleteFunc(t.Knobs(), func(name string) bool {
		return !movable(name) && !slices.Contains(in.Knobs, name) || len(in.Knobs) > 0 && !slices.Contains(in.Knobs, name)
	})
}

// piece is the part of a group that is one job.
type piece struct {
	name string
	rows []records.Row
}

func split(rows []records.Row) []piece {
	var out []piece
	for _, r := range rows {
		name := r.Knobs.Only(parted).Key()
		i := slices.IndexFunc(out, func(p piece) bool { return p.name == name })
		if i < 0 {
			i, out = len(out), append(out, piece{name: name})
		}
		out[i].rows = append(out[i].rows, r)
	}
	return out
}

// ownRows finds the owner's settings among the rows, those nearest to the wanted ones and
// the most of everything else, and keeps the rows that differ from them only in what may
// move.
func (in Input) ownRows(t records.Table, rows []records.Row, wanted tuning.Settings) (tuning.Settings, []records.Row) {
	own := slices.MinFunc(rows, func(a, b records.Row) int {
		order := cmp.Compare(evaluate.Distance(a.Knobs, wanted), evaluate.Distance(b.Knobs, wanted))
		for _, name := range t.Knobs() {
			order = cmp.Or(order, cmp.Compare(b.Knobs[name].Float(), a.Knobs[name].Float()))
		}
		return order
	}).Knobs
	free := in.movableIn(t)
	return own, slices.DeleteFunc(slices.Clone(rows), func(r records.Row) bool {
		return slices.ContainsFunc(own.Diff(r.Knobs), func(name string) bool { return !slices.Contains(free, name) })
	})
}

// fill makes cells of rows. Runs that failed, and placeholders for them, are none: the
// controller is not sent to settings whose cost nobody knows.
func (t *table) fill(free []string, own tuning.Settings, rows []records.Row) {
	rate := rateOf(own, rows)
	rows = slices.DeleteFunc(slices.Clone(rows), func(r records.Row) bool { return !(costOf(r, rate).Seconds > 0) })
	free = independent(free, rows)
	only := func(s tuning.Settings) tuning.Settings {
		return s.Only(func(name string) bool { return slices.Contains(free, name) })
	}
	t.own, t.cells = only(own), map[string][]tuning.Spent{}
	at := map[string]tuning.Settings{}
	for _, r := range rows {
		s := only(r.Knobs)
		at[s.Key()] = s
		t.cells[s.Key()] = append(t.cells[s.Key()], costOf(r, rate))
		if n, ok := r.Float("epochs"); ok && n >= 1 && s.Equal(t.own) {
			t.lengths = append(t.lengths, int(math.Round(n)))
		}
		if cpu, ok := r.Float("cpu_seconds"); ok && s.Equal(t.own) {
			if seconds, ok := r.Float("seconds"); ok && seconds > 0 {
				t.busy = cpu / seconds
			}
		}
	}
	t.knobs = complete(free, t.own, slices.Collect(maps.Values(at)))
}

// minute is how long an epoch takes under the owner's settings where a table tells only
// rates: as many samples as they do in a minute.
const minute = 60.0

// rateOf are the samples of an epoch where rows tell only rates; 0: they do not.
func rateOf(own tuning.Settings, rows []records.Row) float64 {
	for _, r := range rows {
		if v, ok := r.Float("samples_per_second"); ok && r.Knobs.Equal(own) {
			return minute * v
		}
	}
	return 0
}

// costOf is what an epoch of a row took, the zero Spent where that is not known. Without
// epochs in the table the whole run is one.
func costOf(r records.Row, rate float64) tuning.Spent {
	failed, _ := r.Float("failed")
	if speed, ok := r.Float("relative_speed"); failed > 0 || ok && speed <= records.Placeholder {
		return tuning.Spent{}
	}
	epochs, counted := r.Float("epochs")
	if !counted {
		epochs = 1
	}
	c := tuning.Spent{Joules: math.NaN()}
	seconds, ok := r.Float("epoch_seconds")
	if !ok {
		if seconds, ok = r.Float("seconds"); ok {
			seconds /= epochs
		}
	}
	if v, rated := r.Float("samples_per_second"); !ok && rated && v > 0 {
		seconds = rate / v
	}
	c.Seconds = seconds
	if watts, ok := r.Float("watts"); ok {
		c.Joules = watts * seconds
	} else if joules, ok := r.Float("joules"); ok {
		c.Joules = joules / epochs
	}
	return c
}

// independent are the knobs that vary, without those that another one decides.
func independent(names []string, rows []records.Row) []string {
	decides := func(one, other string) bool {
		with := map[tuning.Value]tuning.Value{}
		for _, r := range rows {
			if v, ok := with[r.Knobs[one]]; ok && v != r.Knobs[other] {
				return false
			}
			with[r.Knobs[one]] = r.Knobs[other]
		}
		return true
	}
	var out []string
	for i, name := range names {
		varies := slices.ContainsFunc(rows, func(r records.Row) bool { return r.Knobs[name] != rows[0].Knobs[name] })
		decided := false
		for j, other := range names {
			decided = decided || i != j && decides(other, name) && (j < i || !decides(name, other))
		}
		if varies && !decided {
			out = append(out, name)
		}
	}
	return out
}

// complete makes knobs of the settings, every combination of whose values was recorded:
// the value that misses the most is left out until none is missed. The owner's stay.
func complete(names []string, own tuning.Settings, settings []tuning.Settings) []tuning.Knob {
	for {
		values := map[string][]tuning.Value{}
		product := 1
		for _, name := range names {
			for _, s := range settings {
				if !slices.Contains(values[name], s[name]) {
					values[name] = append(values[name], s[name])
				}
			}
			slices.SortFunc(values[name], byValue)
			product *= len(values[name])
		}
		if product == len(settings) {
			return knobs(names, values)
		}
		worst, least := "", math.Inf(1)
		var out tuning.Value
		for _, name := range names {
			for _, v := range values[name] {
				n := 0
				for _, s := range settings {
					if s[name] == v {
						n++
					}
				}
				if share := float64(n*len(values[name])) / float64(product); v != own[name] && share < least {
					worst, least, out = name, share, v
				}
			}
		}
		if worst == "" { // not even the owner's settings
			return nil
		}
		settings = slices.DeleteFunc(slices.Clone(settings), func(s tuning.Settings) bool { return s[worst] == out })
	}
}

func byValue(a, b tuning.Value) int {
	return cmp.Or(cmp.Compare(a.Float(), b.Float()), cmp.Compare(a.String(), b.String()))
}

func knobs(names []string, values map[string][]tuning.Value) []tuning.Knob {
	var out []tuning.Knob
	for _, name := range names {
		k := tuning.Knob{Name: name, Values: values[name], Quality: tuning.QualitySame}
		if name != tuning.Cores {
			k.Env = "KNOB_" + strings.ToUpper(name)
		}
		if len(k.Values) > 1 {
			out = append(out, k)
		}
	}
	return out
}

// learn takes from curves how epochs vary and what they report.
func (t *table) learn(own tuning.Settings, curves []records.Table) {
	for _, c := range curves {
		for _, run := range records.Runs(c.Rows) {
			if run[0].Workload != t.workload || run[0].Machine != "" && run[0].Machine != t.machine {
				continue
			}
			t.noise = append(t.noise, varied(run)...)
			if evaluate.Distance(run[0].Knobs, own) == 0 {
				t.stories = append(t.stories, story(run))
			}
		}
	}
}

// varied are the epochs of a run behind its first, over their mean.
func varied(run []records.Row) []float64 {
	var lengths []float64
	sum := 0.0
	for i := 1; i < len(run); i++ {
		from, ok := run[i-1].Float("seconds")
		to, too := run[i].Float("seconds")
		if ok && too && to > from {
			lengths = append(lengths, to-from)
			sum += to - from
		}
	}
	for i := range lengths {
		lengths[i] *= float64(len(lengths)) / sum
	}
	return lengths
}

func story(run []records.Row) []said {
	out := make([]said, 0, len(run))
	for _, r := range run {
		var s said
		if v, ok := r.Float("loss"); ok {
			s.loss = &v
		}
		if v, ok := r.Float("quality"); ok {
			s.quality = &v
		}
		out = append(out, s)
	}
	return out
}

// readTargets reads the owner's settings from targets.csv in the folder of a file, where
// it is there.
func readTargets(file string) (map[[2]string]tuning.Settings, error) {
	t, err := records.Read(filepath.Join(filepath.Dir(file), "targets.csv"), records.Trials)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, os.ErrNotExist) {
		return nil, nil //nolint:nilnil // no file, no targets
	}
	if err != nil {
		return nil, fmt.Errorf("beside the trials: %w", err)
	}
	out := map[[2]string]tuning.Settings{}
	for _, r := range t.Rows {
		own := tuning.Settings{}
		for _, c := range t.Columns {
			if name, ok := strings.CutPrefix(c, "default_knob_"); ok {
				if v, ok := r.Float(c); ok {
					own[name] = tuning.Number(v)
				}
			}
		}
		out[[2]string{r.Workload, r.Machine}] = own
	}
	return out, nil
}
