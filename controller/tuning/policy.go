package tuning

import (
	"math"
	"slices"
	"time"
)

// Mode is how far the tuner may go with a job.
type Mode string

// The modes, from least to most.
const (
	Observe   Mode = "observe"   // profile and remember, nothing else
	Recommend Mode = "recommend" // also say what would be better
	Apply     Mode = "apply"     // also do it
)

// Modes lists the modes from least to most.
func Modes() []Mode { return []Mode{Observe, Recommend, Apply} }

// AtMost returns the lesser of both modes.
func (m Mode) AtMost(limit Mode) Mode {
	if slices.Index(Modes(), m) > slices.Index(Modes(), limit) {
		return limit
	}
	return m
}

// Objective is what a job is tuned for; all are minimised.
type Objective string

// The objectives.
const (
	Energy Objective = "energy" // joules per epoch
	Time   Objective = "time"   // seconds per epoch
	EDP    Objective = "edp"    // joules times seconds
	Blend  Objective = "blend"  // weighted sum of both log ratios to the untuned job
	Cost   Objective = "cost"   // what the site charges for an epoch, see Tariff

	// SearchTime is what Time means for a trial of a search whose trials wait for cores: by how much the trial
	// prolongs the search. No stanza names it.
	SearchTime Objective = "search time"
)

// Objectives lists the objectives.
func Objectives() []Objective { return []Objective{Energy, Time, EDP, Blend, Cost} }

// Policy is what one job's owner allows, with every default filled in.
type Policy struct {
	Mode        Mode        `json:"mode"`
	Objective   Objective   `json:"objective"`
	Weight      float64     `json:"weight"`       // share of energy in Blend, 0 to 1
	MaxSlowdown float64     `json:"max_slowdown"` // seconds per epoch at most this many times the untuned; 0 = unbounded
	Knobs       []Knob      `json:"knobs"`        // in the order written
	Progress    Progress    `json:"progress"`
	Quality     *Quality    `json:"quality,omitempty"`
	Profile     ProfileSpec `json:"profile"`
	Checkpoint  *Checkpoint `json:"checkpoint,omitempty"`
	Budget      Budget      `json:"budget"`
	Actions     []Offer     `json:"actions,omitempty"`  // in the order written
	Search      *Search     `json:"search,omitempty"`   // nil: the job file is one job
	TrialOf     *Search     `json:"trial_of,omitempty"` // nil: the job is not a trial of a search
	Tariff      Tariff      `json:"tariff,omitzero"`    // the site's, as it was when the job was read

	// Limits are what the scheduler and the site took away from the knobs, and Sources says where
	// the stanza's keys and blocks are: file:line; nil = unknown.
	Limits  []Limit           `json:"limits,omitempty"`
	Sources map[string]string `json:"sources,omitempty"`
}

// System knobs: the drivers know them, and they do not change what a job learns.
const (
	Cores      = "cores"
	Memory     = "memory"
	Threads    = "threads"
	GPUs       = "gpus"
	PowerLimit = "power_limit"
)

// SystemKnobs lists the system knobs.
func SystemKnobs() []string { return []string{Cores, Memory, Threads, GPUs, PowerLimit} }

// OtherNames are words of schedulers and libraries for system knobs.
func OtherNames() map[string]string {
	return map[string]string{
		"cpu": Cores, "cpus": Cores, "core": Cores, "ncpus": Cores, "cpus_per_task": Cores, "mem": Memory, "ram": Memory,
		"thread": Threads, "nthreads": Threads, "omp_num_threads": Threads, "gpu": GPUs, "gres": GPUs,
	}
}

// IsSystem reports whether the drivers know a knob of this name.
func IsSystem(name string) bool { return slices.Contains(SystemKnobs(), name) }

// Scale is how the values between Min and Max are spaced.
type Scale string

// The scales.
const (
	Linear Scale = "linear"
	Log    Scale = "log"
	Pow2   Scale = "pow2"
)

// Scales lists the scales.
func Scales() []Scale { return []Scale{Linear, Log, Pow2} }

// Knob is one thing that may be set: to one of Values, or within Min and Max.
type Knob struct {
	Name    string  `json:"name"`
	Env     string  `json:"env,omitempty"`     // environment variable that carries it
	Arg     string  `json:"arg,omitempty"`     // command-line flag that carries it
	Live    bool    `json:"live,omitempty"`    // through the settings file, while the job runs
	Follows string  `json:"follows,omitempty"` // always equal to this other knob
	Quality string  `json:"quality,omitempty"` // QualitySame: no value of it changes what the job learns
	Values  []Value `json:"values,omitempty"`
	Min     Value   `json:"min"`
	Max     Value   `json:"max"`
	Scale   Scale   `json:"scale,omitempty"`
	Default Value   `json:"default"` // the untuned value, where the job file does not show it

	When *Condition `json:"when,omitempty"` // in a search: the knob counts only then
}

