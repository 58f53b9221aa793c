package sim

import (
	"cmp"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
)

// Behaviour is what the #SIM lines of a job file say. Each field with a tag sim is a key; the
// table in the package documentation says what it means. in has the bounds of a number, as
// the form of a text or of a whole number.
type Behaviour struct {
	Epochs        int           `sim:"epochs" in:"1 to 1000000"`
	Seconds       float64       `sim:"seconds" in:"1e-06 to 1e+06"`
	Parallel      float64       `sim:"parallel" in:"0 to 1"`
	Threads       string        `sim:"threads" as:"variable"`
	Chosen        int           `sim:"chosen_threads" in:"0 to 1000000"`
	Oversubscribe float64       `sim:"oversubscribe" in:"0 to 100"`
	Saturate      int           `sim:"saturate" in:"0 to 1000000"`
	Coherence     float64       `sim:"coherence" in:"0 to 100"`
	Drift         float64       `sim:"drift" in:"-0.99 to 100"`
	Start         time.Duration `sim:"start"`

	Noise     float64 `sim:"noise" in:"0 to 2"`
	RunNoise  float64 `sim:"run_noise" in:"0 to 2"`
	RateNoise float64 `sim:"rate_noise" in:"0 to 2"`
	Paired    bool    `sim:"paired"`
	Seed      int64   `sim:"seed"`

	Batch    string  `sim:"batch" as:"variable"`
	Base     float64 `sim:"base" in:"0.001 to 1e+09"`
	Exponent float64 `sim:"exponent" in:"-4 to 4"`

	Quality            float64 `sim:"quality" in:"-1e+09 to 1e+09"`
	QualityPerDoubling float64 `sim:"quality_per_doubling" in:"-1e+09 to 1e+09"`
	Tau                float64 `sim:"tau" in:"0 to 1e+09"`

	Memory         int64         `sim:"memory" as:"bytes"`
	Checkpoint     time.Duration `sim:"checkpoint"`                             // below 0 = it does not save
	CheckpointExit int           `sim:"checkpoint_exit" in:"1 to 255, or none"` // 0 = none
	IgnoreSignal   bool          `sim:"ignore_signal"`

	Exit         int    `sim:"exit" in:"0 to 255"`
	At           int    `sim:"at" in:"0 to 1000000"`
	HangAt       int    `sim:"hang_at" in:"0 to 1000000"`
	Missing      bool   `sim:"missing"`
	ShowEnv      string `sim:"show_env" as:"variable"`
	ShowSettings bool   `sim:"show_settings"`

	Contended      []Span        `sim:"contended"`
	OwnerChangesAt time.Duration `sim:"owner_changes_at"`
	DiesAt         time.Duration `sim:"dies_at"`

	QueueWait time.Duration `sim:"queue_wait"`
	ClosedAt  time.Duration `sim:"closed_at"`
	ClosedBy  string        `sim:"closed_by" as:"word"`

	WattsIdle float64 `sim:"watts_idle" in:"0 to 1e+06"`
	WattsCore float64 `sim:"watts_core" in:"0 to 1e+06"`

	Profile string `sim:"profile" as:"compute, stream, barrier, alloc, io"`
	Rates
}

// Span is a range of epochs, both ends included.
type Span struct{ First, Last int }

// Rates are what the job's counters show: shares of its work, of busy CPUs and of switches,
// numbers for each CPU second, and stalled seconds per second.
type Rates struct {
	Spin                        float64 `sim:"spin" in:"0 to 1"`
	CPU, System, Involuntary    float64
	MinorFaults, MajorFaults    float64
	ContextSwitches, Migrations float64
	ReadChars, WriteChars       float64
	ReadBytes, WriteBytes       float64
	MemoryPressure, IOPressure  float64
}

// The bounds of an epoch keep every time within what a Duration holds.
const (
	minEpoch = time.Microsecond
	maxEpoch = 30 * 24 * time.Hour
)

// A contended epoch loses this share of every core to others.
const stolen = 0.2

func defaults() Behaviour {
	return Behaviour{
		Threads: "OMP_NUM_THREADS", Base: 32, Quality: 0.9,
		Memory: 64 << 20, Checkpoint: -1, CheckpointExit: 85, WattsIdle: 40, WattsCore: 8,
		Profile: "compute", Rates: profile("compute"),
	}
}

