package worlds

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"pitchpipe/controller/stanza"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver/jobfile/detect"
)

// kind is what a world is about.
type kind string

const (
	single kind = "single" // one job of an unknown kind
	second kind = "second" // the same kind runs again, with as many cores or another number
	batch  kind = "batch"  // twelve runs of a kind whose batch size may change
)

// world is a machine and the runs of one kind of job on it, one after the other.
type world struct {
	seed  uint64
	kind  kind
	cores int // of the node
	runs  []job
}

// job is one run.
type job struct {
	own       setting
	allowed   []setting // by the stanza and the site's ceilings, without own
	objective tuning.Objective
	slowdown  float64       // 0 = unbounded
	keeps     float64       // share of the quality that must be kept; 0 = no guard
	threads   bool          // a knob that follows the cores
	moves     bool          // it can save and leave
	saves     time.Duration // a restart takes this and
	starts    time.Duration
	epoch     time.Duration // usual length under own
	source    string
}

// setting is what a job runs under.
type setting struct{ cores, batch int }

func (s setting) String() string {
	if s.batch == baseBatch {
		return fmt.Sprintf("cores=%d", s.cores)
	}
	return fmt.Sprintf("cores=%d batch=%d", s.cores, s.batch)
}

const baseBatch = 32

// dice draws.
type dice struct{ *rand.Rand }

func (d dice) within(low, high float64) float64 { return low + (high-low)*d.Float64() }

// scaled draws as many between 1 and 10 as between 10 and 100.
func (d dice) scaled(low, high float64) float64 { return low * math.Pow(high/low, d.Float64()) }

func (d dice) chance(share float64) bool { return d.Float64() < share }

func one[T any](d dice, of ...T) T { return of[d.IntN(len(of))] }

// objective draws one. For time by itself few jobs gain from what is within their request.
func (d dice) objective() tuning.Objective {
	o := one(d, tuning.Energy, tuning.Energy, tuning.Time, "cost", "cost")
	if !slices.Contains(tuning.Objectives(), o) {
		return tuning.Energy
	}
	return o
}

// draw makes the world of a seed.
func draw(seed uint64) world {
	d := dice{rand.New(rand.NewPCG(seed, 14))}
	w := world{seed: seed, kind: []kind{single, single, single, second, second, batch}[seed%6]}
	asked := []int{d.asked()}
	switch w.kind {
	case single:
	case second:
		again := asked[0]
		if d.chance(0.5) {
			for again == asked[0] {
				again = min(64, max(2, int(float64(asked[0])*one(d, 0.25, 0.5, 2, 4))))
			}
		}
		asked = append(asked, again)
	case batch:
		asked = slices.Repeat(asked, 12)
	}
	most := slices.Max(asked)
	for w.cores < most {
		w.cores = one(d, most, 8, 16, 24, 32, 48, 64, 96, 128)
	}
	p := d.program(w, asked)
	for n, cores := range asked {
		w.runs = append(w.runs, p.run(w, n, cores, d))
	}
	return w
}

// asked is for how many cores an owner asks.
func (d dice) asked() int {
	if d.chance(0.25) {
		return 2 + d.IntN(63)
	}
	return 1 << (1 + d.IntN(6))
}

// program is what all runs of a kind share.
type program struct {
	parallel, coherence float64
	saturate            int
	seconds             float64 // of an epoch on one core
	quality             float64
	knob                string // of the cores: how its values are written
	fixed               bool   // the script sets the threads, whatever cores it gets
	stanza              string // %s is the knob of the cores
	sim                 string
	job                 job // what all have alike
}