// QualitySame marks a knob that changes what an epoch costs and not what the job learns.
const QualitySame = "same"

// Allows reports whether the owner's stanza permits the value.
func (k Knob) Allows(v Value) bool {
	if !v.IsSet() {
		return false
	}
	if len(k.Values) > 0 {
		return slices.Contains(k.Values, v)
	}
	if !k.Min.IsSet() && !k.Max.IsSet() {
		return k.Follows != ""
	}
	return v.IsNumber() &&
		(!k.Min.IsSet() || v.Float() >= k.Min.Float()) &&
		(!k.Max.IsSet() || v.Float() <= k.Max.Float())
}

// Candidates lists the values to consider: all of Values, or at most n spaced over the range by
// Scale, ends included; for Pow2 the upper end is the highest doubling of Min.
func (k Knob) Candidates(n int) []Value {
	if len(k.Values) > 0 {
		return slices.Clone(k.Values)
	}
	if !k.Min.IsSet() || !k.Max.IsSet() || n < 2 {
		return nil
	}
	lo, hi := k.Min.Float(), k.Max.Float()
	if IsSystem(k.Name) {
		lo, hi = math.Ceil(lo), math.Floor(hi)
	}
	if lo > hi {
		return nil
	}
	if k.Scale == Pow2 {
		return doublings(lo, hi, n)
	}
	out := make([]Value, 0, n)
	for i := range n {
		t := float64(i) / float64(n-1)
		v := lo + t*(hi-lo)
		if k.Scale == Log && lo > 0 {
			v = math.Exp(math.Log(lo) + t*(math.Log(hi)-math.Log(lo)))
		}
		if IsSystem(k.Name) {
			v = math.Round(v)
		}
		switch i { // the ends are exact, whatever the arithmetic between them does
		case 0:
			v = lo
		case n - 1:
			v = hi
		}
		out = append(out, Number(min(max(v, lo), hi)))
	}
	return slices.Compact(out)
}

// Counts lists every value of cores that is worth telling apart: a model says which of them to try.
func (k Knob) Counts() []Value {
	switch {
	case len(k.Values) > 0 || k.Scale == Pow2:
		return k.Candidates(math.MaxInt)
	case !k.Min.IsSet() || !k.Max.IsSet():
		return nil
	}
	var out []Value
	lo, hi := max(math.Ceil(k.Min.Float()), 1), math.Floor(k.Max.Float())
	for v := lo; v < hi; v = math.Ceil(max(1.1*v, v+1)) {
		out = append(out, Number(v))
	}
	return append(out, Number(hi))
}

func doublings(lo, hi float64, n int) []Value {
	var all []Value
	for v := lo; v <= hi && v > 0; v *= 2 {
		all = append(all, Number(v))
	}
	if len(all) <= n {
		return all
	}
	out := make([]Value, 0, n)
	for i := range n {
		out = append(out, all[int(math.Round(float64(i)*float64(len(all)-1)/float64(n-1)))])
	}
	return out
}

// Progress specifies how a job reports the end of an epoch.
type Progress struct {
	Pattern string `json:"pattern,omitempty"` // regular expression with groups epoch, total, loss, quality
	File    string `json:"file,omitempty"`    // where the lines are; empty = the job's output
	Report  bool   `json:"report,omitempty"`  // the job writes to the exporter's socket itself
	Total   int    `json:"total,omitempty"`   // epochs in all, where no line says it
}

// IsSet reports whether the job reports progress at all.
func (p Progress) IsSet() bool { return p.Pattern != "" || p.Report }

// Quality guards the knobs that change what a job learns.
type Quality struct {
	Direction string   `json:"direction"`        // max or min
	MaxLoss   float64  `json:"max_loss"`         // how much worse a tuned job may be, as a share of the untuned quality
	Target    *float64 `json:"target,omitempty"` // the quality at which the job is done; nil: after its last epoch

	// Measures are what the trials of a search are compared by; empty: by quality alone.
	Measures []string `json:"measures,omitempty"`
}

// Reaches reports whether a quality is the target or better.
func (q Quality) Reaches(v float64) bool {
	switch {
	case q.Target == nil:
		return false
	case q.Direction == "min":
		return v <= *q.Target
	}
	return v >= *q.Target
}

// ProfileSpec selects the epochs of the profile.
type ProfileSpec struct {
	WarmupEpochs int `json:"warmup_epochs"`
	Epochs       int `json:"epochs"`
}