// profile is a preset. The rates are invented, but ordered as such programs are: what
// distinguishes two presets here distinguishes them in reality.
func profile(name string) Rates {
	switch name {
	case "stream":
		return Rates{CPU: 1, System: 0.04, MinorFaults: 4e3, ContextSwitches: 60, Involuntary: 0.6, Migrations: 1, ReadChars: 1e4, WriteChars: 1e3, MemoryPressure: 0.01}
	case "barrier":
		return Rates{CPU: 1, Spin: 0.3, System: 0.15, MinorFaults: 300, ContextSwitches: 8e3, Involuntary: 0.1, Migrations: 40, ReadChars: 1e4, WriteChars: 1e3}
	case "alloc":
		return Rates{CPU: 1, System: 0.3, MinorFaults: 6e4, ContextSwitches: 400, Involuntary: 0.3, Migrations: 10, ReadChars: 1e4, WriteChars: 1e3, MemoryPressure: 0.02}
	case "io":
		return Rates{CPU: 0.4, System: 0.35, MinorFaults: 1e3, MajorFaults: 20, ContextSwitches: 5e3, Involuntary: 0.02, Migrations: 5, ReadChars: 2e8, WriteChars: 2e7, ReadBytes: 5e7, WriteBytes: 1e7, IOPressure: 0.5}
	}
	return Rates{CPU: 1, System: 0.005, MinorFaults: 200, ContextSwitches: 30, Involuntary: 0.8, Migrations: 0.5, ReadChars: 1e4, WriteChars: 1e3}
}

// setting is what an attempt runs under, as far as its behaviour depends on it.
type setting struct {
	cores   int
	threads int
	batch   float64
}

// settingOf reads the environment of an attempt as the job would.
func (b *Behaviour) settingOf(cores int, env map[string]string) setting {
	s := setting{cores: cores, threads: cmp.Or(b.Chosen, cores), batch: b.Base}
	if n, err := strconv.Atoi(env[b.Threads]); err == nil && n > 0 {
		s.threads = n
	}
	if v, err := strconv.ParseFloat(env[b.Batch], 64); b.Batch != "" && err == nil && v > 0 && !math.IsInf(v, 0) {
		s.batch = v
	}
	return s
}

// usable is how many cores the job can use at once.
func (s setting) usable() int { return min(s.cores, s.threads) }

// relative is the time of the job's work on s, and the CPU time that it takes, both in
// units of its time on one core: Amdahl's law; with coherence= Gunther's universal
// scalability law. Cores that wait for memory or for each other's caches are busy.
func (b *Behaviour) relative(s setting) (wall, cpu float64) {
	cores := float64(s.usable())
	faster := cores
	if b.Saturate > 0 {
		faster = min(cores, float64(b.Saturate))
	}
	lost := b.Coherence * (cores - 1)
	over := max(0, float64(s.threads)/float64(s.cores)-1)
	wall = ((1 - b.Parallel) + b.Parallel/faster + lost) * (1 + b.Oversubscribe*over)
	return wall, (1 - b.Parallel) + b.Parallel*(cores/faster) + lost*cores
}

// epochTime is how long the epoch takes in the named run.
func (b *Behaviour) epochTime(s setting, run uint64, epoch int) time.Duration {
	work := b.Seconds * math.Pow(b.Base/s.batch, b.Exponent)
	wall, _ := b.relative(s)
	work *= 1 + b.Drift*float64(epoch-1)/float64(max(1, b.Epochs-1))
	t := work * wall * b.draw(b.RunNoise, run, 0, 0) * b.draw(b.Noise, run, epoch, 1)
	if b.contended(epoch) {
		t /= 1 - stolen
	}
	switch {
	case math.IsNaN(t), t > maxEpoch.Seconds():
		return maxEpoch
	case t < minEpoch.Seconds():
		return minEpoch
	}
	return time.Duration(t * float64(time.Second))
}

func (b *Behaviour) contended(epoch int) bool {
	return slices.ContainsFunc(b.Contended, func(s Span) bool { return s.First <= epoch && epoch <= s.Last })
}

// lossAt and qualityAt are the learning curve: exponential approach to the end.
func (b *Behaviour) lossAt(epoch int) float64 {
	return 0.1 + 2.2*b.left(epoch)
}

func (b *Behaviour) qualityAt(s setting, epoch int) float64 {
	end := b.Quality + b.QualityPerDoubling*math.Log2(s.batch/b.Base)
	return end * (1 - b.left(epoch))
}

func (b *Behaviour) left(epoch int) float64 {
	tau := b.Tau
	if tau == 0 {
		tau = float64(b.Epochs) / 5
	}
	return math.Exp(-float64(epoch) / tau)
}

// runSeed names a run: everything random in it follows from this number.
func (b *Behaviour) runSeed(cluster int64, name string, attempt int) uint64 {
	if b.Paired {
		attempt = 0
	}
	h := fnv.New64a()
	for _, part := range []string{strconv.FormatInt(cluster, 10), strconv.FormatInt(b.Seed, 10), name, strconv.Itoa(attempt)} {
		_, _ = h.Write([]byte(part)) // a hash never fails
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}

// draw is a lognormal factor of mean 1 that depends on its arguments alone.
func (b *Behaviour) draw(sigma float64, run uint64, epoch, stream int) float64 {
	if sigma == 0 {
		return 1
	}
	rng := rand.New(rand.NewPCG(run, uint64(epoch)<<16|uint64(stream)))
	return math.Exp(sigma*rng.NormFloat64() - sigma*sigma/2)
}