func (d dice) program(w world, asked []int) program {
	p := program{parallel: one(d, d.within(0, 0.5), d.within(0.5, 0.95), d.within(0.95, 0.99)), quality: 0.9}
	if d.chance(0.25) {
		p.saturate = 1 + d.IntN(asked[0])
	}
	if d.chance(0.2) {
		p.coherence = d.scaled(1e-4, 1e-2)
	}
	longest, most := 48.0*3600, 300.0
	if w.kind == batch { // twelve of them take their time to play
		longest, most = 24*3600, 100
	}
	length := d.scaled(20*60, longest)
	epochs := int(d.scaled(max(20, length/1800), most)) // an epoch ends within the longest grace
	slowest := 0.0
	for _, cores := range asked {
		slowest = max(slowest, p.wall(cores))
	}
	p.seconds = length / float64(epochs) / slowest
	restart := time.Duration(d.scaled(2, 300) * float64(time.Second)).Round(time.Millisecond)
	p.job.starts = time.Duration(float64(restart) * d.within(0.2, 0.8)).Round(time.Millisecond)
	p.job.saves = restart - p.job.starts

	p.job.objective = d.objective()
	p.job.slowdown = one(d, 0, 1.05, 1.1, 1.5, 2)
	p.job.threads = d.chance(0.6)
	p.fixed = !p.job.threads && d.chance(0.5)
	p.job.moves = w.kind != batch || d.chance(0.5)
	p.knob = one(d, "values", "values", "values", "sparse", "linear", "log", "pow2")

	var s strings.Builder
	fmt.Fprintf(&s, "#TUNE mode=apply objective=%s", p.job.objective)
	switch {
	case p.job.slowdown > 0:
		fmt.Fprintf(&s, " max_slowdown=%g", p.job.slowdown)
	case understood("#TUNE max_slowdown=none"):
		s.WriteString(" max_slowdown=none")
	}
	s.WriteString("\n%s")
	if p.job.threads {
		s.WriteString("#TUNE knob threads env=OMP_NUM_THREADS follows=cores\n")
	}
	if w.kind == batch {
		p.job.keeps = 1 - tuning.DefaultMaxLoss
		s.WriteString("#TUNE knob batch_size env=BATCH_SIZE values=32,64,128,256 default=32\n" +
			"#TUNE quality direction=max max_loss=0.01\n#TUNE budget returns=8\n")
	}
	s.WriteString("#TUNE progress pattern='epoch (?P<epoch>\\d+)/(?P<total>\\d+) loss (?P<loss>\\S+) acc (?P<quality>\\S+)'\n")
	if p.job.moves {
		s.WriteString("#TUNE checkpoint signal=USR1 grace=1h exit=85\n")
	}
	p.stanza = s.String()

	s.Reset()
	fmt.Fprintf(&s, "#SIM epochs=%d parallel=%.4f saturate=%d coherence=%.5f profile=%s\n",
		epochs, p.parallel, p.saturate, p.coherence, one(d, "compute", "stream", "barrier", "alloc", "io"))
	if p.fixed {
		fmt.Fprintf(&s, "#SIM oversubscribe=%.3f\n", d.within(0, 0.2))
	}
	if d.chance(0.15) {
		fmt.Fprintf(&s, "#SIM spin=%.2f\n", d.within(0.5, 1))
	}
	fmt.Fprintf(&s, "#SIM noise=%.4f rate_noise=0.05 paired=true start=%s checkpoint=%s memory=1GiB\n",
		d.within(0.01, 0.05), p.job.starts, p.job.saves)
	fmt.Fprintf(&s, "#SIM drift=%.3f watts_idle=%.1f watts_core=%.2f\n",
		one(d, 0, 0, d.within(0.05, 0.6), -d.within(0.05, 0.4)), 30+float64(w.cores)*d.within(0.5, 2.5), d.within(2, 10))
	if d.chance(0.3) {
		fmt.Fprintf(&s, "#SIM contended=%s\n", d.spans(epochs))
	}
	if w.kind == batch {
		harm := one(d, 0, d.within(0, 0.003), d.within(0.003, 0.05))
		fmt.Fprintf(&s, "#SIM batch=BATCH_SIZE base=%d exponent=%.3f quality_per_doubling=%.5f\n", baseBatch, d.within(-0.05, 0.4), -harm)
	}
	p.sim = s.String()
	return p
}

// understood reports whether the stanza allows the line.
func understood(line string) bool {
	file, err := detect.Parse("job.sbatch", []byte("#!/bin/sh\n#TUNE mode=apply\n"+line+"\nexec ./train\n"), nil)
	if err == nil {
		_, err = stanza.Policy(file)
	}
	return err == nil
}

// spans are epochs in which a neighbour is busy.
func (d dice) spans(epochs int) string {
	var out []string
	for from := 1 + d.IntN(epochs/2); from <= epochs && len(out) < 3; {
		to := min(epochs, from+d.IntN(max(2, epochs/8)))
		out = append(out, fmt.Sprintf("%d-%d", from, to))
		from = to + 1 + d.IntN(epochs/2)
	}
	return strings.Join(out, ",")
}

// wall is the law of the simulation, by which a job gets its length.
func (p program) wall(cores int) float64 {
	faster := min(cores, cmp.Or(p.saturate, cores))
	return 1 - p.parallel + p.parallel/float64(faster) + p.coherence*float64(cores-1)
}

// run is one of the kind, with its own luck and input.
func (p program) run(w world, n, cores int, d dice) job {
	j := p.job
	j.own = setting{cores, baseBatch}
	knob, values := p.cores(cores)
	seconds, quality := p.seconds, p.quality
	if n > 0 { // no input is like another
		seconds *= math.Exp(0.05 * d.NormFloat64())
		quality += 0.001 * d.NormFloat64()
	}
	j.epoch = time.Duration(seconds * p.wall(cores) * float64(time.Second))
	for _, c := range values {
		for b := baseBatch; b <= 256; b *= 2 {
			if s := (setting{c, b}); s != j.own && (b == baseBatch || w.kind == batch) {
				j.allowed = append(j.allowed, s)
			}
		}
	}
	j.source = fmt.Sprintf("#!/bin/sh\n#SBATCH --job-name=world-%d\n#SBATCH --cpus-per-task=%d\n", w.seed, cores) +
		fmt.Sprintf(p.stanza, knob) + p.sim + fmt.Sprintf("#SIM seconds=%.4f quality=%.5f seed=%d\n", seconds, quality, n)
	if p.fixed {
		j.source += fmt.Sprintf("export OMP_NUM_THREADS=%d\n", cores)
	}
	j.source += "exec ./train\n"
	return j
}

// cores is the knob for a job that asks for so many, and the values that it allows.
func (p program) cores(asked int) (line string, values []int) {
	for c := 1; c < asked; c *= 2 {
		values = append(values, c)
	}
	values = append(values, asked)
	switch p.knob {
	case "values":
	case "sparse":
		values = values[(len(values)-1)/2:]
	default:
		// What lies between the values of a range is allowed whatever its scale is.
		values = nil
		for c := 1; c <= asked; c++ {
			values = append(values, c)
		}
		return fmt.Sprintf("#TUNE knob cores min=1 max=%d scale=%s\n", asked, p.knob), values
	}
	return fmt.Sprintf("#TUNE knob cores values=%s\n", strings.ReplaceAll(strings.Trim(fmt.Sprint(values), "[]"), " ", ",")), values
}