// Checkpoint specifies how a job is asked to save and leave.
type Checkpoint struct {
	Signal string        `json:"signal"`         // with SIG
	Grace  time.Duration `json:"grace"`          // after this the move is abandoned and the job runs on
	Exit   int           `json:"exit,omitempty"` // the exit status that means "saved, start me again"
	Done   string        `json:"done,omitempty"` // or: a pattern the job prints when it has saved, and goes on
}

// Budget bounds what tuning may cost. Its end stops tuning, never the job.
type Budget struct {
	Energy   Joules        `json:"energy,omitempty"` // 0 = unbounded
	Time     time.Duration `json:"time,omitempty"`   // 0 = unbounded
	Restarts int           `json:"restarts"`         // moves and roll-backs
	Probes   int           `json:"probes"`           // settings tried on the early epochs
	Returns  int           `json:"returns"`          // runs of its kind that may try a setting from their start
}

// The defaults of a stanza.
const (
	DefaultMode         = Recommend
	DefaultObjective    = Time
	DefaultWeight       = 0.5
	DefaultMaxSlowdown  = 1.10 // of every objective but Time, which has none
	DefaultWarmupEpochs = 1
	DefaultEpochs       = 2
	DefaultRestarts     = 2
	DefaultProbes       = 4
	DefaultGrace        = 60 * time.Second
	DefaultSignal       = "SIGUSR1"
	DefaultMaxLoss      = 0.01
)

// DefaultPolicy is the policy of an empty stanza.
func DefaultPolicy() Policy {
	return Policy{
		Mode:      DefaultMode,
		Objective: DefaultObjective,
		Weight:    DefaultWeight,
		Profile:   ProfileSpec{WarmupEpochs: DefaultWarmupEpochs, Epochs: DefaultEpochs},
		Budget:    Budget{Restarts: DefaultRestarts, Probes: DefaultProbes},
	}
}

// Knob returns the knob of this name.
func (p Policy) Knob(name string) (Knob, bool) {
	return First(p.Knobs, func(k Knob) bool { return k.Name == name })
}

// Learns reports whether a knob changes what the job learns, so that only whole runs can judge it.
// A knob that the policy does not name may change anything.
func (p Policy) Learns(name string) bool {
	if k, _ := p.Knob(name); k.Follows != "" {
		name = k.Follows
	}
	k, _ := p.Knob(name)
	return !IsSystem(name) && k.Quality != QualitySame
}

// Relearns reports whether a job learns something else under s. A knob that s does not name is as
// in own.
func (p Policy) Relearns(own, s Settings) bool {
	for name, v := range s {
		was := own[name]
		if !was.IsSet() {
			k, _ := p.Knob(name)
			was = k.Default
		}
		if v != was && p.Learns(name) {
			return true
		}
	}
	return false
}

// CoresAlone reports whether settings differ only in cores, what follows these, and memory.
func (p Policy) CoresAlone(a, b Settings) bool {
	return !slices.ContainsFunc(a.Diff(b), func(name string) bool {
		k, _ := p.Knob(name)
		return name != Cores && name != Memory && k.Follows != Cores
	})
}

// Follows reports whether a knob follows another.
func (p Policy) Follows(name string) bool {
	k, _ := p.Knob(name)
	return k.Follows != ""
}

// Complete returns s with every following knob set equal to the one it follows.
func (p Policy) Complete(s Settings) Settings {
	out := s.Clone()
	for _, k := range p.Knobs {
		if k.Follows != "" {
			if v, ok := out[k.Follows]; ok {
				out[k.Name] = v
			}
		}
	}
	return out
}

// Over returns own with the settings of s, and every following knob set equal to the one it follows. What own leaves
// to the program stays so, unless s names it or changes the one that it follows.
func (p Policy) Over(own, s Settings) Settings {
	out := p.Complete(own.Merge(s))
	for _, k := range p.Knobs {
		if k.Follows != "" && !own[k.Name].IsSet() && !s[k.Name].IsSet() && out[k.Follows] == own[k.Follows] {
			delete(out, k.Name)
		}
	}
	return out
}

// Permits reports whether the stanza allows every value that differs from own, or names the first
// that it does not allow.
func (p Policy) Permits(own, s Settings) (knob string, ok bool) {
	for _, name := range own.Diff(s) {
		k, found := p.Knob(name)
		if !found || !k.permits(p, s) {
			return name, false
		}
	}
	return "", true
}

func (k Knob) permits(p Policy, s Settings) bool {
	v := s[k.Name]
	if k.Follows == "" {
		return k.Allows(v)
	}
	lead, ok := p.Knob(k.Follows)
	return ok && v == s[k.Follows] && k.Allows(v) && lead.Allows(v)
}
